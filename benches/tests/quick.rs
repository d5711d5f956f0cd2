//! Everything that is measured still runs. Built as tests are, so its figures mean nothing, and no release build
//! is needed to know it.

use std::process::Command;

#[test]
fn everything_that_is_measured_runs() {
    let output = Command::new(env!("CARGO_BIN_EXE_etl-bench")).arg("--quick").output();
    let output = output.expect("the program starts");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    for row in [
        "plain pass over the bytes",
        "time order, slice",
        "time order, heads only",
        "dump to JSON lines",
        "etlverify, two threads",
        "a module for each hundred, put in and found again",
        "merge (goal",
        "session writer",
        // The table by size.
        "### 1 MB",
        "### 2 MB",
        "| `dump`, CSV | compressed |",
        "| merge of two | plain |",
        "| `compress` | plain |",
        "| `synth`, to a file | plain |",
        "### How cost grows",
    ] {
        assert!(out.contains(row), "no row {row:?} in\n{out}\n{err}");
    }
}
