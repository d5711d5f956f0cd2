//! Providers that the scenario declares: they register with their process and raise events.

use etl_format::{EventDescriptor, Guid};
use etl_schema::encode::OwnedValue;
use etl_schema::sources::eventsource::Chunk;
use etl_schema::sources::tracelogging::{self, ProviderTraits};
use etl_schema::{Count, EventSchema, Field, FieldKind, Identity, InType, Length, SchemaSource};

use crate::clr::{Stack, thread_stack};
use crate::counts;
use crate::error::{Error, Result};
use crate::etw::{Etw, Event, Origin, ProviderIndex, Registrant};
use crate::machine::Clock;
use crate::model::{Action, ActivityWork, ProviderKind, ProviderPlan, RaisePlan, Work};
use crate::rng::{Rng, Source as RandomSource};
use crate::time::{MICROSECOND, Nanos, system_time};
use crate::truth::RecordFormat;

use super::Simulator;
use crate::provider_text::event_source_manifest;

/// Channel of TraceLogging events.
const TRACE_LOGGING_CHANNEL: u8 = 11;
/// Id, task and opcode of the events that carry a manifest.
const MANIFEST_EVENT: (u16, u16, u8) = (0xfffe, 0xfffe, 0xfe);
/// Bytes of a manifest in one event.
const MANIFEST_PIECE: usize = 0xff00;

/// A provider, ready to raise.
#[derive(Debug)]
pub(super) struct Source {
    traits: Vec<u8>,
    /// TraceLogging metadata of each event.
    metadata: Vec<Vec<u8>>,
    /// The manifest of an `EventSource`, in pieces.
    manifest: Vec<Vec<u8>>,
    manifest_schema: EventSchema,
}

impl Source {
    pub fn new(plan: &ProviderPlan) -> Result<Self> {
        let named = ProviderTraits {
            name: plan.name.as_str().into(),
            ..ProviderTraits::default()
        };
        let mut source = Source {
            traits: Vec::new(),
            metadata: Vec::new(),
            manifest: Vec::new(),
            manifest_schema: manifest_schema(plan.guid),
        };
        match plan.kind {
            ProviderKind::TraceLogging => {
                source.traits = named.build();
                for event in &plan.events {
                    let built = tracelogging::build(event);
                    source
                        .metadata
                        .push(built.map_err(|e| Error::impossible(0, e.to_string()))?);
                }
            }
            ProviderKind::EventSource => {
                source.traits = named.build();
                let text = event_source_manifest(plan);
                let pieces: Vec<&[u8]> = text.as_bytes().chunks(MANIFEST_PIECE).collect();
                let total = u16::try_from(pieces.len()).unwrap_or(u16::MAX);
                for (number, text) in (0u16..).zip(pieces) {
                    let chunk = Chunk {
                        major_version: 1,
                        minor_version: 0,
                        total,
                        number,
                        text,
                    };
                    source.manifest.push(chunk.build());
                }
            }
            ProviderKind::Manifest
            | ProviderKind::Classic
            | ProviderKind::Wpp
            | ProviderKind::Windows => {}
        }
        Ok(source)
    }
}

/// The schema of the events that contain a manifest: binary data.
fn manifest_schema(provider: Guid) -> EventSchema {
    let identity = Identity::Modern {
        id: MANIFEST_EVENT.0,
        version: 1,
    };
    let mut schema = EventSchema::new(provider, identity, SchemaSource::EventSource);
    schema.name = "ManifestData".into();
    schema.fields = vec![Field::new("Manifest", InType::Binary).with_length(Length::Rest)];
    schema
}

impl Simulator<'_> {
    /// Providers of the events that a process raises, without duplicates.
    fn used_providers(&self, place: usize) -> Vec<usize> {
        let mut used: Vec<usize> = Vec::new();
        for step in &self.scenario.steps {
            if let Action::Work {
                process,
                work: Work::Raise(plan),
            } = &step.action
                && *process == place
                && !used.contains(&plan.provider)
            {
                used.push(plan.provider);
            }
        }
        used
    }

    /// The process registers its providers.
    pub(super) fn register_providers(&mut self, process: usize, origin: &Origin) -> Result<()> {
        let Some(place) = self.processes.iter().position(|p| *p == process) else {
            return Ok(());
        };
        for provider in self.used_providers(place) {
            let Some(plan) = self.scenario.providers.get(provider) else {
                continue;
            };
            let classic = plan.kind.is_classic();
            let registrant = Registrant {
                pid: origin.pid,
                clr: None,
            };
            let (_, notice) = self.etw.register(plan.guid, classic, registrant);
            if notice.is_some() {
                self.emit_manifest(provider, origin)?;
            }
        }
        Ok(())
    }

    /// An `EventSource` writes its manifest.
    pub(super) fn emit_manifest(&mut self, provider: usize, origin: &Origin) -> Result<()> {
        let Some(plan) = self.scenario.providers.get(provider) else {
            return Ok(());
        };
        let index = self.etw.provider(plan.guid, false);
        let Some(source) = self.sources.get(provider) else {
            return Ok(());
        };
        let (id, task, opcode) = MANIFEST_EVENT;
        for piece in &source.manifest {
            let values = [OwnedValue::Binary(piece.clone())];
            let descriptor = EventDescriptor {
                id,
                version: 1,
                opcode,
                task,
                ..EventDescriptor::default()
            };
            let event = Event {
                descriptor,
                traits: &source.traits,
                ..Event::new(&source.manifest_schema, &values)
            };
            self.etw.raise(index, origin, &event)?;
        }
        Ok(())
    }

    /// The provider of the scenario with this GUID, if it is an `EventSource`.
    pub(super) fn event_source(&self, guid: Guid) -> Option<usize> {
        let providers = &self.scenario.providers;
        providers
            .iter()
            .position(|p| p.guid == guid && p.kind == ProviderKind::EventSource)
    }

    /// Raises an event and returns its cost.
    pub(super) fn raise(&mut self, thread: usize, plan: &RaisePlan, at: &Origin) -> Result<Nanos> {
        let Some(provider) = self.scenario.providers.get(plan.provider) else {
            return Ok(0);
        };
        let Some(schema) = provider.events.get(plan.event) else {
            return Ok(0);
        };
        let mut origin = *at;
        let mut related = None;
        let Some(found) = self.machine.threads.get_mut(thread) else {
            return Ok(0);
        };
        match plan.activity {
            ActivityWork::None => {}
            ActivityWork::Start => {
                related = found.activities.last().copied();
                let activity = found.rng.guid();
                found.activities.push(activity);
                origin.activity = activity;
            }
            ActivityWork::Stop => {
                found.activities.pop();
            }
        }
        let process = found.process;
        let (source, user) = match self.machine.processes.get(process) {
            Some(process) => (process.source, process.user.as_slice()),
            None => (RandomSource::default(), [].as_slice()),
        };
        let index = self.etw.provider(provider.guid, provider.kind.is_classic());
        let is_wanted = is_wanted(&self.etw, index, origin.pid, provider.kind, schema);
        // Values are drawn, and time passes, whether or not the event is recorded.
        let rng = self
            .provider_rngs
            .entry((process, plan.provider))
            .or_insert_with(|| source.named("provider").named(&provider.name).rng());
        let mut values = Vec::with_capacity(schema.fields.len());
        for field in &schema.fields {
            let given = plan.values.iter().find(|given| given.name == *field.name);
            values.push(match (given, provider.kind) {
                (Some(given), _) => given.value.clone(),
                (None, ProviderKind::Windows) => usual(field, &self.machine.clock, at.at, user),
                (None, _) => drawn(field, rng),
            });
        }
        if !is_wanted {
            return Ok(MICROSECOND);
        }
        counts::fill(&schema.fields, &mut values);
        let mut stack = Stack::default();
        if !provider.kind.is_classic() && self.etw.wants_stacks(index) {
            stack = self.stack_of(thread, origin.at);
        }
        let mut event = Event {
            related,
            stack: &stack.frames,
            managed_stack: stack.managed(),
            ..Event::new(schema, &values)
        };
        if let Some(source) = self.sources.get(plan.provider) {
            event.traits = &source.traits;
            if let Some(metadata) = source.metadata.get(plan.event) {
                event.metadata = metadata;
            }
        }
        set_header(&mut event, provider.kind, plan.activity);
        self.etw.raise(index, &origin, &event)?;
        Ok(MICROSECOND)
    }
}

/// Whether a provider raises an event, by what its sessions asked for.
fn is_wanted(
    etw: &Etw<'_>,
    provider: ProviderIndex,
    pid: u32,
    kind: ProviderKind,
    schema: &EventSchema,
) -> bool {
    let level = schema.level.value;
    if !kind.is_classic() {
        return etw.seen(provider, pid).raises(level, schema.keywords);
    }
    let Some(received) = etw.seen_by_classic(provider, pid) else {
        return false;
    };
    match schema.keywords {
        // Providers with one class of events ignore the flags.
        0 => level <= received.level,
        flags => received.traces(level, flags as u32),
    }
}

/// Sets the format of the record and what the kind of the provider changes in the descriptor.
fn set_header(event: &mut Event<'_>, kind: ProviderKind, activity: ActivityWork) {
    match kind {
        ProviderKind::TraceLogging => event.descriptor.channel = TRACE_LOGGING_CHANNEL,
        ProviderKind::Classic => event.format = RecordFormat::Full,
        ProviderKind::Wpp => {
            if let Identity::Message { number } = event.schema.identity {
                event.descriptor.id = number;
                event.format = RecordFormat::Message(number);
            }
        }
        ProviderKind::Manifest | ProviderKind::EventSource | ProviderKind::Windows => {}
    }
    if event.descriptor.opcode == 0 && !kind.is_classic() {
        event.descriptor.opcode = match activity {
            ActivityWork::None => 0,
            ActivityWork::Start => 1,
            ActivityWork::Stop => 2,
        };
    }
}

impl Simulator<'_> {
    /// The stack of a thread at a time, with or without managed code.
    fn stack_of(&self, thread: usize, at: Nanos) -> Stack {
        let Some(thread) = self.machine.threads.get(thread) else {
            return Stack::default();
        };
        let Some(process) = self.machine.processes.get(thread.process) else {
            return Stack::default();
        };
        thread_stack(&self.clrs, process, at, &mut thread.stack_rng(at))
    }
}

/// What a field of an event of Windows contains if the script does not set it: zero or nothing; the
/// time of the event, or its user, if the field has such a type.
fn usual(field: &Field, clock: &Clock, at: Nanos, user: &[u8]) -> OwnedValue {
    match field.count {
        Count::One => one_usual(field, clock, at, user),
        Count::Const(count) => {
            OwnedValue::Array(vec![one_usual(field, clock, at, user); count.into()])
        }
        _ => OwnedValue::Array(Vec::new()),
    }
}

fn one_usual(field: &Field, clock: &Clock, at: Nanos, user: &[u8]) -> OwnedValue {
    let ty = match &field.kind {
        FieldKind::Struct(members) => {
            let members = members.iter().map(|member| usual(member, clock, at, user));
            return OwnedValue::Struct(members.collect());
        }
        FieldKind::Value(ty) => *ty,
    };
    match ty {
        InType::FileTime => {
            OwnedValue::FileTime(u64::try_from(clock.filetime(at)).unwrap_or_default())
        }
        InType::SystemTime => {
            system_time(clock.wall_clock(at)).map_or(OwnedValue::Auto, OwnedValue::SystemTime)
        }
        InType::Sid if !user.is_empty() => OwnedValue::Sid(user.to_vec()),
        InType::Utf16 | InType::Ansi => OwnedValue::Text(String::new()),
        InType::Binary => {
            let length = if let Length::Fixed(length) = field.length {
                length
            } else {
                0
            };
            OwnedValue::Binary(vec![0; length.into()])
        }
        InType::Guid => OwnedValue::Guid(Guid::ZERO),
        InType::Boolean => OwnedValue::Bool(false),
        _ => OwnedValue::Auto,
    }
}

/// A random value for a field that the script does not set.
fn drawn(field: &Field, rng: &mut Rng) -> OwnedValue {
    const WORDS: [&str; 6] = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"];
    if field.count != Count::One {
        return OwnedValue::Auto;
    }
    let FieldKind::Value(ty) = field.kind else {
        return OwnedValue::Auto;
    };
    match ty {
        InType::Utf16 | InType::Ansi => {
            let word = WORDS.get(rng.pick(WORDS.len())).copied();
            OwnedValue::from(word.unwrap_or_default())
        }
        InType::Boolean => OwnedValue::Bool(rng.below(2) == 1),
        InType::Guid => OwnedValue::Guid(rng.guid()),
        InType::Float => OwnedValue::Float(rng.below(1000) as f32 / 8.0),
        InType::Double => OwnedValue::Double(rng.below(1_000_000) as f64 / 64.0),
        InType::Pointer => OwnedValue::Pointer(0x7ff0_0000 + rng.below(0x1000) * 16),
        InType::Binary => OwnedValue::Binary(rng.bits().to_le_bytes().to_vec()),
        ty if ty.is_integer() => OwnedValue::UInt(rng.below(100)),
        _ => OwnedValue::Auto,
    }
}
