//! Families of cases for the causes of wrong verdicts: generated recordings, sound and broken ones,
//! with the verdict that the documents' tables and the edit demand. `reports/verdicts.md` is the
//! table of the results.

mod alive;
mod amounts;
mod case;
mod code;
mod collections;
mod ends;
mod machine;
mod native;
mod order;
mod requests;
mod shapes;

#[expect(dead_code, reason = "the tests of the rules need more of it")]
#[path = "../it/rules/edit.rs"]
mod edit;
#[expect(dead_code, reason = "the tests of etl-synth need more of it")]
#[path = "../../../synth/tests/it/simulated.rs"]
mod simulated;

use std::fmt::Write;

use etl_test_support::{needs, root};

use case::{Family, Recordings};

/// Every family.
fn families() -> Vec<Family> {
    vec![
        requests::not_requested(),
        requests::promised(),
        alive::family(),
        ends::family(),
        order::family(),
        collections::family(),
        machine::family(),
        code::family(),
        native::family(),
        amounts::family(),
        shapes::family(),
    ]
}

/// The numbers of right verdicts of a family.
struct Row {
    name: &'static str,
    broken: usize,
    found: usize,
    sound: usize,
    false_alarms: usize,
}

fn row(family: &Family, recordings: &mut Recordings, wrong: &mut Vec<String>) -> Row {
    let mut row = Row {
        name: family.name,
        broken: 0,
        found: 0,
        sound: 0,
        false_alarms: 0,
    };
    for case in &family.cases {
        let verdict = recordings.check(case);
        let is_right = verdict.is_ok();
        if case.expected.is_broken() {
            row.broken += 1;
            row.found += usize::from(is_right);
        } else {
            row.sound += 1;
            row.false_alarms += usize::from(!is_right);
        }
        wrong.extend(verdict.err().map(|text| format!("{}: {text}", family.name)));
    }
    row
}

fn page(rows: &[Row]) -> String {
    let mut out = String::from(
        "# Verdicts by cause\n\n\
         The test `verdicts` writes this page. Each cause has a family of generated recordings. The\n\
         broken ones deserve a finding; the sound ones deserve none, or an undecided one.\n\n\
         | cause | broken | found | sound | false alarms |\n|---|---|---|---|---|\n",
    );
    for row in rows {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            row.name, row.broken, row.found, row.sound, row.false_alarms
        );
    }
    out
}

#[needs(time)]
#[test]
fn each_family_has_the_verdicts_that_it_deserves() {
    let mut recordings = Recordings::default();
    let mut wrong = Vec::new();
    let mut rows = Vec::new();
    for family in families() {
        rows.push(row(&family, &mut recordings, &mut wrong));
    }
    let page = page(&rows);
    assert!(wrong.is_empty(), "{}\n{page}", wrong.join("\n"));
    for row in &rows {
        let all = row.broken + row.sound;
        let has_half = row.sound * 2 >= all;
        assert!(all >= 20 && has_half, "{}: {all} cases", row.name);
    }
    let path = root().join("reports/verdicts.md");
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), page);
}
