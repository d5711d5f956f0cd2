//! Activities: what lies between a start event and the stop event with the same activity id, such
//! as a request that a program handles.
//!
//! Needs events of manifest providers, EventSources or TraceLogging providers with activity ids and
//! the opcodes Start (1) and Stop (2). Those of the CLR's own providers do not count: they have the
//! id of the activity in which they were logged.
//!
//! ```no_run
//! use etl_analysis::behavior::activities::Activities;
//! use etl_analysis::{Analysis, Recording};
//! use etl_schema::store::SchemaStore;
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut activities = Activities::new(SchemaStore::default());
//! let machine = Analysis::new().run(&mut recording, &mut activities)?;
//! for activity in activities.list() {
//!     let name = activities.name(activity.name);
//!     println!("{} {}: from {}", name.provider, name.event, activity.started);
//! }
//! # drop(machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use etl_format::constants::EventFlags;
use etl_format::read::{EventHeader, ExtendedItem, Record};
use etl_format::{Guid, ProcessId, ThreadId, Ticks};
use etl_schema::store::SchemaStore;
use etl_schema::views::clr::ClrProvider;
use etl_schema::{EventSchema, Identity};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::IndexSet;

use crate::keys::ProcessIndex;
use crate::machine::Machine;
use crate::observe::{EventRef, Joins, Observer};

const START: u8 = 1;
const STOP: u8 = 2;

/// Activities that are open at a time; later ones are not collected until some have stopped.
const MAX_OPEN: usize = 1 << 20;

/// An activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Activity {
    /// The process; `None` if no event describes it.
    pub process: Option<ProcessIndex>,
    /// Id of the process.
    pub pid: ProcessId,
    /// The thread that started it.
    pub tid: Option<ThreadId>,
    /// When it started, in ticks.
    pub started: Ticks,
    /// When it stopped; `None` if the recording does not show it.
    pub stopped: Option<Ticks>,
    /// Its id.
    pub id: Guid,
    /// Id of the activity in which it was started; zero where the start event does not state one.
    pub parent: Guid,
    /// The number of its name, for [`Activities::name`].
    pub name: u32,
}

impl Activity {
    /// An activity of no process that started at a time and did not stop.
    #[must_use]
    pub fn new(id: Guid, parent: Guid, name: u32, started: Ticks) -> Self {
        Activity {
            process: None,
            pid: ProcessId::new(0),
            tid: None,
            started,
            stopped: None,
            id,
            parent,
            name,
        }
    }
}

/// What distinguishes start events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// An event of a manifest, or a classic one.
    Modern {
        provider: Guid,
        id: u16,
        version: u8,
    },
    /// A self-describing event.
    Named { provider: Guid, name: Box<str> },
}

impl Kind {
    fn provider(&self) -> Guid {
        match *self {
            Kind::Modern { provider, .. } | Kind::Named { provider, .. } => provider,
        }
    }
}

/// What a stop has in common with its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct OpenKey {
    activity: Guid,
    provider: Guid,
    task: u16,
}

impl OpenKey {
    fn new(header: &EventHeader) -> Self {
        OpenKey {
            activity: header.activity,
            provider: header.provider,
            task: header.descriptor.task,
        }
    }
}

/// The name of an activity, from [`Activities::name`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActivityName {
    /// Its provider: `Contoso-Orders`, or a GUID if no schema names the provider.
    pub provider: Box<str>,
    /// The activity: `Request` of the start event `RequestStart`, or `event 12` if no schema names
    /// the event.
    pub event: Box<str>,
}

/// Collects the activities of a recording; 88 bytes for each.
#[derive(Clone, Debug)]
pub struct Activities {
    list: Vec<Activity>,
    /// Indices of activities that did not stop yet.
    open: HashMap<OpenKey, Vec<u32>>,
    kinds: IndexSet<Kind, RandomState>,
    /// By number, as far as they were known at the time of the event.
    names: Vec<Option<ActivityName>>,
    store: SchemaStore,
}

impl Activities {
    /// Nothing is collected yet. `store` has the schemas that name events. The schemas of the
    /// recording itself are added.
    #[must_use]
    pub fn new(store: SchemaStore) -> Self {
        Activities {
            list: Vec::new(),
            open: HashMap::default(),
            kinds: IndexSet::default(),
            names: Vec::new(),
            store,
        }
    }

    /// The activities, in the order in which they started.
    #[must_use]
    pub fn list(&self) -> &[Activity] {
        &self.list
    }

    /// The name of an activity by its [number](Activity::name).
    #[must_use]
    pub fn name(&self, number: u32) -> ActivityName {
        let Some(kind) = self.kinds.get_index(number as usize) else {
            return ActivityName::default();
        };
        let mut name = match self.names.get(number as usize) {
            Some(Some(name)) => name.clone(),
            // A manifest may come after the events.
            _ => self.late_name(kind).unwrap_or_default(),
        };
        if name.provider.is_empty() {
            name.provider = self.provider_name(kind.provider()).into();
        }
        if let Kind::Modern { id, .. } = kind
            && name.event.is_empty()
        {
            name.event = format!("event {id}").into();
        }
        name
    }

    /// The name of an event whose schema was not known at its time.
    fn late_name(&self, kind: &Kind) -> Option<ActivityName> {
        let Kind::Modern {
            provider,
            id,
            version,
        } = *kind
        else {
            return None;
        };
        let identity = Identity::Modern { id, version };
        let decoder = self.store.by_identity(provider, identity)?;
        Some(self.named(decoder.schema(), provider))
    }

    fn provider_name(&self, provider: Guid) -> String {
        self.store
            .provider_name(provider)
            .map_or_else(|| format!("{{{provider}}}"), str::to_owned)
    }

    /// The names in the schema of a start event.
    fn named(&self, schema: &EventSchema, provider: Guid) -> ActivityName {
        let task = &*schema.task.name;
        let event = stem(if schema.name.is_empty() {
            task
        } else {
            &schema.name
        });
        let provider = if schema.provider_name.is_empty() {
            self.provider_name(provider)
        } else {
            schema.provider_name.to_string()
        };
        ActivityName {
            provider: provider.into(),
            event: event.into(),
        }
    }

    /// The number of the name of a start event.
    fn number(&mut self, record: &Record<'_>, header: &EventHeader) -> u32 {
        let schema = self
            .store
            .decoder(record)
            .map(|decoder| decoder.schema().clone());
        let is_named = schema
            .as_ref()
            .is_some_and(|s| s.identity == Identity::SelfDescribing);
        let kind = match &schema {
            Some(schema) if is_named => Kind::Named {
                provider: header.provider,
                name: schema.name.as_ref().into(),
            },
            _ => Kind::Modern {
                provider: header.provider,
                id: header.descriptor.id,
                version: header.descriptor.version,
            },
        };
        let (number, is_new) = self.kinds.insert_full(kind);
        if is_new {
            self.names
                .push(schema.map(|schema| self.named(&schema, header.provider)));
        }
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn start(&mut self, record: &Record<'_>, header: &EventHeader, event: &EventRef) {
        let key = OpenKey::new(header);
        // A nested start of an open one is kept, or its stop would end the outer one.
        if self.open.len() >= MAX_OPEN && !self.open.contains_key(&key) {
            return;
        }
        let name = self.number(record, header);
        let index = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(Activity {
            process: event.process,
            pid: header.process_id,
            tid: event.tid,
            started: event.time,
            stopped: None,
            id: header.activity,
            parent: parent(record, header),
            name,
        });
        self.open.entry(key).or_default().push(index);
    }

    fn stop(&mut self, header: &EventHeader, event: &EventRef) {
        let key = OpenKey::new(header);
        let Some(open) = self.open.get_mut(&key) else {
            return;
        };
        let index = open.pop();
        if open.is_empty() {
            self.open.remove(&key);
        }
        let activity = index.and_then(|index| self.list.get_mut(index as usize));
        if let Some(activity) = activity {
            activity.stopped = Some(event.time);
        }
    }
}

/// The activity in which a start event was logged.
fn parent(record: &Record<'_>, header: &EventHeader) -> Guid {
    if !header.flags.has(EventFlags::EXTENDED_INFO) {
        return Guid::ZERO;
    }
    let related = record.extended().find_map(|item| match item {
        ExtendedItem::RelatedActivity(activity) => Some(activity),
        _ => None,
    });
    related.unwrap_or(Guid::ZERO)
}

/// The name of a start event without its end: `Request` of `RequestStart` and `Request/Start`.
fn stem(name: &str) -> &str {
    let stem = name
        .strip_suffix("Start")
        .or_else(|| name.strip_suffix("_start"));
    let stem = stem.map(|stem| stem.trim_end_matches(['/', '_', '.', ' ']));
    stem.filter(|stem| !stem.is_empty()).unwrap_or(name)
}

impl Observer for Activities {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(header) = record.event() else { return };
        self.store.learn_event(&header, record);
        if header.activity == Guid::ZERO || ClrProvider::from_guid(header.provider).is_some() {
            return;
        }
        match header.descriptor.opcode {
            START => self.start(record, &header, event),
            STOP => self.stop(&header, event),
            _ => {}
        }
    }

    fn restart(&mut self) {
        // What the recording says of schemas stays the same.
        self.list.clear();
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use etl_format::Ticks;

    use super::*;
    use crate::{Analysis, Recording};
    use etl_format::write::Session;
    use etl_format::write::record::Event;
    use etl_format::{EventDescriptor, FileHeader};

    #[test]
    fn stop_ends_the_inner_start_at_the_limit_of_open_activities() {
        let provider = Guid::new(1, 0, 0, [0; 8]);
        let id = Guid::new(2, 0, 0, [0; 8]);
        let header = FileHeader {
            timestamp: Ticks::new(1),
            perf_freq: 10_000_000,
            ..FileHeader::new()
        };
        let mut session = Session::in_memory(header).unwrap();
        for (timestamp, opcode) in [(10, START), (20, STOP), (30, STOP)] {
            let event = Event::new(
                provider,
                EventDescriptor {
                    id: 7,
                    opcode,
                    ..EventDescriptor::default()
                },
                timestamp,
            )
            .process(4, 8)
            .activity(id);
            session.write(0, &event).unwrap();
        }
        let bytes = session.finish().unwrap();

        let mut activities = Activities::new(SchemaStore::default());
        activities
            .list
            .push(Activity::new(id, Guid::ZERO, 0, Ticks::new(1)));
        let key = OpenKey {
            activity: id,
            provider,
            task: 0,
        };
        activities.open.insert(key, vec![0]);
        for other in 1..MAX_OPEN as u32 {
            let activity = Guid::new(other, 1, 0, [0; 8]);
            activities
                .open
                .insert(OpenKey { activity, ..key }, Vec::new());
        }
        let mut recording = Recording::open([(bytes.as_slice(), "made")]).unwrap();
        Analysis::new()
            .run(&mut recording, &mut activities)
            .unwrap();
        let times: Vec<_> = activities
            .list
            .iter()
            .map(|a| (a.started, a.stopped))
            .collect();
        let at = Ticks::new;
        assert_eq!(times, [(at(1), Some(at(30))), (at(10), Some(at(20)))]);
    }

    #[test]
    fn stem_is_the_name_without_start() {
        for name in ["RequestStart", "Request/Start", "Request_start", "Request"] {
            assert_eq!(stem(name), "Request", "{name}");
        }
        assert_eq!([stem("Start"), stem("")], ["Start", ""]);
    }
}
