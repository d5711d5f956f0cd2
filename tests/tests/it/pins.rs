//! Checks the versions of the Python readers.

use std::process::{Command, Output};

use etl_test_support::{needs, python, root};

fn check(list: &std::path::Path) -> Output {
    let script = root().join("tests/foreign/check_pins.py");
    let output = Command::new(python()).arg(script).arg(list).output();
    output.expect("the interpreter runs")
}

#[needs(python)]
#[test]
fn installed_readers_have_the_pinned_versions() {
    let output = check(&root().join("scripts/requirements.txt"));
    let output_text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "run scripts/install.sh venv:\n{output_text}"
    );
}

#[needs(python)]
#[test]
fn check_pins_lists_other_versions() {
    let list = std::env::temp_dir().join(format!("etlkit-pins-{}.txt", std::process::id()));
    let pins = "# a comment\ndissect.etl==0.0.1\nno-such-package-at-all==1.0\nconstruct\n";
    std::fs::write(&list, pins).unwrap();
    let output = check(&list);
    std::fs::remove_file(&list).unwrap();
    let output_text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = output_text.lines().collect();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        lines[0].starts_with("dissect.etl: pinned to 0.0.1, there is "),
        "{output_text}"
    );
    assert_eq!(
        lines[1],
        "no-such-package-at-all: pinned to 1.0, there is nothing"
    );
    assert_eq!(lines[2..], ["construct: not pinned to a version"]);
}
