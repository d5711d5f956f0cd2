//! What a merge states of images. A statement names a place and has a time, which tells the images
//! apart that were at the place one after the other.

use etl_format::{ProcessId, Ticks};
use foldhash::HashMap;

use crate::counted::Span;

/// The place of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub pid: ProcessId,
    /// First address.
    pub base: u64,
}

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
    /// Adds a statement. Of the statements of one time, a later one is kept if it `is_better`.
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

    /// The value of the image that was at a place in a span of time. The only value of a place
    /// holds at all times.
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
        let place = Place {
            pid: ProcessId::new(4),
            base: 0x1000,
        };
        let mut ids = Stated::default();
        fn better(new: u8, old: u8) -> bool {
            new > old
        }
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
        let elsewhere = Place { base: 0, ..place };
        assert_eq!(
            ids.of(elsewhere, Span::new(Ticks::new(0), Ticks::new(90))),
            None
        );
        let alone = Place {
            pid: ProcessId::new(5),
            base: 0,
        };
        ids.add(alone, Ticks::new(10), 7, better);
        assert_eq!(
            ids.of(alone, Span::new(Ticks::new(20), Ticks::new(30))),
            Some(7),
            "the only one"
        );
    }
}
