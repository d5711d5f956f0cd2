//! XML: records in the shape of the Event schema, as tracerpt and wevtutil write events.
//!
//! What XML cannot hold is written as `_xHHHH_`, the convention of .NET's `XmlConvert`; text that
//! looks like that by itself gets its first `_` written so.

use etl_format::Guid;
use etl_format::constants::{EventFlags, group_name};
use etl_format::read::{ExtendedItem, Header, Record};
use etl_schema::decode::{Fields, Sid, Value};
use etl_schema::providers::KERNEL_TRACE;
use etl_schema::{EventSchema, Field, SchemaSource, render};

use crate::output::{decimal, hex, hexadecimal};

use super::facts::Facts;
use super::lines::{Lines, message};

/// The namespace of events.
const EVENT: &str = "http://schemas.microsoft.com/win/2004/08/events/event";
/// The namespace of what traces say beyond events of a log.
const TRACE: &str = "http://schemas.microsoft.com/win/2004/08/events/trace";

/// The process and thread of events that have none.
const NOBODY: u32 = u32::MAX;

/// `ERROR_EVT_EVENT_TEMPLATE_NOT_FOUND`: nobody described the event.
const NOT_DESCRIBED: u64 = 15_003;
/// `ERROR_EVT_INVALID_EVENT_DATA`: the payload is not as described.
const NOT_AS_DESCRIBED: u64 = 15_005;

/// Writes what stands before the first event.
pub(super) fn begin(out: &mut Vec<u8>) {
    out.extend(b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<Events>\n");
}

/// Writes what stands behind the last event.
pub(super) fn end(out: &mut Vec<u8>) {
    out.extend(b"</Events>\n");
}

/// Writes text for an element or an attribute.
struct Escaper<'o> {
    out: &'o mut Vec<u8>,
    /// How much of something that looks like `_xHHHH_` has been seen and not been written yet.
    held: String,
}

impl<'o> Escaper<'o> {
    fn new(out: &'o mut Vec<u8>) -> Self {
        Escaper { out, held: String::new() }
    }

    fn push(&mut self, c: Result<char, u16>) {
        if let Ok(c) = c
            && self.leads_on(c)
        {
            self.held.push(c);
            if self.held.len() == "_xHHHH_".len() {
                self.out.extend(b"_x005F");
                self.out.extend(self.held.trim_end_matches('_').as_bytes());
                // The last one may be the first of another.
                self.held.truncate(1);
            }
            return;
        }
        self.release();
        match c {
            Ok('_') => self.held.push('_'),
            Ok('<') => self.out.extend(b"&lt;"),
            Ok('>') => self.out.extend(b"&gt;"),
            Ok('&') => self.out.extend(b"&amp;"),
            Ok('"') => self.out.extend(b"&quot;"),
            Ok(
                c @ ('\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}'),
            ) => {
                self.out.extend(format!("_x{:04X}_", u32::from(c)).as_bytes());
            }
            Err(lone) => self.out.extend(format!("_x{lone:04X}_").as_bytes()),
            // Line ends would be changed by whoever reads, the others act on a terminal.
            Ok(c) if render::is_terminal_unsafe(c) => {
                self.out.extend(format!("&#x{:X};", u32::from(c)).as_bytes());
            }
            Ok(c) => self.out.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }

    /// Whether what is held and this look like `_xHHHH_`.
    fn leads_on(&self, c: char) -> bool {
        match self.held.len() {
            0 => false,
            1 => c == 'x',
            2..=5 => c.is_ascii_hexdigit(),
            _ => c == '_',
        }
    }

    fn release(&mut self) {
        self.out.extend(self.held.as_bytes());
        self.held.clear();
    }
}

/// Writes text.
fn text(out: &mut Vec<u8>, text: &str) {
    let mut escaper = Escaper::new(out);
    text.chars().for_each(|c| escaper.push(Ok(c)));
    escaper.release();
}

/// Writes an element with text in it, or an empty one.
fn element(out: &mut Vec<u8>, name: &str, content: &str) {
    if content.is_empty() {
        out.extend(format!("<{name}/>").as_bytes());
        return;
    }
    out.extend(format!("<{name}>").as_bytes());
    text(out, content);
    out.extend(format!("</{name}>").as_bytes());
}

fn number(out: &mut Vec<u8>, name: &str, value: u64) {
    out.extend(format!("<{name}>{value}</{name}>").as_bytes());
}

fn attribute(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b' ');
    out.extend(name.as_bytes());
    out.extend(b"=\"");
    write(out);
    out.push(b'"');
}

fn guid(out: &mut Vec<u8>, guid: Guid) {
    out.push(b'{');
    out.extend(guid.to_ascii());
    out.push(b'}');
}

impl Lines {
    /// Writes a record as an event, on one line but for its end.
    pub(super) fn xml(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        if let Some(provider) = record.provider() {
            self.look_up(provider);
        }
        let facts = Facts::of(record);
        let mut scratch = core::mem::take(&mut self.scratch);
        let mut time = core::mem::take(&mut self.time_scratch);
        time.clear();
        self.time(&mut time, record);
        let described = self.store.fields(record);
        let schema = described.as_ref().map(|(schema, _)| *schema);
        out.extend(b"<Event xmlns=\"");
        out.extend(EVENT.as_bytes());
        out.extend(b"\">");
        self.xml_system(out, record, &facts, schema, &time);
        match &described {
            Some((schema, fields)) if !self.raw => match record.header() {
                Header::Message(header) => {
                    let sequence = header.sequence;
                    self.debug_data(out, schema, fields, record, sequence, &mut scratch);
                }
                _ => event_data(out, fields, record, &mut scratch),
            },
            _ if record.payload().is_empty() => out.extend(b"<EventData/>"),
            None if !self.raw && record.is_event() => {
                processing_error(out, NOT_DESCRIBED, "", record.payload());
            }
            _ => {
                out.extend(b"<BinaryEventData>");
                hex(out, record.payload());
                out.extend(b"</BinaryEventData>");
            }
        }
        self.xml_rendering(out, record, &facts, described.as_ref(), &mut scratch);
        extended_info(out, record);
        out.extend(b"</Event>");
        (self.scratch, self.time_scratch) = (scratch, time);
    }

    fn xml_system(
        &self,
        out: &mut Vec<u8>,
        record: &Record<'_>,
        facts: &Facts,
        schema: Option<&EventSchema>,
        time: &[u8],
    ) {
        out.extend(b"<System><Provider");
        // Of a classic event the GUID of the class is known, and the provider's only if it is the
        // kernel.
        let classic = class(record).is_some();
        if !classic && let Some(name) = record.provider().and_then(|_| self.name(record)) {
            attribute(out, "Name", |out| text(out, name));
        }
        attribute(out, "Guid", |out| match record.provider() {
            Some(_) if record.is_kernel() => guid(out, KERNEL_TRACE),
            Some(provider) if !classic => guid(out, provider),
            _ => guid(out, Guid::ZERO),
        });
        out.extend(b"/>");
        number(out, "EventID", facts.id.unwrap_or(0).into());
        number(out, "Version", facts.version.unwrap_or(0).into());
        number(out, "Level", facts.level.unwrap_or(0).into());
        number(out, "Task", facts.task.unwrap_or(0).into());
        number(out, "Opcode", facts.opcode.unwrap_or(0).into());
        out.extend(b"<Keywords>");
        hexadecimal(out, facts.keyword.unwrap_or(0));
        out.extend(b"</Keywords><TimeCreated");
        attribute(out, "SystemTime", |out| out.extend(time));
        // Timestamps are unsigned there.
        attribute(out, "RawTime", |out| decimal(out, record.timestamp() as u64));
        out.extend(b"/>");
        let (mut related, mut session, mut user) = (None, None, None);
        for item in record.extended() {
            match item {
                ExtendedItem::RelatedActivity(id) => related = Some(id),
                ExtendedItem::TerminalSession(id) => session = Some(id),
                ExtendedItem::Sid(sid) => user = Some(sid),
                _ => {}
            }
        }
        out.extend(b"<Correlation");
        attribute(out, "ActivityID", |out| guid(out, facts.activity.unwrap_or(Guid::ZERO)));
        if let Some(related) = related {
            attribute(out, "RelatedActivityID", |out| guid(out, related));
        }
        out.extend(b"/><Execution");
        let process = record.process_id().unwrap_or(NOBODY);
        let thread = record.thread_id().unwrap_or(NOBODY);
        attribute(out, "ProcessID", |out| decimal(out, process.into()));
        attribute(out, "ThreadID", |out| decimal(out, thread.into()));
        attribute(out, "ProcessorID", |out| decimal(out, record.processor().into()));
        if let Some(session) = session {
            attribute(out, "SessionID", |out| decimal(out, session.into()));
        }
        times_spent(out, record);
        out.extend(b"/>");
        let channel = schema.map_or("", |schema| &*schema.channel.name);
        match facts.channel {
            Some(channel_number) if channel.is_empty() && channel_number != 0 => {
                number(out, "Channel", channel_number.into());
            }
            _ => element(out, "Channel", channel),
        }
        out.extend(b"<Computer/>");
        if let Some(user) = user {
            out.extend(b"<Security");
            attribute(out, "UserID", |out| render::sid(out, Sid(user)));
            out.extend(b"/>");
        }
        out.extend(b"</System>");
    }

    /// A WPP message: as text, with what is said of it.
    fn debug_data(
        &self,
        out: &mut Vec<u8>,
        schema: &EventSchema,
        fields: &Fields<'_>,
        record: &Record<'_>,
        sequence: Option<u32>,
        scratch: &mut Vec<u8>,
    ) {
        let mut walk = fields.clone();
        let last = (&mut walk).last();
        if walk.note().is_short() {
            let name = last.map_or("", |(field, _)| &*field.name);
            return processing_error(out, NOT_AS_DESCRIBED, name, record.payload());
        }
        out.extend(b"<DebugData>");
        if let Some(sequence) = sequence {
            number(out, "SequenceNumber", sequence.into());
        }
        let flags = schema.keyword_names.first().map_or("", |flags| &**flags);
        for (name, value) in [("FlagsName", flags), ("LevelName", &*schema.level.name)] {
            if !value.is_empty() {
                element(out, name, value);
            }
        }
        element(out, "Component", &schema.provider_name);
        if !schema.name.is_empty() {
            element(out, "FileLine", &schema.name);
        }
        let message = message(scratch, schema, fields, record, &self.clock);
        element(out, "Message", message.unwrap_or_default());
        // The schema of events has a number for the function; its name is beside it.
        if !schema.task.name.is_empty() {
            out.extend(format!("<Function xmlns=\"{TRACE}\">").as_bytes());
            text(out, &schema.task.name);
            out.extend(b"</Function>");
        }
        out.extend(b"</DebugData>");
    }

    /// What the numbers of the event mean, as far as anybody has said.
    fn xml_rendering(
        &self,
        out: &mut Vec<u8>,
        record: &Record<'_>,
        facts: &Facts,
        described: Option<&(&EventSchema, Fields<'_>)>,
        scratch: &mut Vec<u8>,
    ) {
        let start = out.len();
        out.extend(b"<RenderingInfo Culture=\"en-US\">");
        let empty = out.len();
        let named = |out: &mut Vec<u8>, name: &str, content: &str| {
            if !content.is_empty() {
                element(out, name, content);
            }
        };
        if let Some((schema, fields)) = described
            && let Some(message) = message(scratch, schema, fields, record, &self.clock)
        {
            named(out, "Message", message);
        }
        let told = described.map(|(schema, _)| *schema);
        let level = told.map_or("", |schema| own(&schema.level.name));
        let standard = facts.level.filter(|_| record.is_event()).map_or("", level_name);
        named(out, "Level", if level.is_empty() { standard } else { level });
        let task = told.map_or("", |schema| match schema.source {
            // The name of such an event is what others have a task for.
            SchemaSource::TraceLogging => &*schema.name,
            // That is the function of the message, see its data.
            SchemaSource::Tmf => "",
            _ => own(&schema.task.name),
        });
        named(out, "Task", task);
        let opcode = told.map_or("", |schema| own(&schema.opcode.name));
        let standard = facts.opcode.filter(|_| record.is_event()).map_or("", opcode_name);
        let class = class(record);
        let symbol = told.filter(|_| class.is_some()).map_or("", |schema| &*schema.name);
        let opcode = [opcode, symbol, standard].into_iter().find(|name| !name.is_empty());
        named(out, "Opcode", opcode.unwrap_or_default());
        named(out, "Channel", told.map_or("", |schema| &*schema.channel.name));
        if record.is_kernel() {
            named(out, "Provider", "MSNT_SystemTrace");
        } else if let Some(name) = record.provider().and_then(|_| self.name(record)) {
            named(out, "Provider", name);
        }
        let keywords = told.map_or(&[][..], |schema| &schema.keyword_names);
        if !keywords.is_empty() {
            out.extend(b"<Keywords>");
            keywords.iter().for_each(|keyword| element(out, "Keyword", keyword));
            out.extend(b"</Keywords>");
        }
        let group = facts.hook.and_then(|hook| group_name((hook >> 8) as u8));
        if let Some(class) = group.or_else(|| class.and_then(|_| self.name(record))) {
            out.extend(format!("<EventName xmlns=\"{TRACE}\">").as_bytes());
            text(out, class);
            out.extend(b"</EventName>");
        }
        if out.len() == empty {
            out.truncate(start);
        } else {
            out.extend(b"</RenderingInfo>");
        }
    }
}

/// The class of a classic event.
fn class(record: &Record<'_>) -> Option<Guid> {
    match record.header() {
        Header::System(_) | Header::PerfInfo(_) | Header::Full(_) | Header::Instance(_) => {
            record.provider()
        }
        _ => None,
    }
}

/// What a trace says beyond an event of a log: the class of a classic event, its instance, and the
/// stack. `tracerpt` writes no stack; it stands in the same place and namespace.
fn extended_info(out: &mut Vec<u8>, record: &Record<'_>) {
    let start = out.len();
    out.extend(format!("<ExtendedTracingInfo xmlns=\"{TRACE}\">").as_bytes());
    let empty = out.len();
    if let Some(class) = class(record) {
        out.extend(b"<EventGuid>");
        guid(out, class);
        out.extend(b"</EventGuid>");
    }
    if let Header::Instance(header) = record.header() {
        number(out, "InstanceID", header.instance_id.into());
        number(out, "ParentInstanceID", header.parent_instance_id.into());
    }
    for item in record.extended() {
        let (match_id, key) = match &item {
            ExtendedItem::Stack(stack) => (stack.match_id, None),
            ExtendedItem::StackKey { match_id, key, .. } => (*match_id, Some(*key)),
            _ => continue,
        };
        out.extend(b"<Stack");
        // Joins the two halves of a stack; a whole one has none.
        if match_id != 0 {
            attribute(out, "MatchID", |out| hexadecimal(out, match_id));
        }
        if let Some(key) = key {
            attribute(out, "Key", |out| hexadecimal(out, key));
        }
        out.push(b'>');
        if let ExtendedItem::Stack(stack) = item {
            for address in stack.addresses() {
                out.extend(b"<Address>");
                hexadecimal(out, address);
                out.extend(b"</Address>");
            }
        }
        out.extend(b"</Stack>");
    }
    if out.len() == empty {
        out.truncate(start);
    } else {
        out.extend(b"</ExtendedTracingInfo>");
    }
}

/// The attributes of the processor time that the thread had used.
fn times_spent(out: &mut Vec<u8>, record: &Record<'_>) {
    let (kernel, user) = match record.header() {
        Header::Event(h) if h.flags.has(EventFlags::PRIVATE_SESSION) => {
            let time = u64::from(h.user_time) << 32 | u64::from(h.kernel_time);
            return attribute(out, "ProcessorTime", |out| decimal(out, time));
        }
        Header::Event(h) => (Some(h.kernel_time), Some(h.user_time)),
        Header::Full(h) => (Some(h.kernel_time), Some(h.user_time)),
        Header::Instance(h) => (Some(h.full.kernel_time), Some(h.full.user_time)),
        Header::System(h) => (h.kernel_time, h.user_time),
        _ => (None, None),
    };
    for (name, time) in [("KernelTime", kernel), ("UserTime", user)] {
        if let Some(time) = time {
            attribute(out, name, |out| decimal(out, time.into()));
        }
    }
}

/// The payload as its fields, or as a whole where it ends before they do.
fn event_data(out: &mut Vec<u8>, fields: &Fields<'_>, record: &Record<'_>, scratch: &mut Vec<u8>) {
    let start = out.len();
    let mut walk = fields.clone();
    let mut last = None;
    let end = start.saturating_add(render::MAX_LEN);
    out.extend(b"<EventData>");
    for (field, value) in &mut walk {
        data(out, field, value, scratch, end);
        last = Some(field);
    }
    let note = walk.note();
    if note.is_short() {
        out.truncate(start);
        // The value that was cut, or the one before those that are missing.
        let name = last.map_or("", |field| &*field.name);
        return processing_error(out, NOT_AS_DESCRIBED, name, record.payload());
    }
    if !note.trailing.is_empty() {
        out.extend(b"<Binary>");
        hex(out, note.trailing);
        out.extend(b"</Binary>");
    }
    out.extend(b"</EventData>");
}

fn processing_error(out: &mut Vec<u8>, code: u64, item: &str, payload: &[u8]) {
    out.extend(b"<ProcessingErrorData>");
    number(out, "ErrorCode", code);
    element(out, "DataItemName", item);
    out.extend(b"<EventPayload>");
    hex(out, payload);
    out.extend(b"</EventPayload></ProcessingErrorData>");
}

/// A field: `Data` for each value, `ComplexData` for each struct.
/// Arrays end where the output is longer than `end`.
fn data(out: &mut Vec<u8>, field: &Field, value: Value<'_>, scratch: &mut Vec<u8>, end: usize) {
    let tag = match value {
        Value::Array(items) => {
            for item in items.iter() {
                if out.len() > end {
                    break;
                }
                data(out, field, item, scratch, end);
            }
            return;
        }
        Value::Struct(_) => "ComplexData",
        _ => "Data",
    };
    out.push(b'<');
    out.extend(tag.as_bytes());
    attribute(out, "Name", |out| text(out, &field.name));
    out.push(b'>');
    if let Value::Struct(members) = value {
        members.fields().for_each(|(field, value)| data(out, field, value, scratch, end));
    } else {
        let mut escaper = Escaper::new(out);
        render::plain_value(field, value, scratch, &mut |c| escaper.push(c));
        escaper.release();
    }
    out.extend(b"</");
    out.extend(tag.as_bytes());
    out.push(b'>');
}

/// A name that is the provider's own; those that start with `win:` everybody has.
fn own(name: &str) -> &str {
    if name.starts_with("win:") { "" } else { name }
}

/// The names of the levels that every provider has.
fn level_name(level: u8) -> &'static str {
    match level {
        1 => "Critical",
        2 => "Error",
        3 => "Warning",
        4 => "Information",
        5 => "Verbose",
        _ => "",
    }
}

/// The names of the opcodes that every provider has.
fn opcode_name(opcode: u8) -> &'static str {
    match opcode {
        0 => "Info",
        1 => "Start",
        2 => "Stop",
        3 => "DCStart",
        4 => "DCStop",
        5 => "Extension",
        6 => "Reply",
        7 => "Resume",
        8 => "Suspend",
        9 => "Send",
        0xf0 => "Receive",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(chars: impl IntoIterator<Item = Result<char, u16>>) -> String {
        let mut out = Vec::new();
        let mut escaper = Escaper::new(&mut out);
        chars.into_iter().for_each(|c| escaper.push(c));
        escaper.release();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_xml_cannot_hold_is_named() {
        for (text, expected) in [
            ("a<b>&\"c", "a&lt;b&gt;&amp;&quot;c"),
            ("\0\x1b\u{ffff}", "_x0000__x001B__xFFFF_"),
            ("\t\r\n", "&#x9;&#xD;&#xA;"),
            ("\u{85}\u{202e}", "&#x85;&#x202E;"),
            ("_x001B_", "_x005F_x001B_"),
            ("_x001B_x001b_", "_x005F_x001B_x005F_x001b_"),
            ("__x00", "__x00"),
            ("_x00g0_", "_x00g0_"),
            ("snake_case_", "snake_case_"),
            ("C:\\Windows", "C:\\Windows"),
        ] {
            assert_eq!(escaped(text.chars().map(Ok)), expected, "{text:?}");
        }
        assert_eq!(escaped([Ok('_'), Err(0xd800), Ok('x')]), "__xD800_x");
    }
}
