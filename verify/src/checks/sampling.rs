//! Samples of the processors: how far they are apart, and where they are missing.

use etl_format::constants::{FILETIME_PER_SECOND, hook};
use etl_format::cursor::Bytes;
use etl_format::read::Record;
use etl_format::{Clock, ThreadId, Ticks};
use etl_schema::views::FieldReader;

/// Bit of the first group mask with which a session logs processes (EVENT_TRACE_FLAG_PROCESS).
const PROCESS: u64 = 1;
/// Bit of the second group mask with which a session requests samples (PERF_PROFILE, 0x20000002).
const PROFILE: u64 = 2;
/// Source of samples by time.
const BY_TIME: u64 = 0;
/// Offset of NewThreadId in the payload of a context switch.
const NEW_THREAD_ID: usize = 0;

/// Processors that are distinguished; Windows has at most 2,048.
pub(super) const MAX_PROCESSORS: usize = 1 << 12;

/// The samples of a recording.
#[derive(Clone, Debug)]
pub(crate) struct Sampling {
    /// By number.
    processors: Vec<Processor>,
    /// The interval that is stated when sampling begins, in 100 ns.
    pub interval_at_start: Option<u32>,
    /// The interval that is stated when sampling ends, in 100 ns.
    pub interval_at_end: Option<u32>,
    /// Whether the interval was set in between.
    pub is_set: bool,
    /// When the session stopped sampling.
    pub ended: Option<Ticks>,
    /// When the kernel's session requested samples; `None` if it did not.
    pub requested: Option<Ticks>,
    /// Ticks after which an event of a processor is another sign that the processor works.
    sign_ticks: i64,
    /// When the kernel's session stated that it logs processes.
    logs_processes: Option<Ticks>,
    /// Whether the last masks that the session ended had processes.
    ends_processes: bool,
    /// When the kernel's session stated that it no longer logs processes: its lists of the end come
    /// just before.
    processes_ended: Option<Ticks>,
    /// Reads the first two group masks of a session.
    masks: FieldReader<2>,
    /// Reads source and interval; the three events about intervals have the same fields.
    intervals: FieldReader<2>,
}

/// A time without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Time of the sample before it.
    pub from: Ticks,
    /// Time of the sample after it, or of the end of sampling.
    pub to: Ticks,
    /// Spans of 10 ms in which the kernel logged other events on the processor.
    pub signs: u64,
    /// Ticks for which the processor ran threads, if the kernel logs context switches.
    pub busy: i64,
}

impl Gap {
    /// The length in ticks.
    pub fn ticks(&self) -> i64 {
        self.to.saturating_since(self.from)
    }
}

/// The samples of a processor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processor {
    /// The number of samples.
    pub count: u64,
    /// The number of samples while it was idle.
    pub idle: u64,
    /// Time of the first, if there is one.
    pub first: Ticks,
    /// Time of the last.
    pub last: Ticks,
    /// The longest time without a sample between the first and the last in which it worked.
    pub gap: Gap,
    /// The longest time without a sample between the first and the last.
    pub longest: Gap,
    /// Signs of work since the last sample, as in [`Gap`].
    signs: u64,
    /// Ticks for which it ran threads since the last sample.
    busy: i64,
    /// Time of the last sign of work.
    last_sign: Ticks,
    /// What it does since the last context switch; `None` before the first.
    running: Option<Running>,
    /// The distances between its samples.
    distances: Distances,
}

/// What a processor runs.
#[derive(Clone, Copy, Debug)]
struct Running {
    /// Whether it runs a thread, and not the idle thread.
    is_busy: bool,
    /// Since the context switch, or the last sample if that is later.
    since: Ticks,
}

/// The most frequent distances between samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peak {
    /// The number of these distances, and of distances that are a few percent shorter or longer.
    pub count: u64,
    /// The shortest of the most frequent distances, in ticks.
    pub shortest: f64,
    /// The longest of the most frequent distances, in ticks.
    pub longest: f64,
}

/// Counts of distances by their size: 32 steps for each power of two.
#[derive(Clone, Debug, Default)]
struct Distances(Vec<u32>);

impl Distances {
    /// Bits of the fraction that distinguish steps.
    const BITS: u32 = 5;
    /// The number of steps.
    const STEPS: usize = 64 << Self::BITS;
    /// Bits of the fraction that are cut off.
    const CUT_BITS: u32 = f64::MANTISSA_DIGITS - 1 - Self::BITS;
    /// The step of a distance of 1, as bits.
    const FIRST: usize = (1.0_f64.to_bits() >> Self::CUT_BITS) as usize;

    /// The step of a distance: exponent and first bits of the fraction of a floating point number.
    fn step(ticks: i64) -> usize {
        ((ticks.max(1) as f64).to_bits() >> Self::CUT_BITS) as usize - Self::FIRST
    }

    /// The smallest distance of a step.
    fn start(step: usize) -> f64 {
        f64::from_bits(((step + Self::FIRST) as u64) << Self::CUT_BITS)
    }

    #[inline(always)]
    fn add(&mut self, ticks: i64) {
        match self.0.get_mut(Self::step(ticks)) {
            Some(count) => *count = count.saturating_add(1),
            None => self.first(ticks),
        }
    }

    #[cold]
    #[inline(never)]
    fn first(&mut self, ticks: i64) {
        self.0 = vec![0; Self::STEPS];
        if let Some(count) = self.0.get_mut(Self::step(ticks)) {
            *count = 1;
        }
    }

    /// The number of distances in lower steps than a distance.
    fn below(&self, ticks: i64) -> u64 {
        self.0
            .iter()
            .take(Self::step(ticks))
            .map(|&count| u64::from(count))
            .sum()
    }
}

impl Sampling {
    /// No records yet.
    pub fn new(clock: &Clock) -> Self {
        let frequency = i64::try_from(clock.frequency).unwrap_or(FILETIME_PER_SECOND);
        Sampling {
            processors: Vec::new(),
            interval_at_start: None,
            interval_at_end: None,
            is_set: false,
            ended: None,
            requested: None,
            sign_ticks: (frequency / 100).max(1),
            logs_processes: None,
            ends_processes: false,
            processes_ended: None,
            masks: FieldReader::of_hook(hook::EXTENSION, ["GroupMask1", "GroupMask2"]),
            intervals: FieldReader::of_hook(hook::COLLECTION_START, ["Source", "NewInterval"]),
        }
    }

    /// Adds a record of the kernel with this hook that is not a sample.
    #[inline]
    pub fn record(&mut self, record: &Record<'_>, hook: u16, time: Ticks) {
        if let Some(processor) = self.processors.get_mut(usize::from(record.processor()))
            && self.ended.is_none()
        {
            processor.other(time, self.sign_ticks);
        }
        if matches!(
            hook,
            hook::CSWITCH
                | hook::EXTENSION
                | hook::GROUP_MASKS_END
                | hook::SET_INTERVAL
                | hook::COLLECTION_START
                | hook::COLLECTION_END
        ) {
            self.event(record, hook, time);
        }
    }

    /// Adds a sample of a thread that ran on a processor.
    #[inline(always)]
    pub fn sample(&mut self, processor: u16, tid: ThreadId, time: Ticks) {
        match self.processors.get_mut(usize::from(processor)) {
            Some(processor) => processor.sample(tid == 0, time),
            None => self.first_sample(processor.into(), tid, time),
        }
    }

    #[cold]
    #[inline(never)]
    fn first_sample(&mut self, processor: usize, tid: ThreadId, time: Ticks) {
        if processor < MAX_PROCESSORS {
            self.processors
                .resize_with(processor + 1, Processor::default);
        }
        if let Some(processor) = self.processors.get_mut(processor) {
            processor.sample(tid == 0, time);
        }
    }

    #[inline(never)]
    fn event(&mut self, record: &Record<'_>, hook: u16, time: Ticks) {
        match hook {
            hook::CSWITCH => {
                if let Some(tid) = record.payload().u32_at(NEW_THREAD_ID)
                    && let Some(processor) =
                        self.processors.get_mut(usize::from(record.processor()))
                {
                    processor.switch(tid != 0, time);
                }
            }
            hook::EXTENSION => {
                let Some(masks) = self.masks.read(record) else {
                    return;
                };
                if masks.uint(0).is_some_and(|mask| mask & PROCESS != 0) {
                    self.logs_processes.get_or_insert(time);
                } else if self.ends_processes {
                    self.processes_ended = Some(time);
                }
                self.ends_processes = false;
                if masks.uint(1).is_some_and(|mask| mask & PROFILE != 0) {
                    self.requested.get_or_insert(time);
                }
            }
            hook::GROUP_MASKS_END => {
                let masks = self.masks.read(record);
                let old = masks.and_then(|masks| masks.uint(0));
                self.ends_processes = old.is_some_and(|mask| mask & PROCESS != 0);
            }
            _ => self.interval_event(record, hook, time),
        }
    }

    /// Adds an event about the interval between samples.
    fn interval_event(&mut self, record: &Record<'_>, hook: u16, time: Ticks) {
        let Some(fields) = self.intervals.read(record) else {
            return;
        };
        if fields.uint(0) != Some(BY_TIME) {
            return;
        }
        let interval = fields
            .uint(1)
            .and_then(|interval| u32::try_from(interval).ok());
        match hook {
            hook::SET_INTERVAL => self.is_set = true,
            hook::COLLECTION_START => {
                // A second session begins to sample.
                self.is_set |= self.interval_at_start.is_some();
                self.interval_at_start = interval;
            }
            _ => {
                self.interval_at_end = interval;
                self.ended = Some(time);
            }
        }
    }

    /// When the kernel's session states that it logs processes.
    pub fn logs_processes(&self) -> Option<Ticks> {
        self.logs_processes
    }

    /// When the kernel's session states that it no longer logs processes.
    pub fn processes_ended(&self) -> Option<Ticks> {
        self.processes_ended
    }

    /// The interval between samples that the session states, in 100 ns.
    pub fn stated_interval(&self) -> Option<u32> {
        self.interval_at_start.or(self.interval_at_end)
    }

    /// Processors with samples, and their numbers.
    pub fn processors(&self) -> impl Iterator<Item = (usize, &Processor)> {
        self.processors
            .iter()
            .enumerate()
            .filter(|(_, p)| p.count > 0)
    }

    /// Time of the last sample.
    pub fn last(&self) -> Option<Ticks> {
        self.processors().map(|(_, p)| p.last).max()
    }

    /// The number of distances between samples.
    pub fn distances(&self) -> u64 {
        self.processors()
            .map(|(_, p)| p.count.saturating_sub(1))
            .sum()
    }

    /// The three steps in a row with the most distances.
    pub fn peak(&self) -> Option<Peak> {
        const WIDTH: usize = 3;
        let mut steps = vec![0_u64; Distances::STEPS];
        for (_, processor) in self.processors() {
            for (sum, &count) in steps.iter_mut().zip(&processor.distances.0) {
                *sum += u64::from(count);
            }
        }
        let windows = steps
            .windows(WIDTH)
            .map(|counts| counts.iter().sum::<u64>())
            .enumerate();
        let (first, count) = windows.max_by_key(|&(_, count)| count)?;
        // Among equal windows the last is found, which begins with the most frequent step.
        let in_window = (first..first + WIDTH).rev();
        let usual = in_window.max_by_key(|&step| steps.get(step).copied())?;
        Some(Peak {
            count,
            shortest: Distances::start(usual),
            longest: Distances::start(usual + 1),
        })
    }

    /// The number of shorter distances.
    pub fn shorter(&self, ticks: i64) -> u64 {
        self.processors()
            .map(|(_, p)| p.distances.below(ticks))
            .sum()
    }
}

impl Processor {
    #[inline(always)]
    fn sample(&mut self, is_idle: bool, time: Ticks) {
        self.idle += u64::from(is_idle);
        if self.count > 0 {
            let ticks = time.saturating_since(self.last);
            self.distances.add(ticks);
            if ticks > self.longest.ticks() {
                self.longest = self.open_gap(time);
            }
            if self.signs > 0 && ticks > self.gap.ticks() {
                self.gap = self.open_gap(time);
            }
        } else {
            self.first = time;
        }
        self.count += 1;
        self.signs = 0;
        self.busy = 0;
        self.last = time;
        self.last_sign = time;
        if let Some(running) = &mut self.running {
            running.since = time;
        }
    }

    /// Another event of the kernel on this processor: a sign of work, if the last one is at least
    /// `sign_ticks` ago. Events before the first sample are never used.
    #[inline]
    fn other(&mut self, time: Ticks, sign_ticks: i64) {
        if time.saturating_since(self.last_sign) >= sign_ticks {
            self.last_sign = time;
            self.signs += 1;
        }
    }

    /// The processor switches to a thread, or becomes idle.
    fn switch(&mut self, is_busy: bool, since: Ticks) {
        let running = Running { is_busy, since };
        if let Some(before) = self.running.replace(running)
            && before.is_busy
        {
            self.busy += since.saturating_since(before.since);
        }
    }

    /// The time without samples from the last one to a later time.
    pub fn open_gap(&self, to: Ticks) -> Gap {
        let mut busy = self.busy;
        if let Some(running) = self.running
            && running.is_busy
        {
            busy += to.saturating_since(running.since).max(0);
        }
        Gap {
            from: self.last,
            to,
            busy,
            signs: self.signs,
        }
    }

    /// Whether the kernel logs its context switches.
    pub fn has_switches(&self) -> bool {
        self.running.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_kept_in_steps_of_equal_ratio() {
        let steps = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1 << 40].map(Distances::step);
        assert_eq!(steps, [0, 0, 32, 48, 64, 72, 80, 88, 96, 100, 104, 1280]);
        let mut distances = Distances::default();
        for ticks in [10_000, 10_001, 20_000] {
            distances.add(ticks);
        }
        assert_eq!(
            [5_000, 15_000, 30_000].map(|ticks| distances.below(ticks)),
            [0, 2, 3]
        );
        let [from, to] = [0, 3].map(|more| Distances::start(Distances::step(10_000) + more));
        assert_eq!([from, to], [9_984.0, 10_752.0]);
    }

    #[test]
    fn a_gap_holds_what_the_processor_did() {
        let mut processor = Processor::default();
        processor.sample(false, Ticks::new(100));
        processor.switch(true, Ticks::new(150));
        processor.other(Ticks::new(160), 50);
        processor.other(Ticks::new(170), 50);
        processor.other(Ticks::new(220), 50);
        processor.switch(false, Ticks::new(250));
        processor.sample(true, Ticks::new(1_100));
        assert_eq!(
            processor.gap,
            Gap {
                from: Ticks::new(100),
                to: Ticks::new(1_100),
                signs: 2,
                busy: 100
            }
        );
        assert_eq!(
            processor.open_gap(Ticks::new(1_200)),
            Gap {
                from: Ticks::new(1_100),
                to: Ticks::new(1_200),
                signs: 0,
                busy: 0
            }
        );
        assert_eq!((processor.count, processor.idle), (2, 1));
    }
}
