//! Compares the stacks and samples that the analysis joins to events with the truth.

use etl_format::{ThreadId, Ticks};
use std::collections::{BTreeMap, BTreeSet};

use etl_analysis::{Analysis, EventKind, EventRef, Machine, Observer, Recording, Sample, Stack};
use etl_format::constants::ClockType;
use etl_format::read::Record;
use etl_synth::truth::{KnownEvent, SessionReport};

use super::symbols::everything;
use super::tallies::{RUNDOWN, RUNTIME, frames, held, number};
use crate::simulated::{Simulated, corpus};

/// Which event of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Which {
    /// Thread and id of a manifest event.
    Manifest(u32, u16),
    /// Hook of an event of the kernel.
    Kernel(u16),
    Other,
}

/// An event as both sides describe it, with its time.
type Key = (i64, Which);

/// The stacks of events, and the addresses of samples with the threads that were running; each
/// sorted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Joined {
    stacks: Vec<(Key, Vec<u64>)>,
    samples: Vec<(i64, u64, u32)>,
}

impl Joined {
    fn sorted(mut self) -> Self {
        self.stacks.sort();
        self.samples.sort_unstable();
        self
    }
}

/// What the analysis joins.
#[derive(Debug, Default)]
struct Found {
    joined: Joined,
    /// By the number of the record.
    keys: BTreeMap<u64, Key>,
}

impl Found {
    fn key(&self, event: &EventRef) -> Key {
        let known = self.keys.get(&event.number).copied();
        let key = known.expect("the stack of a record that was shown before");
        assert_eq!(Ticks::new(key.0), event.time);
        key
    }
}

impl Observer for Found {
    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        let thread = record.thread_id().unwrap_or(ThreadId::new(0));
        let which = match event.kind {
            EventKind::Event { id, .. } => Which::Manifest(thread.get(), id),
            EventKind::Kernel { hook } => Which::Kernel(hook),
            _ => Which::Other,
        };
        self.keys.insert(event.number, (event.time.get(), which));
    }

    fn sample(&mut self, _: &Machine, sample: &Sample<'_>) {
        let tid = sample.event.tid.expect("the thread of a sample");
        self.joined
            .samples
            .push((sample.event.time.get(), sample.address, tid.get()));
        if !sample.frames.is_empty() {
            let key = self.key(&sample.event);
            self.joined
                .stacks
                .push((key, sample.frames.iter().collect()));
        }
    }

    fn stack(&mut self, _: &Machine, stack: &Stack<'_>) {
        let key = self.key(&stack.event);
        self.joined
            .stacks
            .push((key, stack.frames.iter().collect()));
    }

    fn restart(&mut self) {
        *self = Found::default();
    }
}

fn is_clr(event: &KnownEvent) -> bool {
    [RUNTIME, RUNDOWN].contains(&event.provider.to_string().as_str())
}

/// The event that a stack of the CLR was logged for: the one before it of the same provider on the
/// same thread, recorded or not.
fn owner<'t>(made: &'t Simulated, stack: &KnownEvent) -> Option<&'t KnownEvent> {
    let before = made.truth.events.get(..stack.number as usize)?.iter().rev();
    let mut own = before.filter(|e| e.provider == stack.provider && e.tid == stack.tid);
    own.next().filter(|e| !e.name.starts_with("CLRStackWalk"))
}

/// The event that a stack of the kernel was logged for: the one before it at the time that the
/// stack names, on its thread.
fn kernel_owner<'t>(made: &'t Simulated, stack: &KnownEvent) -> Option<&'t KnownEvent> {
    let at = i64::try_from(number(stack, "EventTimeStamp")?).ok()?;
    let thread = number(stack, "StackThread")?;
    let before = made.truth.events.get(..stack.number as usize)?.iter().rev();
    let mut own = before.take_while(|e| e.timestamp.get() >= at).filter(|e| {
        (e.timestamp.get(), u64::from(e.tid.get())) == (at, thread)
            && e.format.hook().is_some()
            && number(e, "EventTimeStamp").is_none()
    });
    own.next()
}

/// What the analysis should join; `None` where a stack's event is not in the file, so that the
/// stack may be taken for another event's.
fn expected(made: &Simulated, events: &[(&SessionReport, &KnownEvent)]) -> Option<Joined> {
    let mut samples = Vec::new();
    // By the number of the event: a stack may have come in two parts.
    let mut stacks: BTreeMap<u64, (Key, Vec<u64>)> = BTreeMap::new();
    let numbers: BTreeSet<u64> = events.iter().map(|(_, e)| e.number).collect();
    for (session, event) in events {
        let mut add = |owner: &KnownEvent, frames: &[u64]| {
            let which = match owner.format.hook() {
                Some(hook) => Which::Kernel(hook),
                None => Which::Manifest(owner.tid.get(), owner.descriptor.id),
            };
            let none = ((owner.timestamp.get(), which), Vec::new());
            stacks.entry(owner.number).or_insert(none).1.extend(frames);
        };
        if event.stack_sessions.contains(&session.index) {
            add(event, &event.stack);
        }
        if is_clr(event) && event.name.starts_with("CLRStackWalk") {
            let owner = owner(made, event).filter(|owner| numbers.contains(&owner.number))?;
            add(owner, &frames(event, "Stack")?);
        } else if number(event, "EventTimeStamp").is_some() {
            let owner = kernel_owner(made, event).filter(|own| numbers.contains(&own.number))?;
            add(owner, &frames(event, "Stack")?);
        }
        if let (Some(address), Some(tid)) = (
            number(event, "InstructionPointer"),
            number(event, "ThreadId"),
        ) {
            samples.push((event.timestamp.get(), address, tid as u32));
        }
    }
    Some(Joined {
        stacks: stacks.into_values().collect(),
        samples,
    })
}

#[test]
fn analysis_joins_stacks_to_the_events_of_the_truth() {
    let (mut wrong, mut files, mut samples) = (Vec::new(), 0, 0);
    // Stacks of manifest events, and of the kernel's.
    let mut kinds = [0; 2];
    for made in corpus().iter().chain([everything()]) {
        for (file, bytes) in made
            .traces
            .iter()
            .filter(|(f, _)| !made.truth.is_damaged(f))
        {
            let [session] = made.truth.writers_of(file)[..] else {
                continue;
            };
            // The times in payloads are the performance counter's.
            if session.clock != ClockType::QPC || session.skew_ticks != 0 {
                continue;
            }
            let events = held(made, file);
            let Some(expected) = expected(made, &events).map(Joined::sorted) else {
                continue;
            };
            let mut found = Found::default();
            let mut recording = Recording::open([(bytes.as_slice(), file.as_str())]).unwrap();
            Analysis::new().run(&mut recording, &mut found).unwrap();
            let found = found.joined.sorted();
            if found != expected {
                let first = found
                    .stacks
                    .iter()
                    .zip(&expected.stacks)
                    .find(|(a, b)| a != b);
                let sample = found
                    .samples
                    .iter()
                    .zip(&expected.samples)
                    .find(|(a, b)| a != b);
                wrong.push(format!(
                    "{}/{file}: {} stacks of {}, first {first:x?}; {} samples of {}, first {sample:x?}",
                    made.name,
                    found.stacks.len(),
                    expected.stacks.len(),
                    found.samples.len(),
                    expected.samples.len(),
                ));
            }
            files += usize::from(!expected.stacks.is_empty());
            samples += expected.samples.len();
            for ((_, which), _) in &expected.stacks {
                kinds[usize::from(matches!(which, Which::Kernel(_)))] += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        files > 5 && samples > 1_000 && kinds.iter().all(|&kind| kind > 1_000),
        "{kinds:?}"
    );
}
