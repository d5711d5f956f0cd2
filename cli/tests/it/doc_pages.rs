//! The commands in README.md and docs/tutorial.md print what the pages show.
//!
//! `console.rs` runs the pages.
use etl_test_support::needs;
use std::path::{Path, PathBuf};

use crate::common::{directory, etlverify};
use crate::console::{bash, check};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn readme_is_up_to_date() {
    let here = directory(&[]);
    std::fs::create_dir(here.path().join("corpus")).unwrap();
    for script in ["corpus/recipe.kdl", "corpus/two-files.kdl"] {
        std::fs::copy(root().join(script), here.path().join(script)).unwrap();
    }
    let file = root().join("README.md");
    let page = std::fs::read_to_string(&file).unwrap();

    // The first command of the page, as cargo would run it.
    let first = page.lines().find(|line| line.starts_with("cargo run ")).unwrap();
    let (_, first) = first.split_once(" -- ").unwrap();
    let (first, _) = first.split_once('#').unwrap_or((first, ""));
    let said = bash(here.path(), &format!("etlkit {first}"));
    // Its output, where `...` stands for omitted lines.
    let (_, shown) = page.split_once("```text\nout/recipe.etl").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let mut rest = said.as_str();
    for line in format!("out/recipe.etl{shown}").lines().filter(|line| *line != "...") {
        let (_, after) =
            rest.split_once(&format!("{line}\n")).unwrap_or_else(|| panic!("{line}\n{said}"));
        rest = after;
    }

    let now = check(&file, here.path());
    assert!(now.matches("\n$ etl").count() >= 6, "{now}");
}

/// docs/tutorial.md.
#[test]
fn tutorial_is_up_to_date() {
    let here = directory(&[]);
    let now = check(&root().join("docs/tutorial.md"), here.path());
    assert!(now.matches("\n$ ").count() >= 15, "{now}");
    // The text of the page refers to these.
    for said in ["68 known: 68 listed, 28 loaded", "verdict   complete", "  lost        64 events"]
    {
        assert!(now.contains(said), "{said}");
    }
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn readme_report_of_real_trace_is_up_to_date() {
    let path = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    let said = etlverify(path.parent().unwrap(), &["--no-config", "net.4.5.2.x64.etl"]).out;
    let page = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, shown) = page.split_once("$ etlverify net.4.5.2.x64.etl\n").unwrap();
    let (shown, _) = shown.split_once("...\n").unwrap();
    assert!(said.starts_with(shown), "{said}");
}
