//! Prints the errors of a scenario script.

use etl_synth::ScriptErrors;

use crate::error::Failure;
use crate::output;

/// Prints every error at its position in the script.
pub(super) fn explain(name: &str, errors: &ScriptErrors) -> Failure {
    let mut shown = String::new();
    for error in errors.as_slice() {
        shown.push_str(&error.terminal_safe().report());
        shown.push('\n');
    }
    output::write_stderr_escaped(&shown);
    let count = errors.as_slice().len();
    let s = if count == 1 { "" } else { "s" };
    Failure::new(name, format!("{count} error{s} in the script"))
        .hint("docs/scenario.md describes the language")
}
