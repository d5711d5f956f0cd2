//! The tasks of this repository. `cargo xtask` lists them.

mod api;
mod careful;
mod features;
mod metadata;
mod mutants;
mod process;
mod properties;
mod record;
mod release;
mod rust_version;
mod style;
mod typos;

use std::process::{Command, ExitCode};

use clap::{CommandFactory, Parser, Subcommand};

use crate::process::{Failure, cargo, run, script};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "The tasks of this repository",
    disable_help_subcommand = true
)]
struct Arguments {
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Subcommand)]
enum Task {
    /// Check the format, the lints and the style.
    Check,
    /// Run the tests; arguments are for `cargo test`.
    Test(Rest),
    /// Write snapshots and generated pages again; arguments select tests.
    Bless(Rest),
    /// Build the documentation; warnings are errors.
    Docs,
    /// Compare the public items with tests/api or with another revision.
    Api(api::Options),
    /// Build each crate with each combination of features.
    Features(features::Options),
    /// Check the promised Rust version.
    Msrv,
    /// Run the fuzz targets; arguments are for scripts/fuzz.sh.
    Fuzz(Rest),
    /// Run the property tests with new seeds.
    Properties(properties::Options),
    /// Record a program on real .NET runtimes, and compare the simulation with it.
    Record(record::Options),
    /// Run the benchmarks, or count instructions.
    Bench(BenchOptions),
    /// Test the tests: run them with small errors in the code (cargo-mutants).
    Mutants(mutants::Options),
    /// Run the tests with a standard library that checks its preconditions (cargo-careful).
    Careful(careful::Options),
    /// Count patterns that make code hard to read.
    Style(style::Options),
    /// Check the spelling.
    Typos(typos::Options),
    /// Run the checks before a release (RELEASING.md).
    Release(release::Options),
}

/// Arguments that another program gets.
#[derive(clap::Args)]
struct Rest {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

#[derive(clap::Args)]
struct BenchOptions {
    /// Count instructions of the hot loops with valgrind, and compare with the committed counts.
    #[arg(long)]
    instructions: bool,
    /// Arguments for `cargo bench`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

fn main() -> ExitCode {
    if let Some(rustdoc) = std::env::var_os(api::RUSTDOC) {
        return exit_code(api::start_rustdoc(&rustdoc));
    }
    let Some(task) = Arguments::parse().task else {
        return match Arguments::command().print_help() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    };
    exit_code(perform(task))
}

/// The exit code of a task, whose error is printed.
fn exit_code(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Code(code)) => ExitCode::from(code),
        Err(Failure::Message(message)) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn perform(task: Task) -> Result<(), Failure> {
    match task {
        Task::Check => check(),
        Task::Test(rest) => run(cargo("test").args(rest.arguments)),
        Task::Bless(rest) => bless(rest),
        Task::Docs => docs(),
        Task::Api(options) => api::api(options),
        Task::Features(options) => features::features(&options),
        Task::Msrv => rust_version::check(),
        Task::Fuzz(rest) => run(script("scripts/fuzz.sh").args(rest.arguments)),
        Task::Properties(options) => properties::properties(&options),
        Task::Record(options) => record::record(&options),
        Task::Bench(options) => bench(options),
        Task::Mutants(options) => mutants::mutants(&options),
        Task::Careful(options) => careful::careful(&options),
        Task::Style(options) => style::style(&options),
        Task::Typos(options) => typos::typos(&options),
        Task::Release(options) => release::release(&options),
    }
}

fn check() -> Result<(), Failure> {
    run(cargo("fmt").args(["--all", "--check"]))?;
    run(&mut clippy())?;
    style::style(&style::Options::default())
}

/// The command of `.ci/run`.
fn clippy() -> Command {
    let mut command = cargo("clippy");
    command.args(["--workspace", "--all-targets", "--all-features", "--locked"]);
    command.args(["--", "-D", "warnings"]);
    command
}

fn bless(rest: Rest) -> Result<(), Failure> {
    let mut command = cargo("test");
    command
        .env("ETLKIT_WRITE_DOCS", "1")
        .env("ETLKIT_WHOLE", "1")
        .env("INSTA_UPDATE", "always");
    if rest.arguments.is_empty() {
        command.args(["--workspace", "--all-features", "--no-fail-fast"]);
    }
    run(command.args(rest.arguments))
}

fn docs() -> Result<(), Failure> {
    let mut command = cargo("doc");
    command.env("RUSTDOCFLAGS", "-D warnings");
    command.args(["--workspace", "--all-features", "--no-deps", "--locked"]);
    run(command.arg("--document-private-items"))
}

fn bench(options: BenchOptions) -> Result<(), Failure> {
    if options.instructions {
        run(script("scripts/install.sh").arg("valgrind"))?;
        return run(script("benches/lab/instructions.py").arg("--check"));
    }
    run(cargo("bench")
        .args(["--package", "etl-bench"])
        .args(options.arguments))
}
