//! Changes what a real merged trace means, and compares what verify reports with
//! `tests/cases/mutations.txt`.
//!
//! reports/mutations.md is the table with the answers. The traces are changed as bytes, by code
//! that shares nothing with the code under test (`etl_tests::bytes`).

use etl_format::ProcessId;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use etl_test_support::{needs, root, trace};
use etl_tests::bytes::{Image, change};
use etl_verify::{Finding, Report, Verifier};

/// A row of the table.
struct Row {
    change: String,
    expected: Expected,
    meaning: String,
}

/// What the verifier is to report.
enum Expected {
    /// This rule.
    Rule(String),
    /// Nothing: no verifier could find the change, for this reason.
    Silent(String),
    /// Something that no rule reports yet.
    Open(String),
}

fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(root().join("tests/cases/mutations.txt")).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let columns: Vec<&str> = line.split(" | ").collect();
            let [change, expected, meaning] = columns[..] else {
                panic!("three columns: {line}")
            };
            let expected = match expected.split_once(": ") {
                Some(("silent", reason)) => Expected::Silent(reason.to_owned()),
                Some(("open", what)) => Expected::Open(what.to_owned()),
                _ => Expected::Rule(expected.to_owned()),
            };
            Row {
                change: change.to_owned(),
                expected,
                meaning: meaning.to_owned(),
            }
        })
        .collect()
}

fn judge(file: &[u8]) -> Result<Report, String> {
    Verifier::new()
        .verify(file, "mutated.etl")
        .map_err(|error| error.to_string())
}

/// A finding without what changes when other records do: its words, its time, its place.
type Kind = (&'static str, &'static str, bool, Option<u32>);

fn kind(finding: &Finding) -> Kind {
    (
        finding.rule,
        finding.severity.name(),
        finding.is_decided(),
        finding.pid.map(ProcessId::get),
    )
}

/// How many findings there are of each kind; and of each kind with its words.
struct Findings {
    kinds: BTreeMap<Kind, usize>,
    words: BTreeSet<(Kind, String)>,
}

impl Findings {
    fn new(report: &Report) -> Self {
        let mut kinds = BTreeMap::new();
        for finding in &report.findings {
            *kinds.entry(kind(finding)).or_default() += 1;
        }
        let words = report
            .findings
            .iter()
            .map(|f| (kind(f), f.message.clone()))
            .collect();
        Findings { kinds, words }
    }

    /// Kinds that there are more of than before.
    fn new_kinds(&self, before: &Findings) -> BTreeSet<Kind> {
        let known = |kind: &Kind| before.kinds.get(kind).copied().unwrap_or(0);
        self.kinds
            .iter()
            .filter(|(kind, count)| **count > known(kind))
            .map(|(k, _)| *k)
            .collect()
    }

    /// Rules that report something else than before.
    fn rules(&self, before: &Findings) -> BTreeSet<&'static str> {
        self.words
            .difference(&before.words)
            .map(|((rule, ..), _)| *rule)
            .collect()
    }
}

/// What came of a row: the cell of the page, and what is wrong with it.
struct Came {
    cell: String,
    wrong: Option<String>,
}

fn came(row: &Row, report: Result<Report, String>, before: &Findings) -> Came {
    let report = match report {
        Ok(report) => report,
        Err(error) => {
            return Came {
                cell: format!("unreadable: {error}"),
                wrong: Some(error),
            };
        }
    };
    let after = Findings::new(&report);
    let (kinds, rules) = (after.new_kinds(before), after.rules(before));
    let mut cell: Vec<String> = Vec::new();
    for rule in &rules {
        let of = kinds.iter().filter(|kind| kind.0 == *rule);
        let of: BTreeSet<String> = of
            .map(|k| format!("{}{}", k.1, if k.2 { "" } else { "?" }))
            .collect();
        let of: Vec<String> = of.into_iter().collect();
        let of = if of.is_empty() {
            "other words".to_owned()
        } else {
            of.join(", ")
        };
        cell.push(format!("{rule} ({of})"));
    }
    let cell = if cell.is_empty() {
        "nothing".to_owned()
    } else {
        cell.join("; ")
    };
    let wrong = match &row.expected {
        Expected::Rule(rule) if !rules.contains(&**rule) => Some(format!("{rule} is missing")),
        Expected::Silent(_) if !kinds.is_empty() => Some("it is declared silent".to_owned()),
        _ => None,
    };
    Came { cell, wrong }
}

/// What came of all rows, found on all processors.
fn all(rows: &[Row], image: &Image, before: &Findings) -> Vec<Came> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(row) = rows.get(at) else { break };
                    let answer = came(row, judge(&change(image, &row.change)), before);
                    done.lock().unwrap().insert(at, answer);
                }
            });
        }
    });
    done.into_inner().unwrap().into_values().collect()
}

fn page(rows: &[Row], came: &[Came]) -> String {
    let of = |wanted: fn(&Expected) -> bool| rows.iter().filter(|r| wanted(&r.expected)).count();
    let mut out = format!(
        "# What etlverify reports about a changed real trace\n\n\
         The test `mutations` writes this page. It applies each change of `tests/cases/mutations.txt`, which\n\
         explains the first column, to `net.4.5.2.x64.etl` of PerfView's public test suite, and verifies the\n\
         result. The last column lists the differences from the findings in the unchanged trace, which\n\
         [real-trace-findings.md](real-trace-findings.md) explains.\n\n\
         Of {} changes, {} are reported as expected, {} leave no trace in the file, and {} are open: a\n\
         rule for them is missing.\n\n\
         | change | it means | expected | reported |\n|---|---|---|---|\n",
        rows.len(),
        of(|e| matches!(e, Expected::Rule(_))),
        of(|e| matches!(e, Expected::Silent(_))),
        of(|e| matches!(e, Expected::Open(_))),
    );
    for (row, came) in rows.iter().zip(came) {
        let expected = match &row.expected {
            Expected::Rule(rule) => format!("`{rule}`"),
            Expected::Silent(reason) => format!("nothing: {reason}"),
            Expected::Open(what) => format!("open: {what}"),
        };
        let change = row.change.replace('|', "\\|");
        writeln!(
            out,
            "| `{change}` | {} | {expected} | {} |",
            row.meaning, came.cell
        )
        .unwrap();
    }
    out
}

#[needs(trace = "perfview/net.4.5.2.x64.etl", time)]
#[test]
fn verify_reports_what_a_change_of_a_real_trace_means() {
    let file = std::fs::read(trace("perfview/net.4.5.2.x64.etl")).unwrap();
    let image = Image::new(&file);
    assert_eq!(image.records.len(), 179_474);
    // Without a change, the plain copy has the findings of the trace.
    let before = Findings::new(&judge(&file).unwrap());
    let plain = Findings::new(&judge(&change(&image, "")).unwrap());
    assert!(plain.words == before.words && plain.kinds == before.kinds);

    let rows = rows();
    let came = all(&rows, &image, &before);
    let wrong: Vec<String> = rows
        .iter()
        .zip(&came)
        .filter_map(|(row, came)| {
            Some(format!(
                "{}: {}; came: {}",
                row.change,
                came.wrong.as_ref()?,
                came.cell
            ))
        })
        .collect();
    let page = page(&rows, &came);
    let path = root().join("reports/mutations.md");
    if std::env::var_os("ETLKIT_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let how =
        "update reports/mutations.md: ETLKIT_UPDATE=1 cargo test -p etl-tests --test it mutations";
    assert!(
        std::fs::read_to_string(&path).is_ok_and(|published| published == page),
        "{how}"
    );
}

#[test]
fn table_of_mutations_names_known_rules_once() {
    let rows = rows();
    assert!(rows.len() >= 120, "{} mutations", rows.len());
    let changes: BTreeSet<&str> = rows.iter().map(|row| &*row.change).collect();
    assert_eq!(changes.len(), rows.len(), "a change is in the table twice");
    for row in &rows {
        if let Expected::Rule(rule) = &row.expected {
            assert!(
                etl_verify::Rule::find(rule).is_some(),
                "{rule}: {}",
                row.change
            );
        }
    }
}
