//! Lost events, by the gaps in the numbers of each thread's events.

use foldhash::HashMap;

use crate::event::Event;
use crate::reader::Item;
use crate::sequence_point::SequencePoint;
use crate::threads::RemovedThread;
use crate::time::Ticks;

/// Events that a thread captured and that are not in the stream, because the buffers of the session
/// were full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The thread, as [`Event::capture_thread`].
    pub capture_thread: u64,
    /// The number of lost events.
    pub lost: u32,
    /// The time of the thread's last event before. `None` if it was the first.
    pub after: Option<Ticks>,
    /// The time of the thread's next event or of the sequence point. `None` if a removed thread
    /// shows the loss.
    pub before: Option<Ticks>,
}

/// Finds lost events: threads number the events that they capture, lost ones included. Events that
/// the reader skipped as damaged are counted as lost.
///
/// ```
/// # mod write { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/common/write.rs")); }
/// # let stream = write::sample();
/// use etl_nettrace::{LossTracker, Reader};
///
/// let mut reader = Reader::new(stream.as_slice())?;
/// let mut tracker = LossTracker::new();
/// while let Some(item) = reader.next_item()? {
///     for loss in tracker.add(&item) {
///         println!("thread {} lost {} events", loss.capture_thread, loss.lost);
///     }
/// }
/// assert_eq!(tracker.lost(), 3, "the sequence point states 5 events, 2 are in the stream");
/// # Ok::<(), etl_nettrace::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct LossTracker {
    threads: HashMap<u64, Captured>,
    /// The losses of the item that was added last.
    found: Vec<Loss>,
    lost: u64,
    untracked: u64,
}

/// What is known about a thread.
#[derive(Clone, Copy, Debug)]
struct Captured {
    /// The number of its last event.
    sequence_number: u32,
    /// The time of its last event.
    timestamp: Option<Ticks>,
}

impl LossTracker {
    /// Threads that are tracked at once: some 50 MB of memory.
    pub const MAX_THREADS: usize = 1 << 20;

    /// Without events.
    #[must_use]
    pub fn new() -> Self {
        LossTracker::default()
    }

    /// Lost events so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Events and entries of sequence points of threads that were not tracked, because there are
    /// more than [`LossTracker::MAX_THREADS`].
    #[must_use]
    pub fn untracked(&self) -> u64 {
        self.untracked
    }

    /// Adds an item of a reader and returns the losses that it shows, without allocating for each
    /// event.
    ///
    /// With [`Order::Time`](crate::Order::Time), the losses are the same unless the index of a
    /// thread of version 6 is used again between two sequence points.
    pub fn add(&mut self, item: &Item<'_>) -> &[Loss] {
        self.found.clear();
        match item {
            Item::Event(event) => self.add_event(event),
            Item::SequencePoint(point) => self.add_sequence_point(point),
            Item::RemovedThread(removed) => self.add_removed_thread(*removed),
            _ => {}
        }
        &self.found
    }

    fn add_event(&mut self, event: &Event<'_>) {
        let Some(captured) = self.thread(event.capture_thread) else {
            return;
        };
        let before = *captured;
        captured.sequence_number = event.sequence_number;
        captured.timestamp = Some(event.timestamp);
        let step = event.sequence_number.wrapping_sub(before.sequence_number);
        // The same number or an earlier one: the thread id was used again, and its numbers begin
        // at 1.
        let lost = if is_forward(step) {
            step - 1
        } else {
            event.sequence_number.saturating_sub(1)
        };
        self.report(event.capture_thread, lost, before, Some(event.timestamp));
    }

    fn add_sequence_point(&mut self, point: &SequencePoint) {
        for thread in &point.threads {
            self.add_last(
                thread.capture_thread,
                thread.sequence_number,
                Some(point.timestamp),
            );
        }
        if point.forgets_threads {
            self.threads.clear();
        }
    }

    fn add_removed_thread(&mut self, removed: RemovedThread) {
        self.add_last(removed.index, removed.sequence_number, None);
        self.threads.remove(&removed.index);
    }

    /// Adds the number of the last event of a thread.
    fn add_last(&mut self, capture_thread: u64, sequence_number: u32, time: Option<Ticks>) {
        let Some(captured) = self.thread(capture_thread) else {
            return;
        };
        let before = *captured;
        let lost = sequence_number.wrapping_sub(before.sequence_number);
        // An earlier number is of a thread that had the id before.
        if !is_forward(lost) {
            return;
        }
        captured.sequence_number = sequence_number;
        self.report(capture_thread, lost, before, time);
    }

    /// The thread, which is new if it was not seen before. `None` if there are too many.
    fn thread(&mut self, capture_thread: u64) -> Option<&mut Captured> {
        let is_full = self.threads.len() >= Self::MAX_THREADS;
        if is_full && !self.threads.contains_key(&capture_thread) {
            self.untracked += 1;
            return None;
        }
        let new = Captured {
            sequence_number: 0,
            timestamp: None,
        };
        Some(self.threads.entry(capture_thread).or_insert(new))
    }

    fn report(&mut self, capture_thread: u64, lost: u32, before: Captured, time: Option<Ticks>) {
        if lost == 0 {
            return;
        }
        self.lost = self.lost.saturating_add(lost.into());
        self.found.push(Loss {
            capture_thread,
            lost,
            after: before.timestamp,
            before: time,
        });
    }
}

/// Whether a number follows an earlier one, by their difference. Numbers start again after 2^32.
fn is_forward(step: u32) -> bool {
    step != 0 && step < 1 << 31
}
