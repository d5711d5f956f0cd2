//! The tables: which there are, and their columns.

use crate::column::{Column, Kind};

mod events;
mod facts;
mod runtime;

/// A table with columns that are the same for every trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// What to know of it.
    pub about: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
}

/// The first columns of every table.
const TRACE: Column =
    Column::new("trace", Kind::Word, "Name of the trace: that of its file without the folder");

macro_rules! tables {
    ($($constant:ident = $at:path;)*) => {
        $(#[allow(missing_docs)] pub use $at as $constant;)*

        /// All tables, in the order of the documentation.
        pub const ALL: &[&Table] = &[$(&$at),*];
    };
}

#[cfg(feature = "arrow")]
pub(crate) use events::{KEYS as EVENT_KEYS, at as events_at};

tables! {
    EVENTS = events::TABLE;
    EVENT_STACKS = events::STACKS;
    TRACES = facts::TRACES;
    PROCESSES = facts::PROCESSES;
    THREADS = facts::THREADS;
    IMAGES = facts::IMAGES;
    MODULES = runtime::MODULES;
    METHODS = runtime::METHODS;
    STACKS = facts::STACKS;
    FRAMES = facts::FRAMES;
    SAMPLES = facts::SAMPLES;
    CONTEXT_SWITCHES = facts::CONTEXT_SWITCHES;
    GCS = runtime::GCS;
    IO = facts::IO;
    PACKETS = facts::PACKETS;
    LOSSES = facts::LOSSES;
    FINDINGS = facts::FINDINGS;
}

impl Table {
    /// The table with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Table> {
        ALL.iter().copied().find(|table| table.name == name)
    }
}

/// The names of all tables.
pub(crate) fn names() -> String {
    let names: Vec<&str> = ALL.iter().map(|table| table.name).collect();
    names.join(", ")
}
