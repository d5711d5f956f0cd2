//! What a merge states of images: which one is meant follows from the time, as the next image at
//! an address may be another one.

use etl_format::{ProcessId, Ticks};
use foldhash::HashMap;

use crate::counted::Span;

/// Process and first address of an image.
pub(crate) type Place = (ProcessId, u64);

/// Values that records state of the images at a place, in the order of time.
#[derive(Clone, Debug)]
pub(crate) struct Stated<T>(HashMap<Place, Vec<Statement<T>>>);

/// A value, and the first and the last time that it was stated in a row.
#[derive(Clone, Copy, Debug)]
struct Statement<T> {
    first: Ticks,
    last: Ticks,
    value: T,
}

impl<T> Default for Stated<T> {
    fn default() -> Self {
        Stated(HashMap::default())
    }
}

impl<T: Copy + PartialEq> Stated<T> {
    /// Takes in a record. Of several at one time, one that `is_better` than the last one counts.
    pub fn add(&mut self, place: Place, time: Ticks, value: T, is_better: impl Fn(T, T) -> bool) {
        let spans = self.0.entry(place).or_default();
        match spans.last_mut() {
            Some(span) if span.value == value => span.last = span.last.max(time),
            Some(span) if time <= span.last => {
                if is_better(value, span.value) {
                    span.value = value;
                }
            }
            _ => spans.push(Statement {
                first: time,
                last: time,
                value,
            }),
        }
    }

    /// The value of the image that was at a place in a span of time. The only value of a place holds
    /// at all times.
    pub fn of(&self, place: Place, lived: Span) -> Option<T> {
        let spans = self.0.get(&place)?;
        let span = match spans.as_slice() {
            [only] => only,
            _ => {
                let next = spans.partition_point(|span| span.last < lived.first);
                spans.get(next).filter(|span| span.first <= lived.last)?
            }
        };
        Some(span.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_finds_what_was_stated_while_the_image_was_there() {
        let (place, mut ids) = ((ProcessId::new(4), 0x1000), Stated::default());
        let better = |new: u8, old: u8| new > old;
        for (time, id) in [
            (10, 1),
            (20, 1),
            (30, 2),
            (30, 1),
            (40, 0),
            (40, 3),
            (50, 3),
        ] {
            ids.add(place, Ticks::new(time), id, better);
        }
        let of = |from, to| ids.of(place, Span::new(Ticks::new(from), Ticks::new(to)));
        assert_eq!([of(i64::MIN, 25), of(15, 25), of(20, 35)], [Some(1); 3]);
        assert_eq!(
            [of(25, 35), of(35, i64::MAX), of(45, 48)],
            [Some(2), Some(3), Some(3)]
        );
        assert_eq!([of(31, 39), of(51, 60)], [None; 2]);
        let elsewhere = (ProcessId::new(4), 0);
        assert_eq!(
            ids.of(elsewhere, Span::new(Ticks::new(0), Ticks::new(90))),
            None
        );
        ids.add((ProcessId::new(5), 0), Ticks::new(10), 7, better);
        assert_eq!(
            ids.of(
                (ProcessId::new(5), 0),
                Span::new(Ticks::new(20), Ticks::new(30))
            ),
            Some(7),
            "the only one"
        );
    }
}
