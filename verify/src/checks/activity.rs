//! Activities: what starts stops, and what an activity comes from was there (rule A1).
//!
//! Providers keep the convention loosely. So starts and stops are matched by activity and task, and only
//! tasks of which any start was matched by a stop are judged.

use std::collections::BTreeMap;

use etl_format::Guid;
use etl_format::read::EventHeader;
use foldhash::{HashMap, HashSet};

use etl_analysis::machine::Counted;

/// Opcodes of an activity's first and last event.
const START: u8 = 1;
const STOP: u8 = 2;

/// A task of a provider.
pub type Task = (Guid, u16);

/// How starts and stops of a task went.
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
    open: HashMap<(Guid, Task), (u32, i64)>,
    balances: BTreeMap<Task, Balance>,
    seen: HashSet<Guid>,
    parents: HashMap<Guid, i64>,
    /// The activity of the last event that has one.
    last: Guid,
    /// Whether there were more activities than are kept, so that nothing can be said of parents.
    pub overflowed: bool,
}

impl Activities {
    /// Most activities that are remembered, of each kind.
    const KEPT: usize = 1 << 20;

    /// Takes in an event.
    #[inline]
    pub fn event(&mut self, header: &EventHeader, related: Option<Guid>, timestamp: i64) {
        // Most events have nothing to do with any.
        if header.activity != Guid::ZERO || related.is_some() {
            let task = (header.provider, header.descriptor.task);
            self.active(header.activity, related, task, header.descriptor.opcode, timestamp);
        }
    }

    fn active(
        &mut self,
        activity: Guid,
        related: Option<Guid>,
        task: Task,
        opcode: u8,
        timestamp: i64,
    ) {
        if self.seen.len() >= Self::KEPT || self.parents.len() >= Self::KEPT {
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
        // Task 0 is what a provider gives that has none: its starts and stops belong to anything.
        if task.1 == 0 {
            return;
        }
        let key = (activity, task);
        match opcode {
            START if self.open.len() < Self::KEPT => {
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

    /// How starts and stops went, of tasks that keep the convention at all.
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

    /// Activities that others come from and that no event belongs to.
    #[must_use]
    pub fn unknown_parents(&self) -> Counted {
        let mut unknown = Counted::default();
        for (_, &first) in self.parents.iter().filter(|(parent, _)| !self.seen.contains(parent)) {
            unknown.count += 1;
            unknown.first = Some(unknown.first.map_or(first, |f| f.min(first)));
        }
        unknown
    }
}
