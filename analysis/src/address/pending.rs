//! Addresses that are decided at the end of the recording.

use foldhash::HashMap;

use super::origin::Origin;

/// Addresses that are kept in all processes of a recording. Real ones have some tens of thousands.
pub(crate) const MAX_PENDING: usize = 1 << 20;

/// How often an address came, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting {
    pub count: u64,
    /// Time of the first.
    pub first: i64,
    /// Time of the last.
    pub last: i64,
    /// Whether an image covered it.
    pub in_image: bool,
}

/// An address that no named method was known to cover when it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    /// How often it lay inside an image, by origin. The code of a precompiled method lies in an
    /// image as well, and may be listed later.
    pub in_image: [u64; Origin::COUNT],
    /// How often it lay outside of all images, by origin.
    pub outside: [u64; Origin::COUNT],
    /// Time of the first.
    pub first: i64,
    /// Time of the last.
    pub last: i64,
}

/// The pending addresses of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingAddresses {
    indices: HashMap<u64, usize>,
    list: Vec<(u64, Pending)>,
    /// Addresses beyond the limit, in an image and outside of all, by origin: they are not decided.
    pub beyond: [[u64; Origin::COUNT]; 2],
}

impl PendingAddresses {
    /// The index of an address, which is added if it is new and `free` is not 0.
    pub fn index(&mut self, address: u64, sighting: Sighting, free: &mut usize) -> Option<usize> {
        if let Some(&index) = self.indices.get(&address) {
            return Some(index);
        }
        *free = free.checked_sub(1)?;
        let Sighting { first, last, .. } = sighting;
        let none = [0; Origin::COUNT];
        self.list.push((address, Pending { in_image: none, outside: none, first, last }));
        self.indices.insert(address, self.list.len() - 1);
        Some(self.list.len() - 1)
    }

    /// Counts an address by its index; without one it is beyond the limit.
    pub fn add(&mut self, index: Option<usize>, origin: Origin, sighting: Sighting) {
        let pending = index.and_then(|index| self.list.get_mut(index));
        let counts = match pending {
            Some((_, pending)) => {
                pending.first = pending.first.min(sighting.first);
                pending.last = pending.last.max(sighting.last);
                if sighting.in_image { &mut pending.in_image } else { &mut pending.outside }
            }
            None => {
                let [in_image, outside] = &mut self.beyond;
                if sighting.in_image { in_image } else { outside }
            }
        };
        if let Some(count) = counts.get_mut(origin as usize) {
            *count += sighting.count;
        }
    }

    /// The addresses, to change how often they came.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Pending)> {
        self.list.iter_mut().map(|(address, pending)| (*address, pending))
    }

    /// All of them, in the order in which they came first.
    pub fn take(self) -> Vec<(u64, Pending)> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_beyond_the_limit_are_only_counted() {
        let mut pending = PendingAddresses::default();
        let sighting = Sighting { count: 3, first: 1, last: 2, in_image: false };
        let mut free = 2;
        let first = pending.index(0x10, sighting, &mut free);
        assert!(first.is_some() && pending.index(0x20, sighting, &mut free).is_some());
        let third = pending.index(0x30, sighting, &mut free);
        assert_eq!((third, free), (None, 0));
        assert_eq!(pending.index(0x10, sighting, &mut free), first, "a known one stays");
        pending.add(third, Origin::Sample, sighting);
        assert_eq!(pending.beyond[1][Origin::Sample as usize], 3);
        assert_eq!(pending.take().len(), 2);
    }
}
