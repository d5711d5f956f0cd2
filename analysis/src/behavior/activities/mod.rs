//! Activities: what lies between a start event and its stop event, such as a request that a program
//! handles or a target of a build.
//!
//! Events of manifest providers, EventSources and TraceLogging providers start and stop something
//! if their opcode is Start (1) or Stop (2), or if their opcode is Info (0) and their name ends
//! with such a word: `TargetStarted` and `TargetFinished`. A stop belongs to the last open start
//! with the same activity id, provider and task. Events without an activity id belong together if
//! the same thread logged them, with the task or, without one, the name in common. Events of the
//! CLR's own providers do not count: they have the id of the activity in which they were logged,
//! and analyses of their own.
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

mod names;
mod open;

use etl_format::constants::EventFlags;
use etl_format::read::{EventHeader, ExtendedItem, Record};
use etl_format::{Guid, ProcessId, ThreadId, Ticks};
use etl_schema::render::Renderer;
use etl_schema::store::SchemaStore;
use etl_schema::views::clr::ClrProvider;
use etl_schema::{EventSchema, Identity};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::IndexSet;

use names::{Kind, Step, event_name, stem, step_of_name, stop_stem};
use open::{Open, OpenKey, Operation, Scope, ThreadScope};

use crate::keys::ProcessIndex;
use crate::machine::Machine;
use crate::observe::{EventRef, Joins, Observer};

pub use names::ActivityName;

/// Opcodes.
const INFO: u8 = 0;
const START: u8 = 1;
const STOP: u8 = 2;

/// Activities that are open at a time; later ones are not collected until some have stopped.
const MAX_OPEN: usize = 1 << 20;

/// Different values of the field by which activities are told apart. Further ones count as
/// [`OTHER_VALUES`].
const MAX_VALUES: usize = 1 << 16;

/// The length of such a value in bytes; the rest of it is left out.
const MAX_VALUE_LEN: usize = 1 << 10;

/// The value of activities whose own value comes after the first 65,536.
pub const OTHER_VALUES: &str = "(other values)";

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
    /// Its id; zero if its events have none and were paired by their thread.
    pub id: Guid,
    /// Id of the activity in which it was started; zero where the start event does not state one.
    pub parent: Guid,
    /// The number of its name, for [`Activities::name`].
    pub name: u32,
    /// The number of the value of the field by which activities are told apart, for
    /// [`Activities::value`].
    pub value: Option<u32>,
    /// Index in [`Activities::list`] of the activity in which it was started: the one with the id
    /// [`parent`](Self::parent), or the innermost one of its thread.
    pub enclosing: Option<u32>,
    /// The time of the activities directly in it, in ticks. Those on other threads may run at the
    /// same time, so that it can exceed the time of this one.
    pub nested: u64,
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
            value: None,
            enclosing: None,
            nested: 0,
        }
    }

    /// How long it lasted, in ticks; `None` if the recording does not show its stop.
    #[must_use]
    pub fn duration(&self) -> Option<u64> {
        let ticks = self.stopped?.saturating_since(self.started);
        Some(u64::try_from(ticks).unwrap_or(0))
    }
}

/// Collects the activities of a recording; some 120 bytes for each.
#[derive(Clone, Debug)]
pub struct Activities {
    list: Vec<Activity>,
    open: Open,
    kinds: IndexSet<Kind, RandomState>,
    /// By number, as far as they were known at the time of the event.
    names: Vec<Option<ActivityName>>,
    /// By the number of a name, whether one of these activities stopped.
    stops: Vec<bool>,
    /// What starts and stops of events without a task have in common.
    stems: IndexSet<Box<str>, RandomState>,
    /// What events with the opcode Info do, by their names.
    steps: HashMap<EventId, Step<usize>>,
    /// The field by which activities are told apart.
    field: Option<Box<str>>,
    /// Its values by number.
    values: IndexSet<Box<str>, RandomState>,
    store: SchemaStore,
}

/// An event of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct EventId {
    provider: Guid,
    id: u16,
    version: u8,
}

impl Activities {
    /// Nothing is collected yet. `store` has the schemas that name events. The schemas of the
    /// recording itself are added.
    #[must_use]
    pub fn new(store: SchemaStore) -> Self {
        Activities {
            list: Vec::new(),
            open: Open::default(),
            kinds: IndexSet::default(),
            names: Vec::new(),
            stops: Vec::new(),
            stems: IndexSet::default(),
            steps: HashMap::default(),
            field: None,
            values: IndexSet::default(),
            store,
        }
    }

    /// Tells activities apart by a field of their start events: `url` of requests, for example.
    #[must_use]
    pub fn by_field(self, name: &str) -> Self {
        Activities {
            field: Some(name.into()),
            ..self
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

    /// Whether no start event had the field by which activities are told apart.
    #[must_use]
    pub fn has_no_values(&self) -> bool {
        self.values.is_empty()
    }

    /// The value of the field by which activities are told apart, by its
    /// [number](Activity::value).
    #[must_use]
    pub fn value(&self, number: u32) -> &str {
        self.values
            .get_index(number as usize)
            .map_or("", |value| value)
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
        let event = stem(event_name(schema));
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
            self.stops.push(false);
        }
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// What an event does, by its opcode or its name.
    fn step(&mut self, record: &Record<'_>, header: &EventHeader) -> Step<Operation> {
        let descriptor = &header.descriptor;
        let task = Operation::Task(descriptor.task);
        let is_task = descriptor.task != 0 || header.activity != Guid::ZERO;
        match descriptor.opcode {
            START if is_task => Step::Start(task),
            STOP if is_task => Step::Stop(task),
            START => Step::Start(self.stem_of_record(record, stem).unwrap_or(task)),
            STOP => Step::Stop(self.stem_of_record(record, stop_stem).unwrap_or(task)),
            // Only self-describing events have the id 0, and their writers state an opcode.
            INFO if descriptor.id != 0 => match self.step_by_name(header) {
                Step::Start(name) => Step::Start(Operation::Name(name)),
                Step::Stop(name) => Step::Stop(Operation::Name(name)),
                Step::Other => Step::Other,
            },
            _ => Step::Other,
        }
    }

    /// What an event does whose opcode does not say it.
    fn step_by_name(&mut self, header: &EventHeader) -> Step<usize> {
        let event = EventId {
            provider: header.provider,
            id: header.descriptor.id,
            version: header.descriptor.version,
        };
        if let Some(&step) = self.steps.get(&event) {
            return step;
        }
        let identity = Identity::Modern {
            id: event.id,
            version: event.version,
        };
        let Some(decoder) = self.store.by_identity(event.provider, identity) else {
            return Step::Other;
        };
        let step = match step_of_name(event_name(decoder.schema())) {
            Step::Start(stem) => Step::Start(number_of(&mut self.stems, stem)),
            Step::Stop(stem) => Step::Stop(number_of(&mut self.stems, stem)),
            Step::Other => Step::Other,
        };
        self.steps.insert(event, step);
        step
    }

    /// The number of the name of an event without its end.
    fn stem_of_record(
        &mut self,
        record: &Record<'_>,
        stem: impl FnOnce(&str) -> &str,
    ) -> Option<Operation> {
        let decoder = self.store.decoder(record)?;
        let stem = stem(event_name(decoder.schema()));
        Some(Operation::Name(number_of(&mut self.stems, stem)))
    }

    /// The number of the value of the field by which activities are told apart.
    fn number_of_value(&mut self, record: &Record<'_>) -> Option<u32> {
        let wanted = self.field.as_deref()?;
        let mut fields = self.store.fields(record)?;
        let (field, value) = fields.find(|(field, _)| &*field.name == wanted)?;
        let mut text = Vec::new();
        Renderer::new().unquoted_value(&mut text, field, value);
        text.truncate(MAX_VALUE_LEN);
        let text = String::from_utf8_lossy(&text);
        let is_listed = self.values.contains(&*text) || self.values.len() < MAX_VALUES;
        let text = if is_listed { &*text } else { OTHER_VALUES };
        u32::try_from(number_of(&mut self.values, text)).ok()
    }

    fn start(&mut self, key: OpenKey, record: &Record<'_>, header: &EventHeader, event: &EventRef) {
        if self.open.is_full_for(&key) {
            return;
        }
        let parent = parent(record, header);
        let index = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let activity = Activity {
            process: event.process,
            pid: header.process_id,
            tid: event.tid,
            value: self.number_of_value(record),
            enclosing: self.open.enclosing(&key, parent),
            ..Activity::new(
                header.activity,
                parent,
                self.number(record, header),
                event.time,
            )
        };
        self.list.push(activity);
        self.open.start(key, index);
    }

    fn stop(&mut self, key: &OpenKey, event: &EventRef) {
        let Some(index) = self.open.stop(key) else {
            return;
        };
        let Some(activity) = self.list.get_mut(index as usize) else {
            return;
        };
        activity.stopped = Some(event.time);
        if let Some(stops) = self.stops.get_mut(activity.name as usize) {
            *stops = true;
        }
        let duration = activity.duration().unwrap_or(0);
        let enclosing = activity.enclosing;
        if let Some(enclosing) = enclosing.and_then(|index| self.list.get_mut(index as usize))
            && enclosing.stopped.is_none()
        {
            enclosing.nested = enclosing.nested.saturating_add(duration);
        }
    }
}

/// The number of a text in a set, which it is added to.
fn number_of(texts: &mut IndexSet<Box<str>, RandomState>, text: &str) -> usize {
    match texts.get_index_of(text) {
        Some(number) => number,
        None => texts.insert_full(text.into()).0,
    }
}

/// What the start and the stop of an activity have in common; `None` if the event has neither an
/// activity id nor a thread.
fn key(header: &EventHeader, event: &EventRef, operation: Operation) -> Option<OpenKey> {
    let scope = if header.activity == Guid::ZERO {
        Scope::Thread(ThreadScope {
            process: event.process,
            pid: header.process_id,
            tid: event.tid?,
        })
    } else {
        Scope::Activity(header.activity)
    };
    Some(OpenKey {
        scope,
        provider: header.provider,
        operation,
    })
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

impl Observer for Activities {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(header) = record.event() else { return };
        self.store.learn_event(&header, record);
        if ClrProvider::from_guid(header.provider).is_some() {
            return;
        }
        match self.step(record, &header) {
            Step::Start(operation) => {
                if let Some(key) = key(&header, event, operation) {
                    self.start(key, record, &header, event);
                }
            }
            Step::Stop(operation) => {
                if let Some(key) = key(&header, event, operation) {
                    self.stop(&key, event);
                }
            }
            Step::Other => {}
        }
    }

    fn finish(&mut self, _: &Machine) {
        open::without_false_starts(&mut self.list, &self.stops);
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
        let key = |id| OpenKey {
            scope: Scope::Activity(id),
            provider,
            operation: Operation::Task(0),
        };
        activities.open.start(key(id), 0);
        for other in 1..MAX_OPEN as u32 {
            activities
                .open
                .start(key(Guid::new(other, 1, 0, [0; 8])), u32::MAX);
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
}
