//! The common part of the commands that write a trace: arguments, the opened traces, and the
//! report.

use std::fmt;
use std::path::Path;

use etl_format::read::{Damage, Options, Trace};
use etl_tools::Error;
use serde::Serialize;

use crate::Outcome;
use crate::diagnostics::Condition;
use crate::error::Failure;
use crate::escape::one_line;
use crate::input::{AnySource, Input, InputArgs};
use crate::output::{self, ReportFormat};
use crate::progress::{Printing, Progress};
use crate::sink::{Sink, SinkArgs};
use crate::threads::ThreadArgs;

/// The arguments of every command that writes a trace.
#[derive(Debug, clap::Args)]
pub(crate) struct RewriteArgs {
    #[command(flatten)]
    pub sink: SinkArgs,
    /// Format of the report; the documentation of the command describes the JSON
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
    #[command(flatten)]
    pub threads: ThreadArgs,
    #[command(flatten)]
    pub input: InputArgs,
}

impl RewriteArgs {
    /// The number of threads, the calling one included: each keeps buffers of its own.
    pub fn threads(&self) -> usize {
        self.threads.count().min(self.input.max_threads())
    }
}

/// A report about a trace that was written. As JSON it follows the members `schema_version`,
/// `file` and `output`.
pub(crate) trait Report: Serialize {
    /// Incremented when a field of the JSON changes its meaning or is removed.
    const SCHEMA_VERSION: u32 = 1;

    /// Writes the text. `file` is the trace that was read, `output` the one that was written.
    fn text(&self, file: &str, output: &str, out: &mut String) -> fmt::Result;
}

#[derive(Serialize)]
struct Json<'a, R> {
    schema_version: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
    output: &'a str,
    #[serde(flatten)]
    report: &'a R,
}

/// Keeps the new trace and prints its report. `file` is empty if several traces were read.
pub(crate) fn finish<R: Report>(
    sink: Sink,
    file: &str,
    format: ReportFormat,
    report: &R,
) -> Result<(), Failure> {
    let output = sink.name();
    let text = match format {
        // Names of files may have line breaks.
        ReportFormat::Text => {
            output::text(|out| report.text(&one_line(file), &one_line(output), out))
        }
        ReportFormat::Json => output::json(&Json {
            schema_version: R::SCHEMA_VERSION,
            file,
            output,
            report,
        }),
    };
    sink.finish(&text)
}

/// A trace that is read, and the one that is written from its intact parts.
pub(crate) struct Rewrite<'a> {
    name: &'a str,
    pub trace: Trace<AnySource<'a>>,
    pub sink: Sink,
    format: ReportFormat,
}

impl<'a> Rewrite<'a> {
    /// Opens both traces. `inputs` are all files that the command reads.
    pub fn start<'f>(
        input: &'a mut Input,
        args: &RewriteArgs,
        inputs: impl IntoIterator<Item = &'f Path>,
        file: &'f Path,
    ) -> Result<Self, Failure> {
        let options = Options {
            threads: args.threads(),
            ..Options::salvage()
        };
        let (trace, about) = input.trace(&options)?;
        let sink = Sink::create(&args.sink, "a trace", inputs.into_iter().chain([file]))?;
        Ok(Rewrite {
            name: &about.name,
            trace,
            sink,
            format: args.format,
        })
    }

    /// A progress bar for so many passes over the trace.
    pub fn progress(&self, passes: u64) -> Progress {
        Progress::of_trace(&self.trace, passes, Printing::Nothing)
    }

    /// The failure of reading the trace or of writing the new one.
    pub fn failure(&self, error: &Error) -> Failure {
        self.sink.operation_failure(self.name, error)
    }

    /// The failure of the command for this trace.
    pub fn refusal(&self, message: impl Into<String>) -> Failure {
        Failure::new(self.name, message)
    }

    /// Keeps the new trace, prints its report, and warns of damage of the old one.
    pub fn finish(self, report: &impl Report, damage: &[Damage]) -> Result<Outcome, Failure> {
        let header = self.trace.header();
        let notes = self.trace.notes();
        let outcome = Condition::new(header, damage, notes).report(self.name);
        finish(self.sink, self.name, self.format, report)?;
        Ok(outcome)
    }
}
