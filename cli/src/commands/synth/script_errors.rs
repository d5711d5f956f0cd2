//! Prints the errors of a scenario script.

use std::sync::Arc;

use etl_schema::render::is_terminal_unsafe;
use etl_synth::scenario::{Mistake, Mistakes};
use miette::NamedSource;

use crate::error::Failure;
use crate::escape::{Style, escape_controls};
use crate::output;

/// Prints every error at its position in the script.
pub(super) fn explain(name: &str, mistakes: &Mistakes) -> Failure {
    let mut shown = String::new();
    for mistake in &mistakes.0 {
        shown.push_str(&escaped(mistake).report());
        shown.push('\n');
    }
    output::write_stderr_escaped(&shown);
    let count = mistakes.0.len();
    let s = if count == 1 { "" } else { "s" };
    Failure::new(name, format!("{count} error{s} in the script"))
        .hint("docs/scenario.md describes the language")
}

/// The error with everything escaped that a terminal could act on. The script's text keeps its
/// length in bytes, so that positions remain valid.
fn escaped(mistake: &Mistake) -> Mistake {
    let escape = |text: &str| escape_controls(text, Style::Text).into_owned();
    let masked = |c: char| match c {
        '\n' | '\t' | '\r' => c.to_string(),
        c if is_terminal_unsafe(c) => "?".repeat(c.len_utf8()),
        c => c.to_string(),
    };
    let mut mistake = mistake.clone();
    let source: String = mistake.source_code.inner().chars().map(masked).collect();
    let name = escape(mistake.source_code.name());
    mistake.source_code = NamedSource::new(name, Arc::from(source));
    mistake.message = escape(&mistake.message);
    mistake.label = escape(&mistake.label);
    mistake.help = mistake.help.as_deref().map(escape);
    mistake
}
