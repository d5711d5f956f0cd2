//! `etlkit doctor` and `--version --verbose`: what a build has, and that it works.

use serde_json::Value;

use crate::common::{directory, etlkit, etlverify};

#[test]
fn doctor_lists_features_and_passes_its_test() {
    let here = directory(&[]);
    let said = etlkit(here.path(), &["doctor"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    let has_parquet = if cfg!(feature = "parquet") {
        "  parquet      yes"
    } else {
        "  parquet      no"
    };
    for line in [
        "  symbols      yes",
        has_parquet,
        "  simulate     recipe.etl, 589824 bytes, as this version writes them everywhere",
        "  verify       the verdict is complete",
    ] {
        assert!(said.out.lines().any(|l| l.starts_with(line)), "{line}");
    }
    assert!(!said.out.contains("FAILED"), "{}", said.out);
}

#[test]
fn doctor_json_has_the_members_of_its_page() {
    let here = directory(&[]);
    let said = etlkit(here.path(), &["doctor", "--format", "json"]);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    let page = include_str!("../../../docs/json.md");
    let members = document.as_object().unwrap();
    for name in members.keys() {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
    let steps = document["self_test"].as_array().unwrap();
    let names: Vec<_> = steps.iter().map(|step| &step["name"]).collect();
    assert_eq!(names, ["simulate", "read", "verify"]);
    assert!(steps.iter().all(|step| step["passed"] == true), "{steps:?}");
    assert_eq!(document["features"]["zstd"], cfg!(feature = "zstd"));
}

#[cfg(unix)]
#[test]
fn doctor_reports_a_directory_without_files() {
    let here = directory(&[]);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_etlkit"));
    let missing = here.path().join("missing");
    let output = command
        .arg("doctor")
        .env("TMPDIR", &missing)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("no file can be made in it"), "{text}");
}

#[test]
fn verbose_version_has_what_a_report_of_a_fault_needs() {
    let here = directory(&[]);
    for (said, tool) in [
        (etlkit(here.path(), &["--version", "--verbose"]), "etlkit "),
        (etlverify(here.path(), &["--verbose", "-V"]), "etlverify "),
    ] {
        assert_eq!(said.code, 0);
        let lines: Vec<&str> = said.out.lines().collect();
        let [version, features, target, build] = lines[..] else {
            panic!("{lines:?}");
        };
        assert!(version.starts_with(tool), "{version}");
        assert!(features.starts_with("features  symbols"), "{features}");
        assert!(target.starts_with("target    "), "{target}");
        assert!(build.starts_with("build     "), "{build}");
    }
    let plain = etlkit(here.path(), &["--version"]);
    assert_eq!(plain.out.lines().count(), 1);
}
