//! An observer that sees only a part of the time.

use etl_format::read::Record;
use etl_format::{ThreadId, TimeRange};

use crate::loss::Loss;
use crate::machine::{Change, Machine};
use crate::observe::{EventRef, Joins, Observer, Sample, Stack};

/// An observer that sees only the records of a time range, and of some threads if any are named.
/// It sees all changes of the machine, also outside of the range.
///
/// ```no_run
/// use etl_analysis::behavior::network::Network;
/// use etl_analysis::{Analysis, Recording, Within};
/// use etl_format::{Ticks, TimeRange};
///
/// let bytes = std::fs::read("trace.etl")?;
/// let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
/// let range = TimeRange::new(Some(Ticks::new(1_000)), None);
/// let mut network = Within::new(range, Network::new());
/// let machine = Analysis::new().run(&mut recording, &mut network)?;
/// println!("{} connections", network.observer.connections().len());
/// # drop(machine);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Within<O> {
    range: TimeRange,
    threads: Vec<ThreadId>,
    /// The observer.
    pub observer: O,
}

impl<O> Within<O> {
    /// An observer of the records in this range.
    pub fn new(range: TimeRange, observer: O) -> Self {
        Within {
            range,
            threads: Vec::new(),
            observer,
        }
    }

    /// Sets another range.
    #[must_use]
    pub fn range(self, range: TimeRange) -> Self {
        Within { range, ..self }
    }

    /// Selects the records of the threads with these ids; an empty list selects all threads.
    #[must_use]
    pub fn threads(self, ids: &[ThreadId]) -> Self {
        Within {
            threads: ids.to_vec(),
            ..self
        }
    }

    fn is_before_end(&self, event: &EventRef) -> bool {
        match self.range.to {
            Some(to) => event.time < to,
            None => true,
        }
    }

    fn admits(&self, event: &EventRef) -> bool {
        if !self.range.contains(event.time) {
            return false;
        }
        match event.tid {
            _ if self.threads.is_empty() => true,
            Some(tid) => self.threads.contains(&tid),
            None => false,
        }
    }
}

impl<O: Observer> Observer for Within<O> {
    const JOINS: Joins = O::JOINS;

    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        if self.admits(event) {
            self.observer.record(machine, record, event);
        } else if self.is_before_end(event) {
            self.observer.unselected(machine, record, event);
        }
    }

    fn unselected(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        if self.is_before_end(event) {
            self.observer.unselected(machine, record, event);
        }
    }

    fn change(&mut self, machine: &Machine, change: &Change, event: &EventRef) {
        self.observer.change(machine, change, event);
    }

    fn sample(&mut self, machine: &Machine, sample: &Sample<'_>) {
        if self.admits(&sample.event) {
            self.observer.sample(machine, sample);
        }
    }

    fn stack(&mut self, machine: &Machine, stack: &Stack<'_>) {
        if self.admits(&stack.event) {
            self.observer.stack(machine, stack);
        }
    }

    fn loss(&mut self, loss: &Loss) {
        self.observer.loss(loss);
    }

    fn finish(&mut self, machine: &Machine) {
        self.observer.finish(machine);
    }

    fn restart(&mut self) {
        self.observer.restart();
    }
}
