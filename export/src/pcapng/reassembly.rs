//! Packets in parts: before Windows 8.1, the parts of a packet's memory are events of their own.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Bytes that a packet has at most.
const MAX_PACKET: usize = 0xffff;
/// Packets that are open at a time: one for each processor and interface is usual.
const MAX_OPEN: usize = 1 << 10;

/// An interface, a processor and a thread.
type Key = (u32, u16, u32);

/// Packets whose end has not come yet.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    open: BTreeMap<Key, Vec<u8>>,
    incomplete: u64,
}

impl Reassembly {
    /// Adds a part, and returns the packet if it is whole.
    pub fn add<'a>(
        &mut self,
        key: Key,
        bytes: &'a [u8],
        begins: bool,
        ends: bool,
    ) -> Option<Cow<'a, [u8]>> {
        let before = if self.open.is_empty() {
            None
        } else {
            self.open.remove(&key)
        };
        // Nearly all packets are whole.
        if before.is_none() && begins && ends && bytes.len() <= MAX_PACKET {
            return Some(Cow::Borrowed(bytes));
        }
        let mut packet = match (before, begins) {
            (None, true) => Vec::new(),
            (Some(before), false) => before,
            // The end of the one before, or the beginning of this one, is missing.
            (Some(_), true) => {
                self.incomplete += 1;
                Vec::new()
            }
            (None, false) => {
                self.incomplete += u64::from(ends);
                return None;
            }
        };
        if packet.len() + bytes.len() > MAX_PACKET {
            self.incomplete += 1;
            return None;
        }
        packet.extend_from_slice(bytes);
        if ends {
            return Some(Cow::Owned(packet));
        }
        if self.open.len() < MAX_OPEN {
            self.open.insert(key, packet);
        } else {
            self.incomplete += 1;
        }
        None
    }

    /// Packets that never were whole.
    pub fn incomplete(&self) -> u64 {
        self.incomplete + self.open.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{Cow, Reassembly};

    #[test]
    fn packet_is_put_together_by_interface_processor_and_thread() {
        let mut parts = Reassembly::default();
        assert_eq!(parts.add((0, 1, 2), b"ab", true, false), None);
        assert_eq!(
            parts.add((0, 2, 2), b"xy", true, true),
            Some(Cow::Borrowed(&b"xy"[..]))
        );
        assert_eq!(parts.add((0, 1, 2), b"cd", false, false), None);
        assert_eq!(
            parts.add((0, 1, 2), b"e", false, true),
            Some(Cow::Borrowed(&b"abcde"[..]))
        );
        assert_eq!(parts.incomplete(), 0);
    }

    #[test]
    fn packet_without_beginning_or_end_is_counted() {
        let mut parts = Reassembly::default();
        assert_eq!(parts.add((0, 0, 0), b"b", false, false), None);
        assert_eq!(parts.add((0, 0, 0), b"c", false, true), None);
        assert_eq!(parts.add((0, 0, 0), b"a", true, false), None);
        assert_eq!(
            parts.add((0, 0, 0), b"d", true, true),
            Some(Cow::Borrowed(&b"d"[..]))
        );
        assert_eq!(parts.add((0, 0, 1), &[0; 0x1_0000], true, true), None);
        assert_eq!(parts.incomplete(), 3);
    }
}
