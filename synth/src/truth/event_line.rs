//! The line of an event in `truth.jsonl`. Most lines are events. Their keys are constants, which
//! needs a fifth of the instructions of serde.

use etl_format::Guid;
use etl_schema::EventSchema;
use etl_schema::encode::OwnedValue;
use etl_schema::render::{decimal, escape_json, hexadecimal, signed};
use serde::{Serialize, Serializer};

use super::RaisedEvent;

/// Writes the line, without its end.
pub(super) fn write(
    out: &mut Vec<u8>,
    event: &RaisedEvent<'_>,
    sessions: &[String],
) -> serde_json::Result<()> {
    let descriptor = &event.descriptor;
    number(out, r#"{"kind":"event","number":"#, event.number);
    number(out, r#","at_ns":"#, event.at);
    raw(out, r#","timestamp":"#);
    signed(out, event.timestamp.get());
    number(out, r#","processor":"#, event.processor);
    number(out, r#","pid":"#, event.pid.get());
    number(out, r#","tid":"#, event.tid.get());
    text(out, r#","record_format":"#, event.format.name());
    if let Some(hook) = event.format.hook() {
        text(out, r#","hook":"#, &format!("{hook:#06x}"));
    }
    guid(out, r#","provider_guid":""#, event.provider);
    number(out, r#","id":"#, descriptor.id);
    number(out, r#","version":"#, descriptor.version);
    number(out, r#","level":"#, descriptor.level);
    number(out, r#","opcode":"#, descriptor.opcode);
    number(out, r#","task":"#, descriptor.task);
    raw(out, r#","keyword":""#);
    hexadecimal(out, descriptor.keyword);
    out.push(b'"');
    if !event.activity.is_zero() {
        guid(out, r#","activity":""#, event.activity);
    }
    if let Some(activity) = event.related_activity {
        guid(out, r#","related_activity":""#, activity);
    }
    text(out, r#","event":"#, &event.schema.name);
    if !event.stack.is_empty() {
        raw(out, r#","stack":["#);
        list(out, event.stack, |out, address| {
            decimal(out, *address);
            Ok(())
        })?;
        raw(out, r#"],"stack_sessions":["#);
        list(out, event.stack_sessions, |out, session| {
            escape_json(out, name_of(sessions, *session));
            Ok(())
        })?;
        out.push(b']');
    }
    raw(out, r#","fields":{"#);
    fields(out, event.schema, event.values)?;
    raw(out, r#"},"sessions":{"#);
    list(out, event.outcomes, |out, entry| {
        escape_json(out, name_of(sessions, entry.session));
        out.push(b':');
        serde_json::to_writer(out, &entry.outcome)
    })?;
    raw(out, "}}");
    Ok(())
}

fn fields(
    out: &mut Vec<u8>,
    schema: &EventSchema,
    values: &[OwnedValue],
) -> serde_json::Result<()> {
    list(
        out,
        schema.fields.iter().zip(values),
        |out, (field, value)| {
            escape_json(out, &field.name);
            out.push(b':');
            match value {
                OwnedValue::UInt(v) => decimal(out, *v),
                OwnedValue::Text(v) => escape_json(out, v),
                value => serde_json::to_writer(out, &Value(value))?,
            }
            Ok(())
        },
    )
}

/// The name of a session.
fn name_of(sessions: &[String], session: usize) -> &str {
    sessions.get(session).map_or("", String::as_str)
}

/// Writes items with commas between them.
fn list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut Vec<u8>, T) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    for (at, each) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        item(out, each)?;
    }
    Ok(())
}

/// Writes JSON unchanged.
fn raw(out: &mut Vec<u8>, json: &str) {
    out.extend_from_slice(json.as_bytes());
}

fn number(out: &mut Vec<u8>, before: &str, number: impl Into<u64>) {
    raw(out, before);
    decimal(out, number.into());
}

fn text(out: &mut Vec<u8>, before: &str, text: &str) {
    raw(out, before);
    escape_json(out, text);
}

/// A GUID after its first quote.
fn guid(out: &mut Vec<u8>, before: &str, guid: Guid) {
    raw(out, before);
    out.extend_from_slice(&guid.to_ascii());
    out.push(b'"');
}

/// The value of a field. Integers are written in full: some are above 2^53.
struct Value<'a>(&'a OwnedValue);

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            // The encoder computes the value.
            OwnedValue::Auto => serializer.serialize_u8(0),
            OwnedValue::Null => serializer.serialize_unit(),
            OwnedValue::Bool(v) => serializer.serialize_bool(*v),
            OwnedValue::Int(v) => serializer.serialize_i64(*v),
            OwnedValue::UInt(v) | OwnedValue::Pointer(v) | OwnedValue::FileTime(v) => {
                serializer.serialize_u64(*v)
            }
            // Infinities and NaN become null.
            OwnedValue::Float(v) => serializer.serialize_f32(*v),
            OwnedValue::Double(v) => serializer.serialize_f64(*v),
            OwnedValue::Char(v) => serializer.serialize_u16(*v),
            OwnedValue::Guid(v) => serializer.collect_str(v),
            OwnedValue::SystemTime(v) => v.serialize(serializer),
            OwnedValue::Text(v) => serializer.serialize_str(v),
            OwnedValue::Utf16(v) => serializer.serialize_str(&String::from_utf16_lossy(v)),
            OwnedValue::Ansi(v) | OwnedValue::Utf8(v) => {
                serializer.serialize_str(&String::from_utf8_lossy(v))
            }
            OwnedValue::Sid(v) | OwnedValue::Binary(v) => {
                serializer.serialize_str(&v.iter().map(|b| format!("{b:02x}")).collect::<String>())
            }
            OwnedValue::Ipv4(v) => serializer.collect_str(v),
            OwnedValue::Ipv6(v) => serializer.collect_str(v),
            OwnedValue::Struct(list) | OwnedValue::Array(list) => {
                serializer.collect_seq(list.iter().map(Value))
            }
        }
    }
}
