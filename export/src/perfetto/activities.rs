//! Activities: from an event that starts one to the event that stops it, on whatever thread.

use std::collections::{BTreeMap, BTreeSet};

use etl_analysis::EventRef;
use etl_events::EventDecoder;
use etl_format::constants::ClockType;
use etl_format::read::{EventHeader, Record};
use etl_format::{Clock, FileTime, Guid, Ticks};
use etl_schema::Identity;
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::store::SchemaStore;
use foldhash::HashMap;

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
    /// Its name, or its number in words if no schema was known by then.
    name: Box<str>,
    is_named: bool,
    /// The name of the provider, if it was known by then.
    provider_name: Option<Box<str>>,
}

/// Activities that have not ended.
#[derive(Debug, Default)]
struct Open {
    /// By provider, activity id and number of the start; with the task.
    all: BTreeMap<(Guid, Guid, u64), (u16, KeptActivity)>,
    /// Their keys, with the task before the number.
    of_tasks: BTreeSet<(Guid, Guid, u16, u64)>,
    /// Starts so far.
    starts: u64,
}

impl Open {
    fn start(&mut self, (provider, task): (Guid, u16), activity: KeptActivity) {
        self.all
            .insert((provider, activity.id, self.starts), (task, activity));
        self.of_tasks
            .insert((provider, activity.id, task, self.starts));
        self.starts += 1;
    }

    /// Ends the last one of the task, or of any: tasks differ where a provider states none and both
    /// events have their own.
    fn stop(&mut self, (provider, task): (Guid, u16), id: Guid) -> Option<KeptActivity> {
        let of_task = (provider, id, task, 0)..=(provider, id, task, u64::MAX);
        let start = match self.of_tasks.range(of_task).next_back() {
            Some(&(.., start)) => start,
            None => {
                self.all
                    .range((provider, id, 0)..=(provider, id, u64::MAX))
                    .next_back()?
                    .0
                    .2
            }
        };
        let (task, activity) = self.all.remove(&(provider, id, start))?;
        self.of_tasks.remove(&(provider, id, task, start));
        Some(activity)
    }
}

/// Collects activities.
#[derive(Debug)]
pub(super) struct Activities {
    decoder: EventDecoder<'static>,
    given: SchemaStore,
    names: HashMap<Started, u32>,
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
            names: HashMap::default(),
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

    /// Takes in an event of a selected process and thread. `is_selected` is whether its time is:
    /// activities that started then may end later.
    #[inline]
    pub fn record<S: Storage>(
        &mut self,
        record: &Record<'_>,
        header: &EventHeader,
        (event, is_selected): (&EventRef, bool),
        spool: &mut Spool<S>,
    ) {
        let is_end = header.descriptor.opcode == STOP;
        // The CLR's have slices of their own.
        if (is_end || is_selected && header.descriptor.opcode == START)
            && header.activity != Guid::ZERO
            && header.provider != CLR_RUNTIME
        {
            self.event(record, header, event, spool);
        }
    }

    fn event<S: Storage>(
        &mut self,
        record: &Record<'_>,
        header: &EventHeader,
        event: &EventRef,
        spool: &mut Spool<S>,
    ) {
        let of = (header.provider, header.descriptor.task);
        if header.descriptor.opcode == START {
            if self.open.all.len() >= MAX_OPEN {
                return;
            }
            let activity = KeptActivity {
                from: event.time.get(),
                to: None,
                pid: header.process_id.get(),
                tid: header.thread_id.get(),
                name: self.name(record, header),
                id: header.activity,
            };
            self.open.start(of, activity);
        } else if let Some(activity) = self.open.stop(of, header.activity) {
            spool.activity(KeptActivity {
                to: Some(event.time.get()),
                ..activity
            });
        }
    }

    /// Keeps the activities that have not ended.
    pub fn finish<S: Storage>(&mut self, spool: &mut Spool<S>) {
        let open = std::mem::take(&mut self.open).all.into_values();
        let mut open: Vec<KeptActivity> = open.map(|(_, activity)| activity).collect();
        open.sort_unstable_by_key(|of| (of.from, of.pid, of.tid, of.name, of.id));
        for activity in open {
            spool.activity(activity);
        }
    }

    /// The number of the name of an event.
    fn name(&mut self, record: &Record<'_>, header: &EventHeader) -> u32 {
        let event = self.decoder.decode(record);
        let started = Started {
            provider: header.provider,
            id: header.descriptor.id,
            version: header.descriptor.version,
            name: event.name().into(),
            is_named: event.schema().is_some_and(|schema| !schema.name.is_empty()),
            provider_name: event.provider_name().map(Into::into),
        };
        if let Some(&number) = self.names.get(&started) {
            return number;
        }
        let number = self.list.len() as u32;
        self.list.push(started.clone());
        self.names.insert(started, number);
        number
    }

    /// The name of an activity by its number, and that of its provider.
    pub fn name_of(&self, number: u32) -> (String, String) {
        let Some(started) = self.list.get(number as usize) else {
            return Default::default();
        };
        let identity = Identity::Modern {
            id: started.id,
            version: started.version,
        };
        let store = self.decoder.store();
        let name = match store.by_identity(started.provider, identity) {
            Some(decoder) if !started.is_named => &decoder.schema().name,
            _ => &*started.name,
        };
        let provider = match &started.provider_name {
            Some(name) => Some(&**name),
            None => self.decoder.provider_name(started.provider),
        };
        let provider = provider.map_or_else(|| started.provider.to_string(), str::to_owned);
        (activity_name(name).to_owned(), provider)
    }
}

/// `RequestStart` starts a `Request`.
fn activity_name(event: &str) -> &str {
    let end = event.len().saturating_sub(5);
    let is_start = event
        .get(end..)
        .is_some_and(|end| end.eq_ignore_ascii_case("start"));
    let name = if is_start {
        event.get(..end).unwrap_or(event)
    } else {
        event
    };
    let name = name.trim_end_matches(['/', '_', '.', ' ', ':']);
    if name.is_empty() { event } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_ends_the_last_activity_of_its_task_or_of_any() {
        let (provider, other, id) = (
            Guid::from_bytes([1; 16]),
            Guid::from_bytes([2; 16]),
            Guid::ZERO,
        );
        let mut open = Open::default();
        for (from, task) in [(1, 7), (2, 8), (3, 7), (4, 9)] {
            let activity = KeptActivity {
                from,
                to: None,
                pid: 4,
                tid: 8,
                name: 0,
                id,
            };
            open.start((provider, task), activity);
        }
        let mut stop = |provider, task| open.stop((provider, task), id).map(|of| of.from);
        assert_eq!(
            [7, 7, 7, 7, 7].map(|task| stop(provider, task)),
            [Some(3), Some(1), Some(4), Some(2), None]
        );
        assert_eq!(stop(other, 7), None);
        assert!(open.all.is_empty() && open.of_tasks.is_empty());
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
