//! Threads over time: how long each ran, waited (why, and who ended the wait) and was ready to run.
//!
//! Needs the kernel's flags `CSWITCH` and, for who ended a wait and how long a thread was ready
//! after it, `DISPATCHER`.
//!
//! ```no_run
//! use etl_analysis::behavior::waits::Waits;
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut waits = Waits::new();
//! let machine = Analysis::new().run(&mut recording, &mut waits)?;
//! for times in waits.threads().values() {
//!     println!("{} ticks running", times.running);
//!     for (&reason, durations) in &times.waits {
//!         println!("{}: {} waits", waits.reason_name(reason).unwrap_or("?"), durations.count());
//!     }
//! }
//! # drop(machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::ops::AddAssign;

use etl_format::constants::hook;
use etl_format::read::Record;
use etl_format::{ThreadId, Ticks, TimeRange};
use etl_schema::views::FieldReader;
use foldhash::{HashMap, HashSet};

use super::{Histogram, ticks_within};
use crate::keys::ThreadKey;
use crate::loss::Loss;
use crate::machine::{Change, Life, Machine};
use crate::observe::{EventRef, Joins, Observer, Stack};
use crate::profile::StackCosts;
use crate::{OpenOperations, Scope};

/// The state of a thread that waits.
const WAITING: u64 = 5;

/// The thread of idle processors.
const IDLE: u32 = 0;

/// What a thread did, in ticks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadTimes {
    /// For how many ticks it ran.
    pub running: u64,
    /// How often it began to run.
    pub switches: u64,
    /// Its waits, by reason: a value of the event, which [`Waits::reason_name`] names.
    pub waits: BTreeMap<u8, Histogram>,
    /// The times from when it was ready to run until it ran.
    pub ready: Histogram,
    /// The threads that ended its waits, each with the waits that it ended.
    pub wakers: BTreeMap<ThreadKey, EndedWaits>,
}

/// The waits of a thread that another thread ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndedWaits {
    /// How many.
    pub count: u64,
    /// For how many ticks they lasted.
    pub ticks: u64,
}

impl AddAssign<ThreadTimes> for ThreadTimes {
    fn add_assign(&mut self, other: ThreadTimes) {
        self.running = self.running.saturating_add(other.running);
        self.switches += other.switches;
        for (reason, waits) in &other.waits {
            *self.waits.entry(*reason).or_default() += waits;
        }
        self.ready += &other.ready;
        for (waker, waits) in other.wakers {
            *self.wakers.entry(waker).or_default() += waits;
        }
    }
}

impl AddAssign for EndedWaits {
    fn add_assign(&mut self, other: EndedWaits) {
        self.count += other.count;
        self.ticks = self.ticks.saturating_add(other.ticks);
    }
}

/// A wait that ended.
#[derive(Clone, Copy, Debug)]
struct EndedWait {
    /// The thread that waited, or that ended the wait.
    thread: ThreadKey,
    ticks: u64,
}

/// A thread as it was seen last: who it is, what it does, and where that began.
#[derive(Clone, Copy, Debug)]
struct Seen {
    key: ThreadKey,
    state: State,
    session: usize,
    processor: u16,
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug)]
enum State {
    Running {
        since: Ticks,
    },
    /// Ready to run, after a wait of so many ticks or since it was interrupted.
    Ready {
        since: Ticks,
        waited: Option<u64>,
    },
    Waiting {
        since: Ticks,
        reason: u8,
    },
}

/// Collects what the threads of a recording did.
#[derive(Clone, Debug)]
pub struct Waits {
    threads: BTreeMap<ThreadKey, ThreadTimes>,
    states: OpenOperations<ThreadId, Seen>,
    given_up: u64,
    /// The thread that runs on a processor.
    current: HashMap<u16, u32>,
    switch: FieldReader<4>,
    ready: FieldReader<1>,
    range: TimeRange,
}

impl Default for Waits {
    fn default() -> Self {
        Waits::new()
    }
}

impl Waits {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        let switch = [
            "NewThreadId",
            "OldThreadId",
            "OldThreadState",
            "OldThreadWaitReason",
        ];
        Waits {
            threads: BTreeMap::new(),
            states: OpenOperations::default(),
            given_up: 0,
            current: HashMap::default(),
            switch: FieldReader::of_hook(hook::CSWITCH, switch),
            ready: FieldReader::of_hook(hook::READY_THREAD, ["TThreadId"]),
            range: TimeRange::default(),
        }
    }

    /// Counts only what threads did in a range of the recording's clock. Of a wait or a run that is
    /// partly in the range, this part is counted.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        Waits { range, ..self }
    }

    /// Runs and waits that are not counted, as records are missing in which they may have ended.
    #[must_use]
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// What each thread did. A thread has no process if the recording names none.
    #[must_use]
    pub fn threads(&self) -> &BTreeMap<ThreadKey, ThreadTimes> {
        &self.threads
    }

    /// The name of a reason.
    #[must_use]
    pub fn reason_name(&self, reason: u8) -> Option<&'static str> {
        self.switch.value_name(3, reason.into())
    }

    fn key(machine: &Machine, tid: ThreadId) -> ThreadKey {
        ThreadKey::new(machine.process_of_thread(tid), tid)
    }

    /// A processor stops running one thread and runs another. Returns the wait of the new
    /// thread that ended before.
    fn switch(
        &mut self,
        machine: &Machine,
        record: &Record<'_>,
        event: &EventRef,
    ) -> Option<EndedWait> {
        let fields = self.switch.read(record)?;
        let new = fields.uint(0)? as u32;
        let old = fields.uint(1)? as u32;
        let time = event.time;
        self.current.insert(event.processor, new);
        if old != IDLE {
            let key = Self::key(machine, ThreadId::new(old));
            if let Some(Seen {
                state: State::Running { since },
                ..
            }) = self.states.get(&ThreadId::new(old))
                && let Some(ran) = ticks_within(self.range, *since, time)
            {
                self.threads.entry(key).or_default().running += ran;
            }
            let state = if fields.uint(2) == Some(WAITING) {
                State::Waiting {
                    since: time,
                    reason: fields.uint(3).unwrap_or(0) as u8,
                }
            } else {
                State::Ready {
                    since: time,
                    waited: None,
                }
            };
            self.see(ThreadId::new(old), key, state, event);
        }
        if new == IDLE {
            return None;
        }
        let key = Self::key(machine, ThreadId::new(new));
        if self.range.contains(time) {
            self.threads.entry(key).or_default().switches += 1;
        }
        match self.see(
            ThreadId::new(new),
            key,
            State::Running { since: time },
            event,
        ) {
            Some(State::Ready { since, waited }) => {
                if let Some(ready) = ticks_within(self.range, since, time) {
                    self.threads.entry(key).or_default().ready.add(ready);
                }
                Some(EndedWait {
                    thread: key,
                    ticks: waited?,
                })
            }
            // Without an event that it is ready, it waited until it ran.
            Some(State::Waiting { since, reason }) => {
                let waited = ticks_within(self.range, since, time)?;
                let times = self.threads.entry(key).or_default();
                times.waits.entry(reason).or_default().add(waited);
                Some(EndedWait {
                    thread: key,
                    ticks: waited,
                })
            }
            Some(State::Running { .. }) | None => None,
        }
    }

    /// A thread gets into another state. Returns the state before.
    fn see(
        &mut self,
        tid: ThreadId,
        key: ThreadKey,
        state: State,
        event: &EventRef,
    ) -> Option<State> {
        let session = event.session;
        let processor = event.processor;
        // Any processor may end a wait, but only the processor of a running thread ends its run.
        let is_running = matches!(state, State::Running { .. });
        let scope = match is_running {
            true => Scope::processor(session, processor),
            false => Scope::session(session),
        };
        let seen = Seen {
            key,
            state,
            session,
            processor,
        };
        self.states
            .begin(tid, scope, seen)
            .map(|before| before.state)
    }

    /// A wait ends. Returns it with the thread that ended it.
    fn ready(
        &mut self,
        machine: &Machine,
        record: &Record<'_>,
        event: &EventRef,
    ) -> Option<EndedWait> {
        let tid = self.ready.read(record)?.uint(0)?;
        let Seen { key, state, .. } = self.states.get_mut(&ThreadId::new(tid as u32))?;
        let State::Waiting { since, reason } = *state else {
            return None;
        };
        let waited = ticks_within(self.range, since, event.time);
        *state = State::Ready {
            since: event.time,
            waited,
        };
        let waited = waited?;
        let times = self.threads.entry(*key).or_default();
        times.waits.entry(reason).or_default().add(waited);
        let waker = Self::key(machine, ThreadId::new(*self.current.get(&event.processor)?));
        *times.wakers.entry(waker).or_default() += EndedWaits {
            count: 1,
            ticks: waited,
        };
        Some(EndedWait {
            thread: waker,
            ticks: waited,
        })
    }

    fn give_up(&mut self, loss: &Loss) {
        self.given_up += self.states.give_up(loss) as u64;
        match loss.processor {
            Some(processor) => drop(self.current.remove(&processor)),
            None => self.current.clear(),
        }
    }

    /// The recording ends: threads that run now run to its end.
    fn close(&mut self, machine: &Machine) {
        let end = machine.kernel_span().map_or(Ticks::MIN, |span| span.last);
        // Losses up to the end: their sessions and processors.
        let lost = machine
            .losses()
            .iter()
            .filter(|loss| loss.from.is_some() && loss.to.is_none());
        let lost: HashSet<Scope> = lost.map(Scope::of_loss).collect();
        for (_, seen) in self.states.take() {
            let State::Running { since } = seen.state else {
                continue;
            };
            if lost.contains(&Scope::session(seen.session))
                || lost.contains(&Scope::processor(seen.session, seen.processor))
            {
                self.given_up += 1;
            } else if let Some(ran) = ticks_within(self.range, since, end) {
                self.threads.entry(seen.key).or_default().running += ran;
            }
        }
        for (thread, mut times) in std::mem::take(&mut self.threads) {
            for (waker, waits) in std::mem::take(&mut times.wakers) {
                let waker = with_first_process(waker, machine);
                *times.wakers.entry(waker).or_default() += waits;
            }
            let thread = with_first_process(thread, machine);
            *self.threads.entry(thread).or_default() += times;
        }
    }

    fn forget(&mut self, change: &Change) {
        // The id was another thread's.
        if let Change::Thread {
            life: Life::Begun,
            tid,
        } = change
        {
            self.states.end(tid);
        }
    }
}

/// The key of a thread. If no event had named its process, the process that a later event names.
fn with_first_process(thread: ThreadKey, machine: &Machine) -> ThreadKey {
    match thread.process {
        Some(_) => thread,
        None => ThreadKey::new(machine.first_process_of_thread(thread.tid), thread.tid),
    }
}

impl Observer for Waits {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        match event.kind.hook() {
            Some(hook::CSWITCH) => self.switch(machine, record, event),
            Some(hook::READY_THREAD) => self.ready(machine, record, event),
            _ => None,
        };
    }

    fn change(&mut self, _: &Machine, change: &Change, _: &EventRef) {
        self.forget(change);
    }

    fn loss(&mut self, loss: &Loss) {
        self.give_up(loss);
    }

    fn finish(&mut self, machine: &Machine) {
        self.close(machine);
    }

    fn restart(&mut self) {
        *self = Waits {
            range: self.range,
            ..Waits::new()
        };
    }
}

/// The stacks that waits have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitStack {
    /// Stacks of the threads that waited. They belong to the context switches to these threads.
    #[default]
    Waiting,
    /// Stacks of the threads that ended the waits of others, by events of ready threads.
    Ending,
}

/// Collects the waits of a recording with their stacks.
#[derive(Clone, Debug)]
pub struct StackedWaits {
    waits: Waits,
    costs: StackCosts,
    of: WaitStack,
}

impl StackedWaits {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new(of: WaitStack) -> Self {
        StackedWaits {
            waits: Waits::new(),
            costs: StackCosts::new(),
            of,
        }
    }

    /// As [`Waits::within`]: of a wait that is partly in the range, this part.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        StackedWaits {
            waits: self.waits.within(range),
            ..self
        }
    }

    /// The waits without their stacks.
    #[must_use]
    pub fn waits(&self) -> &Waits {
        &self.waits
    }

    /// The waits by their stacks: of each the number of waits, and their time.
    #[must_use]
    pub fn costs(&mut self) -> &mut StackCosts {
        &mut self.costs
    }
}

impl Observer for StackedWaits {
    const JOINS: Joins = Joins::Kernel;

    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        let mut wait = None;
        match event.kind.hook() {
            Some(hook::CSWITCH) => {
                let ended = self.waits.switch(machine, record, event);
                if self.of == WaitStack::Waiting {
                    wait = ended;
                }
            }
            Some(hook::READY_THREAD) => {
                let ended = self.waits.ready(machine, record, event);
                if self.of == WaitStack::Ending {
                    wait = ended;
                }
            }
            _ => {}
        }
        if let Some(wait) = wait {
            let thread = wait.thread;
            self.costs.expect(event, thread.process, thread.tid);
            self.costs.cost(event.number, wait.ticks);
        }
    }

    fn change(&mut self, machine: &Machine, change: &Change, event: &EventRef) {
        self.waits.forget(change);
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
        *self = StackedWaits::new(self.of).within(self.waits.range);
    }
}
