//! Stacks of samples: whether they are logged as long as the samples are.

use etl_format::Ticks;
use etl_format::read::Record;

use super::sampling::MAX_PROCESSORS;

/// Samples of threads, and how many of them in a row have no stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampledStacks {
    /// By number.
    processors: Vec<Processor>,
    /// Samples since the first stack. The idle thread has no stacks.
    samples: u64,
    /// Samples with a stack.
    walked: u64,
    /// Samples since the last stack.
    run: Run,
    /// The longest runs before.
    longest: LongestRuns,
}

/// Samples of a processor.
#[derive(Clone, Copy, Debug, Default)]
struct Processor {
    /// The raw timestamp of the last sample, until its stack comes.
    awaited: Option<Ticks>,
    samples: u64,
    /// Samples with a stack.
    walked: u64,
}

/// Samples in a row without a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    /// The number of samples.
    pub samples: u64,
    /// Time of the first.
    pub from: Ticks,
    /// Time of the last.
    pub to: Ticks,
}

/// The longest run, and the length of the second longest.
#[derive(Clone, Copy, Debug, Default)]
struct LongestRuns {
    first: Run,
    second_samples: u64,
}

impl LongestRuns {
    fn with(self, run: Run) -> Self {
        if run.samples > self.first.samples {
            LongestRuns {
                first: run,
                second_samples: self.first.samples,
            }
        } else {
            LongestRuns {
                first: self.first,
                second_samples: self.second_samples.max(run.samples),
            }
        }
    }
}

/// Samples of a processor without stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessorWithoutStacks {
    /// The number of the processor.
    pub processor: usize,
    /// The number of its samples.
    pub samples: u64,
}

impl SampledStacks {
    /// Adds a sample of a thread.
    #[inline]
    pub fn add_sample(&mut self, record: &Record<'_>, time: Ticks) {
        self.sample_on(usize::from(record.processor()), record.timestamp(), time);
    }

    /// Adds a stack of the event at `event_time`, a raw timestamp.
    pub fn add_stack(&mut self, record: &Record<'_>, event_time: Ticks) {
        self.stack_on(usize::from(record.processor()), event_time);
    }

    #[inline]
    fn sample_on(&mut self, processor: usize, timestamp: Ticks, time: Ticks) {
        if let Some(samples) = self.processors.get_mut(processor) {
            samples.awaited = Some(timestamp);
            samples.samples += 1;
        } else if processor < MAX_PROCESSORS {
            self.processors.resize(processor + 1, Processor::default());
            return self.sample_on(processor, timestamp, time);
        }
        // The stacks may be enabled some time after the samples.
        if self.walked > 0 {
            self.samples += 1;
            if self.run.samples == 0 {
                self.run.from = time;
            }
            self.run.samples += 1;
            self.run.to = time;
        }
    }

    /// Adds the kernel part, the user part or the whole of a stack.
    fn stack_on(&mut self, processor: usize, event_time: Ticks) {
        let Some(samples) = self.processors.get_mut(processor) else {
            return;
        };
        if samples.awaited != Some(event_time) {
            return;
        }
        samples.awaited = None;
        samples.walked += 1;
        self.walked += 1;
        self.longest = self.longest.with(self.run);
        self.run = Run::default();
    }

    /// A run that is far longer than all others: the stacks of its samples are missing. The last
    /// sample of a run has the stack that ends it.
    pub fn missing(&self) -> Option<Run> {
        let longest = self.longest.with(self.run);
        let run = longest.first;
        let others = self.samples.saturating_sub(run.samples);
        let is_long = run.samples >= MIN && run.samples >= 10 * longest.second_samples;
        if is_long && is_usual(self.walked, others) {
            Some(run)
        } else {
            None
        }
    }

    /// The first processor whose samples have no stacks although the samples of others have.
    pub fn processor_without(&self) -> Option<ProcessorWithoutStacks> {
        for (processor, own) in self.processors.iter().enumerate() {
            let others = self.samples.saturating_sub(own.samples);
            if own.samples >= MIN && own.walked == 0 && is_usual(self.walked, others) {
                return Some(ProcessorWithoutStacks {
                    processor,
                    samples: own.samples,
                });
            }
        }
        None
    }
}

/// Fewer samples and stacks prove nothing.
const MIN: u64 = 100;

/// Whether nearly all samples of threads have a stack.
fn is_usual(walked: u64, samples: u64) -> bool {
    walked >= MIN && walked * 4 >= samples * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples on two processors in turn, with stacks if `has_stack` returns true.
    fn sampled(count: i64, has_stack: impl Fn(i64) -> bool) -> SampledStacks {
        let mut stacks = SampledStacks::default();
        for time in 0..count {
            let processor = usize::from(time % 2 == 1);
            stacks.sample_on(processor, Ticks::new(10 * time), Ticks::new(time));
            if has_stack(time) {
                stacks.stack_on(processor, Ticks::new(10 * time));
                // The user part of the same stack, and a stack of another event.
                stacks.stack_on(processor, Ticks::new(10 * time));
                stacks.stack_on(processor, Ticks::new(10 * time + 1));
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
    fn processor_without_stacks_is_found_among_others() {
        let on_even = sampled(1_000, |time| time % 2 == 0);
        let second = ProcessorWithoutStacks {
            processor: 1,
            samples: 500,
        };
        assert_eq!(on_even.processor_without(), Some(second));
        let all_but_one = sampled(1_000, |time| time % 2 == 0 || time == 501);
        assert_eq!(all_but_one.processor_without(), None);
        let few = sampled(150, |time| time % 2 == 0);
        assert_eq!(few.processor_without(), None);
        assert_eq!(sampled(1_000, |_| true).processor_without(), None);
    }
}
