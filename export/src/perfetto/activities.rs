//! Activities: from an event that starts one to the event that stops it, on any thread.

use std::collections::{BTreeMap, BTreeSet};

use etl_events::EventDecoder;
use etl_format::constants::ClockType;
use etl_format::read::{EventHeader, Record};
use etl_format::{Clock, FileTime, Guid, Ticks};
use etl_schema::Identity;
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::store::SchemaStore;
use foldhash::HashMap;

use super::selection::Selection;
use super::spool::{KeptActivity, Spool};
use super::storage::Storage;

/// Opcodes of events.
const START: u8 = 1;
const STOP: u8 = 2;

/// Activities whose end is awaited.
const MAX_OPEN: usize = 1 << 16;

/// An event that starts activities.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Started {
    provider: Guid,
    id: u16,
    version: u8,
    /// Its name, or its number in words if no schema was known at that time.
    name: Box<str>,
    is_named: bool,
    /// The name of the provider, if it was known at that time.
    provider_name: Option<Box<str>>,
}

/// A task of a provider: a start and a stop of one operation have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Task {
    provider: Guid,
    id: u16,
}

/// Activities that have not ended.
#[derive(Debug, Default)]
struct Open {
    /// By provider, activity id and number of the start; with the id of the task.
    all: BTreeMap<(Guid, Guid, u64), (u16, KeptActivity)>,
    /// Their keys, with the id of the task before the number.
    by_task: BTreeSet<(Guid, Guid, u16, u64)>,
    /// Starts so far.
    starts: u64,
}

impl Open {
    fn start(&mut self, task: Task, activity: KeptActivity) {
        let key = (task.provider, activity.id, self.starts);
        self.by_task
            .insert((task.provider, activity.id, task.id, self.starts));
        self.all.insert(key, (task.id, activity));
        self.starts += 1;
    }

    /// Ends the activity of the task that started last. If there is none, ends the last one of any
    /// task: providers without tasks give the start and the stop each a task of its own.
    fn stop(&mut self, task: Task, id: Guid) -> Option<KeptActivity> {
        let start = self
            .last_start_of_task(task, id)
            .or_else(|| self.last_start(task.provider, id))?;
        let (task_id, activity) = self.all.remove(&(task.provider, id, start))?;
        self.by_task.remove(&(task.provider, id, task_id, start));
        Some(activity)
    }

    fn last_start_of_task(&self, task: Task, id: Guid) -> Option<u64> {
        let first = (task.provider, id, task.id, 0);
        let last = (task.provider, id, task.id, u64::MAX);
        let (.., start) = self.by_task.range(first..=last).next_back()?;
        Some(*start)
    }

    fn last_start(&self, provider: Guid, id: Guid) -> Option<u64> {
        let keys = (provider, id, 0)..=(provider, id, u64::MAX);
        let ((.., start), _) = self.all.range(keys).next_back()?;
        Some(*start)
    }
}

/// The name of an activity.
#[derive(Debug, Default)]
pub(super) struct ActivityName {
    pub name: String,
    /// The name of its provider, or its GUID.
    pub provider: String,
}

/// Collects activities.
#[derive(Debug)]
pub(super) struct Activities {
    decoder: EventDecoder<'static>,
    /// The schemas that are known before the recording is read.
    given: SchemaStore,
    numbers: HashMap<Started, u32>,
    /// By number.
    list: Vec<Started>,
    open: Open,
}

impl Activities {
    /// `store` has the schemas that are known before the recording is read.
    pub fn new(store: SchemaStore) -> Self {
        // Names do not need times.
        let clock = Clock::new(ClockType::QPC, FileTime::default(), Ticks::default(), 0, 0);
        Activities {
            decoder: EventDecoder::new(clock, store.clone()),
            given: store,
            numbers: HashMap::default(),
            list: Vec::new(),
            open: Open::default(),
        }
    }

    pub fn restart(&mut self) {
        *self = Activities::new(self.given.clone());
    }

    /// Learns the schemas that a record defines, for the names of all activities.
    #[inline]
    pub fn learn(&mut self, record: &Record<'_>) {
        self.decoder.learn(record);
    }

    /// Adds an event. An activity is selected if it started at a selected time; it may end later.
    #[inline]
    pub fn record<S: Storage>(
        &mut self,
        record: &Record<'_>,
        header: &EventHeader,
        time: Ticks,
        selection: &Selection,
        spool: &mut Spool<S>,
    ) {
        let opcode = header.descriptor.opcode;
        if (opcode == STOP || opcode == START && selection.admits_time(time))
            && header.activity != Guid::ZERO
            // The CLR's events have slices of their own.
            && header.provider != CLR_RUNTIME
            && selection.admits_ids(header.process_id, header.thread_id, time)
        {
            self.start_or_stop(record, header, time, spool);
        }
    }

    fn start_or_stop<S: Storage>(
        &mut self,
        record: &Record<'_>,
        header: &EventHeader,
        time: Ticks,
        spool: &mut Spool<S>,
    ) {
        let task = Task {
            provider: header.provider,
            id: header.descriptor.task,
        };
        if header.descriptor.opcode == START {
            if self.open.all.len() >= MAX_OPEN {
                return;
            }
            let activity = KeptActivity {
                from: time,
                to: None,
                pid: header.process_id.get(),
                tid: header.thread_id.get(),
                name: self.number(record, header),
                id: header.activity,
            };
            self.open.start(task, activity);
        } else if let Some(activity) = self.open.stop(task, header.activity) {
            spool.activity(KeptActivity {
                to: Some(time),
                ..activity
            });
        }
    }

    /// Keeps the activities that have not ended.
    pub fn finish<S: Storage>(&mut self, spool: &mut Spool<S>) {
        let open = std::mem::take(&mut self.open).all.into_values();
        let mut open: Vec<KeptActivity> = open.map(|(_, activity)| activity).collect();
        open.sort_unstable_by_key(|each| (each.from, each.pid, each.tid, each.name, each.id));
        for activity in open {
            spool.activity(activity);
        }
    }

    /// The number of the name of an event.
    fn number(&mut self, record: &Record<'_>, header: &EventHeader) -> u32 {
        let event = self.decoder.decode(record);
        let started = Started {
            provider: header.provider,
            id: header.descriptor.id,
            version: header.descriptor.version,
            name: event.name().into(),
            is_named: event.schema().is_some_and(|schema| !schema.name.is_empty()),
            provider_name: event.provider_name().map(Into::into),
        };
        if let Some(&number) = self.numbers.get(&started) {
            return number;
        }
        let number = self.list.len() as u32;
        self.list.push(started.clone());
        self.numbers.insert(started, number);
        number
    }

    /// The name of the activities with a number.
    pub fn name(&self, number: u32) -> ActivityName {
        let Some(started) = self.list.get(number as usize) else {
            return ActivityName::default();
        };
        let identity = Identity::Modern {
            id: started.id,
            version: started.version,
        };
        let store = self.decoder.store();
        let event_name = match store.by_identity(started.provider, identity) {
            Some(decoder) if !started.is_named => &decoder.schema().name,
            _ => &*started.name,
        };
        let provider = match &started.provider_name {
            Some(name) => Some(&**name),
            None => self.decoder.provider_name(started.provider),
        };
        ActivityName {
            name: activity_name(event_name).to_owned(),
            provider: match provider {
                Some(name) => name.to_owned(),
                None => started.provider.to_string(),
            },
        }
    }
}

/// `RequestStart` starts a `Request`.
fn activity_name(event: &str) -> &str {
    const START: &str = "start";
    let mut name = event;
    let start = event.len().saturating_sub(START.len());
    if let Some((before, end)) = event.split_at_checked(start)
        && end.eq_ignore_ascii_case(START)
    {
        name = before;
    }
    let name = name.trim_end_matches(['/', '_', '.', ' ', ':']);
    if name.is_empty() { event } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_ends_the_last_activity_of_its_task_or_of_any() {
        let provider = Guid::from_bytes([1; 16]);
        let other = Guid::from_bytes([2; 16]);
        let id = Guid::ZERO;
        let mut open = Open::default();
        for (from, task) in [(1, 7), (2, 8), (3, 7), (4, 9)] {
            let activity = KeptActivity {
                from: Ticks::new(from),
                to: None,
                pid: 4,
                tid: 8,
                name: 0,
                id,
            };
            open.start(Task { provider, id: task }, activity);
        }
        let mut stop = |provider, task| {
            let activity = open.stop(Task { provider, id: task }, id)?;
            Some(activity.from.get())
        };
        assert_eq!(
            [7, 7, 7, 7, 7].map(|task| stop(provider, task)),
            [Some(3), Some(1), Some(4), Some(2), None]
        );
        assert_eq!(stop(other, 7), None);
        assert!(open.all.is_empty() && open.by_task.is_empty());
    }

    #[test]
    fn activity_is_named_by_what_starts() {
        for (event, name) in [
            ("RequestStart", "Request"),
            ("Request/Start", "Request"),
            ("Start", "Start"),
            ("Started", "Started"),
            ("é_start", "é"),
        ] {
            assert_eq!(activity_name(event), name);
        }
    }
}
