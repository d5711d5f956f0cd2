//! The commands in README.md and in pages of docs/ print what the pages show.
//!
//! `console.rs` runs the pages.
use etl_test_support::needs;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::{directory, etlkit, etlverify};
use crate::console::{bash, check};
use crate::nettrace::sampled;

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
    let first = page
        .lines()
        .find(|line| line.starts_with("cargo run "))
        .unwrap();
    let (_, first) = first.split_once(" -- ").unwrap();
    let (first, _) = first.split_once('#').unwrap_or((first, ""));
    let said = bash(here.path(), &format!("etlkit {first}"));
    // Its output, where `...` stands for omitted lines.
    let (_, shown) = page.split_once("```text\nout/recipe.etl").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let mut rest = said.as_str();
    for line in format!("out/recipe.etl{shown}")
        .lines()
        .filter(|line| *line != "...")
    {
        let (_, after) = rest
            .split_once(&format!("{line}\n"))
            .unwrap_or_else(|| panic!("{line}\n{said}"));
        rest = after;
    }

    let now = check(&file, here.path());
    assert!(now.matches("\n$ etl").count() >= 6, "{now}");
}

/// The first lines of the reports in docs/analyze.md, up to `...`: of real traces, and of two
/// scenarios.
#[needs(traces)]
#[test]
fn analyze_page_is_up_to_date() {
    let here = directory(&[]);
    for script in ["kernel-session", "gc-and-locks"] {
        let script = root().join(format!("corpus/{script}.kdl"));
        let script = script.to_str().unwrap();
        let made = etlkit(
            here.path(),
            &["synth", script, "-o", ".", "--force", "--no-truth"],
        );
        assert_eq!(made.code, 0, "{}", made.err);
    }
    for name in [
        "perfview/net.4.5.2.x64.etl",
        "perfview/gcevents.etl",
        "tx/WsRm01.etl",
    ] {
        let path = etl_test_support::trace(name);
        let copy = here.path().join(path.file_name().unwrap());
        std::fs::copy(path, copy).unwrap();
    }
    let file = root().join("docs/analyze.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (mut now, mut lines) = (String::new(), page.lines());
    while let Some(line) = lines.next() {
        now += &format!("{line}\n");
        let Some(command) = line.strip_prefix("$ ") else {
            continue;
        };
        let mut files = command.split(' ').filter(|word| word.ends_with(".etl"));
        if !files.all(|file| here.path().join(file).exists()) {
            // An example of two recordings of the reader.
            continue;
        }
        let shown: Vec<&str> = lines.by_ref().take_while(|line| *line != "...").collect();
        let said = bash(here.path(), command);
        said.lines()
            .take(shown.len())
            .for_each(|line| now += &format!("{line}\n"));
        now += "...\n";
    }
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        std::fs::write(&file, now).unwrap();
        return;
    }
    assert_eq!(page, now, "docs/analyze.md is not what the commands print");
}

/// docs/tutorial.md.
#[test]
fn tutorial_is_up_to_date() {
    let here = directory(&[]);
    let now = check(&root().join("docs/tutorial.md"), here.path());
    assert!(now.matches("\n$ ").count() >= 15, "{now}");
    // The text of the page refers to these.
    for said in [
        "68 known: 68 listed, 28 loaded",
        "verdict   complete",
        "  lost        64 events",
    ] {
        assert!(now.contains(said), "{said}");
    }
}

/// docs/investigate.md.
#[test]
fn investigation_is_up_to_date() {
    let here = directory(&[]);
    let now = check(&root().join("docs/investigate.md"), here.path());
    assert!(now.matches("\n$ ").count() >= 12, "{now}");
    // The text of the page refers to these.
    for printed in [
        "FileCreate,C:\\Users\\alice",
        "verdict   complete",
        "    powershell.exe",
    ] {
        assert!(now.contains(printed), "{printed}");
    }
}

/// Pages with commands on the traces of scenarios in `corpus/`.
#[test]
fn command_pages_are_up_to_date() {
    for page in [
        "files", "dump", "verify", "diff", "rewrite", "scenario", "tasks",
    ] {
        let here = directory(&[]);
        std::fs::create_dir_all(here.path().join("corpus/parts")).unwrap();
        for scenario in [
            "recipe",
            "two-files",
            "kernel-session",
            "gc-and-locks",
            "parts/orders",
        ] {
            let script = format!("corpus/{scenario}.kdl");
            std::fs::copy(root().join(&script), here.path().join(&script)).unwrap();
        }
        let now = check(&root().join(format!("docs/{page}.md")), here.path());
        assert!(now.contains("\n$ etlkit "), "{page}");
    }
}

#[test]
fn tasks_need_at_most_six_commands() {
    let page = std::fs::read_to_string(root().join("docs/tasks.md")).unwrap();
    let tasks: Vec<&str> = page.split("\n## ").skip(1).collect();
    assert_eq!(tasks.len(), 5);
    for task in tasks {
        let commands = task.matches("\n$ etlkit ").count();
        assert!((2..=6).contains(&commands), "{commands}: {task}");
    }
}

/// docs/coming-from.md: every line works, on simulated recordings of the names that it uses.
#[test]
fn lines_for_users_of_other_tools_work() {
    let here = directory(&[]);
    for (scenario, file, name) in [
        ("kernel-session", "merged.etl", "trace.etl"),
        ("kernel-session", "merged.etl", "before.etl"),
        ("kernel-session", "kernel.etl", "kernel.etl"),
        ("kernel-session", "clr.etl", "clr.etl"),
        ("gc-and-locks", "gc.etl", "gc.etl"),
        ("kernel-io", "merged.etl", "io.etl"),
        ("packets", "pktmon.etl", "net.etl"),
        ("wpp", "driver.etl", "driver.etl"),
        ("wpp", "storage.tmf", "storage.tmf"),
        ("manifest-provider", "shop.etl", "shop.etl"),
        ("manifest-provider", "Contoso-Shop.man", "shop.man"),
    ] {
        let script = root().join(format!("corpus/{scenario}.kdl"));
        let script = script.to_str().unwrap();
        let made = etlkit(
            here.path(),
            &["synth", script, "-o", scenario, "--force", "--no-truth"],
        );
        assert_eq!(made.code, 0, "{}", made.err);
        std::fs::copy(
            here.path().join(scenario).join(file),
            here.path().join(name),
        )
        .unwrap();
    }
    std::fs::write(here.path().join("app.nettrace"), sampled()).unwrap();
    std::fs::create_dir(here.path().join("symbols")).unwrap();
    let page = std::fs::read_to_string(root().join("docs/coming-from.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let code = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    // Tables of many traces need the feature `parquet`.
    let lines = code.filter(|code| code.starts_with("etlkit ") && !code.contains(" parquet "));
    let lines: BTreeSet<&str> = lines.collect();
    assert!(lines.len() > 40, "{lines:?}");
    for line in lines {
        // Fails if standard error has anything but notes.
        bash(here.path(), line);
    }
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn readme_report_of_real_trace_is_up_to_date() {
    let path = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    let said = etlverify(
        path.parent().unwrap(),
        &["--no-config", "net.4.5.2.x64.etl"],
    )
    .out;
    let page = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, shown) = page.split_once("$ etlverify net.4.5.2.x64.etl\n").unwrap();
    let (shown, _) = shown.split_once("...\n").unwrap();
    assert!(said.starts_with(shown), "{said}");
}
