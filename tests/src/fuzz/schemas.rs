//! Targets that read schemas from any bytes, and decode payloads with them.

use std::sync::Arc;

use arbitrary::Unstructured;
use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_schema::decode::Decoder;
use etl_schema::encode::{OwnedValue, encode};
use etl_schema::sources::eventsource::{Chunk, Reassembler};
use etl_schema::sources::trace_event_info::{self, Maps, ProviderMap};
use etl_schema::sources::tracelogging::{self, ProviderTraits};
use etl_schema::sources::{manifest, tmf};
use etl_schema::{
    Count, EventSchema, Field, FieldKind, FieldRef, Identity, InType, Length, OutType,
    SchemaSource, render,
};

use super::{choice, text};

/// Decodes any bytes with a schema, renders the fields in every format, and encodes them again.
fn exercise(schema: EventSchema, payload: &[u8]) {
    let decoder = Decoder::new(Arc::new(schema));
    for pointers in [PointerSize::P4, PointerSize::P8] {
        let fields = decoder.fields(payload, pointers);
        let mut out = Vec::new();
        render::Renderer::new().json_fields(&mut out, &mut fields.clone());
        serde_json::from_slice::<serde::de::IgnoredAny>(&out)
            .unwrap_or_else(|e| panic!("no JSON: {e}: {}", String::from_utf8_lossy(&out)));
        out.clear();
        render::Renderer::new().text_fields(&mut out, &mut fields.clone());
        assert!(
            !out.iter().any(|b| b.is_ascii_control()),
            "a control character comes through"
        );
        let schema = decoder.schema();
        if let Some(message) = &schema.message {
            out.clear();
            render::Renderer::new().message(&mut out, message, &fields);
            render::Renderer::new().plain_message(&mut out, message, &fields);
        }
        let note = decoder.check(payload, pointers);
        assert!(payload.ends_with(note.trailing));
        for name in schema.fields.iter().map(|f| &f.name).take(16) {
            let _ = decoder.get(name, payload, pointers);
        }
        let values = OwnedValue::collect(fields);
        if note.is_exact() {
            // The encoder refuses some payloads: text without an end, wrong counts.
            if let Ok(bytes) = encode(schema, &values, pointers) {
                let again = OwnedValue::collect(decoder.fields(&bytes, pointers));
                assert!(again.len() <= schema.fields.len());
            }
        }
    }
}

/// Half metadata, half payload.
pub(super) fn tracelogging(data: &[u8]) {
    let (share, data) = choice(data);
    let at = data.len() * usize::from(share) / 255;
    let (metadata, payload) = data.split_at(at);
    if let Some(traits) = ProviderTraits::parse(metadata) {
        let _ = ProviderTraits::parse(&traits.build());
    }
    if let Ok(schema) = tracelogging::parse(Guid::ZERO, metadata) {
        if let Ok(built) = tracelogging::build(&schema) {
            let again = tracelogging::parse(Guid::ZERO, &built).expect("what was built is read");
            assert_eq!(again.fields.len(), schema.fields.len());
        }
        exercise(schema, payload);
    }
}

/// Chunks, each after its length.
pub(super) fn eventsource(data: &[u8]) {
    let mut reassembler = Reassembler::new(1 << 16);
    let mut rest = data;
    while let Some((head, after)) = rest.split_first_chunk::<4>() {
        let [len, more, provider, process] = *head;
        let len = (usize::from(len) | usize::from(more & 3) << 8).min(after.len());
        let (payload, after) = after.split_at(len);
        rest = after;
        let Some(chunk) = Chunk::parse(payload) else {
            continue;
        };
        assert_eq!(Chunk::parse(&chunk.build()), Some(chunk));
        let provider = Guid::new(u32::from(provider & 3), 0, 0, [0; 8]);
        if let Some(text) = reassembler.add(provider, u32::from(process & 3), chunk) {
            assert!(text.len() <= 3 << 16);
            if let Ok(schemas) = manifest::parse_lenient(&text) {
                schemas
                    .into_iter()
                    .take(4)
                    .for_each(|schema| exercise(schema, after));
            }
        }
    }
}

pub(super) fn manifest(data: &[u8]) {
    let xml = text(data);
    let strict = manifest::parse(&xml);
    let lenient = manifest::parse_lenient(&xml);
    match strict {
        Ok(schemas) => {
            assert_eq!(
                lenient.expect("a valid manifest is read").len(),
                schemas.len()
            );
            schemas
                .into_iter()
                .take(8)
                .for_each(|schema| exercise(schema, data));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

pub(super) fn tmf(data: &[u8]) {
    match tmf::parse(&text(data)) {
        Ok(tmf) => tmf
            .schemas
            .into_iter()
            .take(8)
            .for_each(|schema| exercise(schema, data)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A map record, the description of an event, and a payload; lengths of the first two come first.
pub(super) fn event_info(data: &[u8]) {
    let Some((head, rest)) = data.split_first_chunk::<4>() else {
        return;
    };
    let [a, b, c, d] = *head;
    let (map, rest) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes([a, b]))));
    let (info, payload) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes([c, d]))));
    for late in [false, true] {
        let mut maps = Maps::default();
        if !late {
            maps.add(map);
        }
        let Ok(mut schema) = trace_event_info::parse(info, &maps) else {
            continue;
        };
        if late && let Some(ProviderMap { map, .. }) = maps.add(map) {
            trace_event_info::attach(&mut schema, &map);
        }
        exercise(schema, payload);
    }
}

/// A schema of any shape; the remaining bytes are its payload.
pub(super) fn payload(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let mut schema = EventSchema::new(
        Guid::ZERO,
        Identity::Modern { id: 1, version: 0 },
        SchemaSource::Manifest,
    );
    let mut left = 64;
    let Ok(fields) = fields(&mut u, 0, &mut left) else {
        return;
    };
    schema.fields = fields;
    if u.arbitrary().unwrap_or(false) {
        schema.message = Some("%1 %2!d! %99 %%n %n%!S! %3".into());
    }
    exercise(schema, u.take_rest());
}

fn fields(
    u: &mut Unstructured<'_>,
    depth: usize,
    left: &mut usize,
) -> arbitrary::Result<Vec<Field>> {
    let n = u.int_in_range(0..=6)?;
    let mut out = Vec::new();
    for index in 0..n {
        if *left == 0 {
            break;
        }
        *left -= 1;
        let reference = |u: &mut Unstructured<'_>| -> arbitrary::Result<FieldRef> {
            let at = u.int_in_range(0..=7)?;
            Ok(if u.arbitrary()? {
                FieldRef::Top(at)
            } else {
                FieldRef::Here(at)
            })
        };
        let name = format!("f{depth}_{index}");
        let mut field = if depth < 20 && u.ratio(1, 4)? {
            Field::structure(name, fields(u, depth + 1, left)?)
        } else {
            Field::new(name, *u.choose(InType::ALL)?)
        };
        if matches!(field.kind, FieldKind::Value(_)) {
            field.out = *u.choose(OutType::ALL)?;
            field.length = match u.int_in_range(0..=8)? {
                0 => Length::Natural,
                1 => Length::NulTerminated,
                2 => Length::Fixed(u.arbitrary()?),
                3 => Length::Field(reference(u)?),
                4 => Length::U16,
                5 => Length::U16BigEndian,
                6 => Length::U32,
                7 => Length::Rest,
                _ => field.length,
            };
        }
        field.count = match u.int_in_range(0..=7)? {
            0 => Count::Const(u.arbitrary()?),
            1 => Count::Field(reference(u)?),
            2 => Count::Prefixed,
            3 => Count::Rest,
            _ => Count::One,
        };
        out.push(field);
    }
    Ok(out)
}
