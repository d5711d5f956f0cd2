//! The spec tables: text files under `schema/tables/`, and what is looked up in them.

mod parse;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use etl_format::Guid;

use crate::decode::Decoder;
use crate::model::{EventSchema, Identity};

pub use parse::TableError;

/// The tables that this crate carries: file name and text.
pub const TABLES: &[(&str, &str)] = &[
    ("clr-runtime.txt", include_str!("../tables/clr-runtime.txt")),
    ("clr-rundown.txt", include_str!("../tables/clr-rundown.txt")),
];

/// The classic events of the kernel and of merges, by class: file name and text.
pub const CLASSIC_TABLE: (&str, &str) = ("kernel.txt", include_str!("../tables/kernel.txt"));

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
    /// The first mistake, with its line.
    pub fn parse(file: &str, text: &str) -> Result<Self, TableError> {
        parse::provider(file, text)
    }

    /// Reads a table of classic events: a provider for each class.
    ///
    /// # Errors
    /// The first mistake, with its line.
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

    /// The mask of a keyword, by its name (case does not matter).
    #[must_use]
    pub fn keyword(&self, name: &str) -> Option<u64> {
        self.keywords.iter().find(|(_, n)| n.eq_ignore_ascii_case(name)).map(|(mask, _)| *mask)
    }
}

/// Providers, and their events by identity.
#[derive(Debug, Default)]
pub struct Registry {
    providers: Vec<Provider>,
    /// Provider and event by what a record says.
    events: HashMap<(Guid, Identity), (usize, usize)>,
    /// A decoder for each event of each provider.
    decoders: Vec<Vec<Decoder>>,
}

impl Registry {
    /// The tables of this crate, read once.
    ///
    /// They are read in the tests of this crate, mistakes and all; a table with a mistake would be
    /// left out here.
    #[must_use]
    pub fn builtin() -> &'static Registry {
        static BUILTIN: OnceLock<Registry> = OnceLock::new();
        BUILTIN.get_or_init(|| {
            let tables = TABLES.iter().filter_map(|(file, text)| Provider::parse(file, text).ok());
            Registry::new(tables.collect())
        })
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
        let mut events = HashMap::new();
        for (p, provider) in providers.iter().enumerate() {
            for (e, event) in provider.events.iter().enumerate() {
                events.insert((event.schema.provider, event.schema.identity), (p, e));
            }
        }
        let compile = |event: &TableEvent| Decoder::new(Arc::new(event.schema.clone()));
        let decoders = providers.iter().map(|p| p.events.iter().map(compile).collect()).collect();
        Registry { providers, events, decoders }
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
        exact.or_else(|| {
            let ends = |p: &&Provider| {
                let name = p.name.to_ascii_lowercase();
                name.ends_with(&text.to_ascii_lowercase())
            };
            self.providers.iter().find(ends)
        })
    }

    /// The description of an event.
    #[must_use]
    #[inline]
    pub fn event(&self, provider: Guid, key: Identity) -> Option<&TableEvent> {
        let &(p, e) = self.events.get(&(provider, key))?;
        self.providers.get(p)?.events.get(e)
    }

    /// The decoder for an event's payload.
    #[must_use]
    #[inline]
    pub fn decoder(&self, provider: Guid, key: Identity) -> Option<&Decoder> {
        let &(p, e) = self.events.get(&(provider, key))?;
        self.decoders.get(p)?.get(e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_sound() {
        for (file, text) in TABLES {
            if let Err(mistake) = Provider::parse(file, text) {
                panic!("{mistake}");
            }
        }
        let (file, text) = CLASSIC_TABLE;
        if let Err(mistake) = Provider::parse_classes(file, text) {
            panic!("{mistake}");
        }
        assert_eq!(Registry::classic().providers().len(), 14);
        let registry = Registry::builtin();
        assert_eq!(registry.providers().len(), TABLES.len());
        let events: Vec<_> = registry.providers().iter().map(|p| p.events.len()).collect();
        assert_eq!(events, [210, 50]);
    }

    #[test]
    fn providers_are_found_by_what_people_write() {
        let registry = Registry::builtin();
        for text in
            ["Microsoft-Windows-DotNETRuntime", "microsoft-windows-dotnetruntime", "runtime"]
        {
            assert_eq!(registry.find(text).unwrap().name, "Microsoft-Windows-DotNETRuntime");
        }
        for text in ["rundown", "{A669021C-C450-4609-A035-5AF59AF4DF18}"] {
            assert_eq!(registry.find(text).unwrap().name, "Microsoft-Windows-DotNETRuntimeRundown");
        }
        assert!(registry.find("nobody").is_none());
    }

    #[test]
    fn masks_are_taken_apart() {
        let rundown = Registry::builtin().find("rundown").unwrap();
        let (names, rest) = rundown.keyword_names(0xb8);
        assert_eq!(names, ["LoaderRundownKeyword", "JitRundownKeyword", "NGenRundownKeyword"]);
        assert_eq!(rest, 0x80, "a bit that means nothing to this provider");
        assert_eq!(rundown.keyword("endrundownkeyword"), Some(0x100));
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let table = |body: &str| format!("provider P e13c0d23-ccbc-4e12-931b-d9cc2eee27e4\n{body}");
        for (body, line, what) in [
            ("event 1 0 A\n  level 9x", 3, "number"),
            ("event 1 0 A\nevent 1 0 B", 3, "twice"),
            ("event 1 0 A\n  keywords Nope", 3, "keyword"),
            ("event 1 0 A\n  field X Nope", 3, "type"),
            ("event 1 0 A\n  field X UInt32 map Nope", 3, "map"),
            ("event 1 0 A\n  field X UInt32 count N", 3, "field"),
            ("event 1 0 A\n  field X UInt32 count", 3, "count"),
            ("nonsense", 2, "line"),
            ("  stack", 2, "line"),
        ] {
            let mistake = Provider::parse("t.txt", &table(body)).unwrap_err().to_string();
            assert!(mistake.starts_with(&format!("t.txt:{line}: ")), "{body}: {mistake}");
            assert!(mistake.contains(what), "{body}: {mistake}");
        }
        assert!(Provider::parse("t.txt", "").unwrap_err().to_string().contains("provider"));
    }
}
