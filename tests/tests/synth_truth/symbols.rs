//! What is at an address: what the library finds in a file, against what the truth knows.
//!
//! Each address that a recorded event of a sound file names is asked for at the event's own time: those
//! of stacks and samples. Code is held to its method and module, other addresses to their image.

use std::collections::{BTreeMap, BTreeSet};

use etl_schema::encode::OwnedValue;
use etl_synth::Outcome;
use etl_synth::truth::{KnownCode, KnownEvent};
use etl_verify::symbols::{Symbol, Symbols};
use etl_verify::{Report, Verdict};

use super::compare::stamp;
use super::made::{Made, corpus};

/// Code of one method, from when it came to when it went.
struct Life<'t> {
    code: &'t KnownCode,
    gone: Option<u64>,
}

impl Life<'_> {
    fn owns(&self, pid: u32, address: u64, at: u64) -> bool {
        let code = self.code;
        code.pid == pid
            && (code.start..code.start + u64::from(code.size)).contains(&address)
            && code.at <= at
            && self.gone.is_none_or(|gone| at <= gone)
    }
}

/// All code there was.
fn lives(made: &Made) -> Vec<Life<'_>> {
    let mut lives: Vec<Life<'_>> = Vec::new();
    for code in &made.truth.codes {
        if code.there {
            lives.push(Life { code, gone: None });
            continue;
        }
        let same = |l: &&mut Life<'_>| {
            l.gone.is_none() && (l.code.pid, l.code.start) == (code.pid, code.start)
        };
        lives.iter_mut().find(same).expect("what goes was there").gone = Some(code.at);
    }
    lives
}

/// The one that ran there: what was told to have come before, and not yet gone.
fn owner<'l, 't>(lives: &'l [Life<'t>], pid: u32, address: u64, at: u64) -> Option<&'l Life<'t>> {
    let mut owners = lives.iter().filter(|l| l.owns(pid, address, at));
    let owner = owners.next();
    assert!(owners.next().is_none(), "two own {address:#x} of {pid} at {at}");
    owner
}

/// Addresses that an event names, and the process that they are of.
fn addresses(event: &KnownEvent) -> (u32, Vec<u64>) {
    let mut found = event.stack.clone();
    let mut pid = event.pid;
    for (name, value) in &event.fields {
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

/// Helpers of runtimes that the events of a session tell of: process and first address.
fn helpers(made: &Made, session: usize) -> BTreeSet<(u32, u64)> {
    let number = |event: &KnownEvent, name: &str| {
        let field = event.fields.iter().find(|(field, _)| field == name);
        field.and_then(|(_, value)| value.as_u64())
    };
    let events = made.truth.events.iter();
    let recorded = events.filter(|e| e.outcomes.contains(&(session, Outcome::Recorded)));
    let of_helpers = recorded.filter(|e| number(e, "ModuleID") == Some(0));
    of_helpers.filter_map(|e| Some((e.pid, number(e, "MethodStartAddress")?))).collect()
}

/// What was compared.
#[derive(Default)]
struct Compared {
    methods: u64,
    images: u64,
    versions: BTreeSet<u64>,
    kinds: BTreeSet<&'static str>,
}

/// What the truth tells of the modules and images that are there at the end.
struct Places {
    modules: BTreeMap<(u64, u64, u64), String>,
    images: Vec<(u64, u64, u64, String)>,
}

fn places(made: &Made) -> Places {
    let mut places = Places { modules: BTreeMap::new(), images: Vec::new() };
    for line in &made.truth.present {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        let number = |name: &str| {
            let value = &line[name];
            let digits = value.as_str().map(|s| s.trim_start_matches("0x").to_owned());
            value.as_u64().or(digits.and_then(|d| u64::from_str_radix(&d, 16).ok())).unwrap_or(0)
        };
        let path = || line["path"].as_str().unwrap_or_default().to_owned();
        match line["kind"].as_str() {
            Some("module") => {
                places.modules.insert((number("pid"), number("clr"), number("id")), path());
            }
            Some("image") => {
                places.images.push((number("pid"), number("base"), number("size"), path()));
            }
            _ => {}
        }
    }
    places
}

fn file_name(path: &str) -> &str {
    path.rsplit('\\').next().unwrap_or_default()
}

/// Holds the answers on one file to the truth.
fn hold(place: &str, made: &Made, file: &str, symbols: &Symbols, sum: &mut Compared) {
    let (index, lives, places) = (symbols.index(), lives(made), places(made));
    let inputs = made.truth.merges.iter().find(|(f, _)| f == file).map(|(_, of)| of.as_slice());
    let own = [file.to_owned()];
    for input in inputs.unwrap_or(&own) {
        for session in made.truth.writers_of(input) {
            let helpers = helpers(made, session.index);
            for event in &made.truth.events {
                if !event.outcomes.contains(&(session.index, Outcome::Recorded)) {
                    continue;
                }
                let at = stamp(&made.scenario.machine, session, event.at);
                let (pid, addresses) = addresses(event);
                for address in addresses {
                    let found = index.at(pid, address, at);
                    let seen = format!("{place}: {address:#x} of {pid} at {} ({at})", event.at);
                    let owner = owner(&lives, pid, address, event.at);
                    // Helpers that were made before the session are told of by no rundown: what the trace knows is
                    // the runtime's image, in which they lie.
                    let told = |l: &&Life<'_>| {
                        l.code.module != 0 || helpers.contains(&(l.code.pid, l.code.start))
                    };
                    match owner.filter(told) {
                        Some(life) => is_method(&seen, found, life.code, &places, sum),
                        None => is_image(&seen, found, (pid, address), &places, sum),
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
    places: &Places,
    sum: &mut Compared,
) {
    let Some(Symbol::Method(method)) = found else { panic!("{seen}: {found:?}, not {code:?}") };
    let (namespace, name) = &code.name;
    assert_eq!((method.clr, method.id), (code.clr, code.method), "{seen}");
    // A session at level 4 names only what has no metadata.
    if !method.name.is_empty() {
        assert_eq!((method.namespace, method.name), (namespace.as_str(), name.as_str()), "{seen}");
        sum.kinds.insert("named");
    } else {
        assert_ne!(method.token, 0, "{seen}: {method:?}");
    }
    assert_eq!((method.start, method.end - method.start), (code.start, code.size.into()), "{seen}");
    if code.module == 0 {
        assert_eq!(method.module, None, "{seen}");
        sum.kinds.insert("helper");
    } else {
        let module = method.module.unwrap_or_else(|| panic!("{seen}: no module: {method:?}"));
        assert_eq!(module.id, code.module, "{seen}");
        let key = (code.pid.into(), code.clr.into(), code.module);
        if let Some(path) = places.modules.get(&key) {
            assert_eq!(file_name(module.path), file_name(path), "{seen}");
        } else {
            sum.kinds.insert("module that has gone");
        }
        assert!(!module.assembly.is_empty() && !module.domain.is_empty(), "{seen}: {module:?}");
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
    places: &Places,
    sum: &mut Compared,
) {
    let holds = |(p, base, size, _): &&(u64, u64, u64, String)| {
        *p == u64::from(pid) && (*base..base + size).contains(&address)
    };
    match (places.images.iter().find(holds), found) {
        (Some((_, base, size, path)), Some(Symbol::Image(image))) => {
            let name = file_name(path).to_lowercase();
            assert_eq!(file_name(image.path).to_lowercase(), name, "{seen}");
            assert_eq!((image.start, image.end - image.start), (*base, *size), "{seen}");
            sum.images += 1;
        }
        // The process has gone, and the truth tells nothing of its images.
        (None, Some(Symbol::Image(_))) => sum.images += 1,
        (known, found) => panic!("{seen}: {found:?}, not {known:?}"),
    }
}

/// Whether the file tells of images at all, so that native frames can be found.
fn verdict(made: &Made, file: &str) -> Option<Report> {
    let report = etl_verify::verify(made.files[file].as_slice(), file).ok()?;
    (report.verdict == Verdict::Sound).then_some(report)
}

#[test]
fn every_address_of_every_sound_file_resolves_to_what_is_true() {
    let mut sum = Compared::default();
    let mut files = Vec::new();
    for made in corpus() {
        for file in made.files.keys() {
            let Some(_) = verdict(made, file) else { continue };
            let symbols = Symbols::read(made.files[file].as_slice()).unwrap();
            let before = (sum.methods, sum.images);
            hold(&format!("{}/{file}", made.name), made, file, &symbols, &mut sum);
            if before != (sum.methods, sum.images) {
                files.push(format!("{}/{file}", made.name));
            }
        }
    }
    eprintln!("{} methods and {} images at addresses of {files:?}", sum.methods, sum.images);
    eprintln!("kinds: {:?}, {} versions", sum.kinds, sum.versions.len());
    assert!(sum.methods > 1_000 && sum.images > 1_000 && files.len() >= 5);
}
