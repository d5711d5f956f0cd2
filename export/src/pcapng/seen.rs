//! Packets that were written already.

use std::collections::{HashSet, VecDeque};

use foldhash::fast::FixedState;

use super::packet::PacketNumber;

/// Packets that are remembered. One passes the network stack in less than a second.
const MAX_PACKETS: usize = 1 << 16;

/// The last packets.
#[derive(Debug, Default)]
pub(super) struct Seen {
    packets: HashSet<PacketNumber, FixedState>,
    /// The oldest first.
    order: VecDeque<PacketNumber>,
}

impl Seen {
    /// Whether a packet comes for the first time.
    pub fn is_new(&mut self, packet: PacketNumber) -> bool {
        if !self.packets.insert(packet) {
            return false;
        }
        if self.order.len() == MAX_PACKETS
            && let Some(oldest) = self.order.pop_front()
        {
            self.packets.remove(&oldest);
        }
        self.order.push_back(packet);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_PACKETS, PacketNumber, Seen};

    #[test]
    fn packet_is_new_once_among_the_last_ones() {
        let mut seen = Seen::default();
        let first = PacketNumber {
            group: 1,
            number: 1,
        };
        assert!(seen.is_new(first));
        assert!(seen.is_new(PacketNumber { number: 2, ..first }));
        assert!(!seen.is_new(first));
        for group in 2..=MAX_PACKETS as u64 + 1 {
            assert!(seen.is_new(PacketNumber { group, ..first }));
        }
        assert!(seen.is_new(first));
        assert_eq!(seen.packets.len(), MAX_PACKETS);
    }
}
