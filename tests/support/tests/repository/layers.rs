//! Which crate may depend on which: nothing depends upwards.

use std::collections::BTreeMap;
use std::path::Path;

use crate::source::read;

/// Folders of the crates, by floor. A crate depends on floors below its own, and on those beside it
/// that its row names.
const CRATES: &[(u8, &str, &str, &[&str])] = &[
    (1, "etl-format", "etl-format", &[]),
    (1, "etl-providers", "providers", &[]),
    (2, "etl-schema", "schema", &[]),
    (3, "etl-control", "control", &[]),
    (4, "etl-analysis", "analysis", &[]),
    (4, "etl-symbols", "symbols", &[]),
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
    ("etl-tools", "etl-synth"),
    ("etl-export", "etl-synth"),
    ("etl-tables", "etl-synth"),
    ("etl-analysis", "etl-synth"),
    ("etl-synth", "etl-analysis"),
];

/// Dependencies of tests that point up, each with its reason.
const TESTS_MAY: &[(&str, &str, &str)] = &[];

/// Names of the dependencies in one kind of table of a manifest.
fn dependencies(manifest: &str, table: &str) -> Vec<String> {
    let mut inside = false;
    let mut out = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == format!("[{table}]") || line.ends_with(&format!(".{table}]"));
        } else if inside && !line.starts_with('#') {
            let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
            out.extend((!name.is_empty()).then(|| name.to_owned()));
        }
    }
    out
}

#[test]
fn no_crate_depends_upwards() {
    let floors: BTreeMap<&str, u8> = CRATES.iter().map(|c| (c.1, c.0)).collect();
    let mut wrong = Vec::new();
    for (floor, name, folder, beside) in CRATES {
        let manifest = read(&Path::new(folder).join("Cargo.toml"));
        for table in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for dependency in dependencies(&manifest, table) {
                let allowed = match floors.get(dependency.as_str()) {
                    Some(other) => other < floor || beside.contains(&dependency.as_str()),
                    None => !dependency.starts_with("etl") || dependency == "etl-test-support",
                };
                let test = TESTS_MAY.iter().any(|t| (t.0, t.1) == (name, &dependency));
                let never = NEVER.contains(&(name, &dependency));
                let excused = table == "dev-dependencies" && test;
                if never || !(allowed || excused) {
                    wrong.push(format!("{name} must not depend on {dependency} ({table})"));
                }
                if dependency == "etl-test-support" && table != "dev-dependencies" {
                    wrong.push(format!("{name}: {dependency} is for tests alone"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_crate_has_its_floor() {
    let manifest = read(Path::new("Cargo.toml"));
    let (_, members) = manifest.split_once("members = [").unwrap();
    let (members, _) = members.split_once(']').unwrap();
    let others = ["tests", "tests/support", "tests/support/macros", "benches"];
    for member in members.split(',').map(|m| m.trim().trim_matches('"')).filter(|m| !m.is_empty()) {
        let known = others.contains(&member) || CRATES.iter().any(|c| c.2 == member);
        assert!(known, "{member} has no floor in tests/support/tests/repository/layers.rs");
    }
}
