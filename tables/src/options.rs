//! Which rows and columns of a table are made, and how.

use etl_events::conditions::Conditions;
use etl_events::filter::Filter;
use etl_format::read::Limits;
use etl_schema::store::SchemaStore;

use crate::builder::Bounds;
use crate::rows::traces::AboutFile;
use crate::schema::Slot;
use crate::{Error, Result};

/// Which rows and columns of a table are made, and how.
///
/// Only the requested columns are decoded: without the column `fields` of `events`, no payload is
/// decoded. Without names of processes and threads, and columns that need schemas, the trace is
/// read only once.
///
/// ```
/// use etl_tables::Options;
///
/// // Two columns, in batches of at most 1,000 rows, without names of processes and threads.
/// let options = Options::new("trace.etl")
///     .columns(["time", "event"])
///     .without_names()
///     .batch_rows(1000);
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) trace: String,
    pub(crate) about: AboutFile,
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
    /// The most rows of one batch, and bytes of its texts.
    const BOUNDS: Bounds = Bounds {
        rows: 1 << 16,
        bytes: 16 << 20,
    };

    /// All columns and rows of a trace. `trace` is its name in the column `trace`.
    #[must_use]
    pub fn new(trace: impl Into<String>) -> Self {
        Options {
            trace: trace.into(),
            about: AboutFile::default(),
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

    /// What the row of `traces` says of the file. Default: nothing.
    #[must_use]
    pub fn about(self, about: AboutFile) -> Self {
        Options { about, ..self }
    }

    /// The columns that are made, in this order. Default: all columns, except the columns that the
    /// documentation calls "on request".
    #[must_use]
    pub fn columns<T: Into<String>>(self, columns: impl IntoIterator<Item = T>) -> Self {
        Options {
            columns: columns.into_iter().map(Into::into).collect(),
            ..self
        }
    }

    /// The events that become rows of `events` and of the tables of the events of one kind. In
    /// other tables, its times, processes and threads select the rows that have them.
    #[must_use]
    pub fn filter(self, filter: Filter) -> Self {
        Options { filter, ..self }
    }

    /// Names of events; one must match: `GCStart*`. Conditions on fields are ignored.
    #[must_use]
    pub fn events(self, events: Conditions) -> Self {
        Options { events, ..self }
    }

    /// Describes events, in addition to the schemas of the trace. Default: the tables of the kernel
    /// and the CLR.
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

    /// Rows of events do not have the names of processes and threads, and the drives of volumes.
    #[must_use]
    pub fn without_names(self) -> Self {
        Options {
            names: false,
            ..self
        }
    }

    /// The most rows of a batch; it has fewer if its texts have 16 MiB. Default: 65,536.
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

    /// The indices of the requested columns of a table. By default, columns that are on request are
    /// left out.
    pub(crate) fn requested(&self, table: &str, slots: &[Slot]) -> Result<Vec<usize>> {
        let mut requested = self.requested_or_all(table, slots)?;
        if self.columns.is_empty() {
            requested.retain(|&index| slots.get(index).is_some_and(|slot| !slot.on_request));
        }
        Ok(requested)
    }

    /// The indices of the requested columns of a table; by default all of them.
    pub(crate) fn requested_or_all(&self, table: &str, slots: &[Slot]) -> Result<Vec<usize>> {
        if self.columns.is_empty() {
            return Ok((0..slots.len()).collect());
        }
        let mut indices = Vec::new();
        for name in &self.columns {
            let Some(index) = slots.iter().position(|slot| slot.name == *name) else {
                let names: Vec<&str> = slots.iter().map(|slot| &*slot.name).collect();
                return Err(Error::NoColumn {
                    table: table.to_owned(),
                    column: name.clone(),
                    known: names.join(", "),
                });
            };
            if !indices.contains(&index) {
                indices.push(index);
            }
        }
        Ok(indices)
    }
}
