//! Events as rows of text: one `Row` for a record of any kind, and writers of text, JSON lines,
//! CSV and XML over it.
//!
//! ```
//! use etl_format::read::{Options, Order, Trace};
//! use etl_schema::store::SchemaStore;
//! use etl_tools::rows::{Format, RowWriter};
//!
//! fn print(trace: &[u8]) -> etl_tools::Result<Vec<u8>> {
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

mod conditions;
mod csv;
mod json;
mod text;
mod xml;

pub use conditions::{Conditions, NoCondition};
pub use csv::{Columns, EmptyColumnName};

use std::io::Write;

use etl_format::read::{ExtendedItem, Header, Record};
use etl_format::{Clock, Guid};
use etl_schema::decode::Fields;
use etl_schema::providers;
use etl_schema::render::{self, decimal, hexadecimal, signed};
use etl_schema::store::SchemaStore;
use etl_schema::{EventSchema, Named, SchemaSource};

use crate::context::{Context, EventNames};
use crate::filter::Filter;
use crate::header_fields::HeaderFields;

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

    #[inline]
    fn admits(&mut self, filter: &Filter, record: &Record<'_>) -> bool {
        let RowWriter { model, conditions, scratch, stale, .. } = self;
        if record.is_stale() && !*stale {
            return false;
        }
        let name = |provider| model.store.provider_name(provider);
        filter.admits_with(record, model.context, name)
            && (conditions.is_empty() || conditions.admit(&model.row(record, true), scratch))
    }

    /// Takes the fields of a record that is selected as columns of CSV, in place of the one for all
    /// fields.
    pub fn learn_columns(&mut self, filter: &Filter, record: &Record<'_>) {
        if self.admits(filter, record)
            && let Some((schema, _)) = self.model.store.fields(record)
        {
            schema.fields.iter().for_each(|field| self.columns.add_field(&field.name));
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

/// Makes rows of records; keeps what consecutive records share.
#[derive(Clone, Debug)]
struct RowModel<'c> {
    clock: Clock,
    store: SchemaStore,
    context: Option<&'c Context<'c>>,
    /// The last second that was formatted.
    second: i64,
    /// UTC of the last record.
    time: Vec<u8>,
    /// Whether rows have seconds since the start, and those of the last record.
    relative: bool,
    seconds: Vec<u8>,
    /// The name of the file, where rows have it.
    file: Option<String>,
    /// The last provider, and its name where one is known without the trace.
    provider: Guid,
    provider_name: Option<&'static str>,
    /// The JSON members of that provider.
    provider_json: Vec<u8>,
    /// What the last event is called that no schema describes.
    number_name: String,
    /// The readable text of the last payload that was not decoded.
    payload_text: String,
}

impl<'c> RowModel<'c> {
    fn new(clock: Clock, store: SchemaStore) -> Self {
        RowModel {
            clock,
            store,
            context: None,
            second: i64::MIN,
            time: Vec::new(),
            relative: false,
            seconds: Vec::new(),
            file: None,
            provider: Guid::ZERO,
            provider_name: None,
            provider_json: Vec::new(),
            number_name: String::new(),
            payload_text: String::new(),
        }
    }

    /// The row of a record, with its schema where `decode` asks for it.
    #[inline]
    fn row<'a>(&'a mut self, record: &'a Record<'a>, decode: bool) -> Row<'a> {
        self.format_time(record.timestamp());
        let provider = record.provider();
        if let Some(provider) = provider {
            self.look_up(provider);
        }
        let RowModel { store, number_name, payload_text, context, .. } = self;
        let header = HeaderFields::of(record);
        let described = if decode { store.fields(record) } else { None };
        let (schema, mut fields) = described.unzip();
        number_name.clear();
        payload_text.clear();
        if schema.is_none() {
            header.write_number_name(number_name, record);
        }
        // A layout without any fields says nothing of a payload.
        if schema.is_none_or(|s| s.fields.is_empty()) && !record.payload().is_empty() {
            fields = None;
            if decode {
                render::readable_text(payload_text, record.payload());
            }
        }
        let header_ids = (record.process_id(), record.thread_id());
        let (process_id, thread_id) = context.map_or(header_ids, |context| context.ids(record));
        Row {
            record,
            process_id,
            thread_id,
            context: *context,
            time: &self.time,
            seconds: self.relative.then_some(&*self.seconds),
            file: self.file.as_deref(),
            provider,
            provider_name: provider.and(self.provider_name),
            store,
            provider_json: &self.provider_json,
            header,
            schema,
            fields,
            number_name,
            payload_text,
        }
    }

    /// Formats a time as UTC; all but the fraction only when the second changes.
    fn format_time(&mut self, timestamp: i64) {
        const PER_SECOND: i64 = 10_000_000;
        let filetime = self.clock.filetime(timestamp);
        if self.relative {
            let since = filetime.saturating_sub(self.clock.start_time);
            let (whole, rest) = (
                since.unsigned_abs() / PER_SECOND as u64,
                since.unsigned_abs() % PER_SECOND as u64,
            );
            self.seconds.clear();
            // Writing to a vector does not fail.
            let _ = write!(self.seconds, "{}{whole}.{rest:07}", if since < 0 { "-" } else { "" });
        }
        let second = filetime.div_euclid(PER_SECOND);
        if second != self.second || self.time.is_empty() {
            self.second = second;
            let text = etl_format::clock::iso_utc(second.saturating_mul(PER_SECOND));
            self.time.clear();
            self.time.extend(text.as_bytes());
        }
        let mut fraction = filetime.rem_euclid(PER_SECOND);
        let mut digits = *b"0000000Z";
        for digit in digits.iter_mut().rev().skip(1) {
            *digit = b'0' + (fraction % 10) as u8;
            fraction /= 10;
        }
        if let Some(end) = self.time.last_chunk_mut() {
            *end = digits;
        }
    }

    fn look_up(&mut self, provider: Guid) {
        if provider != self.provider || self.provider_json.is_empty() {
            (self.provider, self.provider_name) = (provider, providers::name(provider));
            self.provider_json.clear();
            json::write_provider(&mut self.provider_json, provider, self.provider_name);
        }
    }
}

/// A record with everything that a row of it may show.
struct Row<'a> {
    record: &'a Record<'a>,
    /// Those of the header, but of samples and stacks those that ran.
    process_id: Option<u32>,
    thread_id: Option<u32>,
    context: Option<&'a Context<'a>>,
    /// UTC, ISO 8601 with 100 ns.
    time: &'a [u8],
    /// Seconds since the start of the session, where they were asked for.
    seconds: Option<&'a [u8]>,
    file: Option<&'a str>,
    provider: Option<Guid>,
    /// The provider's name, where one is known without the trace.
    provider_name: Option<&'static str>,
    provider_json: &'a [u8],
    store: &'a SchemaStore,
    header: HeaderFields,
    schema: Option<&'a EventSchema>,
    /// The fields of the payload, where anything is known of them.
    fields: Option<Fields<'a>>,
    number_name: &'a str,
    payload_text: &'a str,
}

impl<'a> Row<'a> {
    /// The provider's name: of the tables, of the record's traits, or learned from the trace.
    fn provider_name(&self) -> Option<&'a str> {
        let provider = self.provider?;
        self.provider_name
            .or_else(|| providers::name_in_traits(self.record))
            .or_else(|| self.store.provider_name(provider))
    }

    /// The names that the trace has for the values of the event.
    fn names(&self) -> Option<EventNames<'a>> {
        Some(self.context?.names(self.process_id, self.record.timestamp()))
    }

    fn process_name(&self) -> &'a str {
        let named = self.context.zip(self.process_id);
        named.map_or("", |(context, pid)| context.process_name(pid, self.record.timestamp()))
    }

    fn thread_name(&self) -> &'a str {
        let named = self.context.zip(self.thread_id);
        named.map_or("", |(context, tid)| context.thread_name(tid, self.record.timestamp()))
    }

    /// The name of the event, or what its number is called.
    fn event_name(&self) -> &'a str {
        self.schema.map_or(self.number_name, |schema| &schema.name)
    }

    /// The provider's own name for an opcode, task or level; "" for the names that start with
    /// `win:`, which every provider has, and where the record has another value.
    #[inline]
    fn own_name<T: PartialEq + Copy + Default + 'a>(
        &self,
        value: Option<T>,
        of: impl FnOnce(&'a EventSchema) -> &'a Named<T>,
    ) -> &'a str {
        let (Some(schema), Some(value)) = (self.schema, value) else { return "" };
        let named = of(schema);
        // The tables of Windows' providers have names whose numbers are not known.
        let any = schema.source == SchemaSource::Windows && named.value == T::default();
        if named.value == value || any { own(&named.name).trim_end() } else { "" }
    }

    /// The name of the opcode; "" where the event itself is called so.
    fn opcode_name(&self) -> &'a str {
        let name = self.own_name(self.header.opcode, |schema| &schema.opcode);
        if self.event_name() == name { "" } else { name }
    }

    fn task_name(&self) -> &'a str {
        self.own_name(self.header.task, |schema| &schema.task)
    }

    fn level_name(&self) -> &'a str {
        self.own_name(self.header.level, |schema| &schema.level)
    }

    /// The message of the event with its fields in place; nothing in it is escaped.
    fn message<'s>(&self, scratch: &'s mut Vec<u8>) -> Option<&'s str> {
        let (schema, fields) = (self.schema?, self.fields.as_ref()?);
        let text = schema.message.as_deref()?;
        scratch.clear();
        if let Header::Message(header) = self.record.header() {
            let prefix = render::Prefix {
                component: &schema.provider_name,
                source: &schema.name,
                thread: header.thread_id,
                time: core::str::from_utf8(self.time).unwrap_or_default(),
                sequence: header.sequence,
                process: header.process_id,
                processor: Some(self.record.processor().into()),
                ..render::Prefix::default()
            };
            render::wpp_message(scratch, text, &prefix, fields);
        } else {
            render::plain_message(scratch, text, schema.source, fields);
        }
        let message = core::str::from_utf8(scratch).ok()?.trim();
        (!message.is_empty()).then_some(message)
    }

    fn write_kind(&self, out: &mut Vec<u8>) {
        let kind = self.record.kind();
        match kind.name() {
            Some(name) => out.extend(name.as_bytes()),
            None => out.extend(kind.to_string().as_bytes()),
        }
    }

    fn related_activity(&self) -> Option<Guid> {
        self.record.extended().find_map(|item| match item {
            ExtendedItem::RelatedActivity(id) => Some(id),
            _ => None,
        })
    }
}

/// A name, unless it is one of those that every provider has: they start with `win:`.
fn own(name: &str) -> &str {
    if name.starts_with("win:") { "" } else { name }
}

/// Defines the columns with their names, which are the keys of JSON as well.
macro_rules! columns {
    ($($column:ident $name:literal,)*) => {
        /// A column that every event can fill.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Column { $($column,)* }

        impl Column {
            /// All columns; those of CSV without `--columns` come first, after `file`.
            const ALL: &'static [Column] = &[$(Column::$column,)*];

            const fn name(self) -> &'static str {
                match self { $(Column::$column => $name,)* }
            }

            /// The beginning of a JSON member.
            #[inline(always)]
            const fn json_key(self) -> &'static str {
                match self { $(Column::$column => concat!(",\"", $name, "\":"),)* }
            }
        }
    };
}

columns! {
    File "file",
    Time "time",
    Timestamp "timestamp",
    Cpu "cpu",
    Kind "kind",
    Pid "pid",
    ProcessName "process_name",
    Tid "tid",
    ThreadName "thread_name",
    ProviderGuid "provider_guid",
    Provider "provider",
    Hook "hook",
    Id "id",
    Version "version",
    Opcode "opcode",
    Task "task",
    Level "level",
    Keyword "keyword",
    Activity "activity",
    Event "event",
    Fields "fields",
    Message "message",
    PayloadSize "payload_size",
    PayloadText "payload_text",
    Payload "payload",
    Channel "channel",
    RelatedActivity "related_activity",
    OpcodeName "opcode_name",
    TaskName "task_name",
    LevelName "level_name",
    Keywords "keywords",
}

/// A value of a column.
enum Cell<'a> {
    None,
    Number(u64),
    Signed(i64),
    Hex(u64),
    Guid(Guid),
    Text(&'a str),
}

impl Cell<'_> {
    #[inline(always)]
    fn number<T: Into<u64>>(value: Option<T>) -> Self {
        value.map_or(Cell::None, |value| Cell::Number(value.into()))
    }

    /// Writes the value, with `quote` around what is neither a number nor text.
    #[inline(always)]
    fn write(self, out: &mut Vec<u8>, quote: &[u8], text: impl FnOnce(&mut Vec<u8>, &str)) {
        match self {
            Cell::None => {}
            Cell::Number(n) => decimal(out, n),
            Cell::Signed(n) => signed(out, n),
            Cell::Hex(n) => {
                out.extend(quote);
                hexadecimal(out, n);
                out.extend(quote);
            }
            Cell::Guid(guid) => {
                out.extend(quote);
                out.extend(guid.to_ascii());
                out.extend(quote);
            }
            Cell::Text(value) => text(out, value),
        }
    }
}

impl<'a> Row<'a> {
    /// The value of a column; `None` for those that are lists or are put together elsewhere.
    #[inline(always)]
    fn cell(&self, column: Column) -> Cell<'a> {
        let (record, header) = (self.record, &self.header);
        let guid = |guid: Option<Guid>| guid.map_or(Cell::None, Cell::Guid);
        let text = |text: &'a str| if text.is_empty() { Cell::None } else { Cell::Text(text) };
        match column {
            Column::File => self.file.map_or(Cell::None, Cell::Text),
            Column::Timestamp => Cell::Signed(record.timestamp()),
            Column::Cpu => Cell::Number(record.processor().into()),
            Column::Pid => Cell::number(self.process_id),
            Column::ProcessName => text(self.process_name()),
            Column::Tid => Cell::number(self.thread_id),
            Column::ThreadName => text(self.thread_name()),
            Column::ProviderGuid => guid(self.provider),
            Column::Provider => self.provider_name().map_or(Cell::None, Cell::Text),
            Column::Hook => Cell::number(header.hook),
            Column::Id => Cell::number(header.id),
            Column::Version => Cell::number(header.version),
            Column::Opcode => Cell::number(header.opcode),
            Column::OpcodeName => text(self.opcode_name()),
            Column::Task => Cell::number(header.task),
            Column::TaskName => text(self.task_name()),
            Column::Level => Cell::number(header.level),
            Column::LevelName => text(self.level_name()),
            Column::Keyword => header.keyword.map_or(Cell::None, Cell::Hex),
            Column::Activity => guid(header.activity),
            Column::RelatedActivity => guid(self.related_activity()),
            Column::Channel => Cell::number(header.channel),
            Column::Event => text(self.event_name()),
            Column::PayloadText => text(self.payload_text),
            Column::PayloadSize => Cell::Number(record.payload().len() as u64),
            Column::Time
            | Column::Kind
            | Column::Fields
            | Column::Payload
            | Column::Message
            | Column::Keywords => Cell::None,
        }
    }
}
