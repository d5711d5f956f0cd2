//! Every single event of a sound trace, deleted, doubled, moved or altered: what is noticed, and what is
//! not. The table in `docs/unnoticed.md` is what this test finds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use etl_tests::root;
use etl_verify::Settings;

use super::base::{judge, sound};
use super::edit::{Rec, records, write};

const CHANGES: [&str; 8] = [
    "deleted",
    "doubled",
    "swapped with the next of its thread",
    "first field altered",
    "payload cut by two bytes",
    "put to another thread",
    "put to another process",
    "keyword taken away",
];

/// The trace with one event changed, or nothing where the change changes nothing.
fn changed(all: &[Rec], at: usize, change: usize) -> Option<Vec<Rec>> {
    let mut out = all.to_vec();
    let one = all[at].clone();
    match change {
        0 => {
            out.remove(at);
        }
        1 => out.insert(at, one),
        2 => {
            // What they say changes places; the stamps stay in order.
            let behind = all[at + 1..].iter().position(|r| r.is_event() && r.tid() == one.tid())?;
            let next = at + 1 + behind;
            let other = all[next].clone();
            if other.bytes[0x18..] == one.bytes[0x18..] {
                return None;
            }
            out[at] = other.clone().at(one.stamp());
            out[next] = one.clone().at(other.stamp());
            (out[at].processor, out[next].processor) = (one.processor, other.processor);
        }
        3 => {
            if one.payload().len() < 8 {
                return None;
            }
            // Ids of modules and the like are addresses: a multiple of 8 that is not another's.
            let value = one.u64(0) ^ 0x0000_5500_0000_0000;
            out[at].set_u64(0, value);
        }
        4 => {
            let payload = one.payload();
            let cut = payload.get(..payload.len().checked_sub(2)?)?;
            out[at] = one.clone().with_payload(cut);
        }
        5 => out[at].put(8, &(one.tid() + 1_000).to_le_bytes()),
        6 => out[at].put(0x0c, &(one.pid() + 1_000).to_le_bytes()),
        _ => {
            if one.bytes[0x30..0x38] == [0; 8] {
                return None;
            }
            out[at].put(0x30, &[0; 8]);
        }
    }
    Some(out)
}

#[derive(Default)]
struct Row {
    noticed: usize,
    of: usize,
    by: BTreeSet<&'static str>,
}

fn table() -> (BTreeMap<(String, usize), Row>, usize) {
    let file = sound();
    let all = records(&file);
    let settings = Settings {
        policy: Default::default(),
        enabled: etl_verify::Enabled::parse("runtime:0x4001CCBD:5+rundown:0x178:5").unwrap(),
        ..Settings::default()
    };
    let plain = judge(&[write(&file, &all)], &settings);
    assert!(plain.findings.is_empty(), "{}", plain.text());
    let mut rows: BTreeMap<(String, usize), Row> = BTreeMap::new();
    for at in (0..all.len()).filter(|&at| all[at].is_event()) {
        for change in 0..CHANGES.len() {
            let Some(mutated) = changed(&all, at, change) else { continue };
            let report = judge(&[write(&file, &mutated)], &settings);
            let row = rows.entry((all[at].name.clone(), change)).or_default();
            row.of += 1;
            row.noticed += usize::from(!report.findings.is_empty());
            row.by.extend(report.findings.iter().map(|f| f.rule));
        }
    }
    (rows, all.len())
}

fn page(rows: &BTreeMap<(String, usize), Row>, events: usize) -> String {
    let mut out = format!(
        "# What etlverify notices, and what it does not\n\n\
         Made by the test `mutation` of the workspace's tests, which holds this page to what it finds: a sound simulated trace of {events}\n\
         records (two processes, a start and an end rundown, loads, jits, exceptions, stacks), with one single event changed at a time, and the\n\
         enablement told. `12 of 12` are noticed by some rule; where fewer are, the others leave a trace that is sound as far as it tells.\n"
    );
    let all: usize = rows.values().map(|r| r.of).sum();
    let noticed: usize = rows.values().map(|r| r.noticed).sum();
    writeln!(out, "\nOf {all} changes {noticed} are noticed.").unwrap();
    let missed = |row: &&Row| row.noticed < row.of;
    for (title, which) in [("Not always noticed", true), ("Always noticed", false)] {
        writeln!(out, "\n## {title}\n\n| event | change | noticed | by |\n|---|---|---:|---|")
            .unwrap();
        for ((name, change), row) in rows.iter().filter(|(_, row)| missed(row) == which) {
            let by: Vec<_> = row.by.iter().copied().collect();
            let (noticed, of, by) = (row.noticed, row.of, by.join(", "));
            writeln!(out, "| {name} | {} | {noticed} of {of} | {by} |", CHANGES[*change]).unwrap();
        }
    }
    out
}

#[test]
fn the_table_of_what_is_noticed_is_published() {
    let (rows, events) = table();
    let page = page(&rows, events);
    let path = root().join("docs/unnoticed.md");
    if std::env::var_os("ETLKIT_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    // Counts follow what the simulation raises; what is not noticed at all, or not always, is listed.
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    for ((name, change), _) in rows.iter().filter(|(_, row)| row.noticed < row.of) {
        let row = format!("| {name} | {} |", CHANGES[*change]);
        assert!(
            published.contains(&row),
            "{row} is not listed; write docs/unnoticed.md anew: ETLKIT_UPDATE=1 cargo test -p etl-tests --test rules"
        );
    }

    // What the rules say matters is noticed whenever it happens.
    let always = |name: &str, change: usize| {
        let row = rows.get(&(name.to_owned(), change));
        let row = row.unwrap_or_else(|| panic!("no {name} in the trace"));
        assert_eq!(row.noticed, row.of, "{name} {}", CHANGES[change]);
    };
    for marker in ["DCStartInit_V1", "DCStartComplete_V1", "DCEndInit_V1", "DCEndComplete_V1"] {
        for change in [0, 1, 5, 6] {
            always(marker, change);
        }
    }
    for load in ["ModuleLoad_V2", "AssemblyLoad_V1"] {
        always(load, 0);
    }
    for enumerated in
        ["MethodDCEndVerbose_V2", "ModuleDCEnd_V2", "AssemblyDCEnd_V1", "AppDomainDCEnd_V1"]
    {
        for change in [1, 6] {
            always(enumerated, change);
        }
    }
    // A last string without its NUL is read all the same: that of RuntimeInformation is.
    let cut = rows.keys().filter(|(name, change)| *change == 4 && !name.starts_with("Runtime"));
    for (name, change) in cut {
        always(name, *change);
    }
}
