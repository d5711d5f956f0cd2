//! Stacks of samples: whether they go on as long as the samples do.

use etl_format::Ticks;
use etl_format::constants::hook;
use etl_format::cursor::Bytes;
use etl_format::read::Record;

use super::sampling::MAX_PROCESSORS;

/// Samples of threads, and how many of them in a row have no stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampledStacks {
    /// By number.
    processors: Vec<Processor>,
    /// Samples since the first stack. The idle thread has no stacks.
    samples: u64,
    /// Those of them that have a stack.
    walked: u64,
    /// Samples since the last stack.
    run: Run,
    longest: Run,
    /// The length of the second longest run.
    second: u64,
}

/// Samples of a processor.
#[derive(Clone, Copy, Debug, Default)]
struct Processor {
    /// The raw timestamp of the last one, until its stack comes.
    awaited: Option<Ticks>,
    samples: u64,
    /// Those of them that have a stack.
    walked: u64,
}

/// Samples in a row without a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub samples: u64,
    /// Times of the first and the last.
    pub from: Ticks,
    pub to: Ticks,
}

impl SampledStacks {
    /// A sample of a thread.
    #[inline]
    pub fn sample(&mut self, record: &Record<'_>, time: Ticks) {
        self.add(usize::from(record.processor()), record.timestamp(), time);
    }

    /// A stack, or a definition of one.
    pub fn stack(&mut self, record: &Record<'_>, hook: u16) {
        let is_stack = matches!(
            hook,
            hook::STACK | hook::STACK_KEY_KERNEL | hook::STACK_KEY_USER
        );
        if let (true, Some(at)) = (is_stack, record.payload().i64_at(0)) {
            self.walk(usize::from(record.processor()), Ticks::new(at));
        }
    }

    #[inline]
    fn add(&mut self, processor: usize, timestamp: Ticks, time: Ticks) {
        if let Some(own) = self.processors.get_mut(processor) {
            own.awaited = Some(timestamp);
            own.samples += 1;
        } else if processor < MAX_PROCESSORS {
            self.processors.resize(processor + 1, Processor::default());
            return self.add(processor, timestamp, time);
        }
        // The stacks may be enabled some time after the samples.
        if self.walked > 0 {
            self.samples += 1;
            let from = if self.run.samples == 0 {
                time
            } else {
                self.run.from
            };
            self.run = Run {
                samples: self.run.samples + 1,
                from,
                to: time,
            };
        }
    }

    /// The stack of the sample at `at`: its kernel part, its user part, or both.
    fn walk(&mut self, processor: usize, at: Ticks) {
        let Some(own) = self.processors.get_mut(processor) else {
            return;
        };
        if own.awaited.take_if(|awaited| *awaited == at).is_none() {
            return;
        }
        own.walked += 1;
        self.walked += 1;
        (self.longest, self.second) = self.runs();
        self.run = Run::default();
    }

    /// The longest run, and the length of the second longest.
    fn runs(&self) -> (Run, u64) {
        if self.run.samples > self.longest.samples {
            (self.run, self.longest.samples)
        } else {
            (self.longest, self.second.max(self.run.samples))
        }
    }

    /// A run that has no like: the stacks of its samples are missing. The last sample of a run has
    /// the stack that ends it.
    pub fn missing(&self) -> Option<Run> {
        let (run, second) = self.runs();
        let others = self.samples.saturating_sub(run.samples);
        let is_usual = is_usual(self.walked, others);
        let is_long = run.samples >= MIN && run.samples >= 10 * second;
        (is_usual && is_long).then_some(run)
    }

    /// A processor whose samples have no stack although those of the others have one, and how many
    /// they are.
    pub fn missing_on(&self) -> Option<(usize, u64)> {
        let is_missing = |own: &Processor| {
            let others = self.samples.saturating_sub(own.samples);
            own.samples >= MIN && own.walked == 0 && is_usual(self.walked, others)
        };
        let (number, own) = self
            .processors
            .iter()
            .enumerate()
            .find(|(_, own)| is_missing(own))?;
        Some((number, own.samples))
    }
}

/// Samples and stacks below which nothing is certain.
const MIN: u64 = 100;

/// Whether nearly all samples of threads have a stack.
fn is_usual(walked: u64, samples: u64) -> bool {
    walked >= MIN && walked * 4 >= samples * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples on two processors in turn; those for which `has_stack` is true have one.
    fn sampled(count: i64, has_stack: impl Fn(i64) -> bool) -> SampledStacks {
        let mut stacks = SampledStacks::default();
        for time in 0..count {
            let processor = usize::from(time % 2 == 1);
            stacks.add(processor, Ticks::new(10 * time), Ticks::new(time));
            if has_stack(time) {
                stacks.walk(processor, Ticks::new(10 * time));
                // The user part of the same stack, and a stack of another event.
                stacks.walk(processor, Ticks::new(10 * time));
                stacks.walk(processor, Ticks::new(10 * time + 1));
            }
        }
        stacks
    }

    #[test]
    fn missing_finds_stacks_that_stop_or_pause() {
        assert_eq!(sampled(1_000, |_| true).missing(), None);
        assert_eq!(sampled(1_000, |_| false).missing(), None);
        let run = |samples, from, to| {
            Some(Run {
                samples,
                from: Ticks::new(from),
                to: Ticks::new(to),
            })
        };
        assert_eq!(
            sampled(1_000, |time| time < 700).missing(),
            run(300, 700, 999)
        );
        assert_eq!(
            sampled(1_000, |time| !(300..500).contains(&time)).missing(),
            run(201, 300, 500)
        );
        // They were enabled later.
        assert_eq!(sampled(1_000, |time| time >= 500).missing(), None);
    }

    #[test]
    fn missing_expects_stacks_where_most_samples_have_one() {
        assert_eq!(
            sampled(1_000, |time| time < 700 && time % 2 == 0).missing(),
            None
        );
        assert_eq!(
            sampled(1_000, |time| time < 700 && time % 8 > 0)
                .missing()
                .unwrap()
                .from,
            700
        );
        // Pauses of the same length are usual.
        let pauses = |time: i64| !(100..200).contains(&(time % 400));
        assert_eq!(sampled(1_000, pauses).missing(), None);
        assert_eq!(sampled(150, |time| time < 120).missing(), None);
    }

    #[test]
    fn missing_on_finds_a_processor_without_stacks() {
        assert_eq!(
            sampled(1_000, |time| time % 2 == 0).missing_on(),
            Some((1, 500))
        );
        assert_eq!(
            sampled(1_000, |time| time % 2 == 0 || time == 501).missing_on(),
            None
        );
        assert_eq!(sampled(150, |time| time % 2 == 0).missing_on(), None);
        assert_eq!(sampled(1_000, |_| true).missing_on(), None);
    }
}
