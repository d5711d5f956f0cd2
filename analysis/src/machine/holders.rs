//! Who had an id at a time: the ids of processes and threads are used again.

use etl_format::Ticks;
/// One that had an id.
#[derive(Clone, Copy, Debug)]
struct Holder<K> {
    id: K,
    /// The earliest time from which on it, or one after it, had the id.
    since: Ticks,
    index: u32,
}

/// Those of a list that had ids.
#[derive(Clone, Debug)]
pub(crate) struct Holders<K> {
    /// By id, and those of one id in the order of the list: so in that of `since` as well.
    all: Vec<Holder<K>>,
}

impl<K: Copy + Ord> Holders<K> {
    /// Of a list of ids, with the times from which on they were had; `None` for the beginning.
    pub fn new(list: impl Iterator<Item = (K, Option<Ticks>)>) -> Self {
        let holder = |(index, (id, started)): (usize, (K, Option<Ticks>))| {
            let index = u32::try_from(index).ok()?;
            Some(Holder {
                id,
                since: started.unwrap_or(Ticks::MIN),
                index,
            })
        };
        let mut all: Vec<_> = list.enumerate().map_while(holder).collect();
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

    /// The place in the list of the one that had an id at a time: of several, the last that had
    /// begun by then.
    pub fn begun(&self, id: K, time: Ticks) -> Option<usize> {
        let after = self
            .all
            .partition_point(|holder| (holder.id, holder.since) <= (id, time));
        let last = self
            .all
            .get(after.checked_sub(1)?)
            .filter(|holder| holder.id == id)?;
        Some(last.index as usize)
    }

    /// Likewise, but the first one where none had begun.
    pub fn at(&self, id: K, time: Ticks) -> Option<usize> {
        self.begun(id, time).or_else(|| {
            let first = self.all.partition_point(|holder| holder.id < id);
            let first = self.all.get(first).filter(|holder| holder.id == id)?;
            Some(first.index as usize)
        })
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
