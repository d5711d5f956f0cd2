//! Events of Windows that a scenario raises have the bytes of real ones: the fields of events in
//! real traces, written as a script, become the same payloads again.

use std::collections::BTreeMap;
use std::fmt::Write;

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::read::{Header, Options, Order, Record, Trace};
use etl_schema::encode::OwnedValue;
use etl_schema::tables::{Registry, windows};
use etl_schema::{Field, FieldKind};
use etl_synth::{MemoryFileSystem, Script, Simulation};
use etl_test_support::{all_traces, needs};

/// Events of one kind that are compared in a trace.
const SAMPLES: u32 = 20;

/// A real event: its provider, its descriptor and its payload.
struct Real {
    provider: Guid,
    id: u16,
    version: u8,
    payload: Vec<u8>,
    /// The node that raises it.
    node: String,
}

/// A value as scripts have it. `None` where a script cannot have it.
fn text(value: &OwnedValue) -> Option<String> {
    let quoted = |text: &str| {
        let is_plain = |c: char| !c.is_control() && c != '{';
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
        text.chars().all(is_plain).then(|| format!("\"{escaped}\""))
    };
    let hex = |bytes: &[u8]| {
        format!(
            "\"{}\"",
            bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()
        )
    };
    Some(match value {
        OwnedValue::Bool(value) => format!("#{value}"),
        OwnedValue::Int(value) => value.to_string(),
        OwnedValue::UInt(value) | OwnedValue::Pointer(value) | OwnedValue::FileTime(value) => {
            value.to_string()
        }
        OwnedValue::Char(value) => value.to_string(),
        OwnedValue::Guid(value) => quoted(&value.to_string())?,
        OwnedValue::Utf16(units) => quoted(&String::from_utf16(units).ok()?)?,
        OwnedValue::Ansi(bytes) | OwnedValue::Utf8(bytes) => {
            quoted(std::str::from_utf8(bytes).ok()?)?
        }
        OwnedValue::Binary(bytes) => hex(bytes),
        OwnedValue::Ipv4(address) => quoted(&address.to_string())?,
        OwnedValue::Ipv6(address) => quoted(&address.to_string())?,
        OwnedValue::Sid(bytes) => {
            let mut sid = format!("S-{}-{}", bytes.first()?, bytes.get(7)?);
            for part in bytes.get(8..)?.chunks_exact(4) {
                write!(sid, "-{}", u32::from_le_bytes(part.try_into().ok()?)).unwrap();
            }
            quoted(&sid)?
        }
        _ => return None,
    })
}

/// The nodes that set fields.
fn nodes(fields: &[Field], values: &[OwnedValue], out: &mut String) -> Option<()> {
    for (field, value) in fields.iter().zip(values) {
        let name = format!("\"{}\"", field.name);
        let elements = match value {
            OwnedValue::Array(elements) => elements.as_slice(),
            one => std::slice::from_ref(one),
        };
        for element in elements {
            match (&field.kind, element) {
                (FieldKind::Struct(members), OwnedValue::Struct(values)) => {
                    write!(out, "{name} {{ ").unwrap();
                    nodes(members, values, out)?;
                    out.push_str("}; ");
                }
                (_, element) => write!(out, "{name} {}; ", text(element)?).unwrap(),
            }
        }
    }
    Some(())
}

/// The node that raises an event like a real one.
fn node(record: &Record<'_>, build: u32) -> Option<Real> {
    let Header::Event(header) = record.header() else {
        return None;
    };
    let (provider, d) = (header.provider, header.descriptor);
    if record.pointer_size() != Some(PointerSize::P8)
        || Registry::builtin().provider(provider).is_some()
    {
        return None;
    }
    let payload = record.payload();
    let layout = windows::in_build(provider, d.id, d.version, build)?;
    let decoder = windows::decoder(provider, d.id, d.version, payload, PointerSize::P8)?;
    if !layout.is_complete
        || layout.schema.fields != decoder.schema().fields
        || !decoder.check(payload, PointerSize::P8).is_exact()
    {
        return None;
    }
    let values = OwnedValue::collect(decoder.fields(payload, PointerSize::P8));
    let mut node = format!("raise \"{provider}\" {} version={} {{ ", d.id, d.version);
    nodes(&layout.schema.fields, &values, &mut node)?;
    node.push('}');
    Some(Real {
        provider,
        id: d.id,
        version: d.version,
        payload: payload.to_vec(),
        node,
    })
}

/// When the script raises events, in 100 ns since the start of the session.
const RAISED: i64 = 10_000_000;

/// The payloads of the events that a script raises, in their order.
fn raised(build: u32, events: &[Real]) -> Vec<(Guid, u16, Vec<u8>)> {
    let mut providers: Vec<Guid> = events.iter().map(|event| event.provider).collect();
    providers.sort_unstable();
    providers.dedup();
    let enabled: String = providers
        .iter()
        .map(|guid| format!("    enable \"{guid}\" level=255\n"))
        .collect();
    let raise: String = events
        .iter()
        .map(|event| format!("    {}\n", event.node))
        .collect();
    let script = format!(
        "machine os=\"10.0.{build}\" processors=1\n\
         session \"s\" file=\"s.etl\" buffer-kb=1024 buffers=64 {{\n{enabled}}}\n\
         process \"App.exe\" {{ at \"1s\" {{\n{raise}}} }}\nat \"9s\" {{ stop \"s\" }}\n"
    );
    let scenario = Script::new("real.kdl", &script)
        .parse()
        .unwrap_or_else(|e| panic!("{e:#?}"));
    let mut files = MemoryFileSystem::default();
    Simulation::new(&scenario).run(&mut files).unwrap();
    let bytes = files.into_files().remove(0).bytes;
    let mut trace = Trace::open(&bytes[..], &Options::default()).unwrap();
    let clock = trace.header().clock();
    let began = trace.header().timestamp;
    let mut records = trace.records(Order::File).unwrap();
    let mut out = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        if let Header::Event(header) = record.header() {
            // The start of the process has events of Kernel-File.
            if clock.duration(began, header.timestamp) < RAISED {
                continue;
            }
            out.push((
                header.provider,
                header.descriptor.id,
                record.payload().to_vec(),
            ));
        }
    }
    out
}

#[needs(traces)]
#[test]
fn raised_events_have_the_bytes_of_real_ones() {
    let (mut compared, mut without_end, mut kinds) = (0, 0, BTreeMap::new());
    for path in all_traces() {
        let bytes = std::fs::read(&path).unwrap();
        let mut trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
        let build = trace.header().build;
        let mut samples: BTreeMap<(Guid, u16, u8), u32> = BTreeMap::new();
        let mut events = Vec::new();
        let mut records = trace.records(Order::File).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            let Header::Event(header) = record.header() else {
                continue;
            };
            let d = header.descriptor;
            let seen = samples
                .entry((header.provider, d.id, d.version))
                .or_default();
            if *seen == SAMPLES {
                continue;
            }
            if let Some(event) = node(&record, build) {
                *seen += 1;
                events.push(event);
            }
        }
        if events.is_empty() {
            continue;
        }
        let found = raised(build, &events);
        assert_eq!(found.len(), events.len(), "{}", path.display());
        for (event, (provider, id, payload)) in events.iter().zip(&found) {
            let node = &event.node;
            assert_eq!((event.provider, event.id), (*provider, *id), "{node}");
            // HTTP.sys leaves out the NUL of a text at the end.
            let rest = payload.strip_prefix(event.payload.as_slice());
            let is_same = rest == Some(&[]) || rest == Some(&[0, 0]) && node.ends_with("\"; }");
            assert!(
                is_same,
                "{}: {node}: {:?}, {payload:?}",
                path.display(),
                event.payload
            );
            without_end += usize::from(rest != Some(&[]));
            *kinds
                .entry((event.provider, event.id, event.version))
                .or_insert(0) += 1;
            compared += 1;
        }
    }
    assert!(without_end * 10 < compared, "{without_end} of {compared}");
    assert!(
        kinds.len() > 40 && compared > 300,
        "{compared} events of {} kinds",
        kinds.len()
    );
    let providers: std::collections::BTreeSet<Guid> =
        kinds.keys().map(|(guid, ..)| *guid).collect();
    assert!(providers.len() >= 6, "{providers:?}");
}
