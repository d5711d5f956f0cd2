//! CSV: the columns that are printed, and a record as one line of them.

use std::cell::Cell;

use etl_format::Guid;
use etl_format::read::{ExtendedItem, Record};
use etl_schema::decode::{Fields, Value};
use etl_schema::{EventSchema, Field, render};

use crate::escape;
use crate::output::{decimal, hex, hexadecimal, signed};

use super::facts::Facts;
use super::lines::{Lines, Names, message};

/// A column that every event can fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Time,
    Timestamp,
    Cpu,
    Kind,
    Pid,
    Tid,
    Provider,
    Name,
    Hook,
    Id,
    Version,
    Opcode,
    Task,
    Level,
    Keyword,
    Activity,
    PayloadSize,
    Payload,
    Channel,
    RelatedActivity,
    Event,
    Message,
    OpcodeName,
    TaskName,
    LevelName,
    Keywords,
}

impl Known {
    /// Whether a description of the event is what fills it.
    fn is_described(self) -> bool {
        use Known::{Event, Keywords, LevelName, Message, OpcodeName, TaskName};
        matches!(self, Event | Message | OpcodeName | TaskName | LevelName | Keywords)
    }
}

/// The names of columns; those that are printed when none are named come first.
const KNOWN: [(&str, Known); 26] = [
    ("time", Known::Time),
    ("stamp", Known::Timestamp),
    ("cpu", Known::Cpu),
    ("kind", Known::Kind),
    ("pid", Known::Pid),
    ("tid", Known::Tid),
    ("provider", Known::Provider),
    ("name", Known::Name),
    ("hook", Known::Hook),
    ("id", Known::Id),
    ("version", Known::Version),
    ("opcode", Known::Opcode),
    ("task", Known::Task),
    ("level", Known::Level),
    ("keyword", Known::Keyword),
    ("activity", Known::Activity),
    ("payload_size", Known::PayloadSize),
    ("payload", Known::Payload),
    ("channel", Known::Channel),
    ("related_activity", Known::RelatedActivity),
    ("event", Known::Event),
    ("message", Known::Message),
    ("opcode_name", Known::OpcodeName),
    ("task_name", Known::TaskName),
    ("level_name", Known::LevelName),
    ("keywords", Known::Keywords),
];

/// Columns that are printed when none are named.
const USUAL: usize = 18;

/// What stands before the name of a field that is called as a column is.
const FIELD_PREFIX: &str = "fields.";

#[derive(Clone, Debug)]
enum Column {
    Known(Known),
    /// A decoded field, by name.
    Field {
        name: String,
        /// Whether any event had it.
        seen: Cell<bool>,
    },
}

/// The columns that are printed, in order.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// The header line.
    header: Vec<String>,
    columns: Vec<Column>,
    /// Whether any column needs the payload decoded.
    decodes: bool,
    /// Whether they were named, so that each is to be filled.
    named: bool,
}

impl Default for Columns {
    fn default() -> Self {
        let usual = KNOWN.iter().take(USUAL);
        Columns {
            header: usual.clone().map(|(name, _)| (*name).to_owned()).collect(),
            columns: usual.map(|(_, known)| Column::Known(*known)).collect(),
            decodes: false,
            named: false,
        }
    }
}

impl Columns {
    /// The columns with these names.
    pub fn new(names: &[String]) -> Result<Self, &'static str> {
        let mut columns = Vec::new();
        for name in names {
            if name.trim().is_empty() {
                return Err("a column without a name");
            }
            let known = KNOWN.iter().find(|(n, _)| n == name).map(|(_, known)| *known);
            columns.push(known.map_or_else(
                || Column::Field {
                    name: name.strip_prefix(FIELD_PREFIX).unwrap_or(name).to_owned(),
                    seen: Cell::new(false),
                },
                Column::Known,
            ));
        }
        let decodes = |c: &Column| match c {
            Column::Field { .. } => true,
            Column::Known(known) => known.is_described(),
        };
        Ok(Columns {
            header: names.to_vec(),
            decodes: columns.iter().any(decodes),
            columns,
            named: true,
        })
    }

    /// Writes the header line.
    pub fn header(&self, out: &mut Vec<u8>) {
        for (i, name) in self.header.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            escape::csv(out, name);
        }
        out.push(b'\n');
    }

    /// Takes over which fields were met by one who printed other events in the same columns.
    pub fn take_seen(&self, other: &Columns) {
        for pair in self.columns.iter().zip(&other.columns) {
            if let (Column::Field { seen, .. }, Column::Field { seen: too, .. }) = pair {
                seen.set(seen.get() || too.get());
            }
        }
    }

    /// Fields that no event had.
    pub fn without_values(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter_map(|column| match column {
            Column::Field { name, seen } if !seen.get() => Some(name.as_str()),
            _ => None,
        })
    }
}

/// The field with this name, exactly if there is one, else whatever the case of its letters.
fn find<'a>(fields: &Fields<'a>, name: &str) -> Option<(&'a Field, Value<'a>)> {
    let exact = fields.clone().find(|(field, _)| field.name == name);
    exact.or_else(|| fields.clone().find(|(field, _)| field.name.eq_ignore_ascii_case(name)))
}

impl Lines {
    /// Writes a record as a line of CSV, without its end.
    pub(super) fn csv(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        if let Some(provider) = record.provider() {
            self.look_up(provider);
        }
        let mut time = core::mem::take(&mut self.time_scratch);
        time.clear();
        self.time(&mut time, record);
        let mut scratch = core::mem::take(&mut self.scratch);
        let facts = Facts::of(record);
        let decoded = if self.columns.decodes { self.store.fields(record) } else { None };
        for (i, column) in self.columns.columns.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            match column {
                // Before the year 0 it begins as a formula does.
                Column::Known(Known::Time) if time.starts_with(b"-") => {
                    escape::csv(out, core::str::from_utf8(&time).unwrap_or_default());
                }
                Column::Known(Known::Time) => out.extend(&time),
                Column::Known(known) => {
                    self.known(out, *known, record, &facts, decoded.as_ref(), &mut scratch);
                }
                Column::Field { name, seen } => {
                    let found = decoded.as_ref().and_then(|(_, fields)| find(fields, name));
                    if let Some((field, value)) = found {
                        seen.set(true);
                        cell(out, field, value, &mut scratch);
                    }
                }
            }
        }
        (self.time_scratch, self.scratch) = (time, scratch);
    }

    fn known(
        &self,
        out: &mut Vec<u8>,
        column: Known,
        record: &Record<'_>,
        facts: &Facts,
        decoded: Option<&(&EventSchema, Fields<'_>)>,
        scratch: &mut Vec<u8>,
    ) {
        let number = |value: Option<u64>| (value, false);
        let (value, hexadecimally) = match column {
            Known::Time => return,
            Known::Timestamp => return signed(out, record.timestamp()),
            Known::Kind => return out.extend(record.kind().to_string().as_bytes()),
            Known::Provider => return guid(out, record.provider()),
            Known::Activity => return guid(out, facts.activity),
            Known::RelatedActivity => {
                let related = record.extended().find_map(|item| match item {
                    ExtendedItem::RelatedActivity(id) => Some(id),
                    _ => None,
                });
                return guid(out, related);
            }
            Known::Name => {
                if let Some(name) = record.provider().and_then(|_| self.name(record)) {
                    escape::csv(out, name);
                }
                return;
            }
            Known::Payload => {
                // The usual columns hold it only where it was asked for.
                if self.raw || self.columns.named {
                    hex(out, record.payload());
                }
                return;
            }
            Known::Event => {
                return escape::csv(out, decoded.map_or("", |(schema, _)| &schema.name));
            }
            Known::OpcodeName | Known::TaskName | Known::LevelName => {
                let names = Names::of(decoded.map(|(schema, _)| *schema), facts);
                return escape::csv(
                    out,
                    match column {
                        Known::OpcodeName => names.opcode,
                        Known::TaskName => names.task,
                        _ => names.level,
                    },
                );
            }
            Known::Keywords => {
                let names = decoded.map_or(&[][..], |(schema, _)| &schema.keyword_names);
                return escape::csv(out, &names.join("|"));
            }
            Known::Message => {
                if let Some((schema, fields)) = decoded
                    && let Some(message) = message(scratch, schema, fields, record, &self.clock)
                {
                    escape::csv(out, message);
                }
                return;
            }
            Known::Cpu => number(Some(record.processor().into())),
            Known::Pid => number(record.process_id().map(u64::from)),
            Known::Tid => number(record.thread_id().map(u64::from)),
            Known::Hook => number(facts.hook.map(u64::from)),
            Known::Id => number(facts.id.map(u64::from)),
            Known::Version => number(facts.version.map(u64::from)),
            Known::Opcode => number(facts.opcode.map(u64::from)),
            Known::Task => number(facts.task.map(u64::from)),
            Known::Level => number(facts.level.map(u64::from)),
            Known::Channel => number(facts.channel.map(u64::from)),
            Known::PayloadSize => number(Some(record.payload().len() as u64)),
            Known::Keyword => (facts.keyword, true),
        };
        match value {
            Some(value) if hexadecimally => hexadecimal(out, value),
            Some(value) => decimal(out, value),
            None => {}
        }
    }
}

fn guid(out: &mut Vec<u8>, guid: Option<Guid>) {
    out.extend(guid.iter().flat_map(|g| g.to_ascii()));
}

/// A decoded value.
fn cell(out: &mut Vec<u8>, field: &Field, value: Value<'_>, scratch: &mut Vec<u8>) {
    let mut text = Vec::new();
    render::plain_value(field, value, scratch, &mut |c| text.push(c));
    escape::csv_chars(out, text.iter().copied());
}
