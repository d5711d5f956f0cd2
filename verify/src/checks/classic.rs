//! Counts of events without a manifest: kernel events, classic events, and messages.

use etl_format::Guid;
use etl_format::constants::{hook_class, hook_group};
use etl_format::read::{Header, InstanceHeader, Record};
use foldhash::HashMap;

/// Event types of a group of kernel events.
const TYPES: usize = 256;

/// How often each kind of event occurs.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassicCounts {
    /// Events of the kernel, by group and type, up to the highest group that occurs.
    kernel: Vec<u64>,
    /// Other events, by class and type, or by the number of a message.
    others: HashMap<(Guid, u16), u64>,
}

/// A kind of event and how often it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassicCount {
    /// The class, or the GUID of messages; zero for a group of the kernel without a class.
    pub class: Guid,
    /// The group of a kernel event; `None` for other events.
    pub group: Option<u8>,
    /// The type, or the number of a message.
    pub id: u16,
    /// The number of events.
    pub count: u64,
}

impl ClassicCounts {
    /// Kinds of other events that are counted; later kinds are ignored.
    const MAX_KINDS: usize = 1 << 12;

    /// Counts an event of the kernel.
    #[inline(always)]
    pub fn add_kernel(&mut self, hook: u16) {
        match self.kernel.get_mut(usize::from(hook)) {
            Some(count) => *count += 1,
            None => self.first_of_group(hook),
        }
    }

    #[cold]
    #[inline(never)]
    fn first_of_group(&mut self, hook: u16) {
        self.kernel
            .resize((usize::from(hook) / TYPES + 1) * TYPES, 0);
        if let Some(count) = self.kernel.get_mut(usize::from(hook)) {
            *count = 1;
        }
    }

    /// Counts another event.
    pub fn add(&mut self, record: &Record<'_>) {
        let key = match record.header() {
            Header::Full(h) | Header::Instance(InstanceHeader { full: h, .. }) => {
                (h.class, h.opcode.into())
            }
            Header::Message(h) => (record.provider().unwrap_or(Guid::ZERO), h.number),
            _ => (Guid::ZERO, 0),
        };
        if self.others.len() < Self::MAX_KINDS || self.others.contains_key(&key) {
            *self.others.entry(key).or_insert(0) += 1;
        }
    }

    /// The kinds with events, in no particular order.
    pub fn list(&self) -> Vec<ClassicCount> {
        let mut out = Vec::new();
        for (group, types) in (0..=u8::MAX).zip(self.kernel.chunks(TYPES)) {
            for (id, &count) in (0..=u8::MAX).zip(types) {
                let hook = u16::from_be_bytes([group, id]);
                if count > 0 {
                    out.push(ClassicCount {
                        class: hook_class(hook).unwrap_or(Guid::ZERO),
                        group: Some(hook_group(hook)),
                        id: id.into(),
                        count,
                    });
                }
            }
        }
        for (&(class, id), &count) in &self.others {
            out.push(ClassicCount {
                class,
                group: None,
                id,
                count,
            });
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_has_the_kinds_of_the_kernel_with_events() {
        let mut counts = ClassicCounts::default();
        for hook in [0x0f2e, 0x0f2e, 0xffff] {
            counts.add_kernel(hook);
        }
        let class = hook_class(0x0f2e).unwrap();
        let samples = ClassicCount {
            class,
            group: Some(0x0f),
            id: 0x2e,
            count: 2,
        };
        let unknown = ClassicCount {
            class: Guid::ZERO,
            group: Some(0xff),
            id: 0xff,
            count: 1,
        };
        assert_eq!(counts.list(), [samples, unknown]);
    }
}
