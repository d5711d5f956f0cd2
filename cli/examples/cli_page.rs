//! Prints the command reference of a release: the help text of every command, as Markdown.
//!
//! `cargo run -p etlkit --example cli_page > cli.md`
// The page is what this program prints.
#![allow(clippy::print_stdout)]

use std::ffi::OsString;

const INTRODUCTION: &str = "\
# Command reference

The help text of every command. `-` is standard input wherever a trace is read. Exit codes: 0
success, 1 findings (damage, differences, failed checks), 2 error.
";

fn main() {
    print!("{}", reference());
}

/// The whole page.
fn reference() -> String {
    let mut page = String::from(INTRODUCTION);
    append_command(&mut page, "etlkit", 2);
    page
}

/// Appends the help of a command, and of its subcommands one heading lower.
fn append_command(page: &mut String, command: &str, level: usize) {
    let text = help(command);
    let heading = "#".repeat(level);
    page.push_str(&format!("\n{heading} {command}\n\n```text\n{text}```\n"));
    for name in subcommands(&text) {
        append_command(page, &format!("{command} {name}"), level + 1);
    }
}

/// What `COMMAND --help` prints.
fn help(command: &str) -> String {
    let words = command.split(' ').chain(["--help"]).map(OsString::from);
    let printed = etlkit::run_captured(words).out;
    let text = String::from_utf8_lossy(&printed);
    // Editors remove trailing spaces.
    text.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// The commands that a help text lists.
fn subcommands(help: &str) -> Vec<String> {
    let Some((_, list)) = help.split_once("\nCommands:\n") else {
        return Vec::new();
    };
    let mut names = Vec::new();
    for line in list.lines().take_while(|line| !line.is_empty()) {
        // Continued descriptions are indented deeper.
        let is_command = line.starts_with("  ") && !line.starts_with("   ");
        let name = line.split_whitespace().next().unwrap_or_default();
        if is_command && name != "help" {
            names.push(name.to_owned());
        }
    }
    names
}

#[test]
fn page_has_the_help_of_every_command() {
    let page = reference();
    let headings = page.lines().filter(|line| line.starts_with('#')).count();
    assert!(headings > 40, "{headings} headings");
    assert_eq!(page.matches("\nUsage: ").count(), headings - 1);
    assert!(page.contains("\n#### etlkit spec mask\n"));
}
