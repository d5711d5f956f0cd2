//! One event with the bytes of its payload, and where its fields are.

use etl_events::rows::{Format, RowWriter};
use etl_events::{Event, Trace};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::events::Counted;

/// The selected event with this number: its row, its payload, and its fields.
pub fn event(trace: &mut Trace, counted: &Counted, number: u64) -> Result<Value> {
    let mut reply = None;
    counted.for_each_from(trace, number, |event| {
        reply = Some(describe(event));
        false
    })?;
    reply.ok_or_else(|| Error::new(format!("there is no event {number}")))
}

fn describe(event: &Event<'_>) -> Value {
    let mut row = Vec::new();
    let mut writer = RowWriter::new(Format::JsonLines)
        .relative_times()
        .payload_bytes();
    writer.write(&mut row, event);
    let row: Value = serde_json::from_slice(&row).unwrap_or_default();
    let mut ranges = Vec::new();
    if let Some(mut fields) = event.fields() {
        while let Some(located) = fields.next_with_range() {
            ranges.push(json!({
                "name": &*located.field.name,
                "from": located.range.start,
                "to": located.range.end,
            }));
        }
    }
    let keywords: Vec<&str> = event.keyword_names().iter().map(|name| &**name).collect();
    json!({
        "row": row,
        "ranges": ranges,
        "keyword_names": keywords,
        "schema": event.source().map(|source| source.name()),
    })
}
