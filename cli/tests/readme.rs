//! README.md: what it says that commands print is what they print.
//!
//! Lines of a `console` block that begin with `$ ` are run by bash, one after the other in one directory, and what they print
//! stands behind each. With `ETLKIT_WRITE_DOCS=1` it is written anew.
#![cfg(unix)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{directory, etlverify, real};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What a command line prints.
fn bash(here: &Path, line: &str) -> String {
    let tools = Path::new(env!("CARGO_BIN_EXE_etlkit")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths([tools].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new("bash");
    let output = command.args(["-c", line]).current_dir(here).env("PATH", path).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The page, with what its commands print now.
fn anew(page: &str, here: &Path) -> String {
    let mut out = String::new();
    let mut console = false;
    for line in page.lines() {
        match line {
            "```console" => console = true,
            "```" => console = false,
            _ if console && !line.starts_with("$ ") => continue,
            _ => {}
        }
        out += &format!("{line}\n");
        if let Some(command) = line.strip_prefix("$ ").filter(|_| console) {
            out += &bash(here, command);
        }
    }
    out
}

#[test]
fn the_commands_print_what_the_readme_shows() {
    let here = directory(&[]);
    std::fs::create_dir(here.path().join("corpus")).unwrap();
    let recipe = here.path().join("corpus/recipe.kdl");
    std::fs::copy(root().join("corpus/recipe.kdl"), recipe).unwrap();
    let file = root().join("README.md");
    let page = std::fs::read_to_string(&file).unwrap();

    // The first command of the page, as cargo would run it.
    let (_, first) = page.split_once("cargo run --release --bin etlkit -- ").unwrap();
    let (first, _) = first.split_once('#').unwrap();
    let said = bash(here.path(), &format!("etlkit {first}"));
    let (_, shown) = page.split_once("```\nout/recipe.etl").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let mut rest = said.as_str();
    for line in format!("out/recipe.etl{shown}").lines().filter(|line| *line != "...") {
        let (_, after) =
            rest.split_once(&format!("{line}\n")).unwrap_or_else(|| panic!("{line}\n{said}"));
        rest = after;
    }

    let now = anew(&page, here.path());
    assert!(now.matches("\n$ etl").count() >= 6, "{now}");
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        std::fs::write(file, now).unwrap();
        return;
    }
    let differ = page.lines().zip(now.lines()).find(|(a, b)| a != b);
    assert_eq!((differ, page.lines().count()), (None, now.lines().count()), "ETLKIT_WRITE_DOCS=1");
}

#[test]
fn the_real_trace_is_judged_as_the_readme_shows() {
    let Some(path) = real("perfview/net.4.5.2.x64.etl") else { return };
    let said = etlverify(path.parent().unwrap(), &["--no-config", "net.4.5.2.x64.etl"]).out;
    let page = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, shown) = page.split_once("$ etlverify net.4.5.2.x64.etl\n").unwrap();
    let (shown, _) = shown.split_once("...\n").unwrap();
    assert!(said.starts_with(shown), "{said}");
}
