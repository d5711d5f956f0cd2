//! Samples and activities, kept outside of memory until the whole recording was read: their names
//! may be at its end.

use std::io::{self, Read};

use etl_format::{Guid, Ticks};

use super::packets::Output;
use super::storage::Storage;

/// Bytes of an item, which its tag determines.
const SAMPLE: usize = 15;
const ACTIVITY: usize = 45;

/// A sample that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptSample {
    pub time: Ticks,
    pub stack: u32,
    pub processor: u16,
    /// Whether the processor was in the kernel.
    pub in_kernel: bool,
}

/// An activity that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptActivity {
    pub from: Ticks,
    /// `None` if its end was not recorded.
    pub to: Option<Ticks>,
    pub pid: u32,
    pub tid: u32,
    /// Number of its name in [`Activities`](super::activities::Activities).
    pub name: u32,
    pub id: Guid,
}

/// A sample or an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Sample(KeptSample),
    Activity(KeptActivity),
}

/// Keeps items in the order in which they come.
#[derive(Debug)]
pub(super) struct Spool<S: Storage> {
    output: Output<S>,
}

impl<S: Storage> Spool<S> {
    pub fn new(storage: S) -> Self {
        Spool {
            output: Output::new(storage),
        }
    }

    pub fn sample(&mut self, sample: KeptSample) {
        let mut bytes = [0; 1 + SAMPLE];
        let mut rest = Put(&mut bytes);
        rest.put(b"s");
        rest.put(&sample.time.get().to_le_bytes());
        rest.put(&sample.stack.to_le_bytes());
        rest.put(&sample.processor.to_le_bytes());
        rest.put(&[u8::from(sample.in_kernel)]);
        self.output.write(&bytes);
    }

    pub fn activity(&mut self, activity: KeptActivity) {
        let mut bytes = [0; 1 + ACTIVITY];
        let mut rest = Put(&mut bytes);
        rest.put(b"a");
        rest.put(&activity.from.get().to_le_bytes());
        rest.put(&[u8::from(activity.to.is_some())]);
        rest.put(&activity.to.map_or(0, Ticks::get).to_le_bytes());
        rest.put(&activity.pid.to_le_bytes());
        rest.put(&activity.tid.to_le_bytes());
        rest.put(&activity.name.to_le_bytes());
        rest.put(&activity.id.to_bytes());
        self.output.write(&bytes);
    }

    pub fn clear(&mut self) {
        self.output.clear();
    }

    /// Passes all items to `take`.
    pub fn read(&mut self, mut take: impl FnMut(Item)) -> io::Result<()> {
        let mut input = self.output.read_back()?;
        let mut tag = [0];
        while input.read(&mut tag)? == 1 {
            if tag == *b"s" {
                let mut bytes = [0; SAMPLE];
                input.read_exact(&mut bytes)?;
                let mut rest = Take(&bytes);
                take(Item::Sample(KeptSample {
                    time: Ticks::new(i64::from_le_bytes(rest.take())),
                    stack: u32::from_le_bytes(rest.take()),
                    processor: u16::from_le_bytes(rest.take()),
                    in_kernel: rest.take() != [0],
                }));
            } else {
                let mut bytes = [0; ACTIVITY];
                input.read_exact(&mut bytes)?;
                let mut rest = Take(&bytes);
                let from = Ticks::new(i64::from_le_bytes(rest.take()));
                let has_end = rest.take() != [0];
                let to = Ticks::new(i64::from_le_bytes(rest.take()));
                take(Item::Activity(KeptActivity {
                    from,
                    to: has_end.then_some(to),
                    pid: u32::from_le_bytes(rest.take()),
                    tid: u32::from_le_bytes(rest.take()),
                    name: u32::from_le_bytes(rest.take()),
                    id: Guid::from_bytes(rest.take()),
                }));
            }
        }
        Ok(())
    }
}

/// The rest of a buffer that is filled.
struct Put<'b>(&'b mut [u8]);

impl Put<'_> {
    fn put(&mut self, bytes: &[u8]) {
        if let Some((to, rest)) = std::mem::take(&mut self.0).split_at_mut_checked(bytes.len()) {
            to.copy_from_slice(bytes);
            self.0 = rest;
        }
    }
}

/// The rest of a buffer that is read.
struct Take<'b>(&'b [u8]);

impl Take<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((taken, rest)) = self.0.split_first_chunk() else {
            return [0; N];
        };
        self.0 = rest;
        *taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn items_come_back_in_their_order() {
        let mut spool = Spool::new(Cursor::new(Vec::new()));
        let sample = KeptSample {
            time: Ticks::new(-5),
            stack: 7,
            processor: 300,
            in_kernel: true,
        };
        let activity = KeptActivity {
            from: Ticks::new(1),
            to: Some(Ticks::MAX),
            pid: 2,
            tid: 3,
            name: 4,
            id: Guid::from_bytes([9; 16]),
        };
        spool.sample(KeptSample {
            time: Ticks::new(1),
            ..sample
        });
        spool.clear();
        spool.sample(sample);
        spool.activity(activity);
        spool.activity(KeptActivity {
            to: None,
            ..activity
        });
        let mut items = Vec::new();
        spool.read(|item| items.push(item)).unwrap();
        let unended = KeptActivity {
            to: None,
            ..activity
        };
        let expected = [
            Item::Sample(sample),
            Item::Activity(activity),
            Item::Activity(unended),
        ];
        assert_eq!(items, expected);
    }
}
