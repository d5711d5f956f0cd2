//! The built-in event tables (`schema/tables/`) and their registry.

mod errata;
mod error;
mod out_by_name;
mod parse;
mod registry;
pub mod windows;

use etl_format::Guid;

use crate::model::{EventSchema, Field, Identity};

pub use errata::{ERRATA_TABLE, Erratum, errata, erratum};
pub use error::TableError;
pub(crate) use registry::Entry;
pub use registry::Registry;

/// The text of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSource {
    /// Its file name, which errors contain.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// The tables that this crate carries.
pub const TABLES: &[TableSource] = &[
    TableSource {
        name: "clr-runtime.txt",
        text: include_str!("../../tables/clr-runtime.txt"),
    },
    TableSource {
        name: "clr-rundown.txt",
        text: include_str!("../../tables/clr-rundown.txt"),
    },
    TableSource {
        name: "clr-private.txt",
        text: include_str!("../../tables/clr-private.txt"),
    },
    TableSource {
        name: "sample-profiler.txt",
        text: include_str!("../../tables/sample-profiler.txt"),
    },
];

/// What the reference pages print of the CLR's providers, errors included.
pub const DOCUMENTED_TABLES: &[TableSource] = &[
    TableSource {
        name: "documented-runtime.txt",
        text: include_str!("../../tables/documented-runtime.txt"),
    },
    TableSource {
        name: "documented-rundown.txt",
        text: include_str!("../../tables/documented-rundown.txt"),
    },
];

/// Which tables are used if the reference pages and the runtimes disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TableSet {
    /// The events of the runtimes, as real traces have them.
    #[default]
    Shipped,
    /// The events of the reference pages, as printed.
    Documented,
}

/// The provider with this GUID, with its keywords and events: one of the CLR in these tables, else
/// one that Windows ships and whose events are known.
#[must_use]
pub fn provider(tables: TableSet, guid: Guid) -> Option<&'static Provider> {
    Registry::of(tables)
        .provider(guid)
        .or_else(|| windows::kept(guid))
}

/// The classic events of the kernel and of merges, by class.
pub const CLASSIC_TABLE: TableSource = TableSource {
    name: "kernel.txt",
    text: include_str!("../../tables/kernel.txt"),
};

/// Level and keywords of an event in older runtimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OlderEvent {
    /// The level.
    pub level: u8,
    /// The keywords.
    pub keywords: u64,
}

/// A keyword of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyword {
    /// Its bits, usually one.
    pub mask: u64,
    /// Its name.
    pub name: String,
}

/// An event of a table: its schema, and facts that only tables have.
#[derive(Clone, Debug, PartialEq)]
pub struct TableEvent {
    /// The event.
    pub schema: EventSchema,
    /// Level and keywords in other shipped runtimes (mostly .NET Framework), if they differ.
    pub older: Option<OlderEvent>,
    /// Whether the CLR follows it with a stack event when StackKeyword is on.
    pub stack: bool,
    /// The source of the facts.
    pub origin: String,
    /// For an event of the reference pages, the corresponding event of shipped runtimes.
    pub shipped: Option<Identity>,
    /// The fields of other layouts with the same id and version, which some Windows or runtimes
    /// write.
    pub other_layouts: Vec<Vec<Field>>,
    /// Errata that a table of the reference pages names.
    errata: Vec<String>,
}

impl TableEvent {
    /// An event with a schema and an origin; the rest is empty.
    #[must_use]
    pub fn new(schema: EventSchema, origin: impl Into<String>) -> Self {
        let origin = origin.into();
        TableEvent {
            schema,
            older: None,
            stack: false,
            origin,
            shipped: None,
            other_layouts: Vec::new(),
            errata: Vec::new(),
        }
    }

    /// The errata about differences between this event and the same event of the other
    /// [`TableSet`]. For a shipped event, these are the errata of all versions on the pages.
    #[must_use]
    pub fn errata(&self) -> Vec<&str> {
        let Identity::Modern { id, .. } = self.schema.identity else {
            return Vec::new();
        };
        let mut ids: Vec<_> = self.errata.iter().map(String::as_str).collect();
        if self.shipped.is_none()
            && let Some(pages) = Registry::of(TableSet::Documented).provider(self.schema.provider)
        {
            for event in &pages.events {
                if let Some(Identity::Modern { id: shipped, .. }) = event.shipped
                    && shipped == id
                {
                    ids.extend(event.errata.iter().map(String::as_str));
                }
            }
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// The names of the bits of a keyword mask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeywordNames<'a> {
    /// The names, in the order of the table.
    pub names: Vec<&'a str>,
    /// The bits without a name.
    pub unnamed: u64,
}

/// A provider with the contents of its table.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// Its GUID.
    pub guid: Guid,
    /// Keywords by mask.
    pub keywords: Vec<Keyword>,
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

    /// Names of the bits of a mask. A bit with several names has the first one in the table.
    ///
    /// ```
    /// use etl_schema::tables::Registry;
    ///
    /// let rundown = Registry::builtin().find("rundown").ok_or("built in")?;
    /// let keywords = rundown.keyword_names(0x98);
    /// assert_eq!(keywords.names, ["LoaderRundownKeyword", "JitRundownKeyword"]);
    /// assert_eq!(keywords.unnamed, 0x80);
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn keyword_names(&self, mask: u64) -> KeywordNames<'_> {
        let mut names = Vec::new();
        let mut unnamed = mask;
        for keyword in &self.keywords {
            if unnamed & keyword.mask != 0 {
                names.push(keyword.name.as_str());
            }
            unnamed &= !keyword.mask;
        }
        KeywordNames { names, unnamed }
    }

    /// Whether this is the provider's name, or the end of it (`runtime`, `rundown`); case does not
    /// matter.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        is_called(&self.name, name)
    }

    /// The mask of a keyword, by its name (case does not matter).
    #[must_use]
    pub fn keyword(&self, name: &str) -> Option<u64> {
        let keyword = self
            .keywords
            .iter()
            .find(|k| k.name.eq_ignore_ascii_case(name))?;
        Some(keyword.mask)
    }
}

/// Whether a provider's name ends like this; case does not matter.
fn is_called(provider: &str, name: &str) -> bool {
    provider
        .to_ascii_lowercase()
        .ends_with(&name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
