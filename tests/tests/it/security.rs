//! Checks that every test in the table of SECURITY.md exists, and that it lists all tests of
//! limits.

use std::collections::BTreeSet;
use std::fs;

/// The names of the tests in a file.
fn tests_in(file: &str) -> BTreeSet<String> {
    let path = etl_test_support::root().join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
    let mut out = BTreeSet::new();
    let mut marked = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") {
            marked = true;
        } else if let Some(rest) = line.strip_prefix("fn ") {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            if std::mem::take(&mut marked) {
                out.insert(name.to_owned());
            }
        }
    }
    out
}

/// A table of the page, by the text before it and after it.
struct Table {
    begin: &'static str,
    end: &'static str,
}

/// The promises, and the limits that keep them.
const TABLES: [Table; 2] = [
    Table {
        begin: "**Guaranteed for any bytes:**\n",
        end: "\n- **The tools**",
    },
    Table {
        begin: "\n## Limits\n",
        end: "\n## ",
    },
];

/// The cells of the last column of a table with three columns.
fn shown_by(table: &Table) -> Vec<String> {
    let page = fs::read_to_string(etl_test_support::root().join("SECURITY.md")).expect("the page");
    let (_, rest) = page.split_once(table.begin).expect("the table");
    let text = rest.split(table.end).next().unwrap_or_default();
    let rows = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        assert_eq!(cells.len(), 3, "{row}");
        cells[2].to_owned()
    })
    .collect()
}

#[test]
fn security_page_names_a_test_for_every_promise_and_limit() {
    let [promises, limits] = TABLES.map(|table| shown_by(&table));
    assert!(promises.len() > 5, "{} promises", promises.len());
    assert!(limits.len() > 30, "{} hazards", limits.len());
    let rows = [promises, limits].concat();
    let mut named = BTreeSet::new();
    for row in &rows {
        let mut file = String::new();
        let mut found = 0;
        // Text in backquotes; a fuzz target stands after the words "fuzz target".
        for (number, piece) in row.split('`').enumerate() {
            if number % 2 == 0 {
                file = if piece.ends_with("fuzz target ") {
                    "fuzz".to_owned()
                } else {
                    file
                };
                continue;
            }
            found += 1;
            if file == "fuzz" {
                let target = etl_tests::fuzz::find(piece);
                assert_eq!(target.name, piece);
                continue;
            }
            let test = if let Some(rest) = piece.strip_prefix("limits::") {
                let (module, test) = rest.split_once("::").expect("limits::MODULE::TEST");
                file = format!("tests/tests/limits/{module}.rs");
                test
            } else if let Some((path, test)) = piece.split_once("::") {
                path.clone_into(&mut file);
                test
            } else if piece.contains('/') {
                assert!(etl_test_support::root().join(piece).exists(), "{piece}");
                continue;
            } else {
                piece
            };
            assert!(
                tests_in(&file).contains(test),
                "{file} has no test {test}: {row}"
            );
            named.insert(test.to_owned());
        }
        assert!(found > 0, "no test for it: {row}");
    }
    for module in ["files", "schemas", "scripts", "verdicts"] {
        for test in tests_in(&format!("tests/tests/limits/{module}.rs")) {
            assert!(
                named.contains(&test),
                "SECURITY.md does not name limits::{module}::{test}"
            );
        }
    }
}
