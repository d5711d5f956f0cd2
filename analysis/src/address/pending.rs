//! Addresses that are decided at the end of the recording.

use etl_format::Ticks;
use foldhash::HashMap;

use super::origin::Origin;
use crate::counted::Span;

/// Addresses that are kept in all processes of a recording. Real ones have some tens of thousands.
pub(crate) const MAX_PENDING: usize = 1 << 20;

/// How often an address came, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting {
    pub count: u64,
    /// Time of the first.
    pub first: Ticks,
    /// Time of the last.
    pub last: Ticks,
    /// Whether an image covered it.
    pub in_image: bool,
}

/// The known owners of an address when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cover {
    /// How many code ranges and images had ended at the address, or near it.
    pub ended: u64,
    /// Whether code without a name covered it.
    pub in_code: bool,
    /// Whether an image covered it. The code of a precompiled method lies in an image as well, and
    /// may be listed later.
    pub in_image: bool,
}

/// An address that no named method was known to cover when it came.
///
/// The same address is another pending address once something that owned it begins or ends. So an
/// owner that lived at some time of the span may have had the address all the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    /// How often it lay inside an image, by origin.
    pub in_image: [u64; Origin::COUNT],
    /// How often it lay outside of all images, by origin.
    pub outside: [u64; Origin::COUNT],
    /// Time of the first.
    pub first: Ticks,
    /// Time of the last.
    pub last: Ticks,
    /// `None` if the event has a span of times.
    cover: Option<Cover>,
}

/// The pending addresses of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingAddresses {
    /// The index of the last entry for each address.
    indices: HashMap<u64, usize>,
    /// The index of the entry for each address that came as a span of times.
    spans: HashMap<u64, usize>,
    list: Vec<(u64, Pending)>,
    /// Addresses beyond the limit, in an image and outside of all, by origin: they are not decided.
    pub beyond: [[u64; Origin::COUNT]; 2],
}

impl PendingAddresses {
    /// The index of an address that came at times in a span, which is added if it is new and `free`
    /// is not 0.
    pub fn index(&mut self, address: u64, sighting: Sighting, free: &mut usize) -> Option<usize> {
        if let Some(&index) = self.spans.get(&address) {
            return Some(index);
        }
        let span = Span::new(sighting.first, sighting.last);
        let index = self.push(address, span, None, free)?;
        self.spans.insert(address, index);
        Some(index)
    }

    /// The index of an address that comes now. It is added if `free` is not 0, and the address is
    /// new or its owner may have changed.
    pub fn index_at(
        &mut self,
        address: u64,
        time: Ticks,
        cover: Cover,
        free: &mut usize,
    ) -> Option<usize> {
        if let Some(&index) = self.indices.get(&address) {
            let last = self.list.get(index);
            let is_same = last.is_some_and(|(_, pending)| pending.cover == Some(cover));
            // Half of the entries are for addresses that did not come before.
            if is_same || *free < MAX_PENDING / 2 {
                return Some(index);
            }
        }
        let index = self.push(address, Span::at(time), Some(cover), free)?;
        self.indices.insert(address, index);
        Some(index)
    }

    fn push(
        &mut self,
        address: u64,
        span: Span,
        cover: Option<Cover>,
        free: &mut usize,
    ) -> Option<usize> {
        *free = free.checked_sub(1)?;
        let none = [0; Origin::COUNT];
        self.list.push((
            address,
            Pending {
                in_image: none,
                outside: none,
                first: span.first,
                last: span.last,
                cover,
            },
        ));
        Some(self.list.len() - 1)
    }

    /// Counts an address by its index; without one it is beyond the limit.
    pub fn add(&mut self, index: Option<usize>, origin: Origin, sighting: Sighting) {
        let pending = index.and_then(|index| self.list.get_mut(index));
        let counts = match pending {
            Some((_, pending)) => {
                pending.first = pending.first.min(sighting.first);
                pending.last = pending.last.max(sighting.last);
                if sighting.in_image {
                    &mut pending.in_image
                } else {
                    &mut pending.outside
                }
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
        self.list
            .iter_mut()
            .map(|(address, pending)| (*address, pending))
    }

    /// The entries, in the order in which they came first. An address has several if its owner may
    /// have changed.
    pub fn take(self) -> Vec<(u64, Pending)> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_whose_owner_may_have_changed_is_another_one() {
        let mut pending = PendingAddresses::default();
        let mut free = MAX_PENDING;
        let cover = Cover {
            ended: 0,
            in_code: false,
            in_image: false,
        };
        let first = pending.index_at(0x10, Ticks::new(1), cover, &mut free);
        assert_eq!(
            pending.index_at(0x10, Ticks::new(2), cover, &mut free),
            first
        );
        let gone = Cover { ended: 1, ..cover };
        let second = pending.index_at(0x10, Ticks::new(3), gone, &mut free);
        assert_ne!(second, first);
        let mut few = 7;
        assert_eq!(
            pending.index_at(0x10, Ticks::new(4), cover, &mut few),
            second,
            "half is for others"
        );
        assert!(
            pending
                .index_at(0x20, Ticks::new(4), cover, &mut few)
                .is_some()
        );
        let sighting = Sighting {
            count: 1,
            first: Ticks::new(0),
            last: Ticks::new(9),
            in_image: false,
        };
        let span = pending.index(0x10, sighting, &mut free);
        assert_eq!(pending.index(0x10, sighting, &mut free), span);
        assert_eq!(pending.take().len(), 4);
    }

    #[test]
    fn addresses_beyond_the_limit_are_only_counted() {
        let mut pending = PendingAddresses::default();
        let sighting = Sighting {
            count: 3,
            first: Ticks::new(1),
            last: Ticks::new(2),
            in_image: false,
        };
        let mut free = 2;
        let first = pending.index(0x10, sighting, &mut free);
        assert!(first.is_some() && pending.index(0x20, sighting, &mut free).is_some());
        let third = pending.index(0x30, sighting, &mut free);
        assert_eq!((third, free), (None, 0));
        assert_eq!(
            pending.index(0x10, sighting, &mut free),
            first,
            "a known one stays"
        );
        pending.add(third, Origin::Sample, sighting);
        assert_eq!(pending.beyond[1][Origin::Sample as usize], 3);
        assert_eq!(pending.take().len(), 2);
    }
}
