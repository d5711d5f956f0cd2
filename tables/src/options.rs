//! Which rows and columns of a table are made, and how.

use etl_events::conditions::Conditions;
use etl_events::filter::Filter;
use etl_format::read::Limits;
use etl_schema::store::SchemaStore;

use crate::builder::Bounds;
use crate::schema::Slot;
use crate::{Error, Result};

/// Which rows and columns of a table are made, and how.
///
/// What is not asked for is not decoded: without the column `fields` of `events`, no payload is
/// read; without the names of processes and threads and what schemas say, the trace is not read
/// before.
///
/// ```
/// use etl_tables::Options;
///
/// // Two columns, in batches of at most 1,000 rows, without names of processes and threads.
/// let options = Options::new("trace.etl")
///     .columns(["time", "event"])
///     .names(false)
///     .batch_rows(1000);
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) trace: String,
    pub(crate) columns: Vec<String>,
    pub(crate) filter: Filter,
    pub(crate) events: Conditions,
    pub(crate) store: SchemaStore,
    pub(crate) limits: Limits,
    pub(crate) threads: usize,
    pub(crate) names: bool,
    pub(crate) bounds: Bounds,
}

impl Options {
    /// Rows of one batch, and bytes of its texts, at most.
    const BOUNDS: Bounds = Bounds {
        rows: 1 << 16,
        bytes: 16 << 20,
    };

    /// All columns and rows of a trace, which the column `trace` calls so.
    #[must_use]
    pub fn new(trace: impl Into<String>) -> Self {
        Options {
            trace: trace.into(),
            columns: Vec::new(),
            filter: Filter::default(),
            events: Conditions::default(),
            store: SchemaStore::default(),
            limits: Limits::default(),
            threads: 1,
            names: true,
            bounds: Self::BOUNDS,
        }
    }

    /// The columns that are made, in this order. Default: all but those that the documentation
    /// calls "on request".
    #[must_use]
    pub fn columns<T: Into<String>>(self, columns: impl IntoIterator<Item = T>) -> Self {
        Options {
            columns: columns.into_iter().map(Into::into).collect(),
            ..self
        }
    }

    /// The events that become rows of `events` and of the tables of the events of one kind. The
    /// other tables take its times, processes and threads where their rows have any.
    #[must_use]
    pub fn filter(self, filter: Filter) -> Self {
        Options { filter, ..self }
    }

    /// Names of events; one must match: `GCStart*`. Conditions on fields do not count.
    #[must_use]
    pub fn events(self, events: Conditions) -> Self {
        Options { events, ..self }
    }

    /// What describes events besides the trace itself. Default: the tables of the kernel and the
    /// CLR.
    #[must_use]
    pub fn store(self, store: SchemaStore) -> Self {
        Options { store, ..self }
    }

    /// Bounds on memory.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Options { limits, ..self }
    }

    /// Threads that read. Batches do not depend on it. Default: 1.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Options { threads, ..self }
    }

    /// Whether rows have the names of processes and threads, and the drives of volumes. Default:
    /// on.
    #[must_use]
    pub fn names(self, names: bool) -> Self {
        Options { names, ..self }
    }

    /// Rows of a batch at most; fewer where texts take 16 MiB. Default: 65,536.
    #[must_use]
    pub fn batch_rows(self, rows: usize) -> Self {
        Options {
            bounds: Bounds {
                rows: rows.max(1),
                ..self.bounds
            },
            ..self
        }
    }

    /// The places of the wanted columns in a table.
    pub(crate) fn wanted(&self, table: &str, slots: &[Slot]) -> Result<Vec<usize>> {
        if self.columns.is_empty() {
            let all = slots
                .iter()
                .enumerate()
                .filter(|(_, slot)| !slot.on_request);
            return Ok(all.map(|(place, _)| place).collect());
        }
        self.places(table, slots)
    }

    /// The same of columns that are not the same for every trace.
    pub(crate) fn places(&self, table: &str, slots: &[Slot]) -> Result<Vec<usize>> {
        if self.columns.is_empty() {
            return Ok((0..slots.len()).collect());
        }
        let mut places = Vec::new();
        for name in &self.columns {
            let at = slots
                .iter()
                .position(|slot| slot.name == *name)
                .ok_or_else(|| {
                    let known: Vec<&str> = slots.iter().map(|slot| &*slot.name).collect();
                    Error::NoColumn {
                        table: table.to_owned(),
                        column: name.clone(),
                        known: known.join(", "),
                    }
                })?;
            if !places.contains(&at) {
                places.push(at);
            }
        }
        Ok(places)
    }
}
