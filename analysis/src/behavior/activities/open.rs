//! Activities that have not stopped: which one a stop ends, and which one a start is in.

use etl_format::{Guid, ProcessId, ThreadId};
use foldhash::HashMap;

use super::{Activity, MAX_OPEN};
use crate::keys::ProcessIndex;

/// Activities of a thread that are open at a time and may contain others.
const MAX_DEPTH: usize = 256;

/// What a stop has in common with its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct OpenKey {
    pub scope: Scope,
    pub provider: Guid,
    pub operation: Operation,
}

/// Where the start and the stop of an activity are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    /// They have an activity id and may be logged by different threads.
    Activity(Guid),
    /// They are logged by one thread.
    Thread(ThreadScope),
}

/// A thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ThreadScope {
    pub process: Option<ProcessIndex>,
    pub pid: ProcessId,
    pub tid: ThreadId,
}

/// What is done: a task of the provider, or else the number of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    Task(u16),
    Name(usize),
}

/// Activities that have not stopped, by their index in the list.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    by_key: HashMap<OpenKey, Vec<u32>>,
    /// The last one that was started with an activity id.
    by_id: HashMap<Guid, u32>,
    /// Those of a thread, the outermost first.
    by_thread: HashMap<ThreadScope, Vec<u32>>,
}

impl Open {
    /// Whether no further activity can be opened. A nested start of an open one can be, or its stop
    /// would end the outer one.
    pub fn is_full_for(&self, key: &OpenKey) -> bool {
        self.by_key.len() >= MAX_OPEN && !self.by_key.contains_key(key)
    }

    /// The activity in which one starts: the open one that its start event names as related, or
    /// the innermost one of its thread.
    pub fn enclosing(&self, key: &OpenKey, parent: Guid) -> Option<u32> {
        match key.scope {
            Scope::Activity(_) if parent == Guid::ZERO => None,
            Scope::Activity(_) => self.by_id.get(&parent).copied(),
            Scope::Thread(thread) => self.by_thread.get(&thread)?.last().copied(),
        }
    }

    pub fn start(&mut self, key: OpenKey, index: u32) {
        self.by_key.entry(key).or_default().push(index);
        match key.scope {
            Scope::Activity(id) => {
                self.by_id.insert(id, index);
            }
            Scope::Thread(thread) => {
                let nested = self.by_thread.entry(thread).or_default();
                if nested.len() < MAX_DEPTH {
                    nested.push(index);
                }
            }
        }
    }

    /// Closes the activity of this key that was started last.
    pub fn stop(&mut self, key: &OpenKey) -> Option<u32> {
        let open = self.by_key.get_mut(key)?;
        let index = open.pop()?;
        if open.is_empty() {
            self.by_key.remove(key);
        }
        match key.scope {
            Scope::Activity(id) => {
                if self.by_id.get(&id) == Some(&index) {
                    self.by_id.remove(&id);
                }
            }
            Scope::Thread(thread) => self.leave(thread, index),
        }
        Some(index)
    }

    /// A thread leaves an activity, and those in it whose stop is missing.
    fn leave(&mut self, thread: ThreadScope, index: u32) {
        let Some(nested) = self.by_thread.get_mut(&thread) else {
            return;
        };
        if let Some(depth) = nested.iter().rposition(|&open| open == index) {
            nested.truncate(depth);
        }
        if nested.is_empty() {
            self.by_thread.remove(&thread);
        }
    }

    pub fn clear(&mut self) {
        self.by_key.clear();
        self.by_id.clear();
        self.by_thread.clear();
    }
}

/// Leaves out activities without a stop that no activity id identifies and none of whose kind
/// stops: their event is named as a start, but nothing shows that it is one.
pub(super) fn without_false_starts(list: &mut Vec<Activity>, stops: &[bool]) {
    let mut places = Vec::with_capacity(list.len());
    let mut kept = 0;
    for activity in list.iter() {
        let stops = stops.get(activity.name as usize).copied().unwrap_or(false);
        let is_kept = stops || activity.id != Guid::ZERO;
        places.push(if is_kept { Some(kept) } else { None });
        kept += u32::from(is_kept);
    }
    let mut index = 0;
    list.retain_mut(|activity| {
        let is_kept = matches!(places.get(index), Some(Some(_)));
        index += 1;
        if let Some(enclosing) = activity.enclosing {
            activity.enclosing = places.get(enclosing as usize).copied().flatten();
        }
        is_kept
    });
}
