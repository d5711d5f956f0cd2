//! The help text of every command.

use crate::common::{directory, etlkit, etlverify};

/// The commands that a help text lists.
fn commands(help: &str) -> Vec<String> {
    let listed = help.split_once("Commands:\n").map_or("", |(_, rest)| rest);
    let lines = listed.lines().take_while(|line| !line.trim().is_empty());
    // Continued descriptions are indented deeper.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
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
        assert!(
            said.out.contains("\nExamples:\n"),
            "etlkit {command:?} --help has no example"
        );
        for name in commands(&said.out) {
            left.push([&command[..], &[name]].concat());
        }
        let name = if command.is_empty() {
            "etlkit".to_owned()
        } else {
            command.join("_")
        };
        insta::assert_snapshot!(format!("help_{name}"), said.out);
        seen += 1;
    }
    assert!(seen > 8, "{seen} help texts");
    let said = etlverify(here.path(), &["--help"]);
    insta::assert_snapshot!("help_etlverify", said.out);
}
