//! The tools `etlkit` and `etlverify`: argument parsing and printing only.
//!
//! Exit codes: 0 fine, 1 findings (damage, differences, a broken trace), 2 the job could not be
//! done.

// `tell!` and `output` do both, and do not panic where nobody listens.
#![warn(clippy::print_stdout, clippy::print_stderr)]

/// Tells a line on standard error. Where nobody listens any more (`2>&1 | head`), nobody is told: that is
/// no reason to panic, as `eprintln!` would.
macro_rules! tell {
    ($($part:tt)*) => {
        $crate::output::say_aside(format_args!("{}\n", format_args!($($part)*)))
    };
}

mod commands;
mod error;
mod escape;
mod filter;
mod headless;
mod input;
mod output;
mod problem;
mod progress;
mod sink;
mod threads;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use error::Failure;

/// What a command came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing to complain of.
    Fine,
    /// The job was done, and something is wrong with the input.
    Findings,
    /// The job was done, and its question has no answer.
    Undecided,
}

impl Outcome {
    /// The exit code.
    fn code(self) -> u8 {
        match self {
            Outcome::Fine => 0,
            Outcome::Findings => 1,
            Outcome::Undecided => 2,
        }
    }
}

/// Read, write, synthesize and verify Windows event trace logs (.etl) on any OS.
#[derive(Debug, Parser)]
#[command(
    name = "etlkit",
    bin_name = "etlkit",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(after_help = "\
Exit codes: 0 fine, 1 findings, 2 could not be done. `etlkit COMMAND --help` tells more.

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
    /// Say what a trace is and what is in it.
    Info(commands::info::Args),
    /// Print the events of a trace in time order.
    Dump(Box<commands::dump::Args>),
    /// Judge whether a trace is complete: rundowns, symbols, losses.
    Verify(commands::verify::Args),
    /// Say what differs between two traces.
    Diff(commands::diff::Args),
    /// Make the traces that a scenario's machine would have recorded.
    Synth(commands::synth::Args),
    /// Build, list and check a directory of scenarios.
    Corpus(commands::corpus::Args),
    /// Cut a piece out of a trace, with everything that it needs.
    Slice(Box<commands::slice::Args>),
    /// Replace names, paths, command lines and listed texts in a trace.
    Scrub(commands::scrub::Args),
    /// Say what the tables know of providers, keywords, events and masks.
    Spec(commands::spec::Args),
    /// List where reference pages and runtimes disagree.
    Errata(commands::errata::Args),
    /// Make one trace of several.
    Merge(commands::merge::Args),
    /// Make a sound trace of a damaged or unclosed one.
    Repair(commands::repair::Args),
    /// Compress the buffers of a trace.
    Compress(commands::repack::CompressCommand),
    /// Decompress the buffers of a trace.
    Decompress(commands::repack::DecompressCommand),
    /// Print shell completions.
    Completions(commands::completions::Args),
    /// Print the manual page, or write those of all commands.
    Man(commands::completions::ManArgs),
}

impl Command {
    fn run(&self) -> Result<Outcome, Failure> {
        match self {
            Command::Info(args) => commands::info::run(args),
            Command::Dump(args) => commands::dump::run(args),
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
            Command::Compress(args) => commands::repack::compress(args),
            Command::Decompress(args) => commands::repack::decompress(args),
            Command::Completions(args) => commands::completions::run(args, tools()),
            Command::Man(args) => commands::completions::man(args, tools()),
        }
    }
}

/// Judge whether a Windows event trace log (.etl) is complete: rundowns, symbols, losses.
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
    commands::completions::Tools { etlkit: Etlkit::command(), etlverify: Etlverify::command() }
}

/// `etlkit`, with the arguments of the process.
#[must_use]
pub fn etlkit_main() -> ExitCode {
    etlkit_with(arguments())
}

/// `etlkit`, with these arguments, the first of which is the program's name: for those who measure it.
#[must_use]
pub fn etlkit_with(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(etlkit_code(args))
}

fn etlkit_code(args: impl IntoIterator<Item = OsString>) -> u8 {
    run_with(args, |etlkit: &Etlkit| etlkit.command.run())
}

/// What a run of a tool came to, and what it would have printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The exit code: 0 fine, 1 findings, 2 could not be done.
    pub code: u8,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: Vec<u8>,
}

/// As [`etlkit_with`], but nothing is printed: for those who test and fuzz it.
#[must_use]
pub fn etlkit_said(args: impl IntoIterator<Item = OsString>) -> Said {
    let (code, output::Caught { out, err }) = output::catch(|| etlkit_code(args));
    Said { code, out, err }
}

/// `etlverify`, with the arguments of the process.
#[must_use]
pub fn etlverify_main() -> ExitCode {
    let run = |tool: &Etlverify| commands::verify::run(&tool.args);
    ExitCode::from(run_with(arguments(), run))
}

/// The file that was named where a command belongs.
fn file_for_command(error: &clap::Error) -> Option<String> {
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

/// The command line. Windows' shells leave `*.etl` to programs, which those elsewhere expand.
fn arguments() -> impl Iterator<Item = OsString> {
    wild::args_os()
}

fn run_with<T: Parser>(
    args: impl IntoIterator<Item = OsString>,
    run: impl FnOnce(&T) -> Result<Outcome, Failure>,
) -> u8 {
    let parsed = match T::try_parse_from(args) {
        Ok(parsed) => parsed,
        Err(error) => return refuse(&error),
    };
    match run(&parsed) {
        Ok(outcome) => outcome.code(),
        // Whoever read the output has seen enough.
        Err(failure) if failure.is_broken_pipe() => 0,
        Err(failure) => {
            tell!("error: {failure}");
            2
        }
    }
}

/// Prints what is wrong with the arguments, or the help that they ask for.
fn refuse(error: &clap::Error) -> u8 {
    if let Some(file) = file_for_command(error) {
        let failure = Failure::new(&file, "a command goes before the file");
        tell!("error: {}", failure.hint(format!("etlkit info {file}; --help lists all")));
        return 2;
    }
    // Help and version are no failures; clap knows where each belongs, and whether there are colours. What was typed
    // may be the name of a stranger's file: where it could act on a terminal, it goes out escaped.
    let plain = error.render().to_string();
    let harmless = output::inert(&plain);
    let printed = if error.use_stderr() && (output::is_caught() || *harmless != plain) {
        output::say_aside(format_args!("{harmless}"));
        Ok(())
    } else if output::is_caught() {
        output::print(&plain)
    } else {
        error.print().and_then(|()| std::io::stdout().flush())
    };
    match printed {
        _ if error.use_stderr() => 2,
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            tell!("error: {}", Failure::from(e));
            2
        }
        _ => 0,
    }
}
