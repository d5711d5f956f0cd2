//! Compares a report's counts of resolved addresses with the truth, by process and kind of owner.
//! All stacks and samples count, including those in methods that a rundown lists later.

use std::collections::{BTreeMap, BTreeSet};

use etl_format::Guid;
use etl_schema::encode::OwnedValue;
use etl_synth::Script;
use etl_synth::truth::{KnownEvent, SessionReport};
use etl_verify::{Coverage, CoverageRow, Tally, Verifier};

use super::symbols::{everything, lives, owner};
use crate::simulated::{Simulated, corpus, simulate};

pub const RUNTIME: &str = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";
pub const RUNDOWN: &str = "a669021c-c450-4609-a035-5af59af4df18";
/// The kernel's class of events about images.
const IMAGE: &str = "2cb15d1d-5fc1-11d2-abe1-00a0c911f518";

/// Where addresses come from, in the order of the report.
const ORIGINS: [&str; 6] = [
    "CLR stacks",
    "extended stacks",
    "kernel stacks",
    "samples",
    "exceptions",
    "entry points",
];

/// Counts of addresses, as in the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    stacks: u64,
    frames: u64,
    managed: u64,
    named: u64,
    image: u64,
    identified: u64,
    unresolved: u64,
}

impl From<Tally> for Sums {
    fn from(t: Tally) -> Self {
        let Tally {
            stacks,
            frames,
            managed,
            named,
            image,
            identified,
            unresolved,
            not_recorded,
            ..
        } = t;
        Sums {
            stacks,
            frames,
            managed,
            named,
            image,
            identified,
            // The truth knows no owner of either.
            unresolved: unresolved + not_recorded,
        }
    }
}

/// By process and origin; without origins that have no address.
type Table = BTreeMap<(u32, &'static str), Sums>;

fn field<'e>(event: &'e KnownEvent, name: &str) -> Option<&'e OwnedValue> {
    event.field(name)
}

pub fn number(event: &KnownEvent, name: &str) -> Option<u64> {
    match field(event, name)? {
        OwnedValue::Pointer(address) => Some(*address),
        value => value.as_u64(),
    }
}

pub fn frames(event: &KnownEvent, name: &str) -> Option<Vec<u64>> {
    let Some(OwnedValue::Array(frames)) = field(event, name) else {
        return None;
    };
    let address = |frame: &OwnedValue| match frame {
        OwnedValue::Pointer(address) => Some(*address),
        _ => None,
    };
    Some(frames.iter().filter_map(address).collect())
}

/// The addresses of an event by origin, and their process.
fn addresses(event: &KnownEvent, session: &SessionReport) -> Vec<(u32, &'static str, Vec<u64>)> {
    let mut out = Vec::new();
    let provider = event.provider.to_string();
    let clr = [RUNTIME, RUNDOWN].contains(&provider.as_str());
    if event.stack_sessions.contains(&session.index) {
        out.push((event.pid.get(), ORIGINS[1], event.stack.clone()));
    }
    if clr && event.name.starts_with("CLRStackWalk") {
        out.push((
            event.pid.get(),
            ORIGINS[0],
            frames(event, "Stack").unwrap_or_default(),
        ));
    } else if let Some(pid) = number(event, "StackProcess") {
        out.push((
            pid as u32,
            ORIGINS[2],
            frames(event, "Stack").unwrap_or_default(),
        ));
    }
    for (name, origin) in [
        ("InstructionPointer", ORIGINS[3]),
        ("ExceptionEIP", ORIGINS[4]),
        ("EntryPoint", ORIGINS[5]),
    ] {
        if let Some(address) = number(event, name).filter(|_| clr || origin == ORIGINS[3]) {
            out.push((event.pid.get(), origin, vec![address]));
        }
    }
    out
}

/// The events in a file, with the session that recorded each.
pub fn held<'t>(made: &'t Simulated, file: &str) -> Vec<(&'t SessionReport, &'t KnownEvent)> {
    let truth = &made.truth;
    let inputs = truth
        .merges
        .iter()
        .find(|m| m.output == file)
        .map(|m| m.inputs.as_slice());
    let own = [file.to_owned()];
    let mut out = Vec::new();
    for input in inputs.unwrap_or(&own) {
        for session in truth.writers_of(input) {
            for buffer in truth.whole_in(session.index, input) {
                let events = truth.events_of(session.index, buffer);
                out.extend(events.into_iter().map(|event| (session, event)));
            }
        }
    }
    out
}

/// An image and its lifetime, from the events of a file.
struct Image {
    pid: u32,
    span: std::ops::Range<u64>,
    from: u64,
    to: u64,
    name: String,
}

fn images(held: &[(&SessionReport, &KnownEvent)]) -> Vec<Image> {
    let mut out: Vec<Image> = Vec::new();
    for (_, event) in held.iter().filter(|(_, e)| e.provider.to_string() == IMAGE) {
        let get = |name| number(event, name);
        let (Some(base), Some(size)) = (get("ImageBase"), get("ImageSize")) else {
            continue;
        };
        let pid = get("ProcessId").unwrap_or(0) as u32;
        let name = file_name(event, "FileName");
        let here = |i: &&mut Image| i.pid == pid && i.span.start == base && i.to == u64::MAX;
        let known = out.iter_mut().find(here);
        match (event.descriptor.opcode, known) {
            (2, Some(image)) => image.to = event.at,
            (2, None) => {
                out.push(Image {
                    pid,
                    span: base..base + size,
                    from: 0,
                    to: event.at,
                    name,
                });
            }
            (_, Some(_)) => {}
            (opcode, None) => {
                let from = if opcode == 10 { event.at } else { 0 };
                out.push(Image {
                    pid,
                    span: base..base + size,
                    from,
                    to: u64::MAX,
                    name,
                });
            }
        }
    }
    out
}

/// The file name in a field of an event, in lower case and without folders.
fn file_name(event: &KnownEvent, field_name: &str) -> String {
    let path = match field(event, field_name) {
        Some(OwnedValue::Text(path)) => path.clone(),
        Some(OwnedValue::Utf16(path)) => String::from_utf16_lossy(path),
        _ => String::new(),
    };
    path.trim_end_matches('\0')
        .rsplit('\\')
        .next()
        .unwrap_or_default()
        .to_lowercase()
}

/// Images of managed code whose PDB is in events of their module: process and name.
fn precompiled(held: &[(&SessionReport, &KnownEvent)]) -> BTreeSet<(u32, String)> {
    let mut out = BTreeSet::new();
    for (_, event) in held {
        let has_pdb = |name| match field(event, name) {
            Some(OwnedValue::Guid(signature)) => *signature != Guid::ZERO,
            _ => false,
        };
        let own = file_name(event, "ModuleNativePath");
        if has_pdb("NativePdbSignature") && !own.is_empty() {
            out.insert((event.pid.get(), own));
        }
        // Ready-to-run code lies in the image of the IL.
        let ready_to_run = number(event, "ModuleFlags").is_some_and(|flags| flags & 0x20 != 0);
        if has_pdb("ManagedPdbSignature") && ready_to_run {
            out.insert((event.pid.get(), file_name(event, "ModuleILPath")));
        }
    }
    out
}

/// The counts of a file by the truth. `late` counts the addresses whose method is listed later.
fn expected(made: &Simulated, file: &str, late: &mut u64) -> Table {
    let held = held(made, file);
    let (lives, images) = (lives(made), images(&held));
    // Code in events of the file with its first time, and code with a name.
    let mut listed: BTreeMap<(u32, u64, u64), u64> = BTreeMap::new();
    let mut named: BTreeSet<(u32, u64, u64)> = BTreeSet::new();
    for (_, event) in &held {
        let (Some(id), Some(start)) = (
            number(event, "MethodID"),
            number(event, "MethodStartAddress"),
        ) else {
            continue;
        };
        let first = listed
            .entry((event.pid.get(), id, start))
            .or_insert(event.at);
        *first = event.at.min(*first);
        if field(event, "MethodNamespace").is_some() {
            named.insert((event.pid.get(), id, start));
        }
    }
    let precompiled = precompiled(&held);
    let identified = |pid: u32, image: &Image| {
        let key = (file.to_owned(), image.pid, image.span.start);
        made.truth.identities.get(&key).copied().flatten().is_some()
            || precompiled.contains(&(pid, image.name.clone()))
    };
    let mut table = Table::new();
    for (session, event) in &held {
        for (pid, origin, addresses) in addresses(event, session) {
            let sums = table.entry((pid, origin)).or_default();
            sums.stacks += 1;
            sums.frames += addresses.len() as u64;
            for address in addresses {
                let life = owner(&lives, pid, address, event.at);
                let key = life.map(|l| (pid, l.code.method_id, l.code.start));
                if let Some(first) = key.and_then(|key| listed.get(&key)) {
                    *late += u64::from(event.at < *first);
                    sums.managed += 1;
                    sums.named += u64::from(key.is_some_and(|key| named.contains(&key)));
                    continue;
                }
                let mine = |i: &&Image| i.pid == pid || i.pid == 0 || i.pid == 4;
                let there = |i: &&Image| i.from <= event.at && event.at <= i.to;
                let mut image = images.iter().filter(mine).filter(there);
                if let Some(image) = image.find(|i| i.span.contains(&address)) {
                    sums.image += 1;
                    sums.identified += u64::from(identified(pid, image));
                } else {
                    sums.unresolved += 1;
                }
            }
        }
    }
    table
}

fn reported(of: impl Iterator<Item = (u32, Coverage)>) -> Table {
    let mut table = Table::new();
    for (pid, coverage) in of {
        for CoverageRow {
            origin: name,
            tally: row,
            ..
        } in coverage.rows()
        {
            if row.stacks == 0 {
                continue;
            }
            let origin = ORIGINS
                .into_iter()
                .find(|o| *o == name)
                .expect("an origin of the report");
            let (sums, more) = (table.entry((pid, origin)).or_default(), Sums::from(row));
            *sums = sum(*sums, more);
        }
    }
    table
}

fn sum(a: Sums, b: Sums) -> Sums {
    Sums {
        stacks: a.stacks + b.stacks,
        frames: a.frames + b.frames,
        managed: a.managed + b.managed,
        named: a.named + b.named,
        image: a.image + b.image,
        identified: a.identified + b.identified,
        unresolved: a.unresolved + b.unresolved,
    }
}

/// Exceptions in methods without names: .NET Framework is recorded at level 4. .NET Core has no
/// loads of compiled methods at that level.
const PLAIN: &str = r#"
process "Ledger.exe" pid=5000 threads=2 {
    clr "desktop" version="4.8.4000.0" {
        assembly "Ledger" { module "C:\\App\\Ledger.dll" { methods 60 ready=20 } }
    }
    every "20ms" from="2.1s" until="2.9s" { jit 1; throw 1 }
}
at "2s" { session "plain" file="plain.etl" { enable "runtime" keywords="Loader|Jit|Exception" level=4 } }
at "3s" { enable "rundown" in="plain" keywords=0x138 level=4 }
at "4s" { stop "plain" }
"#;

/// The simulation of `PLAIN`.
fn plain() -> Simulated {
    let scenario = Script::new("plain", PLAIN).parse().unwrap();
    simulate("plain", PLAIN.to_owned(), scenario)
}

#[test]
fn coverage_of_undamaged_files_matches_the_truth() {
    let (mut wrong, mut all, mut files) = (Vec::new(), Sums::default(), BTreeSet::new());
    let mut origins: BTreeMap<&str, Sums> = BTreeMap::new();
    let mut late = 0;
    let plain = plain();
    for made in corpus().iter().chain([everything(), &plain]) {
        for (file, bytes) in made
            .traces
            .iter()
            .filter(|(f, _)| !made.truth.is_damaged(f))
        {
            let place = format!("{}/{file}", made.name);
            let expected = expected(made, file, &mut late);
            let Ok(report) = Verifier::new().threads(2).verify(bytes.as_slice(), file) else {
                continue;
            };
            let found = reported(report.processes.iter().map(|p| (p.pid, p.coverage)));
            if found != expected {
                for key in found.keys().chain(expected.keys()).collect::<BTreeSet<_>>() {
                    let (a, b) = (found.get(key), expected.get(key));
                    if a != b {
                        wrong.push(format!(
                            "{place} {key:?}:\n  found    {a:?}\n  expected {b:?}"
                        ));
                    }
                }
            }
            // The whole is the sum of its parts.
            let whole = reported(std::iter::once((0, report.coverage)));
            for ((_, origin), sums) in whole {
                let parts = expected.iter().filter(|((_, o), _)| *o == origin);
                let parts = parts.fold(Sums::default(), |a, (_, b)| sum(a, *b));
                if parts != sums && found == expected {
                    wrong.push(format!("{place} {origin}: {sums:?} in all, not {parts:?}"));
                }
            }
            for ((_, origin), sums) in &expected {
                all = sum(all, *sums);
                let by = origins.entry(origin).or_default();
                *by = sum(*by, *sums);
                files.insert(place.clone());
            }
        }
    }
    eprintln!(
        "{all:?} in {} files, {late} listed later; {origins:#?}",
        files.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The traces have addresses of every kind.
    assert!(
        files.len() >= 15 && all.frames > 100_000 && late > 10_000,
        "{all:?} in {files:?}"
    );
    assert_eq!(origins.len(), ORIGINS.len(), "{origins:?}");
    assert!(
        all.unresolved > 0 && all.image > 0 && all.named < all.managed,
        "{all:?}"
    );
    assert!(all.identified > 0 && all.identified < all.image, "{all:?}");
}
