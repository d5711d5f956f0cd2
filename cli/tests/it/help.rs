//! docs/cli.md shows the help text of every command and the output of examples.
//!
//! A block of the page that starts with `$ etlkit ...` or `$ etlverify ...` is a command line with
//! its output, standard error after standard output. The test runs it in a directory of small files
//! and compares. `ETLKIT_WRITE_DOCS=1` updates the page and adds missing commands.

use std::path::{Path, PathBuf};

use crate::common::{directory, etlkit, etlverify, trace};

/// A small scenario, as the page shows it.
const SCENARIO: &str = r#"scenario "small" seed=1 about="a process is attached to"
process "Orders.exe" {
    clr "core" version="6.0.100" {
        assembly "Orders" { module "C:\\App\\Orders.dll" { methods 20 ready=10 } }
    }
}
at "1s" { session "clr" file="small.etl" { enable "runtime" keywords="Loader|Jit" level=5 } }
at "2s" { stop "clr" }
"#;

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md")
}

/// The commands that a help text lists.
fn commands(help: &str) -> Vec<String> {
    let listed = help.split_once("Commands:\n").map_or("", |(_, rest)| rest);
    let lines = listed.lines().take_while(|line| !line.trim().is_empty());
    // Continued descriptions are indented deeper.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// All commands and their subcommands: `corpus`, `corpus build`.
fn all_commands(here: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut left = vec![String::new()];
    while let Some(above) = left.pop() {
        let mut args: Vec<&str> = above.split_whitespace().collect();
        args.push("--help");
        for name in commands(&etlkit(here, &args).out) {
            let name = format!("{above} {name}").trim_start().to_owned();
            left.push(name.clone());
            all.push(name);
        }
    }
    all
}

/// Words of a command line, with single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn run(here: &Path, line: &str) -> String {
    let words = words(line);
    let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    let said = match words[0].as_str() {
        "etlkit" => etlkit(here, &args),
        "etlverify" => etlverify(here, &args),
        other => panic!("the page runs {other}"),
    };
    // Editors remove trailing spaces.
    let lines = said.out.lines().chain(said.err.lines()).map(str::trim_end);
    lines.map(|line| format!("{line}\n")).collect()
}

/// The page with the current output of its commands.
fn updated(page: &str, here: &Path) -> String {
    let mut out = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out += &format!("{line}\n");
        let Some(command) = line.strip_prefix("$ ") else { continue };
        out += &run(here, command);
        out += "```\n";
        lines.by_ref().take_while(|line| *line != "```").for_each(drop);
    }
    out
}

#[test]
fn cli_page_is_up_to_date() {
    let here = directory(&[("trace.etl", &trace()), ("cut.etl", &trace()[..0x2060])]);
    std::fs::write(here.path().join("scenario.kdl"), SCENARIO).unwrap();
    let write = std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1");
    let mut text = std::fs::read_to_string(page()).unwrap();
    let commands = all_commands(here.path());
    assert!(commands.len() > 20 && commands.contains(&"spec mask".to_owned()), "{commands:?}");
    for name in &commands {
        let block = format!("```console\n$ etlkit {name} --help\n");
        // Subcommands are one heading lower.
        let level = if name.contains(' ') { "###" } else { "##" };
        let heading = format!("\n{level} etlkit {name}\n");
        if write && !text.contains(&block) {
            text += &format!("{heading}{block}```\n");
        }
        assert!(text.contains(&block), "docs/cli.md does not show the help of etlkit {name}");
        assert!(text.contains(&heading), "docs/cli.md: etlkit {name}");
    }
    let updated = updated(&text, here.path());
    if write {
        std::fs::write(page(), updated).unwrap();
        return;
    }
    // Windows separates directories by a backslash.
    let updated = if cfg!(windows) { updated.replace("out\\", "out/") } else { updated };
    assert_equal_pages(&text, &updated);
}

/// Compares two texts and shows the first difference.
fn assert_equal_pages(page: &str, real: &str) {
    let differ = page.lines().zip(real.lines()).enumerate().find(|(_, (a, b))| a != b);
    let what = "docs/cli.md is not what the commands print; ETLKIT_WRITE_DOCS=1 updates it";
    assert!(differ.is_none(), "{what}\n{differ:#?}");
    assert_eq!(page.lines().count(), real.lines().count(), "{what}");
}

#[test]
fn help_texts() {
    let here = directory(&[]);
    let mut left: Vec<Vec<String>> = vec![Vec::new()];
    let mut seen = 0;
    while let Some(command) = left.pop() {
        let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
        args.push("--help");
        let said = etlkit(here.path(), &args);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{command:?}");
        assert!(said.out.contains("Usage: "), "{command:?}");
        assert!(said.out.contains("\nExamples:\n"), "etlkit {command:?} --help has no example");
        for name in commands(&said.out) {
            left.push([&command[..], &[name]].concat());
        }
        let name = if command.is_empty() { "etlkit".to_owned() } else { command.join("_") };
        insta::assert_snapshot!(format!("help_{name}"), said.out);
        seen += 1;
    }
    assert!(seen > 8, "{seen} help texts");
    let said = etlverify(here.path(), &["--help"]);
    insta::assert_snapshot!("help_etlverify", said.out);
}
