//! Activities: starts, stops and parents (A1 in docs/protocol.md).
//!
//! Providers follow the convention loosely. So starts and stops are matched by activity and task,
//! and only tasks with a matched pair are checked.

use std::collections::BTreeMap;

use etl_format::read::EventHeader;
use etl_format::{Guid, Ticks};
use foldhash::{HashMap, HashSet};

use etl_analysis::machine::Counted;

/// Opcodes of an activity's first and last event.
const START: u8 = 1;
const STOP: u8 = 2;

/// A task of a provider.
pub type Task = (Guid, u16);

/// Matched and unmatched starts and stops of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Starts that were matched by a stop.
    pub paired: u64,
    /// Stops of activities that had not started.
    pub unstarted: Counted,
    /// Starts of activities that did not stop.
    pub unstopped: Counted,
}

/// Activities of a trace.
#[derive(Clone, Debug, Default)]
pub struct Activities {
    open: HashMap<(Guid, Task), (u32, Ticks)>,
    balances: BTreeMap<Task, Balance>,
    seen: HashSet<Guid>,
    parents: HashMap<Guid, Ticks>,
    /// The activity of the last event that has one.
    last: Guid,
    /// Whether there were more activities than are kept, so that parents cannot be checked.
    overflowed: bool,
}

impl Activities {
    /// Activities that are kept, of each kind.
    const MAX_KEPT: usize = 1 << 20;

    /// Adds an event.
    #[inline]
    pub fn event(&mut self, header: &EventHeader, related: Option<Guid>, timestamp: Ticks) {
        // Most events have no activity.
        if header.activity != Guid::ZERO || related.is_some() {
            let task = (header.provider, header.descriptor.task);
            self.active(
                header.activity,
                related,
                task,
                header.descriptor.opcode,
                timestamp,
            );
        }
    }

    fn active(
        &mut self,
        activity: Guid,
        related: Option<Guid>,
        task: Task,
        opcode: u8,
        timestamp: Ticks,
    ) {
        if self.seen.len() >= Self::MAX_KEPT || self.parents.len() >= Self::MAX_KEPT {
            self.overflowed = true;
            (self.seen, self.parents) = (HashSet::default(), HashMap::default());
        }
        if let Some(parent) = related.filter(|&p| p != Guid::ZERO && !self.overflowed) {
            self.parents.entry(parent).or_insert(timestamp);
        }
        if activity == Guid::ZERO {
            return;
        }
        if !self.overflowed && self.last != activity {
            self.seen.insert(activity);
            self.last = activity;
        }
        // Providers without tasks use task 0: its starts and stops cannot be matched.
        if task.1 == 0 {
            return;
        }
        let key = (activity, task);
        match opcode {
            START if self.open.len() < Self::MAX_KEPT => {
                self.open.entry(key).or_insert((0, timestamp)).0 += 1;
            }
            STOP => {
                let balance = self.balances.entry(task).or_default();
                match self.open.get_mut(&key) {
                    Some((count, _)) => {
                        balance.paired += 1;
                        *count -= 1;
                        if *count == 0 {
                            self.open.remove(&key);
                        }
                    }
                    None => balance.unstarted.add(timestamp),
                }
            }
            _ => {}
        }
    }

    /// Whether any event has an activity, or the parent of one.
    #[must_use]
    pub fn any(&self) -> bool {
        self.overflowed || !self.seen.is_empty() || !self.parents.is_empty()
    }

    /// The tasks with a matched pair.
    #[must_use]
    pub fn balances(&self) -> BTreeMap<Task, Balance> {
        let mut out = self.balances.clone();
        out.retain(|_, balance| balance.paired > 0);
        for (&(_, task), &(count, first)) in &self.open {
            if let Some(balance) = out.get_mut(&task) {
                let unstopped = &mut balance.unstopped;
                unstopped.count += u64::from(count);
                unstopped.first = Some(unstopped.first.map_or(first, |f| f.min(first)));
            }
        }
        out
    }

    /// Parents of activities that have no events.
    #[must_use]
    pub fn unknown_parents(&self) -> Counted {
        let mut unknown = Counted::default();
        for (_, &first) in self
            .parents
            .iter()
            .filter(|(parent, _)| !self.seen.contains(parent))
        {
            unknown.count += 1;
            unknown.first = Some(unknown.first.map_or(first, |f| f.min(first)));
        }
        unknown
    }
}
