//! `etlkit analyze`: answers questions about a recording: where the time went, and why.

mod cpu;

use clap::Subcommand;
use etl_analysis::Machine;

pub(crate) use cpu::profile_options;

use crate::Outcome;
use crate::error::Failure;
use crate::output;
use crate::recording::{Analyzed, RecordingArgs};
use crate::table::{Cell, TableFormat, TableReport};

/// Rows that text has unless the user names another number.
const TOP: usize = 30;

/// Arguments of `etlkit analyze`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Several files are read as one recording. Each kind says what the recording lacks, and how to record
it.

Examples:
  etlkit analyze cpu trace.etl
  etlkit analyze cpu --process Orders --tree kernel.etl clr.etl")]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// Where processors spent their time: samples by method, module, thread or process, call trees,
    /// callers and callees.
    Cpu(cpu::Args),
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.kind {
        Kind::Cpu(args) => cpu::run(args),
    }
}

/// The arguments of every kind.
#[derive(Debug, clap::Args)]
struct ReportArgs {
    #[command(flatten)]
    recording: RecordingArgs,
    /// Output format (docs/analyze.md)
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,
    /// Print the first N rows; 0 prints all [default: 30 in text, all in JSON and CSV]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
}

impl ReportArgs {
    /// The number of rows of a table; `None` for all.
    fn rows(&self) -> Option<usize> {
        let default = if self.format == TableFormat::Text { TOP } else { 0 };
        Some(self.top.unwrap_or(default)).filter(|&rows| rows > 0)
    }

    /// Prints a report.
    fn print(&self, report: &TableReport, outcome: Outcome) -> Result<Outcome, Failure> {
        output::print(&report.render(self.format, self.rows()))?;
        Ok(outcome)
    }
}

/// The report of a kind, without facts and tables.
fn report<O>(kind: &'static str, analyzed: &Analyzed<O>) -> TableReport {
    let machine = &analyzed.machine;
    let start = machine.clock().start_time;
    TableReport { kind, files: analyzed.names.clone(), start, ..TableReport::default() }
}

/// First and last time of a recording, as facts of its report.
fn span_facts(machine: &Machine) -> [(&'static str, Cell); 2] {
    let (first, last) = machine.span().unzip();
    [("from", Cell::time(machine.clock(), first)), ("to", Cell::time(machine.clock(), last))]
}
