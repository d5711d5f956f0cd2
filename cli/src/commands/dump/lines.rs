//! One record as one line: text, JSON or CSV, without allocating.

use etl_format::constants::group_name;
use etl_format::read::{ExtendedItem, Header, Record};
use etl_format::{Clock, Guid};
use etl_schema::decode::{Fields, Sid};
use etl_schema::store::SchemaStore;
use etl_schema::{EventSchema, render};

use crate::escape;
use crate::names;
use crate::output::{decimal, hex, hexadecimal, signed};

use super::Format;

/// Columns of the CSV form.
const COLUMNS: &str = "time,stamp,cpu,kind,pid,tid,provider,name,hook,id,version,opcode,task,level,keyword,activity,payload_size,payload";

/// Writes records as lines.
#[derive(Debug)]
pub(super) struct Lines {
    format: Format,
    raw: bool,
    clock: Clock,
    /// The last second that was formatted, and its text up to the fraction.
    second: i64,
    second_text: String,
    /// Where the fields of events are described.
    store: SchemaStore,
    /// The provider looked up last, and its name.
    provider: Guid,
    provider_name: Option<&'static str>,
    /// The JSON members that name that provider, for the events in a row that share it.
    provider_json: Vec<u8>,
    /// Where a message is put together before it is escaped.
    scratch: Vec<u8>,
}

/// What a line says, taken from whatever kind of header the record has.
#[derive(Default)]
struct Facts {
    hook: Option<u16>,
    id: Option<u16>,
    version: Option<u16>,
    opcode: Option<u8>,
    task: Option<u16>,
    level: Option<u8>,
    keyword: Option<u64>,
    activity: Option<Guid>,
}

impl Facts {
    fn of(record: &Record<'_>) -> Self {
        let mut facts = Facts::default();
        match record.header() {
            Header::Event(h) => {
                let d = h.descriptor;
                facts.id = Some(d.id);
                facts.version = Some(d.version.into());
                facts.opcode = Some(d.opcode);
                facts.task = Some(d.task);
                facts.level = Some(d.level);
                facts.keyword = Some(d.keyword);
                facts.activity = Some(h.activity).filter(|a| !a.is_zero());
            }
            Header::Full(h) => facts.classic(h.opcode, h.version, h.level),
            Header::Instance(h) => facts.classic(h.full.opcode, h.full.version, h.full.level),
            Header::Message(h) => facts.id = Some(h.number),
            Header::System(h) => facts.kernel(h.hook, h.version & 0xff),
            Header::PerfInfo(h) => facts.kernel(h.hook, h.version().into()),
            _ => {}
        }
        facts
    }

    fn classic(&mut self, opcode: u8, version: u16, level: u8) {
        (self.opcode, self.version, self.level) = (Some(opcode), Some(version), Some(level));
    }

    fn kernel(&mut self, hook: u16, version: u16) {
        (self.hook, self.opcode, self.version) = (Some(hook), Some(hook as u8), Some(version));
    }
}

impl Lines {
    pub fn new(format: Format, raw: bool, clock: Clock, store: SchemaStore) -> Self {
        Lines {
            format,
            raw,
            clock,
            second: i64::MIN,
            second_text: String::new(),
            store,
            provider: Guid::ZERO,
            provider_name: None,
            provider_json: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// What stands before the first record.
    pub fn header(&self, out: &mut Vec<u8>) {
        if self.format == Format::Csv {
            out.extend(COLUMNS.as_bytes());
            out.push(b'\n');
        }
    }

    /// Takes from a record what it says of others: schemas travel in the trace.
    #[inline]
    pub fn learn(&mut self, record: &Record<'_>) {
        self.store.learn(record);
    }

    /// Writes one record and a line feed.
    pub fn line(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        match self.format {
            Format::Text => self.text(out, record),
            Format::Jsonl => self.json(out, record),
            Format::Csv => self.csv(out, record),
        }
        out.push(b'\n');
    }

    /// UTC of a record. Events come in bunches, so all but the fraction is formatted once a second.
    fn time(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        const PER_SECOND: i64 = 10_000_000;
        let filetime = self.clock.filetime(record.stamp());
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

    fn name<'a>(&mut self, record: &Record<'a>, provider: Guid) -> Option<&'a str> {
        if provider != self.provider || self.provider_json.is_empty() {
            (self.provider, self.provider_name) = (provider, names::provider(provider));
            self.provider_json.clear();
            self.provider_json.extend(b",\"provider\":\"");
            self.provider_json.extend(provider.to_ascii());
            self.provider_json.push(b'"');
            if let Some(name) = self.provider_name {
                self.provider_json.extend(b",\"name\":");
                escape::json(&mut self.provider_json, name);
            }
        }
        self.provider_name.or_else(|| names::from_traits(record))
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
            match self.name(record, provider) {
                Some(name) => escape::line(out, name),
                None => out.extend(provider.to_ascii()),
            }
        } else if let Some(name) = facts.hook.and_then(|hook| group_name((hook >> 8) as u8)) {
            out.extend(name.as_bytes());
        }
        let mut number = |name: &str, value: Option<u64>| {
            if let Some(value) = value {
                out.extend(name.as_bytes());
                decimal(out, value);
            }
        };
        number(" id ", facts.id.map(u64::from));
        number(" v", facts.version.map(u64::from));
        number(" opcode ", facts.opcode.map(u64::from));
        number(" task ", facts.task.map(u64::from));
        number(" level ", facts.level.map(u64::from));
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
        let described = self.store.fields(record);
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
            if let Some(message) = message(&mut self.scratch, schema, &start) {
                out.extend(b"  ");
                // Line breaks and tabs of the message's own; those of values are escaped already.
                out.extend(message.iter().map(|&b| if b < b' ' { b' ' } else { b }));
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
        signed(out, record.stamp());
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
            let name = self.name(record, provider);
            out.extend(&self.provider_json);
            if let Some(name) = name.filter(|_| self.provider_name.is_none()) {
                out.extend(b",\"name\":");
                escape::json(out, name);
            }
        }
        number(out, ",\"hook\":", facts.hook.map(u64::from));
        number(out, ",\"id\":", facts.id.map(u64::from));
        number(out, ",\"version\":", facts.version.map(u64::from));
        number(out, ",\"opcode\":", facts.opcode.map(u64::from));
        number(out, ",\"task\":", facts.task.map(u64::from));
        number(out, ",\"level\":", facts.level.map(u64::from));
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
        if let Some((schema, mut fields)) = self.store.fields(record) {
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
            if let Some(message) = message(&mut self.scratch, schema, &start) {
                out.extend(b",\"message\":");
                escape::json(out, &String::from_utf8_lossy(message));
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

    fn csv(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        let facts = Facts::of(record);
        self.time(out, record);
        out.push(b',');
        signed(out, record.stamp());
        out.push(b',');
        decimal(out, record.processor().into());
        out.push(b',');
        out.extend(record.kind().to_string().as_bytes());
        let number = |out: &mut Vec<u8>, value: Option<u64>| {
            out.push(b',');
            if let Some(value) = value {
                decimal(out, value);
            }
        };
        number(out, record.process_id().map(u64::from));
        number(out, record.thread_id().map(u64::from));
        out.push(b',');
        let provider = record.provider();
        if let Some(provider) = provider {
            out.extend(provider.to_ascii());
        }
        out.push(b',');
        if let Some(name) = provider.and_then(|p| self.name(record, p)) {
            escape::csv(out, name);
        }
        number(out, facts.hook.map(u64::from));
        number(out, facts.id.map(u64::from));
        number(out, facts.version.map(u64::from));
        number(out, facts.opcode.map(u64::from));
        number(out, facts.task.map(u64::from));
        number(out, facts.level.map(u64::from));
        out.push(b',');
        if let Some(keyword) = facts.keyword {
            hexadecimal(out, keyword);
        }
        out.push(b',');
        if let Some(activity) = facts.activity {
            out.extend(activity.to_ascii());
        }
        let payload = record.payload();
        number(out, Some(payload.len() as u64));
        out.push(b',');
        if self.raw {
            hex(out, payload);
        }
    }
}

/// The message of an event with the fields in it, if it has one.
fn message<'s>(
    scratch: &'s mut Vec<u8>,
    schema: &EventSchema,
    fields: &Fields<'_>,
) -> Option<&'s [u8]> {
    let text = schema.message.as_deref()?;
    scratch.clear();
    render::message(scratch, text, schema.source, fields);
    let message = scratch.trim_ascii();
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
