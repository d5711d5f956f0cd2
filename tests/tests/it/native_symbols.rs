//! Names of native code against what others read from the same program: its code is the same with a
//! PDB and with DWARF information, and LLVM's symbolizer reads the latter.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use etl_analysis::pdb::{
    FunctionTable, PdbId, PdbKind, Reason, SymbolPaths, functions, message_formats,
};
use etl_analysis::symbols::Function;
use etl_format::constants::hook;
use etl_format::write::Session;
use etl_format::write::record::System;
use etl_format::{FileHeader, Guid};
use etl_schema::Identity;
use etl_schema::encode::OwnedValue;
use etl_schema::sources::tmf;
use etl_synth::Script;
use etl_test_support::{needs, node_packages, program, root};
use etlkit::run_captured;
use serde_json::Value;

use crate::simulated::{Simulated, simulate};

/// A function with its source line.
type Named = (String, u64);

/// The program of `tests/native`, with a PDB and with DWARF information.
struct Program {
    folder: tempfile::TempDir,
    guid: Guid,
    age: u32,
    /// First and last offset of its code.
    code: (u32, u32),
}

fn run(name: &str, args: &[&str], folder: &Path) {
    let output = Command::new(program(name))
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Offset, size and bytes of the first section of an image, which is that of its code.
fn code(image: &[u8]) -> (u32, u32, &[u8]) {
    let header = u32_at(image, 0x3c) as usize;
    let optional = usize::from(u16::from_le_bytes(
        image[header + 20..][..2].try_into().unwrap(),
    ));
    let section = header + 24 + optional;
    assert_eq!(&image[section..section + 5], b".text");
    let [size, offset, _, raw] = [8, 12, 16, 20].map(|at| u32_at(image, section + at));
    (offset, size, &image[raw as usize..][..size as usize])
}

impl Program {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = root().join("tests/native/app.cpp").display().to_string();
        for (name, compile, link) in [
            ("app", "-gcodeview", "/debug"),
            ("dwarf", "-gdwarf-4", "/debug:dwarf"),
        ] {
            let (object, image) = (format!("{name}.obj"), format!("{name}.exe"));
            let target = "--target=x86_64-pc-windows-msvc";
            let args = [target, "-O1", "-g", compile, "-c", &source, "-o", &object];
            run("clang", &args, folder.path());
            let out = format!("/out:{image}");
            let args = [
                link,
                "/nodefaultlib",
                "/entry:entry",
                "/subsystem:console",
                &out,
                &object,
            ];
            run("lld-link", &args, folder.path());
        }
        let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        let (image, dwarf) = (read("app.exe"), read("dwarf.exe"));
        let (offset, size, bytes) = code(&image);
        assert_eq!((offset, size, bytes), code(&dwarf));
        // The record of the image that names its PDB.
        let at = image
            .windows(4)
            .position(|window| window == b"RSDS")
            .unwrap();
        let guid = Guid::from_bytes(image[at + 4..at + 20].try_into().unwrap());
        let age = u32_at(&image, at + 20);
        Program {
            folder,
            guid,
            age,
            code: (offset, offset + size),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The functions at offsets, outermost first, as the DWARF information has them. What has no
    /// line is left out: the padding between functions, and what the compiler added.
    fn judge(&self, offsets: impl Iterator<Item = u32>) -> BTreeMap<u32, Vec<Named>> {
        let image = format!("--obj={}", self.path("dwarf.exe").display());
        let args = [
            "--relative-address",
            "--inlines",
            "--output-style=JSON",
            &image,
        ];
        let mut child = Command::new(program("llvm-symbolizer"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines: String = offsets.map(|offset| format!("{offset:#x}\n")).collect();
        let mut input = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let mut found = BTreeMap::new();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            let offset = value["Address"].as_str().unwrap().trim_start_matches("0x");
            let frames = value["Symbol"].as_array().unwrap().iter().rev();
            let frames = frames.map(|frame| {
                // The arguments of functions are no part of their names here.
                let name = frame["FunctionName"].as_str().unwrap();
                let name = name.split('(').next().unwrap();
                let name = name.rsplit(' ').next().unwrap();
                (name.to_owned(), frame["Line"].as_u64().unwrap())
            });
            let frames: Vec<Named> = frames.collect();
            if frames
                .iter()
                .all(|(name, line)| !name.is_empty() && *line > 0)
            {
                found.insert(u32::from_str_radix(offset, 16).unwrap(), frames);
            }
        }
        found
    }

    /// A machine that samples this program.
    fn sampled(&self) -> Simulated {
        self.recorded("PROC_THREAD+LOADER+PROFILE -stackwalk Profile")
    }

    /// A machine that records this program.
    fn recorded(&self, flags: &str) -> Simulated {
        let (guid, age) = (self.guid, self.age);
        let size = self.code.1.next_multiple_of(0x1000);
        let script = format!(
            r#"scenario "native" seed=3 about="samples in native code"
            machine processors=2 computer="BUILD7" {{
                disk "Disk" gb=128 {{ volume "C:" gb=127 free-gb=40 }}
            }}
            process "C:\\App\\app.exe" threads=2 {{
                image "C:\\App\\app.exe" pdb="{guid}" age={age} size={size}
                every "10ms" from="2.1s" until="2.9s" {{ run "6ms" }}
            }}
            at "2s" {{ run "xperf -on {flags} -f kernel.etl" }}
            at "3s" {{ run "xperf -stop"; run "xperf -merge kernel.etl merged.etl" }}"#
        );
        let scenario = Script::new("native.kdl", &script).parse().unwrap();
        let simulated = simulate("native", script, scenario);
        std::fs::write(self.path("merged.etl"), &simulated.traces["merged.etl"]).unwrap();
        simulated
    }

    /// Runs `etlkit`, with the folder of the program as the place of symbols.
    fn etlkit(&self, args: &[&str]) -> (u8, Vec<u8>) {
        let (trace, symbols) = (self.path("merged.etl"), self.folder.path().to_owned());
        let args = ["etlkit"].iter().chain(args).map(Into::into);
        let args = args.chain(["--symbols".into(), symbols.into(), trace.into()]);
        let said = run_captured(args.collect::<Vec<_>>());
        (said.code, said.out)
    }
}

/// First address, size and process of the program.
fn image(simulated: &Simulated) -> [u64; 3] {
    let inventory = simulated.truth.inventory.iter();
    let mut inventory = inventory.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_program = |item: &Value| {
        item["kind"] == "image" && item["path"].as_str().unwrap().ends_with("app.exe")
    };
    let image = inventory.find(is_program).unwrap();
    ["base", "size", "pid"].map(|name| image[name].as_u64().unwrap())
}

/// The offsets in the program at which samples were taken, by the truth: how often each.
fn sampled_offsets(simulated: &Simulated) -> BTreeMap<u32, u64> {
    let field = |event: &etl_synth::truth::KnownEvent, name: &str| {
        let value = event.field(name).unwrap();
        match value {
            OwnedValue::UInt(value) | OwnedValue::Pointer(value) => *value,
            other => panic!("{other:?}"),
        }
    };
    let events = &simulated.truth.events;
    let [base, size, pid] = image(simulated);
    let mut offsets = BTreeMap::new();
    for event in events
        .iter()
        .filter(|e| e.name == "SampleProf" && u64::from(e.pid.get()) == pid)
    {
        let address = field(event, "InstructionPointer");
        let is_recorded = event.outcomes.iter().any(|entry| entry.is_recorded());
        if is_recorded && (base..base + size).contains(&address) {
            *offsets.entry((address - base) as u32).or_default() += 1;
        }
    }
    offsets
}

fn source(line: u64) -> String {
    format!("app.cpp:{line}")
}

#[needs(clang)]
#[test]
fn functions_and_lines_of_all_offsets_are_those_of_dwarf() {
    let program = Program::new();
    let (first, end) = program.code;
    let offsets: Vec<u32> = (first..end).collect();
    let expected = program.judge(offsets.iter().copied());
    assert!(expected.len() > 2000, "{}", expected.len());
    assert!(expected.values().any(|frames| frames.len() == 3));
    let found = functions(&program.path("app.pdb"), &offsets).unwrap();
    for (offset, functions) in offsets.iter().zip(found) {
        let Some(expected) = expected.get(offset) else {
            continue;
        };
        let line = |function: &Function| {
            let source = function.source.as_ref().unwrap();
            (function.name.to_string(), source.line.into())
        };
        let functions: Vec<Named> = functions.iter().map(line).collect();
        assert_eq!(functions, *expected, "{offset:#x}");
    }
}

#[needs(clang)]
#[test]
fn a_pdb_is_found_by_its_identity_only() {
    let program = Program::new();
    let server = program.path("server/app.pdb/0/app.pdb");
    std::fs::create_dir_all(server.parent().unwrap()).unwrap();
    std::fs::copy(program.path("app.pdb"), &server).unwrap();
    let id = PdbId::new("C:\\build\\APP.pdb", program.guid, program.age);
    for place in ["app.pdb", "server", "."] {
        let paths = SymbolPaths::new([program.path(place)]).unwrap();
        let found = paths.find(&id).found.unwrap();
        assert_eq!(found.kind, PdbKind::Windows, "{place}");
        let other = PdbId::new("app.pdb", program.guid, program.age + 1);
        let search = paths.find(&other);
        assert!(
            search.found.is_none() && !search.others.is_empty(),
            "{place}"
        );
    }
    // A file with another name counts where it was named itself.
    std::fs::rename(program.path("app.pdb"), program.path("renamed.pdb")).unwrap();
    assert!(
        SymbolPaths::new([program.path("renamed.pdb")])
            .unwrap()
            .find(&id)
            .found
            .is_some()
    );
}

#[needs(clang)]
#[test]
fn sampled_functions_and_lines_are_those_of_the_truth() {
    let program = Program::new();
    let simulated = program.sampled();
    let offsets = sampled_offsets(&simulated);
    let judged = program.judge(offsets.keys().copied());
    let mut expected: [BTreeMap<(String, String), u64>; 2] = Default::default();
    let (mut named, mut total) = (0, 0);
    for (offset, count) in &offsets {
        total += count;
        let Some((name, line)) = judged.get(offset).and_then(|frames| frames.last()) else {
            continue;
        };
        named += count;
        *expected[0]
            .entry((name.clone(), String::new()))
            .or_default() += count;
        *expected[1]
            .entry((name.clone(), source(*line)))
            .or_default() += count;
    }
    assert!(named > 100 && total > named, "{named} of {total}");
    for (expected, args) in expected.iter().zip([&[][..], &["--lines"]]) {
        let (code, out) = program.etlkit(&[&["analyze", "cpu", "--format", "json"], args].concat());
        assert_eq!(code, 0);
        let report: Value = serde_json::from_slice(&out).unwrap();
        let mut found: BTreeMap<(String, String), u64> = BTreeMap::new();
        for row in report["rows"].as_array().unwrap() {
            let (module, own) = (&row["module"], row["self_samples"].as_u64().unwrap());
            if module == "app.exe" && own > 0 {
                let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
                found.insert((text("method"), text("source")), own);
            }
        }
        for (name, count) in expected {
            // What has no line in DWARF may belong to a function and a line in the PDB.
            let found = found.get(name).copied().unwrap_or(0);
            assert!(found >= *count, "{name:?}: {found} instead of {count}");
        }
        assert_eq!(found.values().sum::<u64>(), total);
        let named_here = found.iter().filter(|((name, _), _)| name != "?");
        let more = named_here.map(|(_, count)| count).sum::<u64>() - named;
        assert!(
            more * 5 < total,
            "{more} of {total} samples have names in the PDB only"
        );
    }
}

#[needs(clang, node)]
#[test]
fn pprof_files_have_functions_and_lines() {
    let program = Program::new();
    let simulated = program.sampled();
    let file = program.path("out.pb.gz");
    let (code, _) = program.etlkit(&["export", "pprof", "-o", file.to_str().unwrap()]);
    assert_eq!(code, 0);
    let script = root().join("tests/foreign/pprof.cjs");
    let output = Command::new("node")
        .arg(script)
        .arg(node_packages())
        .arg(file)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let read: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut found: BTreeMap<u32, BTreeSet<Named>> = BTreeMap::new();
    for location in read["locations"].as_array().unwrap() {
        if location["mapping"].as_str().unwrap().ends_with("app.exe") {
            let offset = location["offset"].as_u64().unwrap() as u32;
            let name = location["name"].as_str().unwrap();
            let line = location["line"].as_u64().unwrap();
            if line > 0 {
                assert!(
                    location["file"].as_str().unwrap().ends_with("app.cpp"),
                    "{location}"
                );
            }
            let name = name.strip_prefix("app.exe!").unwrap().to_owned();
            found.entry(offset).or_default().insert((name, line));
        }
    }
    assert_named(&program, &simulated, &found, true);
}

/// Asserts that offsets of the program have the functions, and lines where `has_lines`, of DWARF.
fn assert_named(
    program: &Program,
    simulated: &Simulated,
    found: &BTreeMap<u32, BTreeSet<Named>>,
    has_lines: bool,
) {
    let sampled = sampled_offsets(simulated);
    // A return address has the line of the call, which is before it.
    let looked_up = |offset: u32| {
        if sampled.contains_key(&offset) {
            offset
        } else {
            offset - 1
        }
    };
    let judged = program.judge(found.keys().map(|&offset| looked_up(offset)));
    let mut compared = 0;
    for (offset, found) in found {
        let Some(expected) = judged.get(&looked_up(*offset)) else {
            continue;
        };
        let line = |line: u64| if has_lines { line } else { 0 };
        let expected = expected
            .iter()
            .map(|(name, l)| (name.clone(), line(*l)))
            .collect();
        assert_eq!(*found, expected, "{offset:#x}");
        compared += 1;
    }
    assert!(compared > 200, "{compared}");
}

#[needs(clang)]
#[test]
fn firefox_profiles_have_functions_and_lines() {
    let program = Program::new();
    let simulated = program.sampled();
    let file = program.path("out.json");
    let (code, _) = program.etlkit(&["export", "firefox", "-o", file.to_str().unwrap()]);
    assert_eq!(code, 0);
    let profile: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let shared = &profile["shared"];
    let text = |at: &Value| {
        shared["stringArray"][at.as_u64().unwrap() as usize]
            .as_str()
            .unwrap()
    };
    let frames = &shared["frameTable"];
    let mut found: BTreeMap<u32, BTreeSet<Named>> = BTreeMap::new();
    for (row, function) in frames["func"].as_array().unwrap().iter().enumerate() {
        let of = |column: &str| &shared["funcTable"][column][function.as_u64().unwrap() as usize];
        let Some(resource) = of("resource").as_u64() else {
            continue;
        };
        if text(&shared["resourceTable"]["name"][resource as usize]) == "app.exe" {
            let offset = frames["address"][row].as_u64().unwrap() as u32;
            let line = frames["line"][row].as_u64().unwrap_or(0);
            if line > 0 {
                let source = of("source").as_u64().unwrap() as usize;
                assert!(text(&shared["sources"]["filename"][source]).ends_with("app.cpp"));
            }
            found
                .entry(offset)
                .or_default()
                .insert((text(of("name")).to_owned(), line));
        }
    }
    assert_named(&program, &simulated, &found, true);
}

#[needs(clang)]
#[needs(node)]
#[test]
fn traces_of_perfetto_have_functions() {
    let program = Program::new();
    let simulated = program.sampled();
    let file = program.path("out.perfetto-trace");
    let (code, _) = program.etlkit(&["export", "perfetto", "-o", file.to_str().unwrap()]);
    assert_eq!(code, 0);
    let frames = "select f.rel_pc, f.name from stack_profile_frame f join stack_profile_mapping m \
                  on f.mapping = m.id where m.name like '%app.exe'";
    let rows = etl_test_support::trace_processor(&file, &[("frames", frames)]);
    let mut found: BTreeMap<u32, BTreeSet<Named>> = BTreeMap::new();
    for row in rows["frames"].as_array().unwrap() {
        let name = row["name"]
            .as_str()
            .unwrap()
            .strip_prefix("app.exe!")
            .unwrap()
            .to_owned();
        found
            .entry(row["rel_pc"].as_u64().unwrap() as u32)
            .or_default()
            .insert((name, 0));
    }
    assert_named(&program, &simulated, &found, false);
}

#[needs(clang)]
#[test]
fn resolved_addresses_of_events_have_their_functions() {
    let program = Program::new();
    let [base, size, _] = image(&program.sampled());
    let select = [
        "dump",
        "--event",
        "Stack",
        "--resolve",
        "--format",
        "jsonl",
        "--threads",
    ];
    let (done, out) = program.etlkit(&[&select[..], &["1"]].concat());
    assert_eq!(
        (done, program.etlkit(&[&select[..], &["4"]].concat()).1),
        (0, out.clone())
    );
    let mut found: BTreeMap<u32, String> = BTreeMap::new();
    for line in String::from_utf8(out).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let list = |name: &str| row["fields"][name].as_array().unwrap().clone();
        for (address, name) in list("Stack").into_iter().zip(list("Stack_name")) {
            let address = address.as_str().unwrap().trim_start_matches("0x");
            let address = u64::from_str_radix(address, 16).unwrap();
            if (base..base + size).contains(&address) {
                found.insert((address - base) as u32, name.as_str().unwrap().to_owned());
            }
        }
    }
    let judged = program.judge(found.keys().copied());
    let mut starts: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for (offset, name) in &found {
        // Of inlined functions, the one that has their code.
        let Some((expected, _)) = judged.get(offset).map(|functions| &functions[0]) else {
            continue;
        };
        let (function, within) = name.split_once("+0x").unwrap();
        assert_eq!(function, format!("app.exe!{expected}"), "{offset:#x}");
        let within = u32::from_str_radix(within, 16).unwrap();
        starts.entry(function).or_default().insert(offset - within);
    }
    assert!(
        judged.len() > 200 && starts.len() > 20,
        "{} {}",
        judged.len(),
        starts.len()
    );
    // All addresses of a function count from its beginning.
    for (function, starts) in starts {
        let [start] = starts.into_iter().collect::<Vec<_>>()[..] else {
            panic!("{function}")
        };
        let first = program.judge([start].into_iter());
        assert_eq!(format!("app.exe!{}", first[&start][0].0), function);
    }
    assert_eq!(
        program.etlkit(&["dump"]).0,
        2,
        "--symbols without --resolve"
    );
}

#[needs(clang)]
#[test]
fn waits_have_the_functions_of_their_stacks() {
    let program = Program::new();
    let flags = "PROC_THREAD+LOADER+CSWITCH+DISPATCHER -stackwalk CSwitch+ReadyThread";
    program.recorded(flags);
    let trace = program.path("merged.etl").into_os_string();
    let words = [
        "waits",
        "--tree",
        "--unfold",
        "--min-percent",
        "0",
        "--format",
        "json",
    ];
    for more in [&[][..], &["--ended-by"]] {
        let words = [&["analyze"], &words[..], more].concat();
        let (code, named) = program.etlkit(&words);
        assert_eq!(code, 0);
        let args = ["etlkit"]
            .iter()
            .chain(&words)
            .map(Into::into)
            .chain([trace.clone()]);
        let plain = run_captured(args.collect::<Vec<_>>()).out;
        let [named, plain]: [Value; 2] =
            [named, plain].map(|out| serde_json::from_slice(&out).unwrap());
        assert_eq!(
            (&named["count"], &named["wait_us"]),
            (&plain["count"], &plain["wait_us"])
        );
        // Without the names of the functions, it is the tree that is made without symbols.
        assert_eq!(by_stack(&named, true), by_stack(&plain, true));
        let functions = by_stack(&named, false);
        let known = functions
            .keys()
            .filter(|path| path.contains("app.exe!shop::Step<"));
        // What ends waits is mostly an interrupt.
        assert!(known.count() > 5 || !more.is_empty());
    }
}

/// The waits of a call tree by stack; with `unnamed` the functions of the program have no names.
fn by_stack(report: &Value, unnamed: bool) -> BTreeMap<String, u64> {
    let (mut path, mut waits): (Vec<String>, _) = (Vec::new(), BTreeMap::new());
    for row in report["rows"].as_array().unwrap() {
        path.truncate(row["depth"].as_u64().unwrap() as usize);
        path.push(row["name"].as_str().unwrap().trim_start().to_owned());
        let mut labels = path.clone();
        if unnamed {
            let own = labels
                .iter_mut()
                .filter(|label| label.starts_with("app.exe!"));
            own.for_each(|label| *label = "app.exe!?".to_owned());
            labels.dedup();
        }
        *waits.entry(labels.join(";")).or_default() += row["self_waits"].as_u64().unwrap();
    }
    waits
}

#[needs(clang)]
#[test]
fn symbols_list_says_what_is_missing() {
    let program = Program::new();
    let simulated = program.sampled();
    let (code, out) = program.etlkit(&["symbols", "list", "--format", "json"]);
    assert_eq!(code, 1);
    let report: Value = serde_json::from_slice(&out).unwrap();
    let rows = report["pdbs"].as_array().unwrap();
    let row = |image: &str| rows.iter().find(|row| row["image"] == image).unwrap();
    let key = program.guid.to_string().replace('-', "").to_uppercase();
    let path = format!("app.pdb/{key}{:X}/app.pdb", program.age);
    assert_eq!(row("app.exe")["server_path"], path);
    assert_eq!(
        row("app.exe")["found"],
        program.path("app.pdb").display().to_string()
    );
    assert_eq!(
        (&row("app.exe")["kind"], &row("app.exe")["code"]),
        (&"windows".into(), &"native".into())
    );
    let sampled: u64 = sampled_offsets(&simulated).values().sum();
    assert!(row("app.exe")["addresses"].as_u64().unwrap() >= sampled);
    // Every stack begins in these.
    assert_eq!(row("ntdll.dll")["addresses"], sampled);
    assert_eq!(row("ntdll.dll")["found"], Value::Null);
    assert_eq!(row("KernelBase.dll")["addresses"], 0);

    let (code, out) = program.etlkit(&["symbols", "list", "--missing"]);
    assert_eq!(code, 1);
    let missing = String::from_utf8(out).unwrap();
    let expected = rows
        .iter()
        .filter(|r| r["found"].is_null() && r["addresses"] != 0);
    let expected: BTreeSet<&str> = expected
        .map(|r| r["server_path"].as_str().unwrap())
        .collect();
    assert_eq!(missing.lines().collect::<BTreeSet<_>>(), expected);
    assert!(
        expected.iter().any(|path| path.starts_with("ntdll.pdb/")),
        "{expected:?}"
    );
    assert!(!missing.contains("app.pdb"));
}

/// Where a PDB states the size of the lines of the module that was compiled from `app.obj`: the
/// module's name follows a description of 64 bytes.
fn size_of_lines(pdb: &[u8]) -> usize {
    const DESCRIPTION: usize = 64;
    const SIZE: usize = 44;
    const OBJECT: &[u8] = b"app.obj\0";
    let ends = pdb.windows(OBJECT.len()).enumerate();
    for (end, _) in ends.filter(|(_, bytes)| *bytes == OBJECT) {
        let before = pdb[..end].iter().rposition(|byte| *byte < b' ').unwrap();
        let at = before + 1 - DESCRIPTION + SIZE;
        let size = u32::from_le_bytes(pdb[at..at + 4].try_into().unwrap());
        if (1..0x1_0000).contains(&size) {
            return at;
        }
    }
    panic!("no module has the name");
}

/// The lines of a module are larger than its stream: the reader of PDBs panics at that.
#[needs(clang)]
#[test]
fn module_with_too_many_lines_is_left_out() {
    let program = Program::new();
    let mut pdb = std::fs::read(program.path("app.pdb")).unwrap();
    let at = size_of_lines(&pdb);
    pdb[at + 3] = 0x0f;
    let path = program.path("lines.pdb");
    std::fs::write(&path, &pdb).unwrap();
    let offsets: Vec<u32> = (program.code.0..program.code.1).step_by(16).collect();
    // Without the check, this is an error of the whole file.
    let found = functions(&path, &offsets).unwrap();
    assert_eq!(found.len(), offsets.len());
    let sources = found
        .iter()
        .flatten()
        .filter(|function| function.source.is_some());
    assert_eq!(sources.count(), 0, "lines of the module that is left out");
}

#[needs(clang)]
#[test]
fn damaged_pdbs_are_errors() {
    let program = Program::new();
    let pdb = std::fs::read(program.path("app.pdb")).unwrap();
    let offsets: Vec<u32> = (program.code.0..program.code.1).step_by(16).collect();
    let path = program.path("damaged.pdb");
    let id = PdbId::new("damaged.pdb", program.guid, program.age);
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    let (mut errors, mut changed) = (0, 0);
    let whole = functions(&program.path("app.pdb"), &offsets).unwrap();
    for round in 0..400 {
        let mut bytes = pdb.clone();
        match round % 4 {
            0 => bytes.truncate(next(pdb.len())),
            1 => bytes[next(4096)] = next(256) as u8,
            _ => {
                for _ in 0..1 + next(64) {
                    // Small numbers, and those that are almost too large, do more harm than others.
                    let at = next(pdb.len());
                    bytes[at] = [0, 1, 0x7f, 0x80, 0xff, next(256) as u8][next(6)];
                }
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        match functions(&path, &offsets) {
            Ok(found) => changed += usize::from(found != whole),
            Err(error) => {
                assert_eq!(error.path(), path);
                errors += 1;
            }
        }
        let _ = SymbolPaths::new([path.clone()]).unwrap().find(&id);
        let _ = FunctionTable::read(&path);
    }
    assert!(
        errors > 50 && changed > 20,
        "{errors} errors, {changed} with other names"
    );
}

/// A program with the annotations of the preprocessor of WPP.
const WPP: &str = r##"
static __inline void read_bytes(void) {
    __annotation(L"TMF:", L"01020304-0506-0708-090a-0b0c0d0e0f10 driver // SRC=driver.c MJ= MN=",
        L"#typev driver_c42 10 \"%0read %10!d! bytes from %11!s!\" //   LEVEL=INFO FUNC=Read",
        L"{", L"length, ItemLong -- 10", L"name, ItemWString -- 11", L"}");
}
int entry(void) { __annotation(L"TMC:", L"other"); read_bytes(); return 0; }
"##;

/// The PDB of [`WPP`]. LLVM's linker replaces annotations by empty records of the same size, so
/// they are copied from the object file, as Microsoft's linker does.
fn wpp_pdb(folder: &Path) -> PathBuf {
    std::fs::write(folder.join("wpp.c"), WPP).unwrap();
    let target = "--target=x86_64-pc-windows-msvc";
    let compile = [
        target,
        "-O1",
        "-g",
        "-gcodeview",
        "-c",
        "wpp.c",
        "-o",
        "wpp.obj",
    ];
    run("clang", &compile, folder);
    let link = [
        "/debug",
        "/nodefaultlib",
        "/entry:entry",
        "/subsystem:console",
        "/out:wpp.exe",
        "wpp.obj",
    ];
    run("lld-link", &link, folder);
    let object = std::fs::read(folder.join("wpp.obj")).unwrap();
    let path = folder.join("wpp.pdb");
    let mut pdb = std::fs::read(&path).unwrap();
    for mark in [&b"TMF:\0"[..], b"TMC:\0"] {
        let text = object.windows(5).position(|bytes| bytes == mark).unwrap();
        // Size, kind, offset, section and number of the texts come before them.
        let record = text - 12;
        let size = usize::from(object[record]) | usize::from(object[record + 1]) << 8;
        let record = &object[record..record + 2 + size];
        assert_eq!(record[2..4], [0x19, 0x10]);
        let empty = [record[0], record[1], 7, 0];
        let skipped = pdb.windows(4).position(|bytes| bytes == empty).unwrap();
        pdb[skipped..skipped + record.len()].copy_from_slice(record);
    }
    std::fs::write(&path, &pdb).unwrap();
    path
}

#[needs(clang)]
#[test]
fn messages_of_a_pdb_are_those_of_its_annotations() {
    let folder = tempfile::tempdir().unwrap();
    let path = wpp_pdb(folder.path());
    let text = message_formats(&path).unwrap();
    let messages = tmf::parse(&text).unwrap();
    let [message] = &messages.schemas[..] else {
        panic!("{text}")
    };
    assert_eq!(
        message.provider.to_string(),
        "01020304-0506-0708-090a-0b0c0d0e0f10"
    );
    assert_eq!(message.identity, Identity::Message { number: 10 });
    assert_eq!(
        message.message.as_deref(),
        Some("%0read %10!d! bytes from %11!s!")
    );
    assert_eq!(message.fields.len(), 2);
    // A program without messages.
    let program = Program::new();
    assert_eq!(message_formats(&program.path("app.pdb")).unwrap(), "");
}

/// Newer files of symbol servers.
#[test]
fn compressed_pdb_is_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.pdb");
    let magic = b"Microsoft MSFZ Container\r\n\x1aALD\0\0";
    std::fs::write(&path, [&magic[..], &[0; 100]].concat()).unwrap();
    let paths = SymbolPaths::new([path.clone()]).unwrap();
    assert!(paths.not_pdbs().is_empty());
    let search = paths.find(&PdbId::new("app.pdb", Guid::ZERO, 1));
    assert!(search.found.is_none());
    for error in [&search.others[0], &message_formats(&path).unwrap_err()] {
        assert!(matches!(error.reason(), Reason::Msfz));
        assert!(
            error.to_string().contains("compressed PDB (MSFZ)"),
            "{error}"
        );
    }
}

/// A WPP trace names the PDBs of its programs in events of the trace itself.
#[test]
fn symbols_list_names_the_pdbs_of_wpp_messages() {
    let guid = Guid::parse("0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9").unwrap();
    let payload = [
        &guid.to_bytes()[..],
        &2u32.to_le_bytes(),
        b"NetSetupShim.pdb\0",
    ]
    .concat();
    let mut session = Session::in_memory(FileHeader::new()).unwrap();
    let record = System::new(hook::DBGID_RSDS, 1_000).payload(&payload);
    session.write(0, &record).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("service.0.etl");
    std::fs::write(&trace, session.finish().unwrap()).unwrap();
    let args = ["etlkit", "symbols", "list", "--format", "json"].map(OsString::from);
    let listed = run_captured(args.into_iter().chain([trace.into_os_string()]));
    let report: Value = serde_json::from_slice(&listed.out).unwrap();
    let row = &report["pdbs"][0];
    assert_eq!(row["pdb"], "NetSetupShim.pdb");
    assert_eq!(row["code"], "wpp");
    assert_eq!(
        row["server_path"],
        "NetSetupShim.pdb/0A1B2C3D4E5F60718293A4B5C6D7E8F92/NetSetupShim.pdb"
    );
    assert_eq!(report["missing_pdbs"], 1);
}
