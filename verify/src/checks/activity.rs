//! Activities: starts, stops and parents (A1 in docs/protocol.md).
//!
//! Providers follow the convention loosely: some log a start without ever logging a stop. So starts
//! and stops are matched by activity and task, and only tasks with a matched pair are checked.

use std::collections::BTreeMap;

use etl_format::read::EventHeader;
use etl_format::{Guid, Ticks};
use foldhash::{HashMap, HashSet};

use etl_analysis::machine::Counted;

use super::merge;

/// Opcode of the first event of an activity.
const START: u8 = 1;
/// Opcode of the last event of an activity.
const STOP: u8 = 2;

/// A task of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Task {
    /// The provider.
    pub provider: Guid,
    /// The task of the event's descriptor.
    pub number: u16,
}

/// The task that an activity has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct OpenKey {
    activity: Guid,
    task: Task,
}

/// Starts without a stop so far.
#[derive(Clone, Copy, Debug)]
struct OpenStarts {
    count: u32,
    /// Time of the first.
    first: Ticks,
}

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
    open: HashMap<OpenKey, OpenStarts>,
    balances: BTreeMap<Task, Balance>,
    /// Activities with events.
    seen: HashSet<Guid>,
    /// Parents of activities, with the time at which they are first named.
    parents: HashMap<Guid, Ticks>,
    /// The activity of the last event that has one.
    last: Guid,
    /// Whether there were too many activities to keep, so that parents cannot be checked.
    overflowed: bool,
}

impl Activities {
    /// Open, seen and parent activities that are kept, each.
    const MAX_KEPT: usize = 1 << 20;

    /// Adds an event with the parent of its activity, if it names one.
    #[inline]
    pub fn event(&mut self, header: &EventHeader, parent: Option<Guid>, timestamp: Ticks) {
        // Most events have no activity.
        if header.activity != Guid::ZERO || parent.is_some() {
            self.active_event(header, parent, timestamp);
        }
    }

    fn active_event(&mut self, header: &EventHeader, parent: Option<Guid>, timestamp: Ticks) {
        let activity = header.activity;
        if self.seen.len() >= Self::MAX_KEPT || self.parents.len() >= Self::MAX_KEPT {
            self.overflowed = true;
            self.seen = HashSet::default();
            self.parents = HashMap::default();
        }
        if let Some(parent) = parent
            && parent != Guid::ZERO
            && !self.overflowed
        {
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
        if header.descriptor.task == 0 {
            return;
        }
        let task = Task {
            provider: header.provider,
            number: header.descriptor.task,
        };
        match header.descriptor.opcode {
            START => self.start(activity, task, timestamp),
            STOP => self.stop(activity, task, timestamp),
            _ => {}
        }
    }

    fn start(&mut self, activity: Guid, task: Task, timestamp: Ticks) {
        if self.open.len() >= Self::MAX_KEPT {
            return;
        }
        let starts = self.open.entry(OpenKey { activity, task });
        let starts = starts.or_insert(OpenStarts {
            count: 0,
            first: timestamp,
        });
        starts.count += 1;
    }

    fn stop(&mut self, activity: Guid, task: Task, timestamp: Ticks) {
        let balance = self.balances.entry(task).or_default();
        let key = OpenKey { activity, task };
        let Some(starts) = self.open.get_mut(&key) else {
            balance.unstarted.add(timestamp);
            return;
        };
        balance.paired += 1;
        starts.count -= 1;
        if starts.count == 0 {
            self.open.remove(&key);
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
        for (key, starts) in &self.open {
            if let Some(balance) = out.get_mut(&key.task) {
                let counted = Counted {
                    count: starts.count.into(),
                    first: Some(starts.first),
                };
                merge(&mut balance.unstopped, counted);
            }
        }
        out
    }

    /// Parents that are named by activities and have no events of their own.
    #[must_use]
    pub fn unknown_parents(&self) -> Counted {
        let mut unknown = Counted::default();
        for (parent, &first) in &self.parents {
            if !self.seen.contains(parent) {
                let counted = Counted {
                    count: 1,
                    first: Some(first),
                };
                merge(&mut unknown, counted);
            }
        }
        unknown
    }
}
