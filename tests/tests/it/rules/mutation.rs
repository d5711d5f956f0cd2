//! Deletes, doubles, moves or alters each event of a valid trace, and records what verify reports.
//!
//! reports/unnoticed.md is the table of every change to every event of some traces. A property test
//! compares it with random changes to traces of other seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use etl_test_support::root;
use etl_verify::Verifier;

use proptest::prelude::*;

use super::base::{judge, sound};
use super::edit::{Rec, records, write};

const CHANGES: [&str; 8] = [
    "deleted",
    "duplicated",
    "exchanged with the next event of its thread",
    "first field changed",
    "payload cut by two bytes",
    "moved to another thread",
    "moved to another process",
    "keyword removed",
];

/// The trace with one event changed, or `None` if the change has no effect. `by`, from 1 to 255, is
/// what fields and owners are altered by.
fn changed(all: &[Rec], at: usize, change: usize, by: u64) -> Option<Vec<Rec>> {
    let mut out = all.to_vec();
    let one = all[at].clone();
    match change {
        0 => {
            out.remove(at);
        }
        1 => out.insert(at, one),
        2 => {
            // The timestamps stay in order.
            let after = all[at + 1..]
                .iter()
                .position(|r| r.is_event() && r.tid() == one.tid())?;
            let next = at + 1 + after;
            let other = all[next].clone();
            if other.bytes[0x18..] == one.bytes[0x18..] {
                return None;
            }
            out[at] = other.clone().at(one.timestamp());
            out[next] = one.clone().at(other.timestamp());
            (out[at].processor, out[next].processor) = (one.processor, other.processor);
        }
        3 => {
            if one.payload().len() < 8 {
                return None;
            }
            // Ids of modules are addresses: the new value is a multiple of 8 and no other id.
            let value = one.u64(0) ^ by << 40;
            out[at].set_u64(0, value);
        }
        4 => {
            let payload = one.payload();
            let cut = payload.get(..payload.len().checked_sub(2)?)?;
            out[at] = one.clone().with_payload(cut);
        }
        5 => out[at].put(8, &(one.tid() + 1_000 + by as u32).to_le_bytes()),
        6 => out[at].put(0x0c, &(one.pid() + 1_000 + by as u32).to_le_bytes()),
        _ => {
            if one.bytes[0x30..0x38] == [0; 8] {
                return None;
            }
            out[at].put(0x30, &[0; 8]);
        }
    }
    Some(out)
}

/// How often verify noticed a change to events of one name.
#[derive(Default)]
struct Row {
    noticed: usize,
    of: usize,
    by: BTreeSet<&'static str>,
}

impl Row {
    fn word(&self) -> &'static str {
        match self.noticed {
            0 => "never",
            n if n == self.of => "always",
            _ => "sometimes",
        }
    }
}

fn verifier() -> Verifier<'static> {
    let enabled = etl_verify::Enabled::parse("runtime:0x4001CCBD:5+rundown:0x178:5").unwrap();
    Verifier::new().enabled(enabled)
}

/// Seeds of the traces in the table.
const SEEDS: [u64; 3] = [7, 8, 9];

fn table() -> BTreeMap<(String, usize), Row> {
    let mut rows: BTreeMap<(String, usize), Row> = BTreeMap::new();
    for seed in SEEDS {
        let file = sound(seed);
        let all = records(&file);
        let plain = judge(&[write(&file, &all)], verifier());
        assert!(plain.findings.is_empty(), "seed {seed}: {}", plain.text());
        for at in (0..all.len()).filter(|&at| all[at].is_event()) {
            for change in 0..CHANGES.len() {
                let Some(mutated) = changed(&all, at, change, 0x55) else {
                    continue;
                };
                let report = judge(&[write(&file, &mutated)], verifier());
                let row = rows.entry((all[at].name.clone(), change)).or_default();
                row.of += 1;
                row.noticed += usize::from(!report.findings.is_empty());
                row.by.extend(report.findings.iter().map(|f| f.rule));
            }
        }
    }
    rows
}

fn page(rows: &BTreeMap<(String, usize), Row>) -> String {
    let mut out = String::from(
        "# Which changes of a trace etlverify detects\n\n\
         The test `mutation` writes this page. It simulates three complete traces (two processes, a start and\n\
         an end rundown, loads, compilations, exceptions, stacks), changes one event at a time and verifies\n\
         the result with the enablement declared. The tables contain every change of every event. Random\n\
         changes of other traces must agree with them.\n\n\
         - *never*: the changed trace is consistent, for example if no other event proves the deleted one.\n\
         - *sometimes*: detection depends on the events around it.\n\
         - *always*: a rule reports the change.\n\n\
         These traces have no collections. A missing GCTriggered, FinalizeObject or BulkType event is never\n\
         detected, and neither are a few missing GCHeapStats events or events of finalizers. `gc.incomplete`\n\
         reports a trace that has no GCHeapStats event, or no event of one of the two kinds of finalizers,\n\
         although it has ten of the events that come with them.\n",
    );
    let titles = [
        ("Never detected", "never", "event | change", "|---|---|"),
        (
            "Sometimes detected",
            "sometimes",
            "event | change | by",
            "|---|---|---|",
        ),
        (
            "Always detected",
            "always",
            "event | change | by",
            "|---|---|---|",
        ),
    ];
    for (title, word, columns, rule) in titles {
        writeln!(out, "\n## {title}\n\n| {columns} |\n{rule}").unwrap();
        for ((name, change), row) in rows.iter().filter(|(_, row)| row.word() == word) {
            let by: Vec<_> = row.by.iter().copied().collect();
            let by = if by.is_empty() {
                String::new()
            } else {
                format!(" {} |", by.join(", "))
            };
            writeln!(out, "| {name} | {} |{by}", CHANGES[*change]).unwrap();
        }
    }
    out
}

fn published() -> String {
    std::fs::read_to_string(root().join("reports/unnoticed.md")).unwrap_or_default()
}

/// The word of the published page for a change, if the page has it.
fn claimed(page: &str, name: &str, change: usize) -> Option<&'static str> {
    let row = format!("| {name} | {} |", CHANGES[change]);
    let mut word = None;
    for line in page.lines() {
        match line {
            "## Never detected" => word = Some("never"),
            "## Sometimes detected" => word = Some("sometimes"),
            "## Always detected" => word = Some("always"),
            line if line.starts_with(&row) => return word,
            _ => {}
        }
    }
    None
}

#[test]
fn unnoticed_page_lists_the_result_of_every_change() {
    let rows = table();
    let page = page(&rows);
    if std::env::var_os("ETLKIT_UPDATE").is_some() {
        std::fs::write(root().join("reports/unnoticed.md"), &page).unwrap();
    }
    let how =
        "update reports/unnoticed.md: ETLKIT_UPDATE=1 cargo test -p etl-tests --test it rules";
    assert_eq!(published(), page, "{how}");

    // Changes that a rule describes are always noticed.
    let always = |name: &str, change: usize| {
        let row = rows.get(&(name.to_owned(), change));
        let row = row.unwrap_or_else(|| panic!("no {name} in the trace"));
        assert_eq!(row.noticed, row.of, "{name} {}", CHANGES[change]);
    };
    for marker in [
        "DCStartInit_V1",
        "DCStartComplete_V1",
        "DCEndInit_V1",
        "DCEndComplete_V1",
    ] {
        for change in [0, 1, 5, 6] {
            always(marker, change);
        }
    }
    for load in ["ModuleLoad_V2", "AssemblyLoad_V1"] {
        always(load, 0);
    }
    for enumerated in [
        "MethodDCEndVerbose_V1",
        "ModuleDCEnd_V2",
        "AssemblyDCEnd_V1",
        "AppDomainDCEnd_V1",
    ] {
        for change in [1, 6] {
            always(enumerated, change);
        }
    }
    // The last string of a payload is read without its NUL.
    let ends_in_text = [
        "RuntimeInformation",
        "AssemblyLoadStart",
        "ResolutionAttempted",
    ];
    let ends_in_text = |name: &str| ends_in_text.iter().any(|text| name.starts_with(text));
    let cut = rows
        .keys()
        .filter(|(name, change)| *change == 4 && !ends_in_text(name));
    for (name, change) in cut {
        always(name, *change);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn random_changes_are_noticed_as_on_the_page(
        seed in 100u64..4_000,
        at in any::<prop::sample::Index>(),
        change in 0..CHANGES.len(),
        by in 1u64..=255,
    ) {
        let file = sound(seed);
        let all = records(&file);
        let events: Vec<usize> = (0..all.len()).filter(|&at| all[at].is_event()).collect();
        let at = events[at.index(events.len())];
        let Some(mutated) = changed(&all, at, change, by) else { return Ok(()) };
        let plain = judge(&[write(&file, &all)], verifier());
        prop_assert!(plain.findings.is_empty(), "seed {}: {}", seed, plain.text());
        let report = judge(&[write(&file, &mutated)], verifier());
        let (name, what) = (&all[at].name, CHANGES[change]);
        match claimed(&published(), name, change) {
            Some("never") => {
                prop_assert!(report.findings.is_empty(), "{name} {what}: {}", report.text());
            }
            Some("always") => prop_assert!(!report.findings.is_empty(), "{name} {what}: not noticed"),
            Some(_) => {}
            None => prop_assert!(false, "{name} {what} is not on the page"),
        }
    }
}
