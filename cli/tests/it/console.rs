//! Pages whose commands are typed again: what they say that commands print is what they print.
//!
//! Lines of a `console` block that begin with `$ ` are run by bash, one after the other in one directory, with the tools of this
//! build on the path; what they print stands behind each. A block of another kind behind a line that is just a file's name is
//! written to that file first. With `ETLKIT_WRITE_DOCS=1` pages are written anew.

use std::path::Path;
use std::process::Command;

/// What a command line prints; nothing on standard error.
pub fn bash(here: &Path, line: &str) -> String {
    let tools = Path::new(env!("CARGO_BIN_EXE_etlkit")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths([tools].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new("bash");
    for name in crate::common::OWN_SETTINGS {
        command.env_remove(name);
    }
    // Of a locale that is not installed bash would complain.
    command.args(["-c", line]).current_dir(here).env("PATH", path).env("LC_ALL", "C");
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The page, with what its commands print now.
pub fn anew(page: &str, here: &Path) -> String {
    let mut out = String::new();
    let mut file = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out += &format!("{line}\n");
        let named = line.strip_prefix('`').and_then(|rest| rest.strip_suffix("`:"));
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
        for line in block.into_iter().filter(|line| !console || line.starts_with("$ ")) {
            out += &format!("{line}\n");
            if let Some(command) = line.strip_prefix("$ ").filter(|_| console) {
                out += &bash(here, command);
            }
        }
        out += "```\n";
    }
    out
}

/// Runs a page in a directory, and holds it against itself. Gives it as it is now.
pub fn hold(file: &Path, here: &Path) -> String {
    let page = std::fs::read_to_string(file).unwrap().replace("\r\n", "\n");
    let now = anew(&page, here);
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        std::fs::write(file, &now).unwrap();
    } else {
        let differ = page.lines().zip(now.lines()).find(|(a, b)| a != b);
        let lines = (page.lines().count(), now.lines().count());
        assert_eq!((differ, lines.0), (None, lines.1), "ETLKIT_WRITE_DOCS=1 writes it anew");
    }
    now
}
