//! What method events show of the masks and the level of the sessions.

use etl_format::Ticks;
use etl_schema::views::clr::{Change, Method};

use crate::counted::Counted;

/// What decides whether the CLR raises a method event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MethodSign {
    /// What happened to the method.
    pub change: Change,
    /// The lowest bits of its flags: 1 dynamic, 2 generic, 4 shared generic, 8 jitted, 0x10 helper.
    pub flags: u32,
    /// Whether the event names it.
    pub named: bool,
}

impl MethodSign {
    /// Flags that decide whether the CLR raises the event.
    const FLAGS: u32 = 0x1f;

    /// The sign of a method event with these flags.
    #[must_use]
    #[doc(hidden)]
    pub const fn new(change: Change, flags: u32, named: bool) -> Self {
        MethodSign {
            change,
            flags: flags & Self::FLAGS,
            named,
        }
    }

    /// Whether the method has metadata and was compiled at run time.
    #[must_use]
    pub const fn is_compiled(self) -> bool {
        self.flags & 0x19 == 8
    }

    /// Whether it is the load of code that was compiled at run time, including the code of dynamic
    /// methods and helpers.
    #[must_use]
    pub fn is_jit_load(self) -> bool {
        self.change == Change::Load && !self.is_precompiled()
    }

    /// Whether the method was compiled before it ran.
    #[must_use]
    pub const fn is_precompiled(self) -> bool {
        self.flags & 0x19 == 0
    }

    /// Whether a rundown lists a method that was compiled before it ran.
    #[must_use]
    pub const fn is_listed_precompiled(self) -> bool {
        matches!(self.change, Change::Rundown(_)) && self.is_precompiled()
    }

    pub(super) fn of(change: Change, method: &Method<'_>) -> Self {
        MethodSign::new(change, method.flags, method.is_named())
    }
}

/// The method events of a process with one sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignCount {
    /// What they have in common.
    pub sign: MethodSign,
    /// How many there are, and when the first was.
    pub counted: Counted,
}

/// Counts of method events by their signs: a handful, and never more than signs differ.
#[derive(Clone, Debug, Default)]
pub(crate) struct MethodSigns {
    counts: Vec<SignCount>,
    /// Index of the last sign: events with the same sign come one after the other.
    recent: usize,
}

impl MethodSigns {
    /// Counts an event.
    #[inline]
    pub fn add(&mut self, sign: MethodSign, timestamp: Ticks) {
        match self.counts.get_mut(self.recent) {
            Some(recent) if recent.sign == sign => recent.counted.add(timestamp),
            _ => self.add_other(sign, timestamp),
        }
    }

    #[inline(never)]
    fn add_other(&mut self, sign: MethodSign, timestamp: Ticks) {
        let index = self.counts.iter().position(|count| count.sign == sign);
        self.recent = index.unwrap_or(self.counts.len());
        if index.is_none() {
            let counted = Counted::default();
            self.counts.push(SignCount { sign, counted });
        }
        if let Some(count) = self.counts.get_mut(self.recent) {
            count.counted.add(timestamp);
        }
    }

    /// The counts, in the order in which their signs appeared.
    pub fn list(&self) -> &[SignCount] {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn add_counts_equal_signs_together() {
        let load = MethodSign {
            change: Change::Load,
            flags: 8,
            named: true,
        };
        let mut signs = MethodSigns::default();
        signs.add(load, Ticks::new(5));
        signs.add(
            MethodSign {
                named: false,
                ..load
            },
            Ticks::new(6),
        );
        signs.add(load, Ticks::new(7));
        let counts: Vec<_> = signs
            .list()
            .iter()
            .map(|count| (count.sign.named, count.counted.count))
            .collect();
        assert_eq!(counts, [(true, 2), (false, 1)]);
        assert_eq!(signs.list()[0].counted.first, Some(Ticks::new(5)));
    }
}
