//! `etlkit export parquet` and `export arrow`: traces as tables.

#[cfg(feature = "parquet")]
mod write;

use std::path::PathBuf;

#[cfg(not(feature = "parquet"))]
use crate::Outcome;
use crate::choice::item;
#[cfg(not(feature = "parquet"))]
use crate::error::Failure;
use crate::filter::FilterArgs;
use crate::input::{self, InputArgs};
use crate::output::ReportFormat;
use crate::process_args::ProcessArgs;
use crate::schemas::SchemaArgs;
use crate::sink::SinkArgs;
use crate::threads::ThreadArgs;

/// Arguments of `etlkit export parquet`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The rows of a trace are in DATASET/TABLE/STEM-HASH.parquet; docs/columns.md lists the tables and
their columns, docs/tables.md has questions and the SQL that answers them. A trace whose content is
already in the data set is skipped. `etlkit dataset compact` packs the files of many traces.

Exit codes: 0 success, 1 a trace is damaged or lacks buffers; its intact part was written, 2 error.

Examples:
  etlkit export parquet traces/ -o dataset
  etlkit export parquet trace.etl -o dataset --tables events,gcs --typed
  etlkit export parquet traces/ -o dataset --jobs 2 --process Orders")]
pub(super) struct ParquetArgs {
    /// Traces to read, or directories with traces
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The data set: a directory, which is created if it does not exist
    #[arg(short, long, value_name = "DATASET", value_parser = input::directory())]
    output: PathBuf,
    /// Write these tables [default: all but the tables of --typed]
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', value_parser = item)]
    tables: Vec<String>,
    /// Also write a table for each kind of event, with a column for each field
    #[arg(long)]
    typed: bool,
    /// Write the events of each provider to a file of its own
    #[arg(long)]
    by_provider: bool,
    /// How the files are compressed: `snappy`, `none`, and `zstd` if etlkit is built with it
    #[arg(long, value_name = "CODEC", default_value = "snappy")]
    codec: String,
    /// Read N traces at the same time; the files do not depend on it [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// Format of the report
    #[arg(long, value_enum, default_value = "text")]
    format: ReportFormat,
    #[command(flatten)]
    processes: ProcessArgs,
    /// Select events at or after TIME: seconds since the start (1.5), a duration since then
    /// (250ms), or UTC (2020-07-29T00:07:01Z)
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    from: Option<String>,
    /// Select events before TIME
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    to: Option<String>,
    #[command(flatten)]
    schemas: SchemaArgs,
    #[command(flatten)]
    input: InputArgs,
}

/// Arguments of `etlkit export arrow`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
docs/columns.md lists the tables and their columns. The table of the events of one kind is called
PROVIDER.EVENT. A file whose name ends with .arrows, a pipe and standard output get a stream, other
files the form that is also called Feather.

Exit codes: 0 success, 1 the trace is damaged or lacks buffers; its intact part was read, 2 error.

Examples:
  etlkit export arrow trace.etl --table events -o events.arrow
  etlkit export arrow trace.etl --table samples --columns time,process,method -o -
  etlkit export arrow trace.etl --table Microsoft-Windows-DotNETRuntime.GCStart_V1 -o gc.arrow")]
pub(super) struct ArrowArgs {
    /// Trace to read; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The table
    #[arg(long, value_name = "TABLE", default_value = "events")]
    table: String,
    /// Write these columns, in this order [default: all but those on request]
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', value_parser = item)]
    columns: Vec<String>,
    /// Select events with this name; `*` matches any text, `?` a character
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    event: Vec<String>,
    /// Leave out the names of processes and threads
    #[arg(long)]
    no_names: bool,
    #[command(flatten)]
    sink: SinkArgs,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    schemas: SchemaArgs,
    #[command(flatten)]
    input: InputArgs,
}

#[cfg(feature = "parquet")]
pub(in crate::commands) use write::open_dataset;
#[cfg(feature = "parquet")]
pub(super) use write::{arrow, parquet};

/// The failure in a build without the libraries of Arrow and Parquet, which are large.
#[cfg(not(feature = "parquet"))]
pub(in crate::commands) fn missing(command: &str) -> Failure {
    Failure::new(command, "this etlkit was built without it").hint(
        "the programs of a release and the Python package have it; or build one that has it: \
         `cargo install --path cli --features parquet`, or `cargo run --release --features parquet \
         --bin etlkit -- export ...`",
    )
}

#[cfg(not(feature = "parquet"))]
pub(super) fn parquet(_: &ParquetArgs) -> Result<Outcome, Failure> {
    Err(missing("export parquet"))
}

#[cfg(not(feature = "parquet"))]
pub(super) fn arrow(_: &ArrowArgs) -> Result<Outcome, Failure> {
    Err(missing("export arrow"))
}
