//! Compares the symbols of addresses with the truth.
//!
//! Each address in a stack or sample is looked up at its own time. Code must resolve to its method
//! and module, other addresses to their image.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use etl_analysis::symbols::Symbol;
use etl_analysis::{Analysis, Machine, Recording};
use etl_format::{ProcessId, Ticks};
use etl_schema::encode::OwnedValue;
use etl_synth::model::NamedValue;
use etl_synth::truth::{EventOutcome, KnownCode, KnownEvent};
use etl_verify::{Report, Verdict};

use crate::simulated::{Simulated, corpus, simulate, timestamp};

/// The machine of a file, with names.
fn read(file: &[u8]) -> Machine {
    let mut recording = Recording::open([(file, "")]).unwrap();
    Analysis::new()
        .with_names()
        .run(&mut recording, &mut ())
        .unwrap()
}

/// Code of one method, from its load to its unload.
#[derive(Debug)]
pub struct Life<'t> {
    pub code: &'t KnownCode,
    unloaded: Option<u64>,
}

impl Life<'_> {
    fn owns(&self, pid: u32, address: u64, at: u64) -> bool {
        let code = self.code;
        code.pid == pid
            && (code.start..code.start + u64::from(code.size)).contains(&address)
            && code.at <= at
            && self.unloaded.is_none_or(|unloaded| at <= unloaded)
    }
}

/// All code of a simulation.
pub fn lives(made: &Simulated) -> Vec<Life<'_>> {
    let mut lives: Vec<Life<'_>> = Vec::new();
    for code in &made.truth.code {
        if code.loaded {
            lives.push(Life {
                code,
                unloaded: None,
            });
            continue;
        }
        let same = |l: &&mut Life<'_>| {
            l.unloaded.is_none() && (l.code.pid, l.code.start) == (code.pid, code.start)
        };
        lives
            .iter_mut()
            .find(same)
            .expect("unloaded code was loaded")
            .unloaded = Some(code.at);
    }
    lives
}

/// The code at an address and a time.
pub fn owner<'l, 't>(
    lives: &'l [Life<'t>],
    pid: u32,
    address: u64,
    at: u64,
) -> Option<&'l Life<'t>> {
    let mut owners = lives.iter().filter(|l| l.owns(pid, address, at));
    let owner = owners.next();
    assert!(
        owners.next().is_none(),
        "two own {address:#x} of {pid} at {at}"
    );
    owner
}

/// The addresses of an event, and their process.
fn addresses(event: &KnownEvent) -> (u32, Vec<u64>) {
    let mut found = event.stack.clone();
    let mut pid = event.pid.get();
    for NamedValue { name, value } in &event.fields {
        match (name.as_str(), value) {
            // The thread's process is that of the event.
            ("InstructionPointer", OwnedValue::Pointer(address)) => found.push(*address),
            ("Stack" | "StackAddresses", OwnedValue::Array(frames)) => {
                found.extend(frames.iter().filter_map(|f| match f {
                    OwnedValue::Pointer(address) => Some(*address),
                    _ => None,
                }));
            }
            ("StackProcess", value) => pid = value.as_u64().map_or(pid, |p| p as u32),
            _ => {}
        }
    }
    (pid, found)
}

/// Runtime helpers that the events of a session list: process and first address.
fn helpers(made: &Simulated, session: usize) -> BTreeSet<(u32, u64)> {
    let number = |event: &KnownEvent, name: &str| event.number(name);
    let events = made.truth.events.iter();
    let recorded = events.filter(|e| e.outcome(session) == Some(EventOutcome::Recorded));
    let of_helpers = recorded.filter(|e| number(e, "ModuleID") == Some(0));
    of_helpers
        .filter_map(|e| Some((e.pid.get(), number(e, "MethodStartAddress")?)))
        .collect()
}

/// Numbers of comparisons.
#[derive(Default)]
struct Compared {
    methods: u64,
    images: u64,
    unknown: u64,
    versions: BTreeSet<u64>,
    kinds: BTreeSet<&'static str>,
}

/// The modules and images that exist at the end, and the PDB identities in a file.
struct Places<'m> {
    /// Path and signature of the PDB.
    modules: BTreeMap<(u64, u64, u64), (String, String)>,
    images: Vec<(u64, u64, u64, String)>,
    made: &'m Simulated,
    file: &'m str,
}

impl Places<'_> {
    /// The PDB of an image, if the file identifies it.
    fn pdb(&self, pid: u32, base: u64) -> Option<(String, u32)> {
        let key = (self.file.to_owned(), pid, base);
        let identity = self.made.truth.identities.get(&key).copied().flatten();
        identity.map(|(signature, age)| (signature.to_string(), age))
    }
}

fn places<'m>(made: &'m Simulated, file: &'m str) -> Places<'m> {
    let mut places = Places {
        modules: BTreeMap::new(),
        images: Vec::new(),
        made,
        file,
    };
    for line in &made.truth.inventory {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        let number = |name: &str| {
            let value = &line[name];
            let digits = value
                .as_str()
                .map(|s| s.trim_start_matches("0x").to_owned());
            value
                .as_u64()
                .or(digits.and_then(|d| u64::from_str_radix(&d, 16).ok()))
                .unwrap_or(0)
        };
        let path = || line["path"].as_str().unwrap_or_default().to_owned();
        match line["kind"].as_str() {
            Some("module") => {
                let pdb = line["pdb_signature"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                let key = (number("pid"), number("clr_instance"), number("id"));
                places.modules.insert(key, (path(), pdb));
            }
            Some("image") => {
                places
                    .images
                    .push((number("pid"), number("base"), number("size"), path()));
            }
            _ => {}
        }
    }
    places
}

fn file_name(path: &str) -> &str {
    path.rsplit('\\').next().unwrap_or_default()
}

/// Compares the symbols of all addresses of a file with the truth.
fn compare(place: &str, made: &Simulated, file: &str, machine: &Machine, sum: &mut Compared) {
    let (index, lives, places) = (machine.symbols(), lives(made), places(made, file));
    let inputs = made
        .truth
        .merges
        .iter()
        .find(|m| m.output == file)
        .map(|m| m.inputs.as_slice());
    let own = [file.to_owned()];
    for input in inputs.unwrap_or(&own) {
        for session in made.truth.writers_of(input) {
            let helpers = helpers(made, session.index);
            for event in &made.truth.events {
                if event.outcome(session.index) != Some(EventOutcome::Recorded) {
                    continue;
                }
                let at = timestamp(&made.scenario.machine, session, event.at);
                let (pid, addresses) = addresses(event);
                for address in addresses {
                    let found = index.at(ProcessId::new(pid), address, Ticks::new(at));
                    let seen = format!("{place}: {address:#x} of {pid} at {} ({at})", event.at);
                    let owner = owner(&lives, pid, address, event.at);
                    // No rundown lists helpers that were made before the session. The trace has the
                    // image of the runtime at their address.
                    let listed = |l: &&Life<'_>| {
                        l.code.module_id != 0 || helpers.contains(&(l.code.pid.get(), l.code.start))
                    };
                    match owner.filter(listed) {
                        Some(life) => is_method(&seen, found, life.code, &places, sum),
                        None => {
                            let there = |l: &&Life<'_>| {
                                let end = l.code.start + u64::from(l.code.size);
                                l.code.pid == pid && (l.code.start..end).contains(&address)
                            };
                            let other: Vec<_> = lives.iter().filter(there).collect();
                            let seen = format!("{seen}, where there was {other:?}");
                            is_image(&seen, found, (pid, address), &places, sum);
                        }
                    }
                }
            }
        }
    }
}

fn is_method(
    seen: &str,
    found: Option<Symbol<'_>>,
    code: &KnownCode,
    places: &Places<'_>,
    sum: &mut Compared,
) {
    let Some(Symbol::Method(method)) = found else {
        panic!("{seen}: {found:?}, not {code:?}")
    };
    let (namespace, name) = (&code.namespace, &code.name);
    assert_eq!(
        (method.clr, method.id),
        (code.clr_instance, code.method_id),
        "{seen}"
    );
    // A session at level 4 has the names of methods without metadata only.
    if !method.name.is_empty() {
        assert_eq!(
            (method.namespace, method.name),
            (namespace.as_str(), name.as_str()),
            "{seen}"
        );
        sum.kinds.insert("named");
    } else {
        assert_ne!(method.token, 0, "{seen}: {method:?}");
    }
    assert_eq!(
        (method.start, method.end - method.start),
        (code.start, code.size.into()),
        "{seen}"
    );
    if code.module_id == 0 {
        assert_eq!(method.module, None, "{seen}");
        sum.kinds.insert("helper");
    } else {
        let module = method
            .module
            .unwrap_or_else(|| panic!("{seen}: no module: {method:?}"));
        assert_eq!(module.id, code.module_id, "{seen}");
        let key = (
            code.pid.get().into(),
            code.clr_instance.into(),
            code.module_id,
        );
        if let Some((path, pdb)) = places.modules.get(&key) {
            assert_eq!(file_name(module.path), file_name(path), "{seen}");
            // Modules made at run time and events of old versions have no PDB.
            if let Some(listed) = module.il_pdb {
                assert_eq!(&listed.signature.to_string(), pdb, "{seen}");
                sum.kinds.insert("module with a PDB");
            }
        } else {
            sum.kinds.insert("unloaded module");
        }
        assert!(
            !module.assembly.is_empty() && !module.domain.is_empty(),
            "{seen}: {module:?}"
        );
    }
    sum.versions.extend(method.version);
    for (is, kind) in [
        (method.dynamic && method.jitted, "dynamic"),
        (!method.jitted && !method.dynamic, "precompiled"),
        (method.jitted, "jitted"),
        (method.version.is_some_and(|v| v > 0), "compiled again"),
        (method.to.is_some(), "unloaded"),
        (namespace.contains("Generic"), "generic"),
    ] {
        if is {
            sum.kinds.insert(kind);
        }
    }
    sum.methods += 1;
}

fn is_image(
    seen: &str,
    found: Option<Symbol<'_>>,
    (pid, address): (u32, u64),
    places: &Places<'_>,
    sum: &mut Compared,
) {
    let holds = |(p, base, size, _): &&(u64, u64, u64, String)| {
        *p == u64::from(pid) && (*base..base + size).contains(&address)
    };
    match (places.images.iter().find(holds), found) {
        (Some((_, base, size, path)), Some(Symbol::Image(image))) => {
            let name = file_name(path).to_lowercase();
            assert_eq!(file_name(image.path).to_lowercase(), name, "{seen}");
            assert_eq!(
                (image.start, image.end - image.start),
                (*base, *size),
                "{seen}"
            );
            let found = image.pdb.map(|pdb| (pdb.signature.to_string(), pdb.age));
            assert_eq!(found, places.pdb(pid, *base), "{seen}");
            sum.kinds.insert(if found.is_some() {
                "identified"
            } else {
                "not identified"
            });
            sum.images += 1;
        }
        // The process has ended, so the inventory does not contain its images.
        (None, Some(Symbol::Image(_))) => sum.images += 1,
        // An operation of another processor that began before the unload may end in the unloaded
        // code. Neither the truth nor the trace has code at its address.
        (None, None) => sum.unknown += 1,
        (known, found) => panic!("{seen}: {found:?}, not {known:?}"),
    }
}

/// The report on a file with the verdict complete and the images of all its addresses. It is the
/// same for two threads.
fn sound(made: &Simulated, file: &str) -> Option<Report> {
    let bytes = made.traces[file].as_slice();
    let report = etl_verify::Verifier::new().verify(bytes, file).ok()?;
    let other = etl_verify::Verifier::new()
        .threads(2)
        .verify(bytes, file)
        .unwrap();
    assert_eq!(other.json(), report.json(), "{}/{file}", made.name);
    let has_images = report
        .coverage
        .rows()
        .iter()
        .all(|row| row.tally.not_recorded == 0);
    if report.verdict == Verdict::Complete && has_images {
        Some(report)
    } else {
        None
    }
}

#[test]
fn addresses_of_sound_files_resolve_as_in_the_truth() {
    let mut sum = Compared::default();
    let mut files = Vec::new();
    for made in corpus() {
        for file in made.traces.keys() {
            let Some(_) = sound(made, file) else { continue };
            let machine = read(&made.traces[file]);
            let before = (sum.methods, sum.images);
            compare(
                &format!("{}/{file}", made.name),
                made,
                file,
                &machine,
                &mut sum,
            );
            if before != (sum.methods, sum.images) {
                files.push(format!("{}/{file}", made.name));
            }
        }
    }
    eprintln!(
        "{} methods and {} images at addresses of {files:?}",
        sum.methods, sum.images
    );
    eprintln!("kinds: {:?}, {} versions", sum.kinds, sum.versions.len());
    assert_eq!(sum.unknown, 0);
    assert!(sum.methods > 1_000 && sum.images > 1_000 && files.len() >= 5);
    for kind in ["identified", "not identified", "module with a PDB"] {
        assert!(
            sum.kinds.contains(kind),
            "nothing was {kind}: {:?}",
            sum.kinds
        );
    }
}

/// Code of every kind is loaded, compiled again and unloaded, while all processes are sampled.
const EVERYTHING: &str = r#"
machine processors=2
process "Orders.exe" pid=4312 threads=4 {
    clr "core" version="6.0.100" {
        assembly "System.Private.CoreLib" version="6.0.0.0" {
            module "C:\\dotnet\\System.Private.CoreLib.dll" kind="r2r" {
                methods 60 namespace="System" cold=#true
                methods 20 kind="generic" namespace="System.Collections.Generic"
            }
        }
        assembly "Orders" { module "C:\\App\\Orders.dll" { methods 120 ready=60 size="24..4096" } }
        assembly "Orders.Plugin" late=#true collectible=#true {
            module "C:\\App\\Orders.Plugin.dll" { methods 25 }
        }
        assembly "Emitted" { module "Emitted" kind="dynamic" { methods 20 kind="dynamic" ready=8 } }
    }
    every "20ms" from="2.1s" until="4.5s" { forget 2; jit 4; tier 2; throw 1; run "6ms" }
    at "2.5s" { load "Orders.Plugin" }
    at "3.9s" { unload "Orders.Plugin" }
}
process "Profiled.exe" pid=5000 threads=3 {
    clr "desktop" version="4.8.4000.0" {
        domain "SharedDomain" shared=#true {
            assembly "mscorlib" version="4.0.0.0" {
                module "C:\\Windows\\mscorlib.dll" kind="ngen" {
                    methods 80 namespace="System" cold=#true
                    methods 12 kind="helper" ready=2
                }
            }
        }
        domain "Profiled.exe" { assembly "Profiled" { module "C:\\App\\Profiled.exe" { methods 80 ready=40 } } }
        domain "Plugins" late=#true { assembly "Late" { module "C:\\App\\Late.dll" { methods 20 } } }
    }
    every "30ms" from="2.2s" until="4.5s" { rejit 2; jit 3; throw 1; run "5ms" }
    at "2.6s" { load-domain "Plugins" }
    at "3.8s" { unload-domain "Plugins" }
}
at "2s" {
    session "all" file="all.etl" {
        kernel "processes images profile stacks"
        enable "runtime" keywords="Loader|Jit|NGen|StartEnumeration|EndEnumeration|Exception|Stack" level=5
    }
}
at "5s" { enable "rundown" in="all" keywords=0x138 level=5 }
at "7s" { stop "all" }
"#;

/// The simulation of `EVERYTHING`.
pub fn everything() -> &'static Simulated {
    static SIMULATED: LazyLock<Simulated> = LazyLock::new(|| {
        let scenario = etl_synth::Script::new("everything", EVERYTHING)
            .parse()
            .unwrap();
        simulate("everything", EVERYTHING.to_owned(), scenario)
    });
    &SIMULATED
}

#[test]
fn symbols_know_code_from_load_to_unload() {
    let made = everything();
    let machine = read(&made.traces["all.etl"]);
    let mut sum = Compared::default();
    compare("everything", made, "all.etl", &machine, &mut sum);
    assert!(
        sum.methods > 1_000 && sum.unknown < sum.methods / 200,
        "{}",
        sum.unknown
    );

    // Also addresses that no event has: the first, the last and another byte of each piece of code,
    // hot and cold, in the middle of its lifetime.
    let (index, places, session) = (
        machine.symbols(),
        places(made, "all.etl"),
        &made.truth.sessions[0],
    );
    let (begin, end) = (2_000_000_000, 5_000_000_000);
    let (mut pieces, mut starts) = (0, BTreeMap::new());
    for life in lives(made).iter().filter(|l| l.code.module_id != 0) {
        let (from, to) = (life.code.at.max(begin), life.unloaded.unwrap_or(end));
        if to <= from {
            continue;
        }
        let at = from + (to - from) / 2;
        let when = timestamp(&made.scenario.machine, session, at);
        let size = u64::from(life.code.size);
        for address in [0, size / 3, size - 1].map(|by| life.code.start + by) {
            let seen = format!("{address:#x} of {} at {at} ({when})", life.code.pid);
            let found = index.at(life.code.pid, address, Ticks::new(when));
            is_method(&seen, found, life.code, &places, &mut sum);
        }
        pieces += 1;
        *starts.entry((life.code.pid, life.code.start)).or_insert(0) += 1;
    }
    let again = starts.values().filter(|&&n| n > 1).count();
    eprintln!(
        "{pieces} pieces, {again} addresses used again, kinds {:?}",
        sum.kinds
    );
    assert!(
        pieces > 400 && again > 10,
        "{pieces} pieces, {again} addresses used again"
    );
    for kind in [
        "compiled again",
        "dynamic",
        "generic",
        "helper",
        "jitted",
        "unloaded module",
        "named",
        "precompiled",
        "unloaded",
    ] {
        assert!(
            sum.kinds.contains(kind),
            "nothing was {kind}: {:?}",
            sum.kinds
        );
    }
}
