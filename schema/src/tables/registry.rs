//! The built-in tables by provider. A table is read when it is first asked for: most traces need
//! two or three of them.

use std::sync::{Arc, OnceLock};

use etl_format::Guid;
use foldhash::fast::FixedState;

use crate::decode::Decoder;
use crate::model::{Identity, Text};

use super::{
    CLASSIC_TABLE, DOCUMENTED_TABLES, Provider, TABLES, TableEvent, TableSet, TableSource, parse,
};

/// Providers, and their events by identity.
#[derive(Debug)]
pub struct Registry {
    tables: Vec<Table>,
}

impl Registry {
    /// The tables of this crate, as runtimes ship the events.
    #[must_use]
    pub fn builtin() -> &'static Registry {
        Registry::of(TableSet::Shipped)
    }

    /// The tables of this crate by either profile.
    ///
    /// They are read in the tests of this crate as well; a table with an error would be left out
    /// here.
    #[must_use]
    pub fn of(profile: TableSet) -> &'static Registry {
        static SHIPPED: OnceLock<Registry> = OnceLock::new();
        static DOCUMENTED: OnceLock<Registry> = OnceLock::new();
        match profile {
            TableSet::Shipped => SHIPPED.get_or_init(|| Registry::with(TABLES)),
            TableSet::Documented => DOCUMENTED.get_or_init(|| Registry::with(DOCUMENTED_TABLES)),
        }
    }

    /// The classic events of the kernel and of merges.
    #[must_use]
    pub fn classic() -> &'static Registry {
        static CLASSIC: OnceLock<Registry> = OnceLock::new();
        CLASSIC.get_or_init(|| Registry::with(&[CLASSIC_TABLE]))
    }

    fn with(sources: &'static [TableSource]) -> Self {
        let parts = sources
            .iter()
            .flat_map(|source| parse::parts(source.name, source.text));
        Registry {
            tables: parts.map(Table::new).collect(),
        }
    }

    /// A registry of providers. If two events have the same identity, the later one is used.
    #[must_use]
    pub fn new(providers: impl IntoIterator<Item = Provider>) -> Self {
        Registry {
            tables: providers.into_iter().map(Table::from).collect(),
        }
    }

    /// All providers.
    pub fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.tables.iter().filter_map(Table::provider)
    }

    /// Whether there is a provider with this GUID.
    #[must_use]
    pub fn has(&self, guid: Guid) -> bool {
        self.table(guid).is_some()
    }

    /// The provider with this GUID.
    #[must_use]
    pub fn provider(&self, guid: Guid) -> Option<&Provider> {
        self.table(guid)?.provider()
    }

    /// The provider with this GUID, this name, or a name that ends like this (`runtime`,
    /// `rundown`); case does not matter.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<&Provider> {
        if let Ok(guid) = text.parse() {
            return self.provider(guid);
        }
        let exact = self
            .tables
            .iter()
            .find(|table| table.name.eq_ignore_ascii_case(text));
        let table = match exact {
            Some(table) => table,
            None => self
                .tables
                .iter()
                .find(|table| super::is_called(&table.name, text))?,
        };
        table.provider()
    }

    /// The description of an event.
    #[must_use]
    #[inline]
    pub fn event(&self, provider: Guid, identity: Identity) -> Option<&TableEvent> {
        self.entry(provider, identity).map(|entry| entry.event)
    }

    /// The decoder for an event's payload.
    #[must_use]
    #[inline]
    pub fn decoder(&self, provider: Guid, identity: Identity) -> Option<&Decoder> {
        self.entry(provider, identity).map(Entry::decoder)
    }

    /// A decoder with the names of an event but without its fields, for payloads of other layouts.
    pub(crate) fn without_fields(&self, provider: Guid, identity: Identity) -> Option<&Decoder> {
        let entry = self.entry(provider, identity)?;
        Some(entry.without_fields.get_or_init(|| {
            let mut schema = entry.event.schema.clone();
            schema.fields.clear();
            Decoder::new(Arc::new(schema))
        }))
    }

    pub(crate) fn entry(&self, provider: Guid, identity: Identity) -> Option<Entry<'_>> {
        let events = self.table(provider)?.events()?;
        let index = *events.by_identity.get(&key(identity))?;
        Some(Entry {
            event: events.provider.events.get(index)?,
            decoder: events.decoders.get(index)?,
            without_fields: events.without_fields.get(index)?,
        })
    }

    fn table(&self, guid: Guid) -> Option<&Table> {
        self.tables.iter().find(|table| table.guid == guid)
    }
}

/// A provider's table, and its events after it was read.
#[derive(Debug)]
struct Table {
    name: Text,
    guid: Guid,
    /// The text, if it is a table of this crate.
    part: Option<parse::Part<'static>>,
    events: OnceLock<Option<Events>>,
}

impl From<Provider> for Table {
    fn from(provider: Provider) -> Self {
        Table {
            name: provider.name.clone().into(),
            guid: provider.guid,
            part: None,
            events: Some(Events::new(provider)).into(),
        }
    }
}

impl Table {
    fn new(part: parse::Part<'static>) -> Self {
        Table {
            name: part.name.clone(),
            guid: part.guid,
            part: Some(part),
            events: OnceLock::new(),
        }
    }

    fn events(&self) -> Option<&Events> {
        self.events.get_or_init(|| self.read()).as_ref()
    }

    fn read(&self) -> Option<Events> {
        let provider = self.part.as_ref()?.read().ok()?;
        Some(Events::new(provider))
    }

    fn provider(&self) -> Option<&Provider> {
        self.events().map(|events| &events.provider)
    }
}

/// A provider and its events by identity. The keys are from the tables, not from a trace, so that
/// nobody can choose keys that collide: a hash with a fixed seed is enough.
#[derive(Debug)]
struct Events {
    provider: Provider,
    by_identity: std::collections::HashMap<u64, usize, FixedState>,
    /// A decoder for each event. Most traces need few of them.
    decoders: Vec<OnceLock<Decoder>>,
    /// The same without fields.
    without_fields: Vec<OnceLock<Decoder>>,
}

impl Events {
    fn new(provider: Provider) -> Self {
        let identities = provider
            .events
            .iter()
            .map(|event| key(event.schema.identity));
        let by_identity = identities.zip(0..).collect();
        let count = provider.events.len();
        Events {
            by_identity,
            decoders: vec![OnceLock::new(); count],
            without_fields: vec![OnceLock::new(); count],
            provider,
        }
    }
}

/// An identity as a number, which is hashed and compared in a few steps.
#[inline]
fn key(identity: Identity) -> u64 {
    match identity {
        Identity::Modern { id, version } => 1 << 32 | u64::from(id) << 16 | u64::from(version),
        Identity::Classic { opcode, version } => {
            2 << 32 | u64::from(opcode) << 16 | u64::from(version)
        }
        Identity::SelfDescribing => 3 << 32,
        Identity::Message { number } => 4 << 32 | u64::from(number),
    }
}

/// An event of a registry, with its decoders, which are compiled when they are first asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'r> {
    event: &'r TableEvent,
    decoder: &'r OnceLock<Decoder>,
    without_fields: &'r OnceLock<Decoder>,
}

impl<'r> Entry<'r> {
    #[inline]
    pub fn decoder(self) -> &'r Decoder {
        self.decoder.get_or_init(|| {
            let schema = Arc::new(self.event.schema.clone());
            Decoder::new(schema).with_others(&self.event.other_layouts)
        })
    }
}
