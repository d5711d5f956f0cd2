//! Waits of threads for locks of .NET (`Monitor`).
//!
//! Needs the events of the CLR's runtime provider with the keyword Contention (0x4000) at level 4.
//!
//! ```no_run
//! use etl_analysis::behavior::contention::Contention;
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut contention = Contention::new();
//! let machine = Analysis::new().run(&mut recording, &mut contention)?;
//! for (thread, waits) in contention.threads() {
//!     let process = thread.process.and_then(|index| machine.process(index));
//!     let name = process.map_or("?", |process| process.name());
//!     println!("{name} thread {}: {} waits for locks", thread.tid, waits.durations.len());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use etl_format::read::Record;
use etl_format::{ThreadId, Ticks, TimeRange};
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::FieldReader;

use super::{runtime_event, ticks_within};
use crate::keys::{ProcessIndex, ThreadKey};
use crate::loss::Loss;
use crate::machine::{Change, Machine};
use crate::observe::{EventRef, Joins, Observer, Stack};
use crate::profile::StackCosts;
use crate::{OpenOperations, Scope};

/// Id of the event that a wait begins.
pub const START: u16 = 81;
/// Id of the event that it ends.
pub const STOP: u16 = 91;

/// The flag of waits in native code of the runtime.
pub const NATIVE: u64 = 1;

/// The waits of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockWaits {
    /// Ticks of each wait.
    pub durations: Vec<u64>,
    /// Waits whose end was not recorded.
    pub unended: u64,
    /// The longest of them.
    pub longest: Option<LongestWait>,
}

/// The longest wait of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongestWait {
    /// When it began, in ticks.
    pub since: Ticks,
    /// For how many ticks it lasted.
    pub ticks: u64,
}

/// A thread that waits for a lock, by kind of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LockKey {
    pub process: ProcessIndex,
    pub tid: ThreadId,
    /// Whether native code of the runtime waits.
    pub is_native: bool,
}

/// A wait that has not ended: when it began, and the number of this event.
#[derive(Clone, Copy, Debug)]
struct Open {
    since: Ticks,
    number: u64,
}

/// What an event says of a wait.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begun,
    /// The number of the event with which it began, and how many of its ticks count; `None` if it
    /// was outside of the selected time.
    Ended(u64, Option<u64>),
}

/// Collects the waits for locks of a recording.
#[derive(Clone, Debug)]
pub struct Contention {
    threads: BTreeMap<ThreadKey, LockWaits>,
    /// Waits that have not ended.
    open: OpenOperations<LockKey, Open>,
    given_up: u64,
    range: TimeRange,
    fields: FieldReader<1>,
}

impl Default for Contention {
    fn default() -> Self {
        Contention::new()
    }
}

impl Contention {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        let fields = FieldReader::of_event(CLR_RUNTIME, START, ["ContentionFlags"]);
        Contention {
            threads: BTreeMap::new(),
            open: OpenOperations::default(),
            given_up: 0,
            range: TimeRange::default(),
            fields,
        }
    }

    /// Counts only the waits in a range of the recording's clock. Of a wait that is partly in the
    /// range, this part is counted.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        Contention { range, ..self }
    }

    /// The waits of each thread.
    #[must_use]
    pub fn threads(&self) -> &BTreeMap<ThreadKey, LockWaits> {
        &self.threads
    }

    /// Waits that are not counted, as records are missing in which they may have ended.
    #[must_use]
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    fn event(&mut self, record: &Record<'_>, event: &EventRef) -> Option<Step> {
        let id @ (START | STOP) = runtime_event(event)? else {
            return None;
        };
        let process = event.process?;
        let tid = event.tid?;
        let flags = self.fields.read(record).and_then(|fields| fields.uint(0));
        let key = LockKey {
            process,
            tid,
            is_native: flags.unwrap_or(0) & NATIVE != 0,
        };
        if id == START {
            let began = Open {
                since: event.time,
                number: event.number,
            };
            let scope = Scope::session(event.session);
            if let Some(unended) = self.open.begin(key, scope, began) {
                self.add_unended(
                    ThreadKey::new(Some(process), tid),
                    unended.since,
                    event.time,
                );
            }
            return Some(Step::Begun);
        }
        let Open { since, number } = self.open.end(&key)?;
        let duration = ticks_within(self.range, since, event.time);
        if let Some(duration) = duration {
            let thread = ThreadKey::new(Some(process), tid);
            let waits = self.threads.entry(thread).or_default();
            if waits.longest.is_none_or(|longest| longest.ticks < duration) {
                waits.longest = Some(LongestWait {
                    since,
                    ticks: duration,
                });
            }
            waits.durations.push(duration);
        }
        Some(Step::Ended(number, duration))
    }

    /// A wait lasted until `time` at most, and its end is missing.
    fn add_unended(&mut self, thread: ThreadKey, since: Ticks, time: Ticks) {
        if ticks_within(self.range, since, time).is_some() {
            self.threads.entry(thread).or_default().unended += 1;
        }
    }

    fn give_up(&mut self, loss: &Loss) {
        self.given_up += self.open.give_up(loss) as u64;
    }

    /// What waits now does so to the end of the recording.
    fn close(&mut self, machine: &Machine) {
        let end = machine.span().map_or(Ticks::MIN, |span| span.last);
        for (key, open) in self.open.take() {
            let thread = ThreadKey::new(Some(key.process), key.tid);
            self.add_unended(thread, open.since, end);
        }
    }
}

impl Observer for Contention {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        self.event(record, event);
    }

    fn loss(&mut self, loss: &Loss) {
        self.give_up(loss);
    }

    fn finish(&mut self, machine: &Machine) {
        self.close(machine);
    }

    fn restart(&mut self) {
        *self = Contention {
            range: self.range,
            ..Contention::new()
        };
    }
}

/// Collects the waits for locks of a recording with the stacks of their beginnings.
#[derive(Clone, Debug, Default)]
pub struct StackedContention {
    waits: Contention,
    costs: StackCosts,
}

impl StackedContention {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        StackedContention::default()
    }

    /// As [`Contention::within`].
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        StackedContention {
            waits: self.waits.within(range),
            ..self
        }
    }

    /// The waits without their stacks.
    #[must_use]
    pub fn waits(&self) -> &Contention {
        &self.waits
    }

    /// The waits that ended, by their stacks: of each the number of waits, and their time.
    #[must_use]
    pub fn costs(&mut self) -> &mut StackCosts {
        &mut self.costs
    }
}

impl Observer for StackedContention {
    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        match self.waits.event(record, event) {
            Some(Step::Begun) => {
                self.costs
                    .expect(event, event.process, event.tid.unwrap_or(ThreadId::UNKNOWN));
            }
            Some(Step::Ended(number, Some(ticks))) => self.costs.cost(number, ticks),
            Some(Step::Ended(number, None)) => self.costs.forget(number),
            None => {}
        }
    }

    fn change(&mut self, machine: &Machine, change: &Change, event: &EventRef) {
        self.costs.change(machine, change, event);
    }

    fn stack(&mut self, _: &Machine, stack: &Stack<'_>) {
        self.costs.stack(stack);
    }

    fn loss(&mut self, loss: &Loss) {
        self.waits.give_up(loss);
    }

    fn finish(&mut self, machine: &Machine) {
        self.waits.close(machine);
    }

    fn restart(&mut self) {
        *self = StackedContention::new().within(self.waits.range);
    }
}
