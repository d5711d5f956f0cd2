//! The use of processors over time: the shares of intervals in which each processor was busy, ran
//! deferred procedure calls, and ran interrupt service routines.
//!
//! Needs the kernel's context switches (flag `CSWITCH`), and for deferred calls and service
//! routines the flags `DPC` and `INTERRUPT`. What was not recorded is estimated from the samples of
//! the processors (flag `PROFILE`).
//!
//! ```no_run
//! use etl_analysis::behavior::processors::ProcessorUse;
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut processors = ProcessorUse::new(10_000_000);
//! let machine = Analysis::new().run(&mut recording, &mut processors)?;
//! for (place, used) in processors.list() {
//!     println!("interval {} of processor {}: {:?}", place.interval, place.processor, used.busy());
//! }
//! # drop(machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use etl_format::constants::hook;
use etl_format::read::Record;
use etl_format::{Ticks, TimeRange};
use etl_schema::views::FieldReader;
use foldhash::HashMap;

use super::interrupts::{CallKind, CallReader, EndedCall, EndedCalls, ProcessorKey};
use crate::Interrupt;
use crate::loss::Loss;
use crate::machine::Machine;
use crate::observe::{EventRef, Joins, Observer, Sample};

/// The thread of idle processors.
const IDLE: u64 = 0;

/// Intervals of a recording. If it is longer, two of them become one until they are fewer.
const MAX_INTERVALS: u64 = 1 << 16;

/// An interval of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Place {
    /// The number of the interval since the start of the recording.
    pub interval: u64,
    /// The processor.
    pub processor: u16,
}

/// What a processor did in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Used {
    /// Ticks for which context switches say what ran.
    pub known: u64,
    /// Of these, the ticks in which threads other than the idle thread ran.
    pub threads: u64,
    /// Ticks of deferred calls and service routines that interrupted the idle thread, without the
    /// calls that interrupted them.
    pub idle_calls: u64,
    /// Ticks of deferred calls, without the service routines that interrupted them.
    pub dpc: u64,
    /// Ticks of service routines.
    pub isr: u64,
    /// Samples of the processor.
    pub samples: u64,
    /// Of these, samples of the idle thread that nothing interrupted.
    pub idle_samples: u64,
    /// Samples in deferred calls.
    pub dpc_samples: u64,
    /// Samples in service routines.
    pub isr_samples: u64,
}

impl Used {
    /// The share in which the processor was not idle: by context switches, or else by samples.
    #[must_use]
    pub fn busy(&self) -> Option<f64> {
        if self.known > 0 {
            let busy = self.threads.saturating_add(self.idle_calls);
            return share(busy.min(self.known), self.known);
        }
        share(self.samples.saturating_sub(self.idle_samples), self.samples)
    }

    /// The ticks of deferred calls or of service routines.
    fn of_calls(&mut self, interrupt: Interrupt) -> &mut u64 {
        match interrupt {
            Interrupt::Dpc => &mut self.dpc,
            Interrupt::Isr => &mut self.isr,
        }
    }

    fn add(&mut self, other: &Used) {
        let sums = [
            (&mut self.known, other.known),
            (&mut self.threads, other.threads),
            (&mut self.idle_calls, other.idle_calls),
            (&mut self.dpc, other.dpc),
            (&mut self.isr, other.isr),
            (&mut self.samples, other.samples),
            (&mut self.idle_samples, other.idle_samples),
            (&mut self.dpc_samples, other.dpc_samples),
            (&mut self.isr_samples, other.isr_samples),
        ];
        for (sum, value) in sums {
            *sum = sum.saturating_add(value);
        }
    }
}

/// The share of a part; `None` if there is no whole.
fn share(part: u64, whole: u64) -> Option<f64> {
    if whole == 0 {
        None
    } else {
        Some(part as f64 / whole as f64)
    }
}

/// What a processor runs, and since when.
#[derive(Clone, Copy, Debug)]
struct Running {
    is_idle: bool,
    since: Ticks,
}

/// Collects the use of processors by intervals.
#[derive(Clone, Debug)]
pub struct ProcessorUse {
    list: BTreeMap<Place, Used>,
    running: HashMap<u16, Running>,
    has_calls: bool,
    switch: FieldReader<2>,
    calls: CallReader,
    ended: EndedCalls,
    /// The length of an interval as it was asked for, in 100 ns.
    wanted: u64,
    /// How many of these are one interval.
    merged: u64,
    range: TimeRange,
}

/// A span of time of a processor.
#[derive(Clone, Copy, Debug)]
struct BusySpan {
    processor: u16,
    from: Ticks,
    to: Ticks,
}

impl BusySpan {
    fn of_call(processor: u16, call: EndedCall) -> Self {
        BusySpan {
            processor,
            from: call.since,
            to: call.until,
        }
    }
}

impl ProcessorUse {
    /// Nothing is collected yet. `interval` is the length of an interval in 100 ns.
    #[must_use]
    pub fn new(interval: u64) -> Self {
        ProcessorUse {
            list: BTreeMap::new(),
            running: HashMap::default(),
            has_calls: false,
            switch: FieldReader::of_hook(hook::CSWITCH, ["NewThreadId", "OldThreadId"]),
            calls: CallReader::new(),
            ended: EndedCalls::default(),
            wanted: interval.max(1),
            merged: 1,
            range: TimeRange::default(),
        }
    }

    /// Counts only what is in a range of the recording's clock.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        ProcessorUse { range, ..self }
    }

    /// What each processor did in each interval of which something is known.
    #[must_use]
    pub fn list(&self) -> &BTreeMap<Place, Used> {
        &self.list
    }

    /// The length of an interval, in 100 ns. It is a multiple of the requested one if the recording
    /// has more than 65,536 of these.
    #[must_use]
    pub fn interval(&self) -> u64 {
        self.wanted.saturating_mul(self.merged)
    }

    /// Whether deferred calls or service routines were recorded as events.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// The selected times of an interval of the recording, in its ticks.
    #[must_use]
    pub fn span(&self, machine: &Machine, interval: u64) -> TimeRange {
        let length = self.interval_ticks(machine);
        let begin = interval.saturating_mul(length);
        let start = machine.clock().start_timestamp;
        let from = start.saturating_add(i64::try_from(begin).unwrap_or(i64::MAX));
        let to = from.saturating_add(i64::try_from(length).unwrap_or(i64::MAX));
        let of_kernel = match machine.kernel_span() {
            Some(span) => TimeRange::new(Some(span.first), Some(span.last)),
            None => TimeRange::default(),
        };
        TimeRange::new(Some(from), Some(to))
            .intersection(self.range)
            .intersection(of_kernel)
    }

    /// The share of an interval in which a processor ran calls: by events, or else by samples.
    #[must_use]
    pub fn share_of(&self, machine: &Machine, place: Place, interrupt: Interrupt) -> Option<f64> {
        let used = self.list.get(&place)?;
        if !self.has_calls {
            let samples = match interrupt {
                Interrupt::Dpc => used.dpc_samples,
                Interrupt::Isr => used.isr_samples,
            };
            return share(samples, used.samples);
        }
        let ticks = match interrupt {
            Interrupt::Dpc => used.dpc,
            Interrupt::Isr => used.isr,
        };
        let span = self.span(machine, place.interval);
        let length = u64::try_from(span.to?.saturating_since(span.from?)).unwrap_or(0);
        share(ticks.min(length), length)
    }

    /// The length of an interval in ticks.
    fn interval_ticks(&self, machine: &Machine) -> u64 {
        let frequency = u128::from(machine.clock().frequency);
        let ticks = u128::from(self.interval()).saturating_mul(frequency) / 10_000_000;
        u64::try_from(ticks).unwrap_or(u64::MAX).max(1)
    }

    /// The interval of a time.
    fn interval_of(&mut self, machine: &Machine, time: Ticks) -> u64 {
        let since = time.saturating_since(machine.clock().start_timestamp);
        let since = u64::try_from(since).unwrap_or(0);
        loop {
            let interval = since / self.interval_ticks(machine);
            if interval < MAX_INTERVALS {
                return interval;
            }
            self.merge();
        }
    }

    /// Makes intervals twice as long.
    fn merge(&mut self) {
        self.merged = self.merged.saturating_mul(2);
        for (mut place, used) in std::mem::take(&mut self.list) {
            place.interval /= 2;
            self.list.entry(place).or_default().add(&used);
        }
    }

    fn at(&mut self, machine: &Machine, processor: u16, time: Ticks) -> &mut Used {
        let interval = self.interval_of(machine, time);
        let place = Place {
            interval,
            processor,
        };
        self.list.entry(place).or_default()
    }

    /// Adds what a processor did in a span to each interval of it, as far as it is selected.
    fn add(&mut self, machine: &Machine, span: BusySpan, add: impl Fn(&mut Used, u64)) {
        let selected = TimeRange::new(Some(span.from), Some(span.to)).intersection(self.range);
        let (Some(mut from), Some(to)) = (selected.from, selected.to) else {
            return;
        };
        // The intervals have their final length before the first part is added.
        self.interval_of(machine, to);
        let length = i64::try_from(self.interval_ticks(machine)).unwrap_or(i64::MAX);
        let start = machine.clock().start_timestamp;
        while from < to {
            let begin = from.saturating_since(start).max(0) / length * length;
            let end = start.saturating_add(begin).saturating_add(length).min(to);
            let ticks = u64::try_from(end.saturating_since(from)).unwrap_or(0);
            add(self.at(machine, span.processor, from), ticks);
            if end <= from {
                return;
            }
            from = end;
        }
    }

    fn switch(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) -> Option<()> {
        let fields = self.switch.read(record)?;
        let new = fields.uint(0)?;
        let now = Running {
            is_idle: new == IDLE,
            since: event.time,
        };
        let before = self.running.insert(event.processor, now)?;
        self.ran(machine, event.processor, before, event.time);
        Some(())
    }

    /// A processor ran something until now.
    fn ran(&mut self, machine: &Machine, processor: u16, before: Running, until: Ticks) {
        let span = BusySpan {
            processor,
            from: before.since,
            to: until,
        };
        self.add(machine, span, |used, ticks| {
            used.known += ticks;
            if !before.is_idle {
                used.threads += ticks;
            }
        });
    }

    fn call(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef, hook: u16) {
        let Some(call) = self.calls.read(machine, record, event, hook) else {
            return;
        };
        self.has_calls = true;
        let processor = event.processor;
        let kind = call.routine.kind;
        let is_idle = match self.running.get(&processor) {
            // The thread of a threaded call is not the idle thread.
            Some(running) => running.is_idle && kind != CallKind::ThreadedDpc,
            None => false,
        };
        let ended = EndedCall {
            since: call.since,
            until: event.time,
        };
        let span = BusySpan::of_call(processor, ended);
        self.add(machine, span, |used, ticks| {
            let sum = used.of_calls(kind.interrupt());
            *sum = sum.saturating_add(ticks);
            if is_idle {
                used.idle_calls = used.idle_calls.saturating_add(ticks);
            }
        });
        // The calls that interrupted this one were added before.
        let key = ProcessorKey::of(event);
        while let Some(inner) = self.ended.take_inner(key, call.since) {
            self.add(
                machine,
                BusySpan::of_call(processor, inner),
                |used, ticks| {
                    let sum = used.of_calls(kind.interrupt());
                    *sum = sum.saturating_sub(ticks);
                    if is_idle {
                        used.idle_calls = used.idle_calls.saturating_sub(ticks);
                    }
                },
            );
        }
        self.ended.keep(key, ended);
    }
}

impl Observer for ProcessorUse {
    const JOINS: Joins = Joins::Samples;

    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        match event.kind.hook() {
            Some(hook::CSWITCH) => {
                self.switch(machine, record, event);
            }
            Some(hook) if CallKind::of_hook(hook).is_some() => {
                self.call(machine, record, event, hook);
            }
            _ => {}
        }
    }

    fn sample(&mut self, machine: &Machine, sample: &Sample<'_>) {
        let event = &sample.event;
        if !self.range.contains(event.time) {
            return;
        }
        let is_idle = event.tid.is_some_and(|tid| u64::from(tid.get()) == IDLE);
        let interrupt = sample.interrupt;
        let used = self.at(machine, event.processor, event.time);
        used.samples += 1;
        match interrupt {
            Some(Interrupt::Dpc) => used.dpc_samples += 1,
            Some(Interrupt::Isr) => used.isr_samples += 1,
            None if is_idle => used.idle_samples += 1,
            None => {}
        }
    }

    fn loss(&mut self, loss: &Loss) {
        match loss.processor {
            Some(processor) => drop(self.running.remove(&processor)),
            None => self.running.clear(),
        }
    }

    fn finish(&mut self, machine: &Machine) {
        let Some(span) = machine.kernel_span() else {
            return;
        };
        for (processor, running) in std::mem::take(&mut self.running) {
            self.ran(machine, processor, running, span.last);
        }
    }

    fn restart(&mut self) {
        *self = ProcessorUse::new(self.wanted).within(self.range);
    }
}
