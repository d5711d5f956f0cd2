//! What all events with a metadata id have in common, computed once.

use std::sync::Arc;

use etl_format::{EventDescriptor, Guid};
use etl_nettrace::Metadata;
use etl_schema::sources::provider_guid;
use etl_schema::sources::tracelogging::{self, ProviderTraits};
use etl_schema::tables::{Provider, Registry, TableEvent};
use etl_schema::{EventSchema, Identity};
use foldhash::{HashMap, HashMapExt as _};

use super::fields::Layout;
use super::fixed::{FixedEvent, is_switch};
use super::payload::Encoding;

/// The channel of events that describe themselves.
const TRACELOGGING_CHANNEL: u8 = 11;

/// Kinds that are kept. A stream has some hundred.
const MAX_KINDS: usize = 1 << 16;

/// Event sources of .NET whose GUID does not follow from their name.
const CHOSEN_GUIDS: [(&str, Guid); 2] = [
    (
        "System.Threading.Tasks.TplEventSource",
        Guid::new(
            0x2e5d_ba47,
            0xa3d2,
            0x4d16,
            [0x8e, 0xe0, 0x66, 0x71, 0xff, 0xdc, 0xd7, 0xb5],
        ),
    ),
    (
        "System.Diagnostics.Eventing.FrameworkEventSource",
        Guid::new(
            0x8e9f_5090,
            0x2d75,
            0x4d03,
            [0x8a, 0x81, 0xe5, 0xaf, 0xbf, 0x85, 0xda, 0xf1],
        ),
    ),
];

/// What all events with a metadata id have in common.
#[derive(Debug)]
pub(super) struct EventKind {
    pub provider: Guid,
    /// Without the version, the level, the keywords and the opcode of labels.
    pub descriptor: EventDescriptor,
    /// The description and the name of the provider, as extended items. `None` if the tables have
    /// the event, or the stream does not describe it.
    pub items: Option<DescriptionItems>,
    /// How the payload is encoded, if it has to be encoded again.
    pub encodings: Option<Vec<Encoding>>,
    /// Whether a field is not described.
    pub is_undescribed: bool,
    /// Whether it is a context switch of `dotnet-trace collect-linux`.
    pub is_switch: bool,
}

/// The extended items of an event that describes itself.
#[derive(Debug)]
pub(super) struct DescriptionItems {
    /// Name and fields of the event.
    pub schema: Vec<u8>,
    /// The name of the provider.
    pub traits: Vec<u8>,
}

impl EventKind {
    /// Bytes of the extended items.
    pub fn items_size(&self) -> usize {
        match &self.items {
            Some(items) => items.schema.len() + items.traits.len(),
            None => 0,
        }
    }

    /// The kind of events with this metadata. `None` if id or version are larger than a record's.
    fn of(metadata: &Metadata) -> Option<Self> {
        let table = table_of(&metadata.provider);
        let provider = match (metadata.provider_id, table) {
            (Some(id), _) => Guid::from_bytes(id.to_bytes()),
            (None, Some(table)) => table.guid,
            (None, None) => guid_of_name(&metadata.provider),
        };
        let mut kind = EventKind {
            provider,
            descriptor: EventDescriptor {
                id: u16::try_from(metadata.event_id).ok()?,
                version: u8::try_from(metadata.version).ok()?,
                opcode: metadata.opcode_or_implied(),
                ..EventDescriptor::default()
            },
            items: None,
            encodings: None,
            is_undescribed: false,
            is_switch: is_switch(metadata),
        };
        if let Some(event) = table_event(&kind) {
            kind.descriptor.opcode = event.schema.opcode.value;
            kind.descriptor.task = event.schema.task.value;
        } else if let Some(fixed) = FixedEvent::of(metadata) {
            kind.describe(metadata, fixed.name, fixed.layout);
        } else if !metadata.name.is_empty() || !metadata.fields.is_empty() {
            let layout = Layout::of(&metadata.fields);
            kind.describe(metadata, metadata.name.clone(), layout);
        }
        Some(kind)
    }

    /// Adds the description of the event.
    fn describe(&mut self, metadata: &Metadata, name: String, layout: Layout) {
        self.is_undescribed = !layout.is_complete;
        let keeps_payload = layout.keeps_payload();
        let Layout {
            fields, encodings, ..
        } = layout;
        let schema = EventSchema::tracelogging(metadata.provider.clone(), name, fields);
        let Ok(schema) = tracelogging::build(&schema) else {
            // A structure with more than 127 members, or a name with a NUL.
            self.is_undescribed = true;
            return;
        };
        let traits = ProviderTraits {
            name: metadata.provider.as_str().into(),
            ..ProviderTraits::default()
        };
        self.descriptor.channel = TRACELOGGING_CHANNEL;
        self.items = Some(DescriptionItems {
            schema,
            traits: traits.build(),
        });
        if !keeps_payload {
            self.encodings = Some(encodings);
        }
    }
}

/// The provider of the tables with this name.
fn table_of(name: &str) -> Option<&'static Provider> {
    let provider = Registry::builtin().find(name)?;
    // The registry also finds providers whose names end with a text.
    provider.name.eq_ignore_ascii_case(name).then_some(provider)
}

/// The event of the tables: of its version, or of the highest version below it, since a newer
/// runtime keeps task and opcode of an event.
fn table_event(kind: &EventKind) -> Option<&'static TableEvent> {
    let id = kind.descriptor.id;
    for version in (0..=kind.descriptor.version).rev() {
        let identity = Identity::Modern { id, version };
        if let Some(event) = Registry::builtin().event(kind.provider, identity) {
            return Some(event);
        }
    }
    None
}

fn guid_of_name(name: &str) -> Guid {
    for (chosen_name, guid) in CHOSEN_GUIDS {
        if chosen_name.eq_ignore_ascii_case(name) {
            return guid;
        }
    }
    provider_guid(name)
}

/// The kinds of the events of a stream.
#[derive(Debug)]
pub(super) struct EventKinds {
    by_id: HashMap<u32, CachedKind>,
}

#[derive(Debug)]
struct CachedKind {
    metadata: Arc<Metadata>,
    /// `None` if such events cannot be written.
    kind: Option<EventKind>,
}

impl EventKinds {
    pub fn new() -> Self {
        EventKinds {
            by_id: HashMap::new(),
        }
    }

    /// The kind of events with this metadata. `None` if they cannot be written.
    pub fn get(&mut self, metadata: &Arc<Metadata>) -> Option<&EventKind> {
        let id = metadata.metadata_id;
        // A later definition replaces an earlier one.
        let is_cached = match self.by_id.get(&id) {
            Some(cached) => Arc::ptr_eq(&cached.metadata, metadata),
            None => false,
        };
        if !is_cached {
            if self.by_id.len() >= MAX_KINDS {
                self.by_id.clear();
            }
            let cached = CachedKind {
                metadata: Arc::clone(metadata),
                kind: EventKind::of(metadata),
            };
            self.by_id.insert(id, cached);
        }
        self.by_id.get(&id)?.kind.as_ref()
    }
}
