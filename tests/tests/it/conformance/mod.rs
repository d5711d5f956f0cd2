//! reports/conformance.md: each rule of the documents with its tests, from `rules.txt`.

mod overview;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use etl_schema::tables::errata;
use etl_test_support::root;

/// The rules, with their tests.
const RULES: &str = include_str!("rules.txt");

const HEAD: &str = "# Conformance\n\n\
    The rules of the five documents about ETW and the events of the CLR, in our words: the place of each\n\
    rule, the tests that show it, and the erratum if the documents are not followed\n\
    (`etlkit errata X07` prints the evidence). `cargo test NAME` runs a test.\n\n\
    A test writes this page (`ETLKIT_WRITE_DOCS=1 cargo test -p etl-tests --test it conformance`)\n\
    and checks that each test and each erratum exists, and that each rule has one of them.\n";

/// A line of `rules.txt`.
struct Rule<'r> {
    place: &'r str,
    rule: &'r str,
    tests: Vec<&'r str>,
    errata: Vec<&'r str>,
}

/// The rules after the headings of their documents.
fn rules() -> Vec<(&'static str, Vec<Rule<'static>>)> {
    let mut documents = Vec::new();
    for line in RULES.lines().filter(|line| !line.starts_with('#')) {
        if let Some(document) = line.strip_prefix("= ") {
            documents.push((document, Vec::new()));
            continue;
        }
        let mut cells = line.split('|').map(str::trim);
        let mut cell = || cells.next().unwrap_or_else(|| panic!("four cells: {line}"));
        let (place, rule) = (cell(), cell());
        let (tests, errata) = (
            cell().split(' ').collect(),
            cell().split_whitespace().collect(),
        );
        documents.last_mut().unwrap().1.push(Rule {
            place,
            rule,
            tests,
            errata,
        });
    }
    documents
}

/// Names of the tests in the sources below a directory.
fn tests_in(directory: &Path, out: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            tests_in(&path, out);
        } else if name.ends_with(".rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            // What is between the attribute and the name: other attributes, comments.
            for test in text.split("#[test]").skip(1) {
                let Some((before, after)) = test.split_once("fn ") else {
                    continue;
                };
                if !before.contains("#[ignore") {
                    out.extend(after.split_once('(').map(|(name, _)| name.to_owned()));
                }
            }
        }
    }
}

#[test]
fn conformance_page_lists_every_rule_with_its_tests() {
    let mut tests = BTreeSet::new();
    for name in [
        "etl-format",
        "schema",
        "control",
        "analysis",
        "synth",
        "verify",
        "events",
        "tools",
        "tests",
    ] {
        tests_in(&root().join(name), &mut tests);
    }
    let (mut page, mut count, mut seen) = (HEAD.to_owned(), 0, BTreeSet::new());
    for (document, rules) in rules() {
        write!(
            page,
            "\n## {document}\n\n| place | rule | shown by | erratum |\n|---|---|---|---|\n"
        )
        .unwrap();
        for Rule {
            place,
            rule,
            tests: shown,
            errata: named,
        } in rules
        {
            for test in &shown {
                assert!(
                    tests.contains(*test),
                    "{document}, {place}: there is no test {test}"
                );
            }
            for id in &named {
                assert!(
                    errata().iter().any(|e| e.id == **id),
                    "{document}, {place}: no {id}"
                );
            }
            assert!(
                seen.insert((document, place, rule)),
                "twice: {document}, {place}: {rule}"
            );
            let shown: Vec<String> = shown.iter().map(|test| format!("`{test}`")).collect();
            writeln!(
                page,
                "| {place} | {rule} | {} | {} |",
                shown.join(", "),
                named.join(", ")
            )
            .unwrap();
            count += 1;
        }
    }
    assert!(count >= 150, "{count} rules");
    let path = root().join("reports/conformance.md");
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        std::fs::write(&path, &page).unwrap();
    }
    let known = std::fs::read_to_string(&path)
        .unwrap_or_default()
        .replace("\r\n", "\n");
    assert!(
        known == page,
        "reports/conformance.md is not up to date: run with ETLKIT_WRITE_DOCS=1"
    );
}

/// Each erratum about the documents is named by the rule that it corrects.
#[test]
fn each_erratum_about_a_document_is_named_by_a_rule() {
    let named: BTreeSet<&str> = rules()
        .into_iter()
        .flat_map(|(_, rules)| rules)
        .flat_map(|rule| rule.errata)
        .collect();
    let about = errata().iter().filter(|e| {
        ["preview page", "ETW Events", "CLR ETW Providers"]
            .iter()
            .any(|d| e.documents.contains(d))
    });
    let missing: Vec<&str> = about
        .map(|e| &*e.id)
        .filter(|id| !named.contains(id))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
