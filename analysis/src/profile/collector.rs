//! Collects the samples of a recording.

use etl_format::read::Record;
use etl_format::{ThreadId, Ticks, TimeRange};

use super::ProcessorInterrupt;
use super::changes::Changes;
use super::stacks::{Owner, Stacks};
use super::weight::{Intervals, Weight};
use crate::machine::{Change, Life, Machine, Span, widen};
use crate::observe::{EventRef, Joins, Observer, Sample, Stack};

/// A sample that is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub time: Ticks,
    pub node: u32,
    pub processor: u16,
}

/// The thread and the stack of a sample: a number that many samples share.
/// [`Profile::node_of`](super::Profile::node_of) finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleStack(pub u32);

/// Collects the CPU samples of a recording with their stacks; an [`Observer`] for
/// [`Analysis::run`](crate::Analysis::run). [`SampleCollector::profile`] then finds the names.
///
/// Stacks are kept as a tree of addresses, so memory grows with the distinct stacks, not with the
/// number of samples.
///
/// ```
/// use etl_analysis::profile::{ProfileOptions, SampleCollector};
/// use etl_analysis::{Analysis, Recording, Result};
/// use etl_format::TimeRange;
///
/// /// How many samples were taken in the first second, and where most of them are.
/// fn hottest(trace: &[u8]) -> Result<Option<(u64, String)>> {
///     let mut recording = Recording::open([(trace, "trace.etl")])?;
///     let clock = recording.timeline().clock();
///     let end = clock.start_timestamp.saturating_add(clock.frequency as i64);
///     let range = TimeRange::new(None, Some(end));
///     let mut samples = SampleCollector::new().within(range);
///     let machine = Analysis::new().with_names().run(&mut recording, &mut samples)?;
///     let profile = samples.profile(&machine, &ProfileOptions::new());
///     let frame = profile.by_frame().first().map(|total| total.frame);
///     Ok(frame.map(|frame| (profile.total().samples, profile.label(frame))))
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct SampleCollector {
    pub(super) stacks: Stacks,
    pub(super) intervals: Intervals,
    pub(super) kept: Vec<Kept>,
    pub(super) with_stack: u64,
    /// Times of the first and the last sample.
    pub(super) sampled: Option<Span>,
    changes: Changes,
    range: TimeRange,
    keeps_samples: bool,
}

impl SampleCollector {
    /// Takes all samples.
    #[must_use]
    pub fn new() -> Self {
        SampleCollector::default()
    }

    /// Counts only the samples in a range of the recording's clock.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        SampleCollector { range, ..self }
    }

    /// Keeps each sample, with its time; 16 bytes for each.
    #[must_use]
    pub fn keep_samples(self) -> Self {
        SampleCollector {
            keeps_samples: true,
            ..self
        }
    }

    /// The weight of what was collected before the first interval was stated.
    fn weigh_again(&mut self) {
        let interval = self.intervals.weight(Ticks::MIN).time;
        for node in &mut self.stacks.nodes {
            node.weight.time = node.weight.samples.saturating_mul(interval);
        }
    }
}

impl Observer for SampleCollector {
    const JOINS: Joins = Joins::Samples;

    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        if self.intervals.record(record, event.time) {
            self.weigh_again();
        }
    }

    fn change(&mut self, machine: &Machine, change: &Change, event: &EventRef) {
        match *change {
            Change::Code {
                process,
                start,
                size,
            } => {
                self.changes.code(process, start, size, event.time);
            }
            Change::Image {
                life: Life::Begun | Life::Ended,
                process,
                image,
            } => {
                if machine
                    .images()
                    .get(image)
                    .is_some_and(|image| image.is_kernel())
                {
                    self.changes.kernel(event.time);
                } else {
                    self.changes.process(process, event.time);
                }
            }
            Change::Process {
                life: Life::Ended,
                process,
            } => self.changes.process(process, event.time),
            _ => {}
        }
    }

    fn sample(&mut self, _: &Machine, sample: &Sample<'_>) {
        self.add(sample);
    }

    fn restart(&mut self) {
        let SampleCollector {
            range,
            keeps_samples,
            ..
        } = *self;
        *self = SampleCollector {
            range,
            keeps_samples,
            ..SampleCollector::default()
        };
    }
}

impl SampleCollector {
    /// Adds a sample, for observers that have a collector. Returns an id of its thread and its
    /// stack; `None` if it is outside the time that is collected.
    pub fn add(&mut self, sample: &Sample<'_>) -> Option<SampleStack> {
        let event = &sample.event;
        if !self.range.contains(event.time) {
            return None;
        }
        widen(&mut self.sampled, event.time);
        let owner = Owner {
            process: event.process,
            tid: event.tid.unwrap_or(ThreadId::UNKNOWN),
            interrupt: ProcessorInterrupt::of_idle(sample),
        };
        let frames = sample.frames;
        self.with_stack += u64::from(!frames.is_empty());
        // The recorded stack may lack its innermost part.
        let innermost = if frames.iter().next() == Some(sample.address) {
            None
        } else {
            Some(sample.address)
        };
        let addresses = frames.iter().rev().chain(innermost);
        let node = self
            .stacks
            .node(owner, addresses, event.time, &self.changes);
        self.stacks.add(node, self.intervals.weight(event.time));
        if self.keeps_samples {
            self.kept.push(Kept {
                time: event.time,
                node,
                processor: event.processor,
            });
        }
        Some(SampleStack(node))
    }

    /// Adds the stack of an event that is not a sample, so that it is part of the tree, without a
    /// weight. Returns an id of its thread and the stack.
    pub fn add_stack(&mut self, stack: &Stack<'_>) -> SampleStack {
        let event = &stack.event;
        let owner = Owner {
            process: event.process,
            tid: event.tid.unwrap_or(ThreadId::UNKNOWN),
            interrupt: None,
        };
        SampleStack(self.node(owner, stack.frames.iter().rev(), event.time))
    }

    /// The node of a stack of addresses, outermost first.
    pub(super) fn node(
        &mut self,
        owner: Owner,
        addresses: impl Iterator<Item = u64>,
        time: Ticks,
    ) -> u32 {
        self.stacks.node(owner, addresses, time, &self.changes)
    }

    /// The weight of a sample at a time.
    #[must_use]
    pub fn weight(&self, time: Ticks) -> Weight {
        self.intervals.weight(time)
    }
}
