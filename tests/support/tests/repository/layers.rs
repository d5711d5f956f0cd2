//! Which crate may depend on which: nothing depends upwards.

use std::collections::BTreeMap;
use std::path::Path;

use crate::workspace::{Crate, Dependency, crates};

/// Floor, name, folder, and the crates of the same floor that it may use.
type Row = (u8, &'static str, &'static str, &'static [&'static str]);

/// Folders of the crates, by floor. A crate depends on floors below its own, and on those beside it
/// that its row names.
const CRATES: &[Row] = &[
    (1, "etl-format", "etl-format", &[]),
    (1, "etl-providers", "providers", &[]),
    (1, "etl-nettrace", "nettrace", &[]),
    (2, "etl-schema", "schema", &[]),
    (3, "etl-control", "control", &[]),
    (3, "etl-analysis", "analysis", &[]),
    (4, "etl-events", "events", &[]),
    (4, "etl-synth", "synth", &[]),
    (5, "etl-verify", "verify", &[]),
    (5, "etl-tools", "tools", &[]),
    (5, "etl-export", "export", &[]),
    (6, "etl-tables", "tables", &[]),
    (7, "etlkit", "cli", &[]),
];

/// Dependencies that the floors allow and that are wrong all the same: who makes traces and who
/// judges them must not agree by sharing their errors.
const NEVER: &[(&str, &str)] = &[
    ("etl-verify", "etl-synth"),
    ("etl-events", "etl-synth"),
    ("etl-tools", "etl-synth"),
    ("etl-export", "etl-synth"),
    ("etl-tables", "etl-synth"),
    ("etl-analysis", "etl-synth"),
    ("etl-synth", "etl-analysis"),
    ("etl-synth", "etl-events"),
];

/// Dependencies of tests that point up, each with its reason.
const TESTS_MAY: &[(&str, &str, &str)] = &[];

fn row(name: &str) -> Option<&'static Row> {
    CRATES.iter().find(|row| row.1 == name)
}

#[test]
fn no_crate_depends_upwards() {
    let floors: BTreeMap<&str, u8> = CRATES.iter().map(|c| (c.1, c.0)).collect();
    let mut wrong = Vec::new();
    for Crate {
        name, dependencies, ..
    } in crates()
    {
        let (floor, _, _, beside) = row(&name).expect("every_crate_has_its_floor");
        for Dependency {
            name: dependency,
            kind,
        } in &dependencies
        {
            let allowed = match floors.get(dependency.as_str()) {
                Some(other) => other < floor || beside.contains(&dependency.as_str()),
                None => !dependency.starts_with("etl") || dependency == "etl-test-support",
            };
            let test = TESTS_MAY.iter().any(|t| t.0 == name && t.1 == dependency);
            let never = NEVER.iter().any(|n| n.0 == name && n.1 == dependency);
            let excused = kind == "dev" && test;
            if never || !(allowed || excused) {
                wrong.push(format!("{name} must not depend on {dependency} ({kind})"));
            }
            if dependency == "etl-test-support" && kind != "dev" {
                wrong.push(format!("{name}: {dependency} is only for tests"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_crate_has_its_floor() {
    for Crate { name, folder, .. } in crates() {
        let listed = row(&name).is_some_and(|row| folder == Path::new(row.2));
        assert!(
            listed,
            "{name} has no floor in tests/support/tests/repository/layers.rs"
        );
    }
}
