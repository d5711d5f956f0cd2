//! Packets in parts: before Windows 8.1, the parts of a packet's memory are events of their own.

use std::borrow::Cow;
use std::collections::BTreeMap;

use etl_format::ThreadId;
use etl_format::read::Record;

/// Bytes of a packet, at most.
const MAX_PACKET: usize = 0xffff;
/// Packets that are open at a time: one for each processor and interface is usual.
const MAX_OPEN: usize = 1 << 10;

/// Where the parts of a packet are logged one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    interface: u32,
    processor: u16,
    thread: u32,
}

impl Origin {
    /// The origin of a record about a packet of an interface.
    pub fn new(interface: u32, record: &Record<'_>) -> Self {
        Origin {
            interface,
            processor: record.processor(),
            thread: record.thread_id().map_or(0, ThreadId::get),
        }
    }
}

/// A packet, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment<'a> {
    pub bytes: &'a [u8],
    pub is_first: bool,
    pub is_last: bool,
}

impl<'a> Fragment<'a> {
    /// A whole packet.
    pub const fn whole(bytes: &'a [u8]) -> Self {
        Fragment {
            bytes,
            is_first: true,
            is_last: true,
        }
    }
}

/// Packets whose end has not come yet.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    open: BTreeMap<Origin, Vec<u8>>,
    incomplete: u64,
}

impl Reassembly {
    /// Adds a part, and returns the packet if it is whole.
    pub fn add<'a>(&mut self, origin: Origin, fragment: Fragment<'a>) -> Option<Cow<'a, [u8]>> {
        let Fragment {
            bytes,
            is_first,
            is_last,
        } = fragment;
        let open = if self.open.is_empty() {
            None
        } else {
            self.open.remove(&origin)
        };
        // Nearly all packets are whole.
        if open.is_none() && is_first && is_last && bytes.len() <= MAX_PACKET {
            return Some(Cow::Borrowed(bytes));
        }
        let mut packet = match (open, is_first) {
            (None, true) => Vec::new(),
            (Some(open), false) => open,
            // The end of the previous packet is missing.
            (Some(_), true) => {
                self.incomplete += 1;
                Vec::new()
            }
            // The beginning of this packet is missing.
            (None, false) => {
                self.incomplete += u64::from(is_last);
                return None;
            }
        };
        if packet.len() + bytes.len() > MAX_PACKET {
            self.incomplete += 1;
            return None;
        }
        packet.extend_from_slice(bytes);
        if is_last {
            return Some(Cow::Owned(packet));
        }
        if self.open.len() < MAX_OPEN {
            self.open.insert(origin, packet);
        } else {
            self.incomplete += 1;
        }
        None
    }

    /// How many packets have missing parts.
    pub fn incomplete(&self) -> u64 {
        self.incomplete + self.open.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{Fragment, Origin, Reassembly};

    const WHOLE: [bool; 2] = [true, true];
    const FIRST: [bool; 2] = [true, false];
    const MIDDLE: [bool; 2] = [false, false];
    const LAST: [bool; 2] = [false, true];

    /// Adds a part of a packet of a processor and a thread.
    fn add(
        parts: &mut Reassembly,
        processor: u16,
        thread: u32,
        bytes: &[u8],
        [is_first, is_last]: [bool; 2],
    ) -> Option<Vec<u8>> {
        let origin = Origin {
            interface: 0,
            processor,
            thread,
        };
        let fragment = Fragment {
            bytes,
            is_first,
            is_last,
        };
        Some(parts.add(origin, fragment)?.into_owned())
    }

    #[test]
    fn packet_is_put_together_by_interface_processor_and_thread() {
        let mut parts = Reassembly::default();
        assert_eq!(add(&mut parts, 1, 2, b"ab", FIRST), None);
        assert_eq!(add(&mut parts, 2, 2, b"xy", WHOLE), Some(b"xy".to_vec()));
        assert_eq!(add(&mut parts, 1, 2, b"cd", MIDDLE), None);
        assert_eq!(add(&mut parts, 1, 2, b"e", LAST), Some(b"abcde".to_vec()));
        assert_eq!(parts.incomplete(), 0);
    }

    #[test]
    fn packet_without_beginning_or_end_is_counted() {
        let mut parts = Reassembly::default();
        assert_eq!(add(&mut parts, 0, 0, b"b", MIDDLE), None);
        assert_eq!(add(&mut parts, 0, 0, b"c", LAST), None);
        assert_eq!(add(&mut parts, 0, 0, b"a", FIRST), None);
        assert_eq!(add(&mut parts, 0, 0, b"d", WHOLE), Some(b"d".to_vec()));
        assert_eq!(add(&mut parts, 0, 1, &[0; 0x1_0000], WHOLE), None);
        assert_eq!(parts.incomplete(), 3);
    }
}
