//! Who had an id at a time: the ids of processes and threads are used again.

use etl_format::Ticks;

/// An element of a list that had an id.
#[derive(Clone, Copy, Debug)]
struct Holder<K> {
    id: K,
    /// The earliest time from which on it, or a later element with this id, had the id.
    since: Ticks,
    /// Its index in the list.
    index: u32,
}

/// The elements of a list, by their ids.
#[derive(Clone, Debug)]
pub(crate) struct Holders<K> {
    /// Sorted by id, and for one id by index, which is also the order of `since`.
    all: Vec<Holder<K>>,
}

impl<K: Copy + Ord> Holders<K> {
    /// Sorts a list of ids, each with the time from which on it was used; `None` means from the
    /// beginning of the recording.
    pub fn new(list: impl Iterator<Item = (K, Option<Ticks>)>) -> Self {
        let mut all = Vec::new();
        for (index, (id, started)) in (0..u32::MAX).zip(list) {
            let since = started.unwrap_or(Ticks::MIN);
            all.push(Holder { id, since, index });
        }
        all.sort_by_key(|holder| (holder.id, holder.index));
        let mut later: Option<Holder<K>> = None;
        for holder in all.iter_mut().rev() {
            if let Some(later) = later.filter(|later| later.id == holder.id) {
                holder.since = holder.since.min(later.since);
            }
            later = Some(*holder);
        }
        Holders { all }
    }

    /// The index in the list of the element that had an id at a time. If there are several, returns
    /// the last that had begun by then.
    pub fn begun(&self, id: K, time: Ticks) -> Option<usize> {
        let after = self
            .all
            .partition_point(|holder| (holder.id, holder.since) <= (id, time));
        self.index_at(after.checked_sub(1)?, id)
    }

    /// As [`Holders::begun`], but returns the first element with the id if none had begun.
    pub fn at(&self, id: K, time: Ticks) -> Option<usize> {
        if let Some(index) = self.begun(id, time) {
            return Some(index);
        }
        let first = self.all.partition_point(|holder| holder.id < id);
        self.index_at(first, id)
    }

    /// The index in the list of the holder at a place, if it has this id.
    fn index_at(&self, place: usize, id: K) -> Option<usize> {
        let holder = self.all.get(place)?;
        if holder.id == id {
            Some(holder.index as usize)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_the_last_that_had_begun() {
        let list = [
            (8, Some(10)),
            (9, None),
            (8, Some(30)),
            // Records that come out of order, and one whose start is not known.
            (8, Some(20)),
            (7, Some(5)),
            (7, None),
            (7, Some(40)),
        ];
        let list = list.map(|(id, start)| (id, start.map(Ticks::new)));
        let holders = Holders::new(list.into_iter());
        for id in 6..11 {
            for time in [i64::MIN, 0, 5, 10, 19, 20, 25, 30, 40, i64::MAX] {
                let time = Ticks::new(time);
                let own = || (0..list.len()).filter(|&at| list[at].0 == id);
                let begun = own().rfind(|&at| list[at].1.is_none_or(|start| start <= time));
                assert_eq!(holders.begun(id, time), begun, "{id} at {time}");
                assert_eq!(
                    holders.at(id, time),
                    begun.or_else(|| own().next()),
                    "{id} at {time}"
                );
            }
        }
    }
}
