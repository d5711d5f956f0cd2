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
    /// The tables of this crate by what runtimes ship.
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
        let parts = sources.iter().flat_map(|source| parse::parts(source.name, source.text));
        Registry { tables: parts.map(Table::new).collect() }
    }

    /// A registry of providers. Of two events with one identity the later one counts.
    #[must_use]
    pub fn new(providers: impl IntoIterator<Item = Provider>) -> Self {
        Registry { tables: providers.into_iter().map(Table::from).collect() }
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

    /// The provider with this name (case does not matter), a word of it that no other has
    /// (`runtime`, `rundown`), or this GUID.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<&Provider> {
        if let Ok(guid) = text.parse() {
            return self.provider(guid);
        }
        let named = |is: &dyn Fn(&str) -> bool| self.tables.iter().find(|t| is(&t.name));
        let exact = named(&|name| name.eq_ignore_ascii_case(text));
        exact.or_else(|| named(&|name| super::is_called(name, text)))?.provider()
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
        let at = *events.by_identity.get(&key(identity))?;
        Some(Entry {
            event: events.provider.events.get(at)?,
            decoder: events.decoders.get(at)?,
            without_fields: events.without_fields.get(at)?,
        })
    }

    fn table(&self, guid: Guid) -> Option<&Table> {
        self.tables.iter().find(|table| table.guid == guid)
    }
}

/// A provider's table, and what it says once it was read.
#[derive(Debug)]
struct Table {
    name: Text,
    guid: Guid,
    /// The text, of a table of this crate.
    part: Option<parse::Part<'static>>,
    events: OnceLock<Option<Events>>,
}

impl From<Provider> for Table {
    fn from(provider: Provider) -> Self {
        let (name, guid) = (provider.name.clone().into(), provider.guid);
        Table { name, guid, part: None, events: Some(Events::new(provider)).into() }
    }
}

impl Table {
    fn new(part: parse::Part<'static>) -> Self {
        let (name, guid) = (part.name.clone(), part.guid);
        Table { name, guid, part: Some(part), events: OnceLock::new() }
    }

    fn events(&self) -> Option<&Events> {
        let read = || self.part.as_ref()?.read().ok().map(Events::new);
        self.events.get_or_init(read).as_ref()
    }

    fn provider(&self) -> Option<&Provider> {
        self.events().map(|events| &events.provider)
    }
}

/// A provider, and its events by identity. No trace can choose the keys so that they collide: a
/// hash with a fixed seed will do.
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
        let identities = provider.events.iter().map(|event| key(event.schema.identity));
        let by_identity = identities.zip(0..).collect();
        let none = || provider.events.iter().map(|_| OnceLock::new()).collect();
        let (decoders, without_fields) = (none(), none());
        Events { by_identity, decoders, without_fields, provider }
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
        self.decoder.get_or_init(|| Decoder::new(Arc::new(self.event.schema.clone())))
    }
}
