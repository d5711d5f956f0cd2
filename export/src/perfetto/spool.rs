//! What can be written only when the recording was read: samples and activities, whose names may
//! stand at its end. Until then they are kept outside of memory, in a few bytes each.

use std::io::{self, Read};

use etl_format::Guid;

use super::packets::Output;
use super::storage::Storage;

/// Bytes of an item, which its tag determines.
const SAMPLE: usize = 15;
const ACTIVITY: usize = 45;

/// A sample that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptSample {
    /// In ticks.
    pub time: i64,
    pub stack: u32,
    pub processor: u16,
    /// Whether the processor was in the kernel.
    pub in_kernel: bool,
}

/// An activity that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptActivity {
    /// In ticks.
    pub from: i64,
    /// In ticks; `None` where its end was not recorded.
    pub to: Option<i64>,
    pub pid: u32,
    pub tid: u32,
    /// Number of its name.
    pub name: u32,
    pub id: Guid,
}

/// An item.
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
        let mut at = Put(&mut bytes);
        at.put(b"s");
        at.put(&sample.time.to_le_bytes());
        at.put(&sample.stack.to_le_bytes());
        at.put(&sample.processor.to_le_bytes());
        at.put(&[u8::from(sample.in_kernel)]);
        self.output.write(&bytes);
    }

    pub fn activity(&mut self, activity: KeptActivity) {
        let mut bytes = [0; 1 + ACTIVITY];
        let mut at = Put(&mut bytes);
        at.put(b"a");
        at.put(&activity.from.to_le_bytes());
        at.put(&[u8::from(activity.to.is_some())]);
        at.put(&activity.to.unwrap_or(0).to_le_bytes());
        at.put(&activity.pid.to_le_bytes());
        at.put(&activity.tid.to_le_bytes());
        at.put(&activity.name.to_le_bytes());
        at.put(&activity.id.to_bytes());
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
                let mut at = Take(&bytes);
                take(Item::Sample(KeptSample {
                    time: i64::from_le_bytes(at.take()),
                    stack: u32::from_le_bytes(at.take()),
                    processor: u16::from_le_bytes(at.take()),
                    in_kernel: at.take() != [0],
                }));
            } else {
                let mut bytes = [0; ACTIVITY];
                input.read_exact(&mut bytes)?;
                let mut at = Take(&bytes);
                let from = i64::from_le_bytes(at.take());
                let has_end = at.take() != [0];
                let to = i64::from_le_bytes(at.take());
                take(Item::Activity(KeptActivity {
                    from,
                    to: has_end.then_some(to),
                    pid: u32::from_le_bytes(at.take()),
                    tid: u32::from_le_bytes(at.take()),
                    name: u32::from_le_bytes(at.take()),
                    id: Guid::from_bytes(at.take()),
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
            time: -5,
            stack: 7,
            processor: 300,
            in_kernel: true,
        };
        let activity = KeptActivity {
            from: 1,
            to: Some(i64::MAX),
            pid: 2,
            tid: 3,
            name: 4,
            id: Guid::from_bytes([9; 16]),
        };
        spool.sample(KeptSample { time: 1, ..sample });
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
