//! The definitions of providers beside simulated traces: readers of others decode the events by
//! them, with the names and values of the truth.

use std::path::PathBuf;

use etl_schema::encode::OwnedValue;
use etl_synth::truth::InMemoryTruth;
use etl_synth::{MemoryFileSystem, Script, Simulation};
use etl_test_support::{foreign, needs};
use serde_json::{Value, json};

/// A value as JSON.
fn plain(value: &OwnedValue) -> Value {
    match value {
        OwnedValue::Text(text) => json!(text),
        OwnedValue::Guid(guid) => json!(guid.to_string()),
        OwnedValue::Float(value) => json!(f64::from(*value)),
        OwnedValue::Double(value) => json!(value),
        OwnedValue::Int(value) => json!(value),
        OwnedValue::Pointer(value) | OwnedValue::UInt(value) => json!(value),
        OwnedValue::Bool(value) => json!(u8::from(*value)),
        other => panic!("no JSON of {other:?}"),
    }
}

/// What a script says of the events that its session recorded, and what a reader says of them.
fn compared(script: &str, definition: &str, reader: &str) -> (Vec<Value>, Vec<Value>) {
    let scenario = Script::new("d.kdl", script)
        .parse()
        .unwrap_or_else(|e| panic!("{e:#?}"));
    let (mut files, mut truth) = (MemoryFileSystem::default(), InMemoryTruth::default());
    Simulation::new(&scenario)
        .observer(&mut truth)
        .run(&mut files)
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    for file in files.into_files() {
        std::fs::write(directory.path().join(file.name), file.bytes).unwrap();
    }
    let of_provider = truth
        .events
        .iter()
        .filter(|e| e.outcomes.iter().any(|entry| entry.is_recorded()));
    let ours = of_provider.map(|event| {
        let fields = event
            .fields
            .iter()
            .map(|field| (field.name.clone(), plain(&field.value)));
        let fields: serde_json::Map<String, Value> = fields.collect();
        json!({ "symbol": event.name, "fields": fields, "left": 0 })
    });
    let paths: Vec<PathBuf> = [definition, "d.etl"]
        .iter()
        .map(|name| directory.path().join(name))
        .collect();
    (ours.collect(), foreign(reader, &paths))
}

/// Of the types that dissect.etl knows: not AnsiString, Binary, FILETIME and HexInt32.
#[needs(python)]
#[test]
fn dissect_decodes_events_by_the_manifest() {
    let script = r#"
provider "Contoso-Shop" guid="6b2f0c7e-3b1d-4f6e-9a51-0c1f8b7e2d44" {
    event "Placed" id=7 version=2 level=4 keywords=0x11 task=5 opcode=11 message="order %1 of %2" {
        field "Id" "UInt32"; field "Customer" "UnicodeString"; field "Amount" "Double"; field "Step" "UInt16"
    }
    event "Shipped" id=8 keywords=0x8000000000000000 { field "Tracking" "GUID"; field "Note" "UnicodeString"; field "Where" "Pointer" }
    event "Numbers" { field "A" "Int8"; field "B" "Int16"; field "C" "Int32"; field "D" "Int64"; field "E" "UInt8"; field "F" "UInt64" }
}
process "Shop.exe" {
    every "10ms" from="1s" until="2s" {
        raise "Contoso-Shop" "Placed"
        raise "Contoso-Shop" "Shipped" { Note "on its way" }
        raise "Contoso-Shop" "Numbers" { A -5; B -300; C -70000; D -9; F 18446744073709551615 }
    }
}
session "d" file="d.etl" { enable "Contoso-Shop" level=5 }
at "3s" { stop "d" }"#;
    let (ours, mut theirs) = compared(script, "Contoso-Shop.man", "dissect_manifest.py");
    let keywords = json!({ "K1": 1, "K10": 16, "K8000000000000000": 0x8000_0000_0000_0000_u64 });
    let provider = json!({ "provider": "Contoso-Shop", "keywords": keywords });
    assert_eq!(theirs.remove(0), provider);
    assert_eq!(ours.len(), 300);
    assert_eq!(theirs, ours);
}

#[needs(python)]
#[test]
fn pywbem_compiles_the_mof_by_which_events_are_decoded() {
    let script = r#"
provider "My driver" kind="classic" guid="0f6f7a52-6f3b-4d53-9d7e-6a1a5b0f7c11" {
    event "Request" opcode=10 version=1 level=4 { field "Id" "UInt32"; field "Url" "UnicodeString"; field "Exact" "Double" }
    event "Request 2" opcode=10 version=2 level=4 { field "Id" "UInt64"; field "Url" "AnsiString"; field "Where" "Pointer" }
    event "Noise" opcode=11 version=1 level=5 { field "A" "Int8"; field "B" "Int16"; field "C" "Int64"; field "D" "Boolean"; field "E" "Float" }
}
process "Legacy.exe" {
    every "10ms" from="1s" until="2s" {
        raise "My driver" "Request"
        raise "My driver" "Request 2"
        raise "My driver" "Noise" { A -5; B -300; C -9 }
    }
}
session "d" file="d.etl" { enable "My driver" keywords=0x1 level=5 }
at "3s" { stop "d" }"#;
    let (ours, theirs) = compared(script, "My driver.mof", "pywbem_mof.py");
    assert_eq!(ours.len(), 300);
    assert_eq!(theirs, ours);
}
