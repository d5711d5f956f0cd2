//! `etlkit dataset`: packs, checks and shortens data sets of `etlkit export parquet`.

#[cfg(feature = "parquet")]
mod actions;

use std::path::PathBuf;

use clap::Subcommand;

use crate::Outcome;
use crate::error::Failure;
use crate::output::ReportFormat;

/// Arguments of `etlkit dataset`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
`etlkit export parquet` makes data sets and adds traces to them; docs/tables.md describes them. One
process writes to a data set at a time, and others wait for it.

Examples:
  etlkit dataset compact dataset
  etlkit dataset check dataset
  etlkit dataset remove dataset orders-1c0ffee5")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Pack the rows of many small files into few large ones.
    Compact(CompactArgs),
    /// Read all rows, and compare their numbers with the entries of the traces.
    Check(CheckArgs),
    /// Remove traces.
    Remove(RemoveArgs),
}

/// Arguments of `etlkit dataset compact`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Rows of a table are in the order of their times. Later traces have files of their own again, which
the next run packs. A program that reads meanwhile may find rows twice.

Exit codes: 0 success, 2 error.

Examples:
  etlkit dataset compact dataset
  etlkit dataset compact dataset --size 256")]
struct CompactArgs {
    /// The data set
    #[arg(value_name = "DATASET")]
    dataset: PathBuf,
    /// The most MiB of files that are packed into one; files of half of it and more stay
    #[arg(long, value_name = "MIB", default_value_t = 128)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    size: u32,
    /// Format of the report
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
}

/// Arguments of `etlkit dataset check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 the data set has what its entries state, 1 it has not, 2 error.

Examples:
  etlkit dataset check dataset
  etlkit dataset check dataset --format json")]
struct CheckArgs {
    /// The data set
    #[arg(value_name = "DATASET")]
    dataset: PathBuf,
    /// Format of the report
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
}

/// Arguments of `etlkit dataset remove`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 success, 2 error: also if the data set has no such trace; then nothing is removed.

Examples:
  etlkit dataset remove dataset orders-1c0ffee5")]
struct RemoveArgs {
    /// The data set
    #[arg(value_name = "DATASET")]
    dataset: PathBuf,
    /// Names of traces, as in the column `trace`
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<String>,
}

#[cfg(feature = "parquet")]
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.action {
        Action::Compact(args) => actions::compact(args),
        Action::Check(args) => actions::check(args),
        Action::Remove(args) => actions::remove(args),
    }
}

#[cfg(not(feature = "parquet"))]
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let action = match &args.action {
        Action::Compact(CompactArgs {
            dataset: _,
            size: _,
            format: _,
        }) => "compact",
        Action::Check(CheckArgs {
            dataset: _,
            format: _,
        }) => "check",
        Action::Remove(RemoveArgs {
            dataset: _,
            traces: _,
        }) => "remove",
    };
    Err(super::export::without_tables(&format!("dataset {action}")))
}
