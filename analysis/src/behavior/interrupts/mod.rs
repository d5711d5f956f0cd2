//! Work of drivers that interrupts threads: deferred procedure calls (DPCs) and interrupt service
//! routines (ISRs).
//!
//! Needs the kernel's flags `DPC` and `INTERRUPT`: the events state the routine, its begin and,
//! with their own time, its end. Without these events, samples of the processors (flag `PROFILE`)
//! say whether they found a processor in such a call, and where.
//!
//! ```no_run
//! use etl_analysis::behavior::interrupts::Interrupts;
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut interrupts = Interrupts::new();
//! let machine = Analysis::new().with_names().run(&mut recording, &mut interrupts)?;
//! for (routine, calls) in interrupts.routines() {
//!     let kind = routine.kind.name();
//!     println!("{kind} at {:#x}: {} calls", routine.address, calls.durations.count());
//! }
//! # drop(machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod nested;

use std::collections::BTreeMap;

use etl_format::constants::hook;
use etl_format::read::Record;
use etl_format::{Ticks, TimeRange};
use etl_schema::views::FieldReader;

pub(super) use nested::{EndedCall, EndedCalls, ProcessorKey};

use super::{Histogram, ticks_within};
use crate::Interrupt;
use crate::machine::Machine;
use crate::observe::{EventRef, Joins, Observer, Sample};
use crate::profile::{Intervals, Weight};

/// Different routines and addresses of samples; further ones are not counted.
const MAX_ADDRESSES: usize = 1 << 20;

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CallKind {
    /// An interrupt service routine.
    Isr,
    /// An interrupt service routine of a message-signaled interrupt.
    MessageIsr,
    /// A deferred procedure call.
    Dpc,
    /// A deferred procedure call of a timer.
    TimerDpc,
    /// A deferred procedure call that runs in a thread, which others may interrupt.
    ThreadedDpc,
}

impl CallKind {
    /// The kind of the call that an event is about.
    #[must_use]
    pub const fn of_hook(hook: u16) -> Option<Self> {
        match hook {
            hook::ISR => Some(CallKind::Isr),
            hook::ISR_MSI => Some(CallKind::MessageIsr),
            hook::DPC => Some(CallKind::Dpc),
            hook::TIMER_DPC => Some(CallKind::TimerDpc),
            hook::THREADED_DPC => Some(CallKind::ThreadedDpc),
            _ => None,
        }
    }

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CallKind::Isr => "ISR",
            CallKind::MessageIsr => "ISR of a message",
            CallKind::Dpc => "DPC",
            CallKind::TimerDpc => "timer DPC",
            CallKind::ThreadedDpc => "threaded DPC",
        }
    }

    /// Whether it is a deferred call or a service routine.
    #[must_use]
    pub const fn interrupt(self) -> Interrupt {
        match self {
            CallKind::Isr | CallKind::MessageIsr => Interrupt::Isr,
            CallKind::Dpc | CallKind::TimerDpc | CallKind::ThreadedDpc => Interrupt::Dpc,
        }
    }
}

/// A routine of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Routine {
    /// How it is called.
    pub kind: CallKind,
    /// Its address.
    pub address: u64,
}

/// The calls of a routine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calls {
    /// How long they lasted, in ticks, with the calls that interrupted them.
    pub durations: Histogram,
    /// The sum of their times without the calls that interrupted them, in ticks.
    pub own: u64,
    /// The longest one.
    pub longest: Option<Call>,
    /// When the last one ended.
    pub last: Ticks,
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// Its kind.
    pub kind: CallKind,
    /// When it began, in ticks.
    pub started: Ticks,
    /// How long it lasted, in ticks.
    pub ticks: u64,
    /// The processor.
    pub processor: u16,
}

impl Calls {
    fn add(&mut self, call: Call, own: u64, ended: Ticks) {
        self.durations.add(call.ticks);
        self.own = self.own.saturating_add(own);
        self.last = ended;
        if self
            .longest
            .is_none_or(|longest| longest.ticks < call.ticks)
        {
            self.longest = Some(call);
        }
    }
}

/// The calls and samples of one class on a processor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessorCalls {
    /// The calls.
    pub calls: Calls,
    /// Samples that found the processor in one.
    pub sampled: Weight,
}

/// A processor, and what interrupted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct ProcessorClass {
    /// The processor.
    pub processor: u16,
    /// Deferred calls or service routines.
    pub interrupt: Interrupt,
}

/// Code that samples found in calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct SampledCode {
    /// A deferred call or a service routine.
    pub interrupt: Interrupt,
    /// The address that the processor executed.
    pub address: u64,
}

/// The samples at an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeSamples {
    /// How many, and their time.
    pub weight: Weight,
    /// The time of the last one.
    pub last: Ticks,
}

/// Collects deferred procedure calls and interrupt service routines.
#[derive(Clone, Debug)]
pub struct Interrupts {
    routines: BTreeMap<Routine, Calls>,
    processors: BTreeMap<ProcessorClass, ProcessorCalls>,
    code: BTreeMap<SampledCode, CodeSamples>,
    samples: u64,
    reader: CallReader,
    ended: EndedCalls,
    intervals: Intervals,
    range: TimeRange,
}

impl Default for Interrupts {
    fn default() -> Self {
        Interrupts::new()
    }
}

impl Interrupts {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        Interrupts {
            routines: BTreeMap::new(),
            processors: BTreeMap::new(),
            code: BTreeMap::new(),
            samples: 0,
            reader: CallReader::new(),
            ended: EndedCalls::default(),
            intervals: Intervals::default(),
            range: TimeRange::default(),
        }
    }

    /// Counts only a range of the recording's clock. Of a call that is partly in the range, this
    /// part is counted.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        Interrupts { range, ..self }
    }

    /// The calls by routine.
    #[must_use]
    pub fn routines(&self) -> &BTreeMap<Routine, Calls> {
        &self.routines
    }

    /// The calls and the samples by processor.
    #[must_use]
    pub fn processors(&self) -> &BTreeMap<ProcessorClass, ProcessorCalls> {
        &self.processors
    }

    /// The code that samples found in calls.
    #[must_use]
    pub fn code(&self) -> &BTreeMap<SampledCode, CodeSamples> {
        &self.code
    }

    /// All samples of processors, also outside of calls.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    fn add(&mut self, call: &RecordedCall, event: &EventRef) {
        let interrupted = self.interrupted(call, event);
        let Some(ticks) = ticks_within(self.range, call.since, event.time) else {
            return;
        };
        let own = ticks - interrupted.min(ticks);
        let since = match self.range.from {
            Some(from) => call.since.max(from),
            None => call.since,
        };
        let routine = call.routine;
        let call = Call {
            kind: routine.kind,
            started: since,
            ticks,
            processor: event.processor,
        };
        let class = ProcessorClass {
            processor: event.processor,
            interrupt: routine.kind.interrupt(),
        };
        let of_processor = self.processors.entry(class).or_default();
        of_processor.calls.add(call, own, event.time);
        if self.routines.len() < MAX_ADDRESSES || self.routines.contains_key(&routine) {
            let of_routine = self.routines.entry(routine).or_default();
            of_routine.add(call, own, event.time);
        }
    }

    /// The time of the calls that interrupted a call which ends now, in ticks.
    fn interrupted(&mut self, call: &RecordedCall, event: &EventRef) -> u64 {
        let processor = ProcessorKey::of(event);
        let mut ticks = 0u64;
        while let Some(inner) = self.ended.take_inner(processor, call.since) {
            let inner = ticks_within(self.range, inner.since, inner.until).unwrap_or(0);
            ticks = ticks.saturating_add(inner);
        }
        let ended = EndedCall {
            since: call.since,
            until: event.time,
        };
        self.ended.keep(processor, ended);
        ticks
    }

    /// The weight of what was collected before the first interval was stated.
    fn weigh_again(&mut self) {
        let interval = self.intervals.weight(Ticks::MIN).time;
        for processor in self.processors.values_mut() {
            let weight = &mut processor.sampled;
            weight.time = weight.samples.saturating_mul(interval);
        }
        for code in self.code.values_mut() {
            code.weight.time = code.weight.samples.saturating_mul(interval);
        }
    }
}

impl Observer for Interrupts {
    const JOINS: Joins = Joins::Samples;

    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        if self.intervals.record(record, event.time) {
            self.weigh_again();
        }
        if let Some(hook) = event.kind.hook()
            && let Some(call) = self.reader.read(machine, record, event, hook)
        {
            self.add(&call, event);
        }
    }

    fn sample(&mut self, _: &Machine, sample: &Sample<'_>) {
        let time = sample.event.time;
        if !self.range.contains(time) {
            return;
        }
        self.samples += 1;
        let Some(interrupt) = sample.interrupt else {
            return;
        };
        let weight = self.intervals.weight(time);
        let class = ProcessorClass {
            processor: sample.event.processor,
            interrupt,
        };
        self.processors.entry(class).or_default().sampled += weight;
        let code = SampledCode {
            interrupt,
            address: sample.address,
        };
        if self.code.len() < MAX_ADDRESSES || self.code.contains_key(&code) {
            let samples = self.code.entry(code).or_default();
            samples.weight += weight;
            samples.last = time;
        }
    }

    fn restart(&mut self) {
        *self = Interrupts::new().within(self.range);
    }
}

/// A call that an event is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedCall {
    pub routine: Routine,
    /// When it began, in ticks of the recording.
    pub since: Ticks,
}

/// Reads the events of calls.
#[derive(Clone, Debug)]
pub(super) struct CallReader(FieldReader<2>);

impl CallReader {
    pub fn new() -> Self {
        CallReader(FieldReader::of_hook(hook::DPC, ["InitialTime", "Routine"]))
    }

    /// The call of an event with this hook; `None` for other events. A call that ends before it
    /// begins is damaged.
    #[inline]
    pub fn read(
        &mut self,
        machine: &Machine,
        record: &Record<'_>,
        event: &EventRef,
        hook: u16,
    ) -> Option<RecordedCall> {
        let kind = CallKind::of_hook(hook)?;
        let fields = self.0.read(record)?;
        let raw = Ticks::new(fields.uint(0)?.cast_signed());
        let since = machine.timeline().timestamp(event.file, raw);
        if since > event.time {
            return None;
        }
        let address = fields.uint(1)?;
        Some(RecordedCall {
            routine: Routine { kind, address },
            since,
        })
    }
}
