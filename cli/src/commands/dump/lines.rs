//! One record as one line: text or JSON, without allocating; CSV and XML stand beside this.

use etl_format::constants::group_name;
use etl_format::read::{ExtendedItem, Header, Record};
use etl_format::{Clock, Guid};
use etl_schema::decode::{Fields, Sid};
use etl_schema::store::SchemaStore;
use etl_schema::{EventSchema, render};

use crate::escape;
use crate::filter::Filter;
use crate::output::{decimal, hex, hexadecimal, signed};
use etl_schema::providers;

use super::Format;
use super::columns::Columns;
use super::facts::Facts;
use super::xml;

/// Writes records as lines.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    pub(super) format: Format,
    pub(super) raw: bool,
    pub(super) columns: Columns,
    pub(super) clock: Clock,
    /// The last second that was formatted, and its text up to the fraction.
    second: i64,
    second_text: String,
    /// Where the fields of events are described.
    pub(super) store: SchemaStore,
    /// The provider looked up last, and its name.
    provider: Guid,
    provider_name: Option<&'static str>,
    /// The JSON members that name that provider, for the events in a row that share it.
    provider_json: Vec<u8>,
    /// Where a message is put together before it is escaped.
    pub(super) scratch: Vec<u8>,
    /// Where the time of a line is put together before its place is known.
    pub(super) time_scratch: Vec<u8>,
}

impl Lines {
    pub fn new(
        format: Format,
        raw: bool,
        columns: Columns,
        clock: Clock,
        store: SchemaStore,
    ) -> Self {
        Lines {
            format,
            raw,
            columns,
            clock,
            second: i64::MIN,
            second_text: String::new(),
            store,
            provider: Guid::ZERO,
            provider_name: None,
            provider_json: Vec::new(),
            scratch: Vec::new(),
            time_scratch: Vec::new(),
        }
    }

    /// What stands before the first record.
    pub fn header(&self, out: &mut Vec<u8>) {
        match self.format {
            Format::Csv => self.columns.header(out),
            Format::Xml => xml::begin(out),
            Format::Text | Format::Jsonl => {}
        }
    }

    /// What stands behind the last record.
    pub fn footer(&self, out: &mut Vec<u8>) {
        if self.format == Format::Xml {
            xml::end(out);
        }
    }

    /// Columns of fields that no event had.
    pub fn columns_without_values(&self) -> impl Iterator<Item = &str> {
        self.columns.without_values()
    }

    /// Takes from a record what it says of others: schemas travel in the trace.
    #[inline]
    pub fn learn(&mut self, record: &Record<'_>) {
        self.store.learn(record);
    }

    /// Writes a record and a line feed, if it is among those that are asked for; whether it is.
    #[inline]
    pub fn line_if(&mut self, filter: &Filter, out: &mut Vec<u8>, record: &Record<'_>) -> bool {
        let admitted = filter.admits_called(record, |provider| self.store.provider_name(provider));
        if admitted {
            self.line(out, record);
        }
        admitted
    }

    /// Writes one record and a line feed.
    pub fn line(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        match self.format {
            Format::Text => self.text(out, record),
            Format::Jsonl => self.json(out, record),
            Format::Csv => self.csv(out, record),
            Format::Xml => self.xml(out, record),
        }
        out.push(b'\n');
    }

    /// UTC of a record. Events come in bunches, so all but the fraction is formatted once a second.
    pub(super) fn time(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        const PER_SECOND: i64 = 10_000_000;
        let filetime = self.clock.filetime(record.timestamp());
        let second = filetime.div_euclid(PER_SECOND);
        if second != self.second || self.second_text.is_empty() {
            self.second = second;
            self.second_text = etl_format::clock::iso_utc(second.saturating_mul(PER_SECOND));
            self.second_text.truncate(self.second_text.len().saturating_sub("0000000Z".len()));
        }
        out.extend(self.second_text.as_bytes());
        let mut fraction = filetime.rem_euclid(PER_SECOND);
        let mut digits = *b"0000000Z";
        for digit in digits.iter_mut().rev().skip(1) {
            *digit = b'0' + (fraction % 10) as u8;
            fraction /= 10;
        }
        out.extend(digits);
    }

    /// Looks up the name of a provider; events in a row often share theirs.
    pub(super) fn look_up(&mut self, provider: Guid) {
        if provider != self.provider || self.provider_json.is_empty() {
            (self.provider, self.provider_name) = (provider, providers::name(provider));
            self.provider_json.clear();
            self.provider_json.extend(b",\"provider\":\"");
            self.provider_json.extend(provider.to_ascii());
            self.provider_json.push(b'"');
            if let Some(name) = self.provider_name {
                self.provider_json.extend(b",\"name\":");
                escape::json(&mut self.provider_json, name);
            }
        }
    }

    /// The name of the provider that was looked up: known beforehand, told by the record, or by
    /// another one before it.
    pub(super) fn name<'a>(&'a self, record: &Record<'a>) -> Option<&'a str> {
        self.provider_name
            .or_else(|| providers::name_in_traits(record))
            .or_else(|| self.store.provider_name(self.provider))
    }

    fn text(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        let facts = Facts::of(record);
        self.time(out, record);
        out.extend(b"  cpu ");
        decimal(out, record.processor().into());
        if let (Some(pid), Some(tid)) = (record.process_id(), record.thread_id()) {
            out.extend(b"  pid ");
            decimal(out, pid.into());
            out.extend(b" tid ");
            decimal(out, tid.into());
        }
        out.extend(b"  ");
        out.extend(record.kind().to_string().as_bytes());
        out.push(b' ');
        if let Some(provider) = record.provider() {
            self.look_up(provider);
            match self.name(record) {
                Some(name) => escape::line(out, name),
                None => out.extend(provider.to_ascii()),
            }
        } else if let Some(name) = facts.hook.and_then(|hook| group_name((hook >> 8) as u8)) {
            out.extend(name.as_bytes());
        }
        let described = self.store.fields(record);
        let names = Names::of(described.as_ref().map(|(schema, _)| *schema), &facts);
        let mut number = |what: &str, value: Option<u64>, name: &str| {
            if let Some(value) = value {
                out.extend(what.as_bytes());
                decimal(out, value);
                if !name.is_empty() {
                    out.push(b' ');
                    escape::line(out, name);
                }
            }
        };
        number(" id ", facts.id.map(u64::from), "");
        number(" v", facts.version.map(u64::from), "");
        number(" opcode ", facts.opcode.map(u64::from), names.opcode);
        number(" task ", facts.task.map(u64::from), names.task);
        number(" level ", facts.level.map(u64::from), names.level);
        if let Some(hook) = facts.hook {
            out.extend(b" hook ");
            hexadecimal(out, hook.into());
        }
        if let Some(keyword) = facts.keyword {
            out.extend(b" keyword ");
            hexadecimal(out, keyword);
        }
        if let Some(activity) = facts.activity {
            out.extend(b" activity ");
            out.extend(activity.to_ascii());
        }
        let payload = record.payload();
        if let Some((schema, _)) = described {
            out.push(b' ');
            escape::line(out, &schema.name);
        }
        if self.raw {
            out.extend(b"  ");
            hex(out, payload);
        } else if let Some((schema, mut fields)) = described {
            let start = fields.clone();
            render::text_fields(out, &mut fields);
            if fields.note().is_short() {
                out.extend(b" (cut short)");
            } else if !fields.note().trailing.is_empty() {
                out.extend(
                    format!(" (and {} bytes more)", fields.note().trailing.len()).as_bytes(),
                );
            }
            if let Some(message) = message(&mut self.scratch, schema, &start, record, &self.clock) {
                out.extend(b"  ");
                escape::line(out, &message.replace(['\r', '\n', '\t'], " "));
            }
        } else {
            out.extend(b"  ");
            decimal(out, payload.len() as u64);
            out.extend(b" bytes");
        }
    }

    fn json(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        let facts = Facts::of(record);
        out.extend(b"{\"time\":\"");
        self.time(out, record);
        out.extend(b"\",\"stamp\":");
        signed(out, record.timestamp());
        out.extend(b",\"cpu\":");
        decimal(out, record.processor().into());
        out.extend(b",\"kind\":\"");
        match record.kind().name() {
            Some(name) => out.extend(name.as_bytes()),
            None => out.extend(record.kind().to_string().as_bytes()),
        }
        out.push(b'"');
        let number = |out: &mut Vec<u8>, name: &str, value: Option<u64>| {
            if let Some(value) = value {
                out.extend(name.as_bytes());
                decimal(out, value);
            }
        };
        number(out, ",\"pid\":", record.process_id().map(u64::from));
        number(out, ",\"tid\":", record.thread_id().map(u64::from));
        if let Some(provider) = record.provider() {
            self.look_up(provider);
            out.extend(&self.provider_json);
            if self.provider_name.is_none()
                && let Some(name) = self.name(record)
            {
                out.extend(b",\"name\":");
                escape::json(out, name);
            }
        }
        number(out, ",\"hook\":", facts.hook.map(u64::from));
        number(out, ",\"id\":", facts.id.map(u64::from));
        number(out, ",\"version\":", facts.version.map(u64::from));
        let described = self.store.fields(record);
        let names = Names::of(described.as_ref().map(|(schema, _)| *schema), &facts);
        let named = |out: &mut Vec<u8>, member: &str, value: Option<u64>, name: &str| {
            number(out, member, value);
            if value.is_some() && !name.is_empty() {
                // `,"task":` becomes `,"task_name":`.
                out.extend(member.trim_end_matches("\":").as_bytes());
                out.extend(b"_name\":");
                escape::json(out, name);
            }
        };
        named(out, ",\"opcode\":", facts.opcode.map(u64::from), names.opcode);
        named(out, ",\"task\":", facts.task.map(u64::from), names.task);
        named(out, ",\"level\":", facts.level.map(u64::from), names.level);
        if let Some(keyword) = facts.keyword {
            out.extend(b",\"keyword\":\"");
            hexadecimal(out, keyword);
            out.push(b'"');
        }
        if let Some(activity) = facts.activity {
            out.extend(b",\"activity\":\"");
            out.extend(activity.to_ascii());
            out.push(b'"');
        }
        for item in record.extended() {
            json_item(out, &item);
        }
        if let Some((schema, mut fields)) = described {
            out.extend(b",\"event\":");
            escape::json(out, &schema.name);
            out.extend(b",\"fields\":");
            let start = fields.clone();
            render::json_fields(out, &mut fields);
            if fields.note().is_short() {
                out.extend(b",\"payload_short\":true");
            }
            number(
                out,
                ",\"payload_left\":",
                Some(fields.note().trailing.len() as u64).filter(|&n| n > 0),
            );
            if let Some(message) = message(&mut self.scratch, schema, &start, record, &self.clock) {
                out.extend(b",\"message\":");
                escape::json(out, message);
            }
        }
        let payload = record.payload();
        out.extend(b",\"payload_size\":");
        decimal(out, payload.len() as u64);
        if self.raw {
            out.extend(b",\"payload\":\"");
            hex(out, payload);
            out.push(b'"');
        }
        out.push(b'}');
    }
}

/// What the numbers of an event are called, beyond what everybody calls them.
#[derive(Clone, Copy, Default)]
pub(super) struct Names<'a> {
    pub opcode: &'a str,
    pub task: &'a str,
    pub level: &'a str,
}

impl<'a> Names<'a> {
    /// Those that a description has for what a record says.
    pub fn of(schema: Option<&'a EventSchema>, facts: &Facts) -> Self {
        let Some(schema) = schema else { return Names::default() };
        // Those that start with `win:` everybody has, and an opcode may be all that an event is
        // called by.
        let own = |name: &'a str, is_it: bool| {
            if !is_it || name.starts_with("win:") { "" } else { name.trim_end() }
        };
        let opcode = own(&schema.opcode.name, facts.opcode == Some(schema.opcode.value));
        Names {
            opcode: if opcode == schema.name { "" } else { opcode },
            task: own(&schema.task.name, facts.task == Some(schema.task.value)),
            level: own(&schema.level.name, facts.level == Some(schema.level.value)),
        }
    }
}

/// The message of an event with the fields in it, if it has one; nothing in it is escaped.
pub(super) fn message<'s>(
    scratch: &'s mut Vec<u8>,
    schema: &EventSchema,
    fields: &Fields<'_>,
    record: &Record<'_>,
    clock: &Clock,
) -> Option<&'s str> {
    let text = schema.message.as_deref()?;
    scratch.clear();
    if let Header::Message(header) = record.header() {
        let time = etl_format::clock::iso_utc(clock.filetime(record.timestamp()));
        let prefix = render::Prefix {
            component: &schema.provider_name,
            source: &schema.name,
            thread: header.thread_id,
            time: &time,
            sequence: header.sequence,
            process: header.process_id,
            processor: Some(record.processor().into()),
            ..render::Prefix::default()
        };
        render::wpp_message(scratch, text, &prefix, fields);
    } else {
        render::plain_message(scratch, text, schema.source, fields);
    }
    let message = core::str::from_utf8(scratch).ok()?.trim();
    (!message.is_empty()).then_some(message)
}

fn json_item(out: &mut Vec<u8>, item: &ExtendedItem<'_>) {
    match item {
        ExtendedItem::RelatedActivity(id) => {
            out.extend(b",\"related_activity\":\"");
            out.extend(id.to_ascii());
            out.push(b'"');
        }
        ExtendedItem::Stack(stack) => {
            out.extend(b",\"stack\":[");
            for (i, address) in stack.addresses().enumerate() {
                out.extend(if i == 0 { &b"\""[..] } else { &b",\""[..] });
                hexadecimal(out, address);
                out.push(b'"');
            }
            out.push(b']');
        }
        ExtendedItem::Sid(sid) => {
            out.extend(b",\"sid\":\"");
            render::sid(out, Sid(sid));
            out.push(b'"');
        }
        ExtendedItem::TerminalSession(id) => {
            out.extend(b",\"terminal_session\":");
            decimal(out, (*id).into());
        }
        _ => {}
    }
}
