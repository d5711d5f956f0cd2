//! Compares the table of the kernel's classic events with a dump of Windows' own descriptions.
//!
//! The dump has names and rough types: UInt32 stands for addresses as well, Object for any type
//! without a simple one, and the names are those of classes in place of events.

use etl_format::Guid;
use etl_schema::tables::{Registry, TableEvent};
use etl_schema::{FieldKind, Identity, InType};
use etl_test_support::{needs, traces};

/// A row of the dump.
struct Row {
    class: Guid,
    opcode: u16,
    version: u16,
    symbol: String,
    /// Types and names.
    fields: Vec<(String, String)>,
}

fn rows() -> Vec<Row> {
    let path = traces().join("../facts/windows-providers/classic.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    let row = |line: &str| {
        let c: Vec<&str> = line.split('\t').collect();
        let fields = c[7].split(", ").filter_map(|field| field.split_once(' '));
        Row {
            class: c[2].parse().unwrap(),
            opcode: c[3].parse().unwrap(),
            version: c[4].parse().unwrap(),
            symbol: c[5].to_owned(),
            fields: fields
                .map(|(of, name)| (of.to_owned(), name.to_owned()))
                .collect(),
        }
    };
    text.lines().skip(1).map(row).collect()
}

/// The layout of an event: that of its version, or of the nearest older one.
fn layout(row: &Row) -> Option<&'static TableEvent> {
    let class = Registry::classic().provider(row.class)?;
    let versions = class
        .events
        .iter()
        .filter_map(|event| match event.schema.identity {
            Identity::Classic { opcode, version } if u16::from(opcode) == row.opcode => {
                Some((version, event))
            }
            _ => None,
        });
    let older = versions.filter(|(version, _)| *version <= row.version);
    older
        .max_by_key(|(version, _)| *version)
        .map(|(_, event)| event)
}

/// Whether a simple type of the dump can be that of a field.
fn agrees(of: &str, field: InType) -> bool {
    use InType::*;
    match of {
        "UInt64" | "SInt64" => matches!(field, UInt64 | Int64 | HexInt64 | FileTime),
        "UInt16" | "SInt16" => matches!(field, UInt16 | Int16),
        "UInt8" | "SInt8" | "Boolean" => matches!(field, UInt8 | Int8),
        "UInt32" | "SInt32" => {
            matches!(field, UInt32 | Int32 | HexInt32 | Pointer | SizeT)
        }
        "String" | "Char16" => matches!(field, Utf16 | Ansi),
        _ => true,
    }
}

/// Symbols whose layouts differ from the dump, and why.
const OTHERWISE: &[(&str, &str)] = &[
    // Real traces.
    ("SystemConfig_CPU_V3", "NxEnabled precedes PaeEnabled"),
    (
        "SystemConfig_Processors_V2",
        "ProcessorIdentifier precedes VendorIdentifier",
    ),
    (
        "SystemConfig_MobilePlatform_V4",
        "version 3 has further fields between",
    ),
    ("SystemConfig_NIC_V2", "the physical address is bytes"),
    ("EventTrace_Header_V2", "the time zone has 176 bytes"),
    (
        "PerfInfo_SampleProf_V2",
        "the last 16 bits are flags and a rank",
    ),
    (
        "EventTrace_PartitionInfoExtensionV2_V2",
        "ids are GUIDs in some versions",
    ),
    // Names of the reference pages in place of those of the dump.
    ("DiskIo_DrvComplRout_V2", "names"),
    ("EventTrace_DbgIdRSDS_V2", "names"),
    ("EventTrace_BuildInfo_V2", "names"),
    ("EventTrace_LastDroppedTimes_V2", "names"),
    // Lists up to the end of the payload.
    ("StackWalk_Stack_V2", "as many addresses as there are"),
    ("StackWalk_KeyCreate_V2", "as many addresses as there are"),
    ("StackWalk_KeyDelete_V2", "as many addresses as there are"),
    ("StackWalk_KeyRundown_V2", "as many addresses as there are"),
    // What the dump names and does not describe.
    (
        "EventTrace_ProviderBinaryPath_V2",
        "the order of GUIDs and path is not known",
    ),
    (
        "PerfInfo_PmcCtrConrruption_V2",
        "the type of the state is not known",
    ),
    ("Pool_PoolSnapDCStart_V2", "no fields"),
    ("Pool_PoolSnapDCEnd_V2", "no fields"),
    ("Pool_BigPoolSnapDCStart_V2", "no fields"),
    ("Pool_BigPoolSnapDCEnd_V2", "no fields"),
    ("Pool_SessionPoolSnapDCStart_V2", "no fields"),
    ("Pool_SessionPoolSnapDCEnd_V2", "no fields"),
    ("Pool_SessionBigPoolSnapDCStart_V2", "no fields"),
    ("Pool_SessionBigPoolSnapDCEnd_V2", "no fields"),
];

/// What a row and the table say differently.
fn difference(row: &Row) -> Option<String> {
    let Some(event) = layout(row) else {
        return Some("is not in the table".to_owned());
    };
    let fields = &event.schema.fields;
    let names = |names: Vec<String>| names.join(" ").to_lowercase();
    let ours = names(fields.iter().map(|field| field.name.to_string()).collect());
    let theirs = names(row.fields.iter().map(|(_, name)| name.clone()).collect());
    // A later version of a thread's events has its name as well, in whatever bytes are left.
    if ours != theirs && ours.strip_suffix(" threadname") != Some(&theirs) {
        return Some(format!("has the fields {theirs}, and not {ours}"));
    }
    let wrong = fields
        .iter()
        .zip(&row.fields)
        .find(|(field, (of, _))| match field.kind {
            FieldKind::Value(kind) => !agrees(of, kind),
            _ => false,
        });
    wrong.map(|(field, (of, name))| format!("{name} is {of}, and not {:?}", field.kind))
}

/// Versions below 2 are those of Windows 2000 and XP, which no trace that is read has.
#[needs(traces)]
#[test]
fn kernel_events_have_the_fields_of_windows_own_descriptions() {
    let classes: Vec<Guid> = Registry::classic()
        .providers()
        .map(|class| class.guid)
        .collect();
    let rows = rows();
    let compared: Vec<&Row> = rows
        .iter()
        .filter(|row| row.version >= 2 && classes.contains(&row.class))
        .collect();
    assert!(compared.len() >= 375, "{} rows", compared.len());
    let mut wrong = Vec::new();
    for row in compared {
        let known = OTHERWISE.iter().find(|(symbol, _)| *symbol == row.symbol);
        match (difference(row), known) {
            (Some(difference), None) => wrong.push(format!("{} {difference}", row.symbol)),
            (None, Some(_)) => wrong.push(format!("{} is as described", row.symbol)),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
