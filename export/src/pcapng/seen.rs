//! Packets that were written already.

use std::collections::{HashSet, VecDeque};

use foldhash::fast::FixedState;

/// Packets that are remembered. One passes the network stack in less than a second.
const MAX_PACKETS: usize = 1 << 16;

/// Group and number of the last packets.
#[derive(Debug, Default)]
pub(super) struct Seen {
    known: HashSet<(u64, u64), FixedState>,
    order: VecDeque<(u64, u64)>,
}

impl Seen {
    /// Whether a packet comes for the first time.
    pub fn is_new(&mut self, packet: (u64, u64)) -> bool {
        if !self.known.insert(packet) {
            return false;
        }
        if self.order.len() == MAX_PACKETS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.order.push_back(packet);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_PACKETS, Seen};

    #[test]
    fn packet_is_new_once_among_the_last_ones() {
        let mut seen = Seen::default();
        assert!(seen.is_new((1, 1)) && seen.is_new((1, 2)) && !seen.is_new((1, 1)));
        assert!((2..=MAX_PACKETS as u64 + 1).all(|group| seen.is_new((group, 1))));
        assert!(seen.is_new((1, 1)));
        assert_eq!(seen.known.len(), MAX_PACKETS);
    }
}
