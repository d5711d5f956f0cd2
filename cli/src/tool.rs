//! The command lines of the two tools, and their exit codes.

use std::ffi::OsString;
use std::path::Path;

use clap::{CommandFactory, Parser, Subcommand};

use crate::error::Failure;
use crate::escape::{Style, escape_controls};
use crate::{Outcome, build_info, commands, input, output};

/// Read, write, simulate and verify Windows event traces (.etl) on any OS.
#[derive(Debug, Parser)]
#[command(
    name = "etlkit",
    bin_name = "etlkit",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(after_help = "\
Exit codes: 0 success, 1 findings (damage, differences, failed checks), 2 error.
`etlkit COMMAND --help` describes a command; `etlkit --version --verbose` prints what a report of a
fault needs.

Examples:
  etlkit info trace.etl
  etlkit dump trace.etl --limit 20
  etlkit verify trace.etl
  etlkit merge kernel.etl clr.etl clrRundown.etl -o merged.etl
  etlkit diff before.etl after.etl")]
struct Etlkit {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Summarize a trace: system, session, clock, losses, and how often each event occurs.
    Info(commands::info::Args),
    /// Print the events of a trace in time order.
    Dump(Box<commands::dump::Args>),
    /// Find out where the time went: processors, methods, callers.
    Analyze(Box<commands::analyze::Args>),
    /// Write profiles and packets for other programs: tables (Parquet, Arrow), flame graphs,
    /// speedscope, pprof, Firefox Profiler, Perfetto, pcapng.
    Export(Box<commands::export::Args>),
    /// Pack, check and shorten data sets of `export parquet`.
    Dataset(commands::dataset::Args),
    /// Find out which PDBs the names of native code need.
    Symbols(Box<commands::symbols::Args>),
    /// Check that a trace is complete: rundowns, symbols, losses.
    Verify(commands::verify::Args),
    /// Compare two traces.
    Diff(commands::diff::Args),
    /// Simulate a scenario and write the traces that it would have recorded.
    Synth(commands::synth::Args),
    /// List, build and check the scenarios of a directory.
    Corpus(commands::corpus::Args),
    /// Extract a part of a trace, with the state that it needs.
    Slice(Box<commands::slice::Args>),
    /// Remove user names, machine names, command lines and listed texts from a trace.
    Scrub(commands::scrub::Args),
    /// Look up providers, keywords, events, masks and recording command lines.
    Spec(commands::spec::Args),
    /// List where the reference pages and the runtimes disagree.
    Errata(commands::errata::Args),
    /// Merge several traces into one.
    Merge(commands::merge::Args),
    /// Write an intact trace from a damaged or unclosed one.
    Repair(commands::repair::Args),
    /// Convert an EventPipe stream (.nettrace) of .NET to a trace.
    Convert(commands::convert::Args),
    /// Compress the buffers of a trace.
    Compress(commands::repack::CompressCommand),
    /// Decompress the buffers of a trace.
    Decompress(commands::repack::DecompressCommand),
    /// Show what this build has, and test whether it works.
    Doctor(commands::doctor::Args),
    /// Print a completion script for a shell.
    Completions(commands::completions::Args),
    /// Print the manual page, or write the pages of all commands.
    Man(commands::completions::ManArgs),
}

impl Command {
    fn run(&self) -> Result<Outcome, Failure> {
        match self {
            Command::Info(args) => commands::info::run(args),
            Command::Dump(args) => commands::dump::run(args),
            Command::Analyze(args) => commands::analyze::run(args),
            Command::Export(args) => commands::export::run(args),
            Command::Dataset(args) => commands::dataset::run(args),
            Command::Symbols(args) => commands::symbols::run(args),
            Command::Verify(args) => commands::verify::run(args),
            Command::Diff(args) => commands::diff::run(args),
            Command::Synth(args) => commands::synth::run(args),
            Command::Corpus(args) => commands::corpus::run(args),
            Command::Slice(args) => commands::slice::run(args),
            Command::Scrub(args) => commands::scrub::run(args),
            Command::Spec(args) => commands::spec::run(args),
            Command::Errata(args) => commands::errata::run(args),
            Command::Merge(args) => commands::merge::run(args),
            Command::Repair(args) => commands::repair::run(args),
            Command::Convert(args) => commands::convert::run(args),
            Command::Compress(args) => commands::repack::compress(args),
            Command::Decompress(args) => commands::repack::decompress(args),
            Command::Doctor(args) => commands::doctor::run(args),
            Command::Completions(args) => commands::completions::run(args, tools()),
            Command::Man(args) => commands::completions::man(args, tools()),
        }
    }
}

/// Check that a Windows event trace (.etl) is complete: rundowns, symbols, losses.
#[derive(Debug, Parser)]
#[command(
    name = "etlverify",
    bin_name = "etlverify",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
struct Etlverify {
    #[command(flatten)]
    args: commands::verify::Args,
}

fn tools() -> commands::completions::Tools {
    commands::completions::Tools {
        etlkit: Etlkit::command(),
        etlverify: Etlverify::command(),
    }
}

/// Runs `etlkit` and returns its exit code.
pub(crate) fn etlkit(args: impl IntoIterator<Item = OsString>) -> u8 {
    run(args, |etlkit: &Etlkit| etlkit.command.run())
}

/// Runs `etlverify` and returns its exit code.
pub(crate) fn etlverify(args: impl IntoIterator<Item = OsString>) -> u8 {
    run(args, |tool: &Etlverify| commands::verify::run(&tool.args))
}

fn run<T: Parser>(
    args: impl IntoIterator<Item = OsString>,
    run: impl FnOnce(&T) -> Result<Outcome, Failure>,
) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    if asks_for_build(&args) {
        let tool = T::command().get_name().to_owned();
        return print_build(&tool);
    }
    let parsed = match T::try_parse_from(args) {
        Ok(parsed) => parsed,
        Err(error) => return print_clap_error(&error),
    };
    input::forget_opened();
    match run(&parsed) {
        Ok(outcome) => outcome as u8,
        // The reader closed the output: it has read enough.
        Err(failure) if failure.is_broken_pipe() => 0,
        Err(failure) => {
            failure.print();
            2
        }
    }
}

/// Whether the arguments are `--version --verbose`: clap prints the version before it sees the
/// second.
fn asks_for_build(args: &[OsString]) -> bool {
    match args {
        [_, first, second] => {
            (first == "--version" || first == "-V") && second == "--verbose"
                || first == "--verbose" && (second == "--version" || second == "-V")
        }
        _ => false,
    }
}

/// Prints what this build is.
fn print_build(tool: &str) -> u8 {
    match output::print(&build_info::details(tool)) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Failure::from(error).print();
            2
        }
        _ => 0,
    }
}

/// Prints the error of the arguments, or the help that they ask for.
fn print_clap_error(error: &clap::Error) -> u8 {
    if let Some(file) = file_instead_of_command(error) {
        let failure = Failure::new(&file, "missing command before the file name");
        let hint =
            format!("`etlkit info {file}` summarizes it; `etlkit --help` lists all commands");
        failure.hint(hint).print();
        return 2;
    }
    // clap prints help to standard output and errors to standard error, in colours if these are
    // supported. An argument with control characters is printed escaped, without colours.
    let plain = error.render().to_string();
    let needs_escape = escape_controls(&plain, Style::Text) != plain;
    let printed = if error.use_stderr() && (output::is_captured() || needs_escape) {
        output::write_stderr(format_args!("{plain}"));
        Ok(())
    } else if output::is_captured() {
        output::print(&plain)
    } else {
        error
            .print()
            .and_then(|()| std::io::Write::flush(&mut std::io::stdout()))
    };
    match printed {
        _ if error.use_stderr() => 2,
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Failure::from(e).print();
            2
        }
        _ => 0,
    }
}

/// The name of an existing file that was given instead of a command.
fn file_instead_of_command(error: &clap::Error) -> Option<String> {
    if error.kind() != clap::error::ErrorKind::InvalidSubcommand {
        return None;
    }
    match error.get(clap::error::ContextKind::InvalidSubcommand) {
        Some(clap::error::ContextValue::String(word)) if Path::new(word).exists() => {
            Some(word.clone())
        }
        _ => None,
    }
}
