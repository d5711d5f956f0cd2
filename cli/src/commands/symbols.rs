//! `etlkit symbols`: which PDBs a recording needs, and which of them are there.

#[cfg(feature = "symbols")]
mod list;

use clap::{Subcommand, ValueEnum};

use crate::Outcome;
use crate::error::Failure;
use crate::recording::RecordingArgs;
use crate::symbols::SymbolArgs;
use crate::table::TableFormat;

/// Arguments of `etlkit symbols`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  etlkit symbols list --symbols symbols trace.etl
  etlkit symbols list --missing trace.etl")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the PDBs that a recording needs, with their identities and where they are.
    List(ListArgs),
}

/// Arguments of `etlkit symbols list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
`addresses` counts the addresses of samples and stacks in the code of an image or module. PDBs of
code without any are not needed. PDBs whose `code` is `wpp` have the formats of the trace's WPP
messages: give the private ones to --tmf. Nothing is downloaded: `server path` is the path of a PDB below the
address of a symbol server, or in its cache. A PDB of .NET code may be a Windows PDB or a portable
one, which have two paths.

Needs the identities of images, which a merge on the traced machine adds (`xperf -merge`, `xperf
-stop -d`), and the CLR's rundown for .NET code.

Exit codes: 0 success, 1 needed PDBs are missing (or the trace is damaged or lacks buffers), 2 error.

Examples:
  etlkit symbols list trace.etl
  etlkit symbols list --symbols symbols --symbols bin/Release trace.etl
  etlkit symbols list --missing=curl trace.etl | curl --fail --location --config -
  etlkit symbols list --missing=symchk trace.etl > missing.txt
  etlkit symbols list --format json trace.etl")]
struct ListArgs {
    /// Print only the needed PDBs that are missing
    #[arg(long, value_enum, value_name = "LINES", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "paths", conflicts_with = "format")]
    missing: Option<MissingLines>,
    /// Address of the symbol server in the lines of --missing=curl
    #[arg(long, value_name = "URL", default_value = PUBLIC_SERVER)]
    server: String,
    /// Output format (docs/analyze.md)
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    recording: RecordingArgs,
}

/// The symbol server that Microsoft provides for Windows and .NET.
const PUBLIC_SERVER: &str = "https://msdl.microsoft.com/download/symbols";

/// How missing PDBs are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MissingLines {
    /// Paths on a symbol server, one a line
    Paths,
    /// A configuration of curl, which downloads them to the first directory of --symbols, or else
    /// to `symbols`
    Curl,
    /// A manifest for `symchk /im`
    Symchk,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.action {
        #[cfg(feature = "symbols")]
        Action::List(args) => list::list(args),
        #[cfg(not(feature = "symbols"))]
        Action::List(_) => Err(crate::symbols::missing("symbols list")),
    }
}
