//! The built-in event tables (`schema/tables/`) and their registry.

mod errata;
mod parse;
pub mod windows;

use std::sync::{Arc, OnceLock};

use etl_format::Guid;
use foldhash::fast::FixedState;

use crate::decode::Decoder;
use crate::model::{EventSchema, Identity};

pub use errata::{ERRATA_TABLE, Erratum, errata, erratum};
pub use parse::TableError;

/// The tables that this crate carries: file name and text.
pub const TABLES: &[(&str, &str)] = &[
    ("clr-runtime.txt", include_str!("../../tables/clr-runtime.txt")),
    ("clr-rundown.txt", include_str!("../../tables/clr-rundown.txt")),
    ("clr-private.txt", include_str!("../../tables/clr-private.txt")),
];

/// What the reference pages print of the CLR's providers, errors included: file name and text.
pub const DOCUMENTED_TABLES: &[(&str, &str)] = &[
    ("documented-runtime.txt", include_str!("../../tables/documented-runtime.txt")),
    ("documented-rundown.txt", include_str!("../../tables/documented-rundown.txt")),
];

/// Whose word counts where the reference pages and the runtimes disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TableSet {
    /// The runtimes', as real traces show it.
    #[default]
    Shipped,
    /// The reference pages', as printed.
    Documented,
}

/// The classic events of the kernel and of merges, by class: file name and text.
pub const CLASSIC_TABLE: (&str, &str) = ("kernel.txt", include_str!("../../tables/kernel.txt"));

/// An event of a table: what every source says of an event, and what only tables say.
#[derive(Clone, Debug, PartialEq)]
pub struct TableEvent {
    /// The event.
    pub schema: EventSchema,
    /// Level and keywords in other shipped runtimes (mostly .NET Framework), where they differ.
    pub older: Option<(u8, u64)>,
    /// Whether the CLR follows it with a stack event when StackKeyword is on.
    pub stack: bool,
    /// Where the facts are from.
    pub origin: String,
    /// What shipped runtimes have instead: of an event of the reference pages.
    pub shipped: Option<Identity>,
    /// Errata that a table of the reference pages names.
    errata: Vec<String>,
}

impl TableEvent {
    /// An event with a schema and an origin; the rest is empty.
    #[must_use]
    pub fn new(schema: EventSchema, origin: impl Into<String>) -> Self {
        let origin = origin.into();
        TableEvent { schema, older: None, stack: false, origin, shipped: None, errata: Vec::new() }
    }

    /// Errata that say where this event and what the other profile has in its place differ: of a
    /// shipped event those of what the pages say of it, in whatever version.
    #[must_use]
    pub fn errata(&self) -> Vec<&str> {
        let Identity::Modern { id, .. } = self.schema.identity else { return Vec::new() };
        let mut ids: Vec<_> = self.errata.iter().map(String::as_str).collect();
        if self.shipped.is_none()
            && let Some(pages) = Registry::of(TableSet::Documented).provider(self.schema.provider)
        {
            let is_about = |of: &&TableEvent| matches!(of.shipped, Some(Identity::Modern { id: shipped, .. }) if shipped == id);
            let about = pages.events.iter().filter(is_about);
            ids.extend(about.flat_map(|event| &event.errata).map(String::as_str));
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// A provider and all that its table says.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// Its GUID.
    pub guid: Guid,
    /// Keywords with their names, by mask.
    pub keywords: Vec<(u64, String)>,
    /// Events by id and version.
    pub events: Vec<TableEvent>,
}

impl Provider {
    /// Reads a table. `file` names it in errors.
    ///
    /// # Errors
    /// The first error, with its line.
    pub fn parse(file: &str, text: &str) -> Result<Self, TableError> {
        parse::provider(file, text)
    }

    /// Reads a table of classic events: a provider for each class.
    ///
    /// # Errors
    /// The first error, with its line.
    pub fn parse_classes(file: &str, text: &str) -> Result<Vec<Self>, TableError> {
        parse::classes(file, text)
    }

    /// Names of the bits of a mask, and the bits that have none. A bit with a newer name as well is
    /// given under the one that stands first in the table.
    #[must_use]
    pub fn keyword_names(&self, mask: u64) -> (Vec<&str>, u64) {
        let (mut names, mut rest) = (Vec::new(), mask);
        for (bit, name) in &self.keywords {
            if rest & bit != 0 {
                names.push(name.as_str());
            }
            rest &= !bit;
        }
        (names, rest)
    }

    /// Whether this is the provider's name, or the end of it (`runtime`, `rundown`); case does not
    /// matter.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name.to_ascii_lowercase().ends_with(&name.to_ascii_lowercase())
    }

    /// The mask of a keyword, by its name (case does not matter).
    #[must_use]
    pub fn keyword(&self, name: &str) -> Option<u64> {
        self.keywords.iter().find(|(_, n)| n.eq_ignore_ascii_case(name)).map(|(mask, _)| *mask)
    }
}

/// Provider and event by what a record says. The keys are those of the tables, which no trace can
/// choose so that they collide: a hash with a fixed seed will do.
type ByIdentity = std::collections::HashMap<Key, (usize, usize), FixedState>;

/// A provider and an identity as two numbers, which are hashed and compared in a few steps.
type Key = (u128, u64);

#[inline]
fn key(provider: Guid, identity: Identity) -> Key {
    let identity = match identity {
        Identity::Modern { id, version } => 1 << 32 | u64::from(id) << 16 | u64::from(version),
        Identity::Classic { opcode, version } => {
            2 << 32 | u64::from(opcode) << 16 | u64::from(version)
        }
        Identity::SelfDescribing => 3 << 32,
        Identity::Message { number } => 4 << 32 | u64::from(number),
    };
    (u128::from_le_bytes(provider.to_bytes()), identity)
}

/// Providers, and their events by identity.
#[derive(Debug, Default)]
pub struct Registry {
    providers: Vec<Provider>,
    /// Provider and event by what a record says.
    events: ByIdentity,
    /// A decoder for each event of each provider. Most traces need few of them.
    decoders: Vec<Vec<OnceLock<Decoder>>>,
    /// The same without fields.
    without_fields: Vec<Vec<OnceLock<Decoder>>>,
}

impl Registry {
    /// The tables of this crate by what runtimes ship, read once.
    #[must_use]
    pub fn builtin() -> &'static Registry {
        Registry::of(TableSet::Shipped)
    }

    /// The tables of this crate by either profile, read once.
    ///
    /// They are read in the tests of this crate as well; a table with an error would be left out
    /// here.
    #[must_use]
    pub fn of(profile: TableSet) -> &'static Registry {
        static SHIPPED: OnceLock<Registry> = OnceLock::new();
        static DOCUMENTED: OnceLock<Registry> = OnceLock::new();
        let read = |tables: &[(&str, &str)]| -> Vec<Provider> {
            tables.iter().filter_map(|(file, text)| Provider::parse(file, text).ok()).collect()
        };
        match profile {
            TableSet::Shipped => SHIPPED.get_or_init(|| Registry::new(read(TABLES))),
            TableSet::Documented => {
                DOCUMENTED.get_or_init(|| Registry::new(read(DOCUMENTED_TABLES)))
            }
        }
    }

    /// The classic events of the kernel and of merges, read once; likewise.
    #[must_use]
    pub fn classic() -> &'static Registry {
        static CLASSIC: OnceLock<Registry> = OnceLock::new();
        CLASSIC.get_or_init(|| {
            let (file, text) = CLASSIC_TABLE;
            Registry::new(Provider::parse_classes(file, text).unwrap_or_default())
        })
    }

    /// A registry of providers. Of two events with one identity the later one counts.
    #[must_use]
    pub fn new(providers: Vec<Provider>) -> Self {
        let mut events = ByIdentity::default();
        for (p, provider) in providers.iter().enumerate() {
            for (e, event) in provider.events.iter().enumerate() {
                events.insert(key(event.schema.provider, event.schema.identity), (p, e));
            }
        }
        let none = |p: &Provider| p.events.iter().map(|_| OnceLock::new()).collect();
        let [decoders, without_fields] = [(); 2].map(|()| providers.iter().map(none).collect());
        Registry { providers, events, decoders, without_fields }
    }

    /// All providers.
    #[must_use]
    pub fn providers(&self) -> &[Provider] {
        &self.providers
    }

    /// The provider with this GUID.
    #[must_use]
    pub fn provider(&self, guid: Guid) -> Option<&Provider> {
        self.providers.iter().find(|p| p.guid == guid)
    }

    /// The provider with this name (case does not matter), a word of it that no other has
    /// (`runtime`, `rundown`), or this GUID.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<&Provider> {
        if let Ok(guid) = text.parse() {
            return self.provider(guid);
        }
        let exact = self.providers.iter().find(|p| p.name.eq_ignore_ascii_case(text));
        exact.or_else(|| self.providers.iter().find(|p| p.is_called(text)))
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
        let &(p, e) = self.events.get(&key(provider, identity))?;
        let mut schema = self.providers.get(p)?.events.get(e)?.schema.clone();
        let decoder = self.without_fields.get(p)?.get(e)?;
        Some(decoder.get_or_init(|| {
            schema.fields.clear();
            Decoder::new(Arc::new(schema))
        }))
    }

    #[inline]
    pub(crate) fn entry(&self, provider: Guid, identity: Identity) -> Option<Entry<'_>> {
        let &(p, e) = self.events.get(&key(provider, identity))?;
        let event = self.providers.get(p)?.events.get(e)?;
        Some(Entry { event, decoder: self.decoders.get(p)?.get(e)? })
    }
}

/// An event of a registry, with its decoder, which is compiled when it is first asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'r> {
    event: &'r TableEvent,
    decoder: &'r OnceLock<Decoder>,
}

impl<'r> Entry<'r> {
    #[inline]
    pub fn decoder(self) -> &'r Decoder {
        self.decoder.get_or_init(|| Decoder::new(Arc::new(self.event.schema.clone())))
    }
}

#[cfg(test)]
mod tests;
