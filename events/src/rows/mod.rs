//! Events as rows of text: one `Row` for a record of any kind, and writers of text, JSON lines,
//! CSV and XML over it.
//!
//! ```
//! use etl_format::read::{Options, Order, Trace};
//! use etl_schema::store::SchemaStore;
//! use etl_events::rows::{Format, RowWriter};
//!
//! fn print(trace: &[u8]) -> etl_events::Result<Vec<u8>> {
//!     let mut trace = Trace::open(trace, &Options::salvage())?;
//!     let mut rows = RowWriter::new(Format::JsonLines, trace.clock(), SchemaStore::default());
//!     let mut out = Vec::new();
//!     rows.begin(&mut out);
//!     let mut records = trace.records(Order::Time)?;
//!     while let Some(record) = records.next_record()? {
//!         rows.learn(&record);
//!         rows.write(&mut out, &record);
//!     }
//!     rows.end(&mut out);
//!     Ok(out)
//! }
//! ```

mod columns;
mod conditions;
mod csv;
mod head;
mod items;
mod json;
mod message;
mod model;
mod row;
mod text;
mod xml;

pub use conditions::{Conditions, NoCondition};
pub use csv::{Columns, EmptyColumnName};
pub use head::own_names;
pub use message::message;

use etl_format::Clock;
use etl_format::read::Record;
use etl_schema::store::SchemaStore;

use model::RowModel;

use crate::context::Context;
use crate::filter::Filter;

/// The form of rows. `docs/dump.md` describes each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// One line per event, for people.
    #[default]
    Text,
    /// One JSON object per line.
    JsonLines,
    /// Comma-separated values with a header line.
    Csv,
    /// A document of Windows' Event schema.
    Xml,
}

/// Writes records as rows, without allocating for each of them.
///
/// A clone goes on independently: clones on several threads write the same rows if each learns from
/// all records.
#[derive(Clone, Debug)]
pub struct RowWriter<'c> {
    format: Format,
    payload_bytes: bool,
    columns: Columns,
    conditions: Conditions,
    count_only: bool,
    stale: bool,
    model: RowModel<'c>,
    /// Memory for values and messages before they are escaped.
    scratch: Vec<u8>,
}

impl<'c> RowWriter<'c> {
    /// A writer of rows for a trace with this clock. `store` describes the events.
    #[must_use]
    pub fn new(format: Format, clock: Clock, store: SchemaStore) -> Self {
        RowWriter {
            format,
            payload_bytes: false,
            columns: Columns::default(),
            conditions: Conditions::default(),
            count_only: false,
            stale: false,
            model: RowModel::new(clock, store),
            scratch: Vec::new(),
        }
    }

    /// A writer of the same kind of rows for another trace: with this clock, and without what was
    /// learned from the first.
    #[must_use]
    pub fn for_trace(&self, clock: Clock, file: Option<&str>) -> Self {
        let mut other = self.clone();
        other.model = RowModel::new(clock, self.model.store.clone());
        other.model.relative = self.model.relative;
        other.file(file)
    }

    /// Adds what the whole trace says of processes, threads, paths and addresses. Default: nothing.
    #[must_use]
    pub fn context(mut self, context: Option<&'c Context<'c>>) -> Self {
        self.model.context = context;
        self
    }

    /// Whether rows show anything of a context.
    #[must_use]
    pub fn shows_context(&self) -> bool {
        self.format != Format::Csv || self.columns.show_context()
    }

    /// Adds the payload as hexadecimal digits. Default: off.
    #[must_use]
    pub fn payload_bytes(mut self, on: bool) -> Self {
        self.payload_bytes = on;
        self
    }

    /// Selects the columns of CSV.
    #[must_use]
    pub fn columns(mut self, columns: Columns) -> Self {
        self.columns = columns;
        self
    }

    /// Selects the events that [`RowWriter::write_if`] writes by their names and fields.
    #[must_use]
    pub fn conditions(mut self, conditions: Conditions) -> Self {
        self.conditions = conditions;
        self
    }

    /// Makes [`RowWriter::write_if`] write nothing, so that its results can be counted. Default:
    /// off.
    #[must_use]
    pub fn count_only(mut self, on: bool) -> Self {
        self.count_only = on;
        self
    }

    /// Makes [`RowWriter::write_if`] write stale records too ([`Record::is_stale`]). Default: off.
    #[must_use]
    pub fn stale(mut self, on: bool) -> Self {
        self.stale = on;
        self
    }

    /// Adds the name of the file to each row. Default: none.
    #[must_use]
    pub fn file(mut self, name: Option<&str>) -> Self {
        self.model.file = name.map(str::to_owned);
        self.columns.add_file(name.is_some());
        self
    }

    /// Writes times as seconds since the start of the session; JSON has them besides, and XML does
    /// not have them. Default: off.
    #[must_use]
    pub fn relative_times(mut self, on: bool) -> Self {
        self.model.relative = on;
        self
    }

    /// Describes the events by another store.
    #[must_use]
    pub fn schemas(mut self, store: SchemaStore) -> Self {
        self.model.store = store;
        self
    }

    /// The time that the seconds of [`RowWriter::relative_times`] count from, as FILETIME: for rows
    /// of several traces. Default: the start of the trace.
    #[must_use]
    pub fn start(mut self, filetime: i64) -> Self {
        self.model.start = filetime;
        self
    }

    /// The schemas that are known so far.
    #[must_use]
    pub fn store(&self) -> &SchemaStore {
        &self.model.store
    }

    /// Learns the schemas that a record defines. Call it for every record before it is written.
    #[inline]
    pub fn learn(&mut self, record: &Record<'_>) {
        self.model.store.learn(record);
    }

    /// Writes what precedes the first row.
    pub fn begin(&self, out: &mut Vec<u8>) {
        match self.format {
            Format::Csv => self.columns.write_header(out),
            Format::Xml => xml::begin(out),
            Format::Text | Format::JsonLines => {}
        }
    }

    /// Writes what follows the last row.
    pub fn end(&self, out: &mut Vec<u8>) {
        if self.format == Format::Xml {
            xml::end(out);
        }
    }

    /// Writes a record as a row with its line feed.
    pub fn write(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        let RowWriter { payload_bytes, columns, model, scratch, .. } = self;
        match self.format {
            Format::Text => text::write(out, &model.row(record, true), *payload_bytes, scratch),
            Format::JsonLines => {
                json::write(out, &model.row(record, true), *payload_bytes, scratch);
            }
            Format::Csv => {
                let row = model.row(record, columns.need_schema);
                columns.write(out, &row, *payload_bytes, scratch);
            }
            Format::Xml => xml::write(out, &model.row(record, true), *payload_bytes, scratch),
        }
        out.push(b'\n');
    }

    /// Writes a record if `filter` and the conditions admit it; returns whether they do.
    #[inline]
    pub fn write_if(&mut self, filter: &Filter, out: &mut Vec<u8>, record: &Record<'_>) -> bool {
        let admitted = self.admits(filter, record);
        if admitted && !self.count_only {
            self.write(out, record);
        }
        admitted
    }

    /// The name of a record's event, or what its number is called: `EventID(160)`.
    #[must_use]
    pub fn event_name<'a>(&'a mut self, record: &'a Record<'a>) -> &'a str {
        &self.model.row(record, true).head.event_name
    }

    /// The name of a record's provider, where one is known.
    #[must_use]
    pub fn provider_name<'a>(&'a mut self, record: &'a Record<'a>) -> Option<&'a str> {
        self.model.row(record, false).provider_name()
    }

    /// The message of a record's event with its fields in place, not escaped.
    #[must_use]
    pub fn message<'a>(&'a mut self, record: &'a Record<'a>) -> Option<&'a str> {
        let RowWriter { model, scratch, .. } = self;
        model.row(record, true).message(scratch)
    }

    /// Whether the filter and the conditions admit a record.
    #[inline]
    #[must_use]
    pub fn admits(&mut self, filter: &Filter, record: &Record<'_>) -> bool {
        let RowWriter { model, conditions, scratch, stale, .. } = self;
        if record.is_stale() && !*stale {
            return false;
        }
        let name = |provider| model.store.provider_name(provider);
        (filter.admits_all() || filter.admits_with(record, model.context, name))
            && (conditions.is_empty() || conditions.admit(&model.row(record, true), scratch))
    }

    /// Takes the fields of a record that is selected as columns of CSV, in place of the one for all
    /// fields.
    pub fn learn_columns(&mut self, filter: &Filter, record: &Record<'_>) {
        if self.admits(filter, record)
            && let Some(decoder) = self.model.store.decoder(record)
        {
            self.columns.add_fields(&decoder.schema().fields);
        }
    }

    /// Has the columns that another writer has learned.
    pub fn adopt_columns(&mut self, other: &RowWriter<'_>) {
        self.columns = other.columns.clone();
    }

    /// Columns of CSV for fields that no written event had.
    pub fn columns_without_values(&self) -> impl Iterator<Item = &str> {
        self.columns.without_values()
    }

    /// Takes over which columns had values in the rows of another writer.
    pub fn merge_columns(&mut self, other: &RowWriter<'_>) {
        self.columns.merge(&other.columns);
    }
}
