//! Source lines of .NET methods against those that another reader finds in the same portable PDB.

use std::collections::BTreeMap;
use std::path::PathBuf;

use etl_analysis::pdb::{PdbId, PdbKind, SymbolPaths, source_lines};
use etl_analysis::profile::IlPoint;
use etl_format::Guid;
use etl_schema::encode::OwnedValue;
use etl_synth::Script;
use etl_synth::truth::KnownEvent;
use etl_test_support::{foreign, needs};
use etlkit::run_captured;
use serde_json::Value;

use crate::simulated::simulate;

/// File and line; `None` for code without a line.
type Line = Option<(String, u32)>;

/// A portable PDB, and what another reader finds in it.
struct Judged {
    path: PathBuf,
    guid: Guid,
    /// By metadata token and IL offset.
    points: BTreeMap<IlPoint, Line>,
}

impl Judged {
    fn new() -> Self {
        let mut values = foreign("portable_pdb.py", &[]).into_iter();
        let path = PathBuf::from(values.next().unwrap().as_str().unwrap());
        let guid = Guid::parse(values.next().unwrap().as_str().unwrap()).unwrap();
        let number = |value: &Value| value.as_u64().unwrap() as u32;
        let point = |value: Value| {
            let line = value[2]
                .as_str()
                .map(|file| (file.to_owned(), number(&value[3])));
            (
                IlPoint {
                    token: number(&value[0]),
                    offset: number(&value[1]),
                },
                line,
            )
        };
        Judged {
            path,
            guid,
            points: values.map(point).collect(),
        }
    }
}

#[needs(python)]
#[test]
fn source_lines_are_those_of_another_reader() {
    let judged = Judged::new();
    let points: Vec<IlPoint> = judged
        .points
        .iter()
        .filter(|(_, line)| line.is_some())
        .map(|(at, _)| *at)
        .collect();
    assert!(points.len() > 10_000, "{}", points.len());
    let found = source_lines(&judged.path, &points).unwrap();
    for (at, found) in points.iter().zip(found) {
        let found = found.map(|line| (line.file.to_string(), line.line));
        assert_eq!(&found, &judged.points[at], "{at:x?}");
    }
    // Between two points, the line is that of the first.
    let after = IlPoint {
        offset: points[1].offset + 1,
        ..points[1]
    };
    assert!(!judged.points.contains_key(&after));
    let between = source_lines(&judged.path, &points[1..2]).unwrap();
    assert_eq!(source_lines(&judged.path, &[after]).unwrap(), between);
    // No method, and a token of a type.
    let none = source_lines(
        &judged.path,
        &[0x06ff_ffff, 0x0200_0002].map(|token| IlPoint { token, offset: 0 }),
    )
    .unwrap();
    assert_eq!(none, [None, None]);
}

#[needs(python)]
#[test]
fn portable_pdb_is_found_by_its_guid() {
    let judged = Judged::new();
    let folder = judged.path.parent().unwrap().to_owned();
    let paths = SymbolPaths::new([folder]).unwrap();
    let id = PdbId::new("/obj/Python.Runtime.pdb", judged.guid, 1);
    let found = paths.find(&id).found.unwrap();
    assert_eq!(
        (found.path.file_name(), found.kind),
        (judged.path.file_name(), PdbKind::Portable)
    );
    let other = PdbId::new("Python.Runtime.pdb", Guid::ZERO, 1);
    assert!(paths.find(&other).found.is_none());
}

#[needs(python)]
#[test]
fn damaged_portable_pdbs_are_errors() {
    let judged = Judged::new();
    let pdb = std::fs::read(&judged.path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.pdb");
    let points: Vec<IlPoint> = judged.points.keys().copied().step_by(97).collect();
    let mut random = 0x2545_f491_4f6c_dd1du64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    let mut errors = 0;
    for round in 0..200 {
        let mut bytes = pdb.clone();
        if round % 4 == 0 {
            bytes.truncate(next(pdb.len()));
        } else {
            let most = if round % 2 == 0 { 400 } else { pdb.len() };
            for _ in 0..1 + next(8) {
                bytes[next(most)] = [0, 1, 0x7f, 0x80, 0xff, next(256) as u8][next(6)];
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        errors += usize::from(source_lines(&path, &points).is_err());
    }
    assert!(errors > 50, "{errors} errors");
}

fn text(event: &KnownEvent, name: &str) -> String {
    match event.field(name) {
        Some(OwnedValue::Text(text)) => text.clone(),
        other => panic!("{other:?}"),
    }
}

#[needs(python)]
#[test]
fn sampled_methods_have_their_lines() {
    let judged = Judged::new();
    let script = format!(
        r#"scenario "portable" seed=5 about="samples in methods with a portable PDB"
        machine processors=2
        process "App.exe" threads=2 {{
            clr "core" {{
                assembly "Python.Runtime" {{
                    module "C:\\App\\Python.Runtime.dll" {{
                        pdb signature="{}" age=1 path="C:\\obj\\Python.Runtime.pdb"
                        methods 120 ready=120
                    }}
                }}
            }}
            every "10ms" from="2.1s" until="3.5s" {{ run "6ms" }}
        }}
        at "2s" {{
            run "xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk profile -f kernel.etl"
            session "rundown" file="rundown.etl" {{ enable "rundown" keywords=0x138 level=5 }}
        }}
        at "4s" {{ stop "rundown"; run "xperf -stop" }}
        at "5s" {{ merge "kernel.etl rundown.etl" into="all.etl" }}"#,
        judged.guid
    );
    let scenario = Script::new("portable.kdl", &script).parse().unwrap();
    let simulated = simulate("portable", script, scenario);
    let mut tokens = BTreeMap::new();
    for event in &simulated.truth.events {
        let token = event.field("MethodToken");
        let has_name = event.field("MethodName").is_some();
        if let (Some(OwnedValue::UInt(token)), true) = (token, has_name) {
            let name = format!(
                "{}.{}",
                text(event, "MethodNamespace"),
                text(event, "MethodName")
            );
            tokens.insert(name, *token as u32);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("all.etl");
    std::fs::write(&trace, &simulated.traces["all.etl"]).unwrap();
    let args = [
        "etlkit",
        "analyze",
        "cpu",
        "--lines",
        "--format",
        "json",
        "--symbols",
    ];
    let args = args.map(std::ffi::OsString::from).into_iter();
    let said = run_captured(args.chain([judged.path.clone().into(), trace.into()]));
    let report: Value = serde_json::from_slice(&said.out).unwrap();
    let mut with_line = 0;
    for row in report["rows"].as_array().unwrap() {
        if row["module"] != "Python.Runtime.dll" {
            continue;
        }
        let token = tokens[row["method"].as_str().unwrap()];
        // Without a map from native code to IL, that of the method.
        let expected = judged
            .points
            .get(&IlPoint { token, offset: 0 })
            .cloned()
            .flatten();
        let found = row["file"].as_str().map(|file| {
            (
                file.to_owned(),
                u32::try_from(row["line"].as_u64().unwrap()).unwrap(),
            )
        });
        assert_eq!(found, expected, "{row}");
        with_line += usize::from(found.is_some());
    }
    assert!(with_line > 50, "{with_line}");
}
