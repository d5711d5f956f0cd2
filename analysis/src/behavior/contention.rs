//! Waits of threads for locks of .NET (`Monitor`).
//!
//! Needs the events of the CLR's runtime provider with the keyword Contention (0x4000) at level 4.

use std::collections::BTreeMap;

use etl_format::read::Record;
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::FieldReader;
use foldhash::HashMap;

use super::runtime_event;
use crate::machine::{Change, Machine};
use crate::observe::{EventRef, Joins, Observer, Stack};
use crate::profile::StackCosts;

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
    /// Ticks of the longest, and when it began.
    pub longest: Option<(u64, i64)>,
}

/// Collects the waits for locks of a recording.
#[derive(Clone, Debug)]
pub struct Contention {
    threads: BTreeMap<(usize, u32), LockWaits>,
    /// When waits began, and the numbers of these events.
    open: HashMap<(usize, u32, u64), (i64, u64)>,
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
        Contention { threads: BTreeMap::new(), open: HashMap::default(), fields }
    }

    /// The waits by index of the process and by thread.
    #[must_use]
    pub fn threads(&self) -> &BTreeMap<(usize, u32), LockWaits> {
        &self.threads
    }

    /// Takes in an event. Returns the number of the event with which a wait began, and its ticks
    /// once it ended.
    fn event(&mut self, record: &Record<'_>, event: &EventRef) -> Option<(u64, Option<u64>)> {
        let id @ (START | STOP) = runtime_event(event)? else { return None };
        let (process, tid) = (event.process?, event.tid?);
        // Both events begin with the flags.
        let flags = self.fields.read(record).and_then(|fields| fields.uint(0));
        let kind = flags.unwrap_or(0) & NATIVE;
        let waits = self.threads.entry((process, tid)).or_default();
        if id == START {
            let began = (event.time, event.number);
            if self.open.insert((process, tid, kind), began).is_some() {
                waits.unended += 1;
            }
            return Some((event.number, None));
        }
        let (since, number) = self.open.remove(&(process, tid, kind))?;
        let duration = u64::try_from(event.time.saturating_sub(since)).unwrap_or(0);
        if waits.longest.is_none_or(|(longest, _)| longest < duration) {
            waits.longest = Some((duration, since));
        }
        waits.durations.push(duration);
        Some((number, Some(duration)))
    }
}

impl Observer for Contention {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        self.event(record, event);
    }

    fn restart(&mut self) {
        *self = Contention::new();
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
            Some((number, Some(ticks))) => self.costs.cost(number, ticks),
            Some((_, None)) => {
                self.costs.expect(event, (event.process, event.tid.unwrap_or(u32::MAX)));
            }
            None => {}
        }
    }

    fn change(&mut self, machine: &Machine, change: &Change, event: &EventRef) {
        self.costs.change(machine, change, event);
    }

    fn stack(&mut self, _: &Machine, stack: &Stack<'_>) {
        self.costs.stack(stack);
    }

    fn restart(&mut self) {
        *self = StackedContention::new();
    }
}
