//! `etlkit info`: what a person wants to know of a trace first.

mod survey;
mod text;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use etl_format::read::{Mode, Options, Source};

use crate::Outcome;
use crate::error::Failure;
use crate::input::{self, Input, InputArgs, WithSource};
use crate::output;

use survey::Survey;

/// Arguments of `etlkit info`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 readable, 1 damaged but read as far as possible, 2 not readable.
Lost events and other notes are listed as problems and do not change the exit code.

Examples:
  etlkit info trace.etl
  etlkit info --format json trace.etl | jq '.events[] | select(.count > 1000)'")]
pub(crate) struct Args {
    /// Traces; `-` reads standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Stop at the first fault of the file, with exit code 2
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    input: InputArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Text,
    /// One object, or an array of them for several files; see docs/json-info.md
    Json,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mode = if args.strict { Mode::Strict } else { Mode::Salvage };
    let surveys =
        args.files.iter().map(|f| survey(f, mode, &args.input)).collect::<Result<Vec<_>, _>>()?;
    let text = match (args.format, surveys.as_slice()) {
        (Format::Json, [one]) => json(one),
        (Format::Json, many) => json(&many),
        (Format::Text, many) => many.iter().map(text::render).collect::<Vec<_>>().join("\n"),
    };
    output::print(&text)?;
    Ok(if surveys.iter().any(|s| s.damaged) { Outcome::Findings } else { Outcome::Fine })
}

fn json(value: &impl serde::Serialize) -> String {
    // Strings, numbers and lists only: JSON can hold all of it.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

fn survey(path: &Path, mode: Mode, args: &InputArgs) -> Result<Survey, Failure> {
    struct Look(String, Mode);
    impl WithSource for Look {
        type Output = Result<Survey, Failure>;
        fn with<S: Source>(self, mut source: S) -> Self::Output {
            let options = Options { mode: self.1, ..Options::default() };
            Survey::new(&mut source, &self.0, &options).map_err(|e| {
                let head = input::head(&mut source);
                match self.1 {
                    Mode::Strict => input::not_whole(&self.0, &e, &head),
                    Mode::Salvage => input::not_a_trace(&self.0, &e, &head),
                }
            })
        }
    }
    Input::open(path, args)?.with(Look(input::display(path), mode))
}
