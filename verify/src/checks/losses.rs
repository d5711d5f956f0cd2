//! The losses that may have removed an event: losses of the files that have events of its kind.

use etl_analysis::Machine;
use etl_analysis::files::FileFacts;
use etl_analysis::loss::Loss;
use etl_format::Ticks;

use super::Facts;

/// Who writes the events that a rule asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventOrigin {
    /// The CLR's providers.
    Clr,
    /// The kernel.
    Kernel,
    /// Anyone.
    Any,
}

impl EventOrigin {
    /// Whether a file has events of this origin.
    fn is_in(self, file: &FileFacts) -> bool {
        match self {
            EventOrigin::Clr => file.has_clr,
            EventOrigin::Kernel => file.has_kernel,
            EventOrigin::Any => true,
        }
    }
}

/// The losses of a trace, by the origin of the events that they may have removed.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    clr: SortedLosses,
    kernel: SortedLosses,
    any: SortedLosses,
}

impl Losses {
    pub fn new(machine: &Machine) -> Self {
        Losses {
            clr: losses_of(machine, EventOrigin::Clr),
            kernel: losses_of(machine, EventOrigin::Kernel),
            any: losses_of(machine, EventOrigin::Any),
        }
    }
}

/// The losses that may have removed events of an origin.
fn losses_of(machine: &Machine, origin: EventOrigin) -> SortedLosses {
    let is_in_any_file = machine.files().iter().any(|file| origin.is_in(file));
    let losses = machine.losses().iter().copied();
    SortedLosses::new(
        losses.filter(|loss| match machine.files().get(loss.source) {
            Some(file) => !is_in_any_file || may_have_lost(file, origin),
            None => true,
        }),
    )
}

/// Whether a file may have lost events of an origin, if some file has events of this origin. With
/// one session for the kernel and one for the CLR, the kernel's file has no CLR events to lose. A
/// file without events of either may have lost any.
fn may_have_lost(file: &FileFacts, origin: EventOrigin) -> bool {
    origin.is_in(file) || !(file.has_clr || file.has_kernel)
}

/// Losses in the order of their beginnings.
#[derive(Clone, Debug, Default)]
struct SortedLosses {
    losses: Vec<Loss>,
    /// For each loss, the latest end of the losses up to it.
    latest_ends: Vec<Ticks>,
}

impl SortedLosses {
    fn new(losses: impl Iterator<Item = Loss>) -> Self {
        let mut losses: Vec<Loss> = losses.collect();
        losses.sort_unstable();
        let mut latest_end = Ticks::MIN;
        let mut latest_ends = Vec::with_capacity(losses.len());
        for loss in &losses {
            latest_end = loss.to.unwrap_or(Ticks::MAX).max(latest_end);
            latest_ends.push(latest_end);
        }
        SortedLosses {
            losses,
            latest_ends,
        }
    }

    /// The first loss that may have happened from `from` to `to`: the first that does not end
    /// before `from`, unless it begins after `to`.
    fn first_in(&self, from: Option<Ticks>, to: Option<Ticks>) -> Option<&Loss> {
        let from = from.unwrap_or(Ticks::MIN);
        let index = self.latest_ends.partition_point(|&end| end < from);
        let loss = self.losses.get(index)?;
        Some(loss).filter(|loss| loss.touches(None, to))
    }
}

impl Facts {
    /// The first loss from `from` to `to` that may have removed an event of an origin.
    pub fn first_loss(
        &self,
        origin: EventOrigin,
        from: Option<Ticks>,
        to: Option<Ticks>,
    ) -> Option<&Loss> {
        let losses = match origin {
            EventOrigin::Clr => &self.losses.clr,
            EventOrigin::Kernel => &self.losses.kernel,
            EventOrigin::Any => &self.losses.any,
        };
        losses.first_in(from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_analysis::loss::LossKind;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn first_in_is_the_first_loss_that_touches_the_span(
            losses in prop::collection::vec(prop::option::of((0..20i64, 0..20i64)), 0..6),
            open in prop::collection::vec(any::<(bool, bool)>(), 6),
            from in prop::option::of(0..20i64),
            to in prop::option::of(0..20i64),
        ) {
            let from = from.map(Ticks::new);
            let to = to.map(Ticks::new);
            let loss = |(span, (from, to)): (Option<(i64, i64)>, (bool, bool))| {
                let (a, b) = span.unwrap_or_default();
                let a = Ticks::new(a);
                let b = Ticks::new(b);
                Loss {
                    from: (!from).then_some(a.min(b)),
                    to: (!to).then_some(a.max(b)),
                    processor: None,
                    what: LossKind::EventsLost,
                    source: 0,
                    session: 0,
                }
            };
            let mut losses: Vec<Loss> = losses.into_iter().zip(open).map(loss).collect();
            losses.sort_unstable();
            let sorted = SortedLosses::new(losses.iter().copied());
            let expected = losses.iter().find(|loss| loss.touches(from, to));
            prop_assert_eq!(sorted.first_in(from, to), expected);
        }
    }
}
