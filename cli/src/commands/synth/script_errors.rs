//! Prints the errors of a scenario script.

use etl_synth::ScriptErrors;

use crate::error::Failure;
use crate::output;

/// Prints every error with its position in the script.
pub(super) fn explain(name: &str, errors: &ScriptErrors) -> Failure {
    for error in errors.as_slice() {
        output::write_stderr(format_args!("{}\n", error.report()));
    }
    let count = errors.as_slice().len();
    let s = if count == 1 { "" } else { "s" };
    Failure::new(name, format!("{count} error{s} in the script"))
        .hint("docs/scenario.md describes the language")
}
