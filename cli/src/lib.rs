//! The tools `etlkit` and `etlverify`: argument parsing and printing only.
//!
//! This library is not an interface: it exists so that both tools, the benchmarks and the fuzzers
//! share one implementation. The interface is the command line: its commands, options, exit codes
//! and JSON. Programs use the crates `etl-format`, `etl-schema`, `etl-events`, `etl-verify`,
//! `etl-tools` and `etl-synth` instead.
//!
//! Exit codes: 0 success, 1 findings (damage, differences, failed checks), 2 error.

// `stderr_line!` and `output` escape their text, and do not panic if the reader is gone.
#![warn(clippy::print_stdout, clippy::print_stderr)]

/// Prints a line to standard error. Unlike `eprintln!` it does not panic if standard error is
/// closed (`2>&1 | head`).
macro_rules! stderr_line {
    ($($part:tt)*) => {
        $crate::output::write_stderr_line(format_args!($($part)*))
    };
}

mod build_info;
mod choice;
mod commands;
mod compare_args;
mod diagnostics;
mod error;
mod escape;
mod filter;
mod input;
mod memory;
mod missing;
mod open_files;
mod output;
mod process_args;
mod profile;
mod progress;
mod recording;
mod rewrite;
mod schemas;
mod sink;
mod symbols;
mod table;
mod threads;
mod tool;
mod trace_files;
mod unfinished;

use std::ffi::OsString;
use std::process::ExitCode;

#[doc(hidden)]
pub use output::CommandOutput;

/// The result of a command that did its work, with its exit code; the greater one is the graver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Nothing is wrong with the input.
    Success = 0,
    /// Something is wrong with the input.
    Findings = 1,
    /// The input cannot be read.
    Unreadable = 2,
}

/// Runs `etlkit` with the arguments of the process. `allocated` returns the bytes that the process
/// has allocated.
#[must_use]
pub fn etlkit_main(allocated: fn() -> u64) -> ExitCode {
    memory::count_with(allocated);
    open_files::raise_limit();
    run(wild::args_os())
}

/// Runs `etlverify` with the arguments of the process; `allocated` as for [`etlkit_main`].
#[must_use]
pub fn etlverify_main(allocated: fn() -> u64) -> ExitCode {
    memory::count_with(allocated);
    open_files::raise_limit();
    ExitCode::from(tool::etlverify(wild::args_os()))
}

/// Runs `etlkit` with these arguments, for benchmarks. The first one is the name of the program.
#[doc(hidden)]
#[must_use]
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(tool::etlkit(args))
}

/// As [`run`], but returns the output instead of printing it: for fuzzers.
#[doc(hidden)]
#[must_use]
pub fn run_captured(args: impl IntoIterator<Item = OsString>) -> CommandOutput {
    output::capture(|| tool::etlkit(args))
}
