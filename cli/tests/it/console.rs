//! Runs the commands of a page and compares their output with the page.
//!
//! Lines of a `console` block that start with `$ ` are run by bash in one directory, with the tools
//! of this build in the search path, and are followed by their output. A block of another kind
//! after a line with a file name is written to that file first. `ETLKIT_WRITE_DOCS=1` updates the
//! pages.

use std::path::Path;
use std::process::Command;

/// The output of a command line, then its notes on standard error, which has nothing else.
pub fn bash(here: &Path, line: &str) -> String {
    let tools = Path::new(env!("CARGO_BIN_EXE_etlkit"))
        .parent()
        .unwrap()
        .to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths([tools].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new("bash");
    for name in crate::common::OWN_SETTINGS {
        command.env_remove(name);
    }
    // bash warns about a locale that is not installed.
    command
        .args(["-c", line])
        .current_dir(here)
        .env("PATH", path)
        .env("LC_ALL", "C");
    let output = command.output().unwrap();
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(
        notes.lines().all(|line| line.starts_with("note: ")),
        "{line}: {notes}"
    );
    let said = String::from_utf8(output.stdout).unwrap() + &notes;
    said.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// The page with the current output of its commands.
pub fn updated(page: &str, here: &Path) -> String {
    let mut out = String::new();
    let mut file = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out += &format!("{line}\n");
        let named = line
            .strip_prefix('`')
            .and_then(|rest| rest.strip_suffix("`:"));
        let file = std::mem::replace(&mut file, named);
        if !line.starts_with("```") {
            continue;
        }
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if let Some(file) = file {
            let text: String = block.iter().map(|line| format!("{line}\n")).collect();
            std::fs::write(here.join(file), text).unwrap();
        }
        let console = line == "```console";
        for line in block
            .into_iter()
            .filter(|line| !console || line.starts_with("$ "))
        {
            out += &format!("{line}\n");
            if let Some(command) = line.strip_prefix("$ ").filter(|_| console) {
                out += &bash(here, command);
            }
        }
        out += "```\n";
    }
    out
}

/// Runs the commands of a page in a directory and compares their output. Returns the updated page.
pub fn check(file: &Path, here: &Path) -> String {
    let page = std::fs::read_to_string(file).unwrap().replace("\r\n", "\n");
    let now = updated(&page, here);
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        std::fs::write(file, &now).unwrap();
    } else {
        let differ = page.lines().zip(now.lines()).find(|(a, b)| a != b);
        let lines = (page.lines().count(), now.lines().count());
        assert_eq!(
            (differ, lines.0),
            (None, lines.1),
            "ETLKIT_WRITE_DOCS=1 updates it"
        );
    }
    now
}
