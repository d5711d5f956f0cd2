//! Items as lines of text, as `tests/foreign/nettrace_events.py` prints them.

use etl_nettrace::{Event, Field, FieldType, Item, Metadata, Options, Order, Reader};

pub fn by_time() -> Options {
    Options {
        order: Order::Time,
        ..Options::default()
    }
}

/// A text as Python's `repr` prints it, if it has no special characters.
fn quoted(text: &str) -> String {
    format!("'{text}'")
}

fn field(field: &Field) -> String {
    format!("{}:{}", field.name, field_type(&field.field_type))
}

fn fields(fields: &[Field]) -> String {
    fields.iter().map(field).collect::<Vec<_>>().join(",")
}

fn field_type(kind: &FieldType) -> String {
    let name = match kind {
        FieldType::Struct(inner) => return format!("object({})", fields(inner)),
        FieldType::Array(element) => return format!("array({})", field_type(element)),
        FieldType::RelativeLocation(element) => return format!("relloc({})", field_type(element)),
        FieldType::DataLocation(element) => return format!("dataloc({})", field_type(element)),
        FieldType::FixedArray { element, count } => {
            return format!("fixed({},{count})", field_type(element));
        }
        FieldType::Bool32 => "bool32",
        FieldType::Utf16Unit => "char16",
        FieldType::I8 => "i8",
        FieldType::U8 => "u8",
        FieldType::I16 => "i16",
        FieldType::U16 => "u16",
        FieldType::I32 => "i32",
        FieldType::U32 => "u32",
        FieldType::I64 => "i64",
        FieldType::U64 => "u64",
        FieldType::F32 => "f32",
        FieldType::F64 => "f64",
        FieldType::Decimal => "decimal",
        FieldType::DateTime => "datetime",
        FieldType::Guid => "guid",
        FieldType::Utf16Text => "str16",
        FieldType::VarInt => "varint",
        FieldType::VarUInt => "varuint",
        FieldType::Utf8Unit => "char8",
        FieldType::Bool8 => "bool8",
        FieldType::Unknown(code) => return format!("unknown {code}"),
        _ => panic!("a new type: {kind:?}"),
    };
    name.to_owned()
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "None".to_owned(), |value| value.to_string())
}

pub fn metadata(metadata: &Metadata) -> String {
    format!(
        "{} {}/{}v{} {} level {} keywords {:#x} opcode {} fields {}",
        metadata.metadata_id,
        metadata.provider,
        metadata.event_id,
        metadata.version,
        quoted(&metadata.name),
        metadata.level,
        metadata.keywords,
        optional(metadata.opcode),
        fields(&metadata.fields)
    )
}

pub fn event(event: &Event<'_>) -> String {
    let stack: Vec<String> = event.stack.iter().map(|a| format!("{a:x}")).collect();
    let payload: String = event.payload.iter().map(|b| format!("{b:02x}")).collect();
    format!(
        "{:#x} {}/{}v{} {} level {} keywords {:#x} number {} pid {} thread {} captured by {} on {} \
         at {} activity {} related {} barrier {} stack [{}] payload {payload}",
        event.offset,
        event.provider(),
        event.id(),
        event.metadata.version,
        quoted(event.name()),
        event.metadata.level,
        event.metadata.keywords,
        event.sequence_number,
        optional(event.process_id),
        event.thread_id,
        event.capture_thread,
        event.processor.unwrap_or(u32::MAX),
        event.timestamp,
        event.activity_id,
        event.related_activity_id,
        if event.is_barrier { "True" } else { "False" },
        stack.join(" "),
    )
}

/// The events of a stream as text. Without damage that ends it with an error.
pub fn events(stream: &[u8], options: &Options) -> Vec<String> {
    let mut reader = Reader::with_options(stream, options).unwrap();
    let mut out = Vec::new();
    while let Some(next) = reader.next_event().unwrap() {
        out.push(event(&next));
    }
    out
}

/// The items of a stream as short text.
pub fn items(stream: &[u8], options: &Options) -> Vec<String> {
    let mut reader = Reader::with_options(stream, options).unwrap();
    let mut out = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        out.push(match item {
            Item::Event(event) => format!("event {}", event.sequence_number),
            Item::Metadata(metadata) => format!("metadata {}", metadata.metadata_id),
            Item::SequencePoint(point) => format!("point {}", point.timestamp),
            Item::Thread(thread) => format!("thread {}", thread.index),
            Item::RemovedThread(removed) => format!("removed {}", removed.index),
            Item::UnknownBlock(block) => format!("unknown {} {}", block.kind, block.size),
            other => panic!("a new item: {other:?}"),
        });
    }
    out
}

/// The damage of a stream as text, after all events were read.
pub fn damage(stream: &[u8]) -> Vec<String> {
    let mut reader = Reader::new(stream).unwrap();
    while reader.next_event().unwrap().is_some() {}
    reader
        .damage()
        .iter()
        .map(|damage| damage.error.to_string())
        .collect()
}
