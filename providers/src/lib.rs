//! The events and fields of the ETW providers that Windows ships, as packed tables.
//!
//! There is one table for each provider, as text in the grammar of
//! [etl-schema's tables](https://docs.rs/etl-schema), which parses it; this crate does not. It
//! unpacks the list of providers and the blocks with the requested providers, each once.
//!
//! ```
//! let mut providers = etl_providers::all().iter();
//! let provider = providers
//!     .find(|provider| provider.name() == "Microsoft-Windows-Kernel-Process")
//!     .ok_or("it is in the tables")?;
//! assert!(provider.event_count() > 30);
//! assert!(provider.table().contains("event 1 0 ProcessStart\n"));
//! # Ok::<(), &str>(())
//! ```
//!
//! [`unpack`] returns all tables as one text, [`pack()`] is the inverse. `data/README.md` has the
//! commands, and the sources of the tables.
#![forbid(unsafe_code)]

mod archive;
mod block;
mod code;
mod index;
mod pack;

use std::sync::OnceLock;

use archive::Archive;

pub use pack::{PackError, pack};

/// The packed tables.
const DATA: &[u8] = include_bytes!("../data/tables.bin");

/// A provider of Windows.
#[derive(Debug)]
pub struct Provider {
    guid: [u8; 16],
    name: String,
    event_count: u32,
    /// The block with its table.
    block: usize,
    /// The position of the table in the block.
    position: usize,
}

impl Provider {
    /// The GUID in the byte order of records: the first three groups are little-endian.
    #[must_use]
    pub fn guid(&self) -> [u8; 16] {
        self.guid
    }

    /// The name, such as `Microsoft-Windows-Kernel-Process`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many events the table describes; 0 if only the name of the provider is known.
    #[must_use]
    pub fn event_count(&self) -> u32 {
        self.event_count
    }

    /// The table as text. The first call for a table of its block unpacks the block.
    #[must_use]
    pub fn table(&self) -> &'static str {
        let unpacked = unpacked();
        let Some(block) = unpacked.blocks.get(self.block) else {
            return "";
        };
        let tables = block.get_or_init(|| unpacked.archive.block(self.block).unwrap_or_default());
        tables.get(self.position).map_or("", String::as_str)
    }
}

/// The parts of the tables that are unpacked.
struct Unpacked {
    archive: Archive<'static>,
    providers: Vec<Provider>,
    /// Indices of `providers`, by GUID.
    by_guid: Vec<usize>,
    blocks: Vec<OnceLock<Vec<String>>>,
}

fn unpacked() -> &'static Unpacked {
    static UNPACKED: OnceLock<Unpacked> = OnceLock::new();
    // A test unpacks all data, so errors cannot occur here.
    UNPACKED.get_or_init(|| {
        let archive = Archive::open(DATA).unwrap_or_default();
        let providers = archive.providers().unwrap_or_default();
        let mut by_guid: Vec<usize> = (0..providers.len()).collect();
        by_guid.sort_by_key(|&index| providers.get(index).map(Provider::guid));
        let blocks = (0..archive.block_count())
            .map(|_| OnceLock::new())
            .collect();
        Unpacked {
            archive,
            providers,
            by_guid,
            blocks,
        }
    })
}

/// All providers, by name.
#[must_use]
pub fn all() -> &'static [Provider] {
    &unpacked().providers
}

/// The index in [`all`] of the provider with a GUID, in the byte order of records.
#[must_use]
pub fn position(guid: [u8; 16]) -> Option<usize> {
    let Unpacked {
        providers, by_guid, ..
    } = unpacked();
    let position = by_guid.binary_search_by_key(&Some(guid), |&index| {
        providers.get(index).map(Provider::guid)
    });
    by_guid.get(position.ok()?).copied()
}

/// The provider with a GUID, in the byte order of records.
#[must_use]
pub fn find(guid: [u8; 16]) -> Option<&'static Provider> {
    all().get(position(guid)?)
}

/// All tables as one text, with an empty line between providers.
#[must_use]
pub fn unpack() -> String {
    let tables: Vec<&str> = all().iter().map(Provider::table).collect();
    tables.join("\n")
}

#[cfg(test)]
mod tests;
