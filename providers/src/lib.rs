//! The events and fields of the ETW providers that Windows ships, as packed tables.
//!
//! This crate holds text and knows nothing of its meaning: one table for each provider, in the
//! grammar of [etl-schema's tables](https://docs.rs/etl-schema), which reads them. Only the list of
//! providers and the block with the provider that is asked for are unpacked, each once.
//!
//! ```
//! let named = |p: &&etl_providers::Provider| p.name() == "Microsoft-Windows-Kernel-Process";
//! let provider = etl_providers::all().iter().find(named).ok_or("it is in the tables")?;
//! assert!(provider.event_count() > 30);
//! assert!(provider.table().contains("event 1 0 ProcessStart\n"));
//! # Ok::<(), &str>(())
//! ```
//!
//! [`unpack`] returns all tables as one text, [`pack()`] is the inverse: `data/README.md` has the
//! commands, and says where the facts are from.
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
    /// The block with its table, and its position there.
    block: usize,
    position: usize,
}

impl Provider {
    /// The GUID as records hold it: the first three numbers are little-endian.
    #[must_use]
    pub fn guid(&self) -> [u8; 16] {
        self.guid
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many events the table describes: none where only the name is known.
    #[must_use]
    pub fn event_count(&self) -> u32 {
        self.event_count
    }

    /// The table. Unpacks the block that contains it if no other call did.
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

/// What was unpacked so far.
struct Unpacked {
    archive: Archive<'static>,
    providers: Vec<Provider>,
    /// Positions in `providers`, by GUID.
    by_guid: Vec<usize>,
    blocks: Vec<OnceLock<Vec<String>>>,
}

fn unpacked() -> &'static Unpacked {
    static UNPACKED: OnceLock<Unpacked> = OnceLock::new();
    // A test unpacks all of the data: without an error none is lost here.
    UNPACKED.get_or_init(|| {
        let archive = Archive::open(DATA).unwrap_or_default();
        let providers = archive.providers().unwrap_or_default();
        let mut by_guid: Vec<usize> = (0..providers.len()).collect();
        by_guid.sort_by_key(|&at| providers.get(at).map(Provider::guid));
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

/// The position in [`all`] of the provider with this GUID, as records hold it.
#[must_use]
pub fn position(guid: [u8; 16]) -> Option<usize> {
    let unpacked = unpacked();
    let of = |at: usize| unpacked.providers.get(at).map(Provider::guid);
    let found = unpacked
        .by_guid
        .binary_search_by_key(&Some(guid), |&at| of(at));
    unpacked.by_guid.get(found.ok()?).copied()
}

/// The provider with this GUID, as records hold it.
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
