//! Writers of events as text, JSON lines, CSV and XML.

mod csv;
mod display;
mod json;
mod members;
mod row;
mod serialize;
mod shared;
mod text;
mod times;
mod xml;

pub use csv::{Columns, EmptyColumnName, escape as write_csv_field};

use etl_schema::render::Renderer;

use crate::event::Event;

use row::Row;
use times::Times;

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

/// Unpaired surrogates in the values of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surrogates {
    /// An escape sequence for each.
    Escaped,
    /// U+FFFD for each.
    Replaced,
}

/// Writes events as rows, without allocating for each of them.
///
/// ```
/// use etl_events::rows::{Format, RowWriter};
///
/// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
/// let mut rows = RowWriter::new(Format::JsonLines);
/// let mut out = Vec::new();
/// let mut events = trace.events().event("GCEnd*");
/// rows.begin(&mut out);
/// while let Some(event) = events.next()? {
///     rows.write(&mut out, &event);
/// }
/// rows.end(&mut out);
/// let text = String::from_utf8_lossy(&out);
/// assert!(text.starts_with("{\"time\":\"2022-06-18T04:26:40.0030000Z\",\"timestamp\":31000,"));
/// assert!(text.contains("\"fields\":{\"Count\":7,\"Depth\":1,\"ClrInstanceID\":9}"));
/// # Ok::<(), etl_events::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RowWriter {
    format: Format,
    payload_bytes: bool,
    columns: Columns,
    times: Times,
    surrogates: Surrogates,
    /// Memory for values and messages before they are escaped.
    scratch: Vec<u8>,
}

impl RowWriter {
    /// A writer of rows.
    #[must_use]
    pub fn new(format: Format) -> Self {
        RowWriter {
            format,
            payload_bytes: false,
            columns: Columns::default(),
            times: Times::default(),
            surrogates: Surrogates::Escaped,
            scratch: Vec::new(),
        }
    }

    /// Adds the payload as hexadecimal digits.
    ///
    /// ```
    /// # use etl_events::rows::{Format, RowWriter};
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCEnd*");
    /// # let event = events.next()?.unwrap();
    /// let mut rows = RowWriter::new(Format::Text).payload_bytes();
    /// let mut line = Vec::new();
    /// rows.write(&mut line, &event);
    /// assert!(line.ends_with(b" GCEnd_V1  07000000010000000900\n"));
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    #[must_use]
    pub fn payload_bytes(mut self) -> Self {
        self.payload_bytes = true;
        self
    }

    /// In JSON, an unpaired surrogate becomes U+FFFD instead of an escape sequence that many
    /// readers of JSON reject.
    pub(crate) fn lossy(mut self) -> Self {
        self.surrogates = Surrogates::Replaced;
        self
    }

    /// Selects the columns of CSV.
    ///
    /// ```
    /// # use etl_events::rows::{Columns, Format, RowWriter};
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCEnd*");
    /// # let event = events.next()?.unwrap();
    /// let columns = Columns::new(&["timestamp".to_owned(), "Count".to_owned()])?;
    /// let mut rows = RowWriter::new(Format::Csv).columns(columns);
    /// let mut out = Vec::new();
    /// rows.begin(&mut out);
    /// rows.write(&mut out, &event);
    /// assert_eq!(out, b"timestamp,Count\n31000,7\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn columns(mut self, columns: Columns) -> Self {
        self.columns = columns;
        self
    }

    /// Adds a column for the file to CSV. The other forms show it for each event that has a file.
    #[must_use]
    pub fn file_column(mut self) -> Self {
        self.columns.add_file();
        self
    }

    /// Writes times as seconds since the start of the trace. JSON has them in addition, and XML
    /// does not have them.
    ///
    /// ```
    /// # use etl_events::rows::{Format, RowWriter};
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCEnd*");
    /// # let event = events.next()?.unwrap();
    /// let mut line = Vec::new();
    /// RowWriter::new(Format::Text).relative_times().write(&mut line, &event);
    /// assert!(line.starts_with(b"0.0030000  cpu 0  pid app.exe (100) tid 101  EVENT64 "));
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    #[must_use]
    pub fn relative_times(mut self) -> Self {
        self.times.set_relative();
        self
    }

    /// Whether rows show any name that only the trace as a whole contains.
    #[must_use]
    pub fn shows_context(&self) -> bool {
        self.format != Format::Csv || self.columns.show_context()
    }

    /// Whether rows show anything of an event that only its schema contains: otherwise the events
    /// of [`Depth::Headers`](crate::Depth::Headers) are enough.
    #[must_use]
    pub fn needs_schema(&self) -> bool {
        self.format != Format::Csv || self.columns.need_schema
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

    /// Writes an event as a row with its line feed.
    pub fn write(&mut self, out: &mut Vec<u8>, event: &Event<'_>) {
        let RowWriter {
            format,
            payload_bytes,
            columns,
            times,
            surrogates,
            scratch,
        } = self;
        times.format(event);
        let row = Row::new(event, times);
        match format {
            Format::Text => text::write(out, &row, *payload_bytes, scratch),
            Format::JsonLines => {
                let values = match surrogates {
                    Surrogates::Escaped => Renderer::new().hex(),
                    Surrogates::Replaced => Renderer::new().hex().lossy(),
                };
                json::write(out, &row, values, *payload_bytes, scratch);
            }
            Format::Csv => columns.write(out, &row, *payload_bytes, scratch),
            Format::Xml => xml::write(out, &row, *payload_bytes, scratch),
        }
        out.push(b'\n');
    }

    /// Adds a column of CSV for each field of an event. The first call replaces the column with all
    /// fields.
    pub fn learn_columns(&mut self, event: &Event<'_>) {
        if let Some(schema) = event.schema() {
            self.columns.add_fields(&schema.fields);
        }
    }

    /// Columns of CSV for fields that no written event had.
    pub fn columns_without_values(&self) -> impl Iterator<Item = &str> {
        self.columns.without_values()
    }

    /// Notes which columns had values in the rows of another writer.
    pub fn merge_columns(&mut self, other: &RowWriter) {
        self.columns.merge(&other.columns);
    }
}
