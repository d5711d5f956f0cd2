//! XML: records in the shape of the Event schema, as tracerpt and wevtutil write events.
//!
//! Characters that XML does not allow are written as `_xHHHH_`, the convention of .NET's
//! `XmlConvert`. In text that looks like such an escape, the first `_` is escaped.

mod markup;

use etl_format::constants::{EventFlags, hook_class_name};
use etl_format::read::{ExtendedItem, Header, Record};
use etl_format::{Guid, ProcessId, ThreadId};
use etl_schema::decode::{Fields, Sid, Value};
use etl_schema::providers::KERNEL_TRACE;
use etl_schema::render::{self, Names, Renderer, decimal, hex_bytes as hex, hexadecimal};
use etl_schema::{EventSchema, Field, SchemaSource};

use super::row::Row;
use crate::event::{Event, Items, without_common};
use markup::{Escaper, attribute, element, enclosed, guid, named, number, text};

/// The namespace of events.
const EVENT: &str = "http://schemas.microsoft.com/win/2004/08/events/event";
/// The namespace of the parts of an event that event logs do not have.
const TRACE: &str = "http://schemas.microsoft.com/win/2004/08/events/trace";

/// The process and thread of events that have none.
const NO_ID: u32 = u32::MAX;

/// `ERROR_EVT_EVENT_TEMPLATE_NOT_FOUND`: no schema describes the event.
const TEMPLATE_NOT_FOUND: u64 = 15_003;
/// `ERROR_EVT_INVALID_EVENT_DATA`: the payload does not fit the schema.
const INVALID_EVENT_DATA: u64 = 15_005;

/// Writes what precedes the first event.
pub(super) fn begin(out: &mut Vec<u8>) {
    out.extend(b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<Events>\n");
}

/// Writes what follows the last event.
pub(super) fn end(out: &mut Vec<u8>) {
    out.extend(b"</Events>\n");
}

/// Writes a record as an event, on one line but for its end.
pub(super) fn write(out: &mut Vec<u8>, row: &Row<'_>, payload_bytes: bool, scratch: &mut Vec<u8>) {
    let event = row.event;
    let payload = event.payload();
    out.extend(b"<Event xmlns=\"");
    out.extend(EVENT.as_bytes());
    out.extend(b"\">");
    system(out, row);
    match (event.schema(), &event.fields) {
        (Some(schema), Some(fields)) if !payload_bytes => match event.record.header() {
            Header::Message(header) => {
                debug_data(out, event, schema, fields, header.sequence, scratch);
            }
            _ => event_data(out, event, fields, scratch),
        },
        _ if payload.is_empty() => out.extend(b"<EventData/>"),
        (_, None) if !payload_bytes && event.record.is_event() => {
            processing_error(out, TEMPLATE_NOT_FOUND, "", payload);
        }
        _ => enclosed(out, "BinaryEventData", |out| hex(out, payload)),
    }
    rendering_info(out, event, scratch);
    extended_info(out, event);
    out.extend(b"</Event>");
}

fn system(out: &mut Vec<u8>, row: &Row<'_>) {
    let event = row.event;
    let record = &event.record;
    let header = &event.head.header;
    out.extend(b"<System><Provider");
    // A classic event has the name of its class instead of its provider, except for the kernel.
    let classic = class(event).is_some();
    if !classic && let Some(name) = event.provider_name() {
        attribute(out, "Name", |out| text(out, name));
    }
    attribute(out, "Guid", |out| match event.head.provider {
        Some(_) if record.is_kernel() => guid(out, KERNEL_TRACE),
        Some(provider) if !classic => guid(out, provider),
        _ => guid(out, Guid::ZERO),
    });
    out.extend(b"/>");
    number(out, "EventID", header.id.unwrap_or(0).into());
    number(out, "Version", header.version.unwrap_or(0).into());
    number(out, "Level", header.level.unwrap_or(0).into());
    number(out, "Task", header.task.unwrap_or(0).into());
    number(out, "Opcode", header.opcode.unwrap_or(0).into());
    enclosed(out, "Keywords", |out| {
        hexadecimal(out, header.keyword.unwrap_or(0))
    });
    out.extend(b"<TimeCreated");
    attribute(out, "SystemTime", |out| out.extend(row.time));
    // The schema has unsigned timestamps.
    attribute(out, "RawTime", |out| {
        decimal(out, record.timestamp().get() as u64)
    });
    out.extend(b"/>");
    let items = Items::of(record);
    out.extend(b"<Correlation");
    attribute(out, "ActivityID", |out| {
        guid(out, event.activity().unwrap_or(Guid::ZERO))
    });
    if let Some(related) = items.related_activity {
        attribute(out, "RelatedActivityID", |out| guid(out, related));
    }
    out.extend(b"/><Execution");
    let process = record.process_id().unwrap_or(ProcessId::new(NO_ID));
    let thread = record.thread_id().unwrap_or(ThreadId::new(NO_ID));
    attribute(out, "ProcessID", |out| decimal(out, process.get().into()));
    attribute(out, "ThreadID", |out| decimal(out, thread.get().into()));
    attribute(out, "ProcessorID", |out| {
        decimal(out, record.processor().into())
    });
    if let Some(session) = items.terminal_session {
        attribute(out, "SessionID", |out| decimal(out, session.into()));
    }
    processor_times(out, record);
    out.extend(b"/>");
    let channel = event.schema().map_or("", |schema| &*schema.channel.name);
    match header.channel {
        Some(value) if channel.is_empty() && value != 0 => number(out, "Channel", value.into()),
        _ => element(out, "Channel", channel),
    }
    out.extend(b"<Computer/>");
    if let Some(user) = items.sid {
        out.extend(b"<Security");
        attribute(out, "UserID", |out| render::sid(out, Sid(user)));
        out.extend(b"/>");
    }
    out.extend(b"</System>");
}

/// A WPP message as text, with its flags, level and source.
fn debug_data(
    out: &mut Vec<u8>,
    event: &Event<'_>,
    schema: &EventSchema,
    fields: &Fields<'_>,
    sequence: Option<u32>,
    scratch: &mut Vec<u8>,
) {
    let mut walk = fields.clone();
    let last = (&mut walk).last();
    if walk.note().is_short() {
        let name = last.map_or("", |(field, _)| &*field.name);
        return processing_error(out, INVALID_EVENT_DATA, name, event.record.payload());
    }
    out.extend(b"<DebugData>");
    if let Some(sequence) = sequence {
        number(out, "SequenceNumber", sequence.into());
    }
    let flags = schema.keyword_names.first().map_or("", |flags| &**flags);
    named(out, "FlagsName", flags);
    named(out, "LevelName", &schema.level.name);
    element(out, "Component", &schema.provider_name);
    named(out, "FileLine", &schema.name);
    element(
        out,
        "Message",
        event.write_message(scratch).unwrap_or_default(),
    );
    // The Event schema has a number for the function, so its name has an element of its own.
    if !schema.task.name.is_empty() {
        out.extend(format!("<Function xmlns=\"{TRACE}\">").as_bytes());
        text(out, &schema.task.name);
        out.extend(b"</Function>");
    }
    out.extend(b"</DebugData>");
}

/// The names of the event's numbers, if there are any.
fn rendering_info(out: &mut Vec<u8>, event: &Event<'_>, scratch: &mut Vec<u8>) {
    let record = &event.record;
    let header = &event.head.header;
    let start = out.len();
    out.extend(b"<RenderingInfo Culture=\"en-US\">");
    let empty = out.len();
    named(
        out,
        "Message",
        event.write_message(scratch).unwrap_or_default(),
    );
    let schema = event.schema();
    let level = schema.map_or("", |schema| without_common(&schema.level.name));
    let standard = match header.level {
        Some(level) if record.is_event() => level_name(level),
        _ => "",
    };
    named(
        out,
        "Level",
        if level.is_empty() { standard } else { level },
    );
    let task = schema.map_or("", |schema| match schema.source {
        // Such an event has a name where others have a task.
        SchemaSource::TraceLogging => &*schema.name,
        // The function of the message, which is part of its data.
        SchemaSource::Tmf => "",
        _ => without_common(&schema.task.name),
    });
    named(out, "Task", task);
    let opcode = schema.map_or("", |schema| without_common(&schema.opcode.name));
    let standard = match header.opcode {
        Some(opcode) if record.is_event() => opcode_name(opcode),
        _ => "",
    };
    let is_classic = class(event).is_some();
    let symbol = match schema {
        Some(schema) if is_classic => &*schema.name,
        _ => "",
    };
    let opcode = [opcode, symbol, standard]
        .into_iter()
        .find(|name| !name.is_empty());
    named(out, "Opcode", opcode.unwrap_or_default());
    named(
        out,
        "Channel",
        schema.map_or("", |schema| &*schema.channel.name),
    );
    if record.is_kernel() {
        named(out, "Provider", "MSNT_SystemTrace");
    } else {
        named(out, "Provider", event.provider_name().unwrap_or_default());
    }
    let keywords = schema.map_or(&[][..], |schema| &schema.keyword_names);
    if !keywords.is_empty() {
        enclosed(out, "Keywords", |out| {
            keywords
                .iter()
                .for_each(|keyword| element(out, "Keyword", keyword));
        });
    }
    let class = match header.hook.and_then(hook_class_name) {
        None if is_classic => event.provider_name(),
        class => class,
    };
    if let Some(class) = class {
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

/// The class of a classic event.
fn class(event: &Event<'_>) -> Option<Guid> {
    match event.record.header() {
        Header::System(_) | Header::PerfInfo(_) | Header::Full(_) | Header::Instance(_) => {
            event.head.provider
        }
        _ => None,
    }
}

/// The parts that an event of a log does not have: the class of a classic event, its instance, and
/// the stack, which `tracerpt` leaves out.
fn extended_info(out: &mut Vec<u8>, event: &Event<'_>) {
    let record = &event.record;
    let start = out.len();
    out.extend(format!("<ExtendedTracingInfo xmlns=\"{TRACE}\">").as_bytes());
    let empty = out.len();
    if let Some(class) = class(event) {
        enclosed(out, "EventGuid", |out| guid(out, class));
    }
    if let Some(instance) = Items::of(record).instance {
        number(out, "InstanceID", instance.id.into());
        number(out, "ParentInstanceID", instance.parent_id.into());
    }
    for item in record.extended() {
        let (match_id, key) = match &item {
            ExtendedItem::Stack(stack) => (stack.match_id, None),
            ExtendedItem::StackKey { match_id, key, .. } => (*match_id, Some(*key)),
            _ => continue,
        };
        out.extend(b"<Stack");
        // The id joins the two halves of a stack. A whole stack has none.
        if match_id != 0 {
            attribute(out, "MatchID", |out| hexadecimal(out, match_id));
        }
        if let Some(key) = key {
            attribute(out, "Key", |out| hexadecimal(out, key));
        }
        out.push(b'>');
        if let ExtendedItem::Stack(stack) = item {
            for address in stack.addresses() {
                enclosed(out, "Address", |out| hexadecimal(out, address));
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
fn processor_times(out: &mut Vec<u8>, record: &Record<'_>) {
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

/// The payload as its fields, or as a whole if it ends before they do.
fn event_data(out: &mut Vec<u8>, event: &Event<'_>, fields: &Fields<'_>, scratch: &mut Vec<u8>) {
    let start = out.len();
    let names = event.names();
    let names = names.as_ref().map(|names| names as &dyn Names);
    let mut walk = fields.clone();
    let mut last = None;
    let end = start.saturating_add(render::MAX_LEN);
    out.extend(b"<EventData>");
    for (field, value) in &mut walk {
        data(out, field, value, names, scratch, end);
        last = Some(field);
    }
    let note = walk.note();
    if note.is_short() {
        out.truncate(start);
        // The field that was cut, or the last field before the missing fields.
        let name = last.map_or("", |field| &*field.name);
        return processing_error(out, INVALID_EVENT_DATA, name, event.record.payload());
    }
    if !note.trailing.is_empty() {
        enclosed(out, "Binary", |out| hex(out, note.trailing));
    }
    out.extend(b"</EventData>");
}

fn processing_error(out: &mut Vec<u8>, code: u64, item: &str, payload: &[u8]) {
    enclosed(out, "ProcessingErrorData", |out| {
        number(out, "ErrorCode", code);
        element(out, "DataItemName", item);
        enclosed(out, "EventPayload", |out| hex(out, payload));
    });
}

/// A field: `Data` for each value, `ComplexData` for each struct.
/// Arrays end where the output is longer than `end`.
fn data(
    out: &mut Vec<u8>,
    field: &Field,
    value: Value<'_>,
    names: Option<&dyn Names>,
    scratch: &mut Vec<u8>,
    end: usize,
) {
    let tag = match value {
        Value::Array(items) => {
            for item in items.iter() {
                if out.len() > end {
                    break;
                }
                data(out, field, item, names, scratch, end);
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
        for (field, value) in members.fields() {
            data(out, field, value, names, scratch, end);
        }
    } else {
        let mut escaper = Escaper::new(out);
        let renderer = Renderer::new().names(names);
        renderer.chars(field, value, scratch, &mut |c| escaper.push(c));
        escaper.flush();
    }
    out.extend(b"</");
    out.extend(tag.as_bytes());
    out.push(b'>');
}

/// The name of a level that every provider has.
fn level_name(level: u8) -> &'static str {
    const NAMES: [&str; 6] = ["", "Critical", "Error", "Warning", "Information", "Verbose"];
    NAMES.get(usize::from(level)).copied().unwrap_or_default()
}

/// The name of an opcode that every provider has.
fn opcode_name(opcode: u8) -> &'static str {
    const FIRST: [&str; 5] = ["Info", "Start", "Stop", "DCStart", "DCStop"];
    const OTHERS: [&str; 5] = ["Extension", "Reply", "Resume", "Suspend", "Send"];
    match opcode {
        0xf0 => "Receive",
        _ => FIRST
            .iter()
            .chain(&OTHERS)
            .nth(opcode.into())
            .copied()
            .unwrap_or_default(),
    }
}
