//! `cargo xtask mutants`: cargo-mutants changes the code and reports changes that no test notices.

use std::fs;

use crate::process::{Failure, Tool, output, path_with, program, root, run};

const MUTANTS: Tool = Tool {
    package: "cargo-mutants",
    program: "cargo-mutants",
    version: "27.1.0",
};

/// The revision without `--crate` and `--in-diff`: changes that are not committed.
const DEFAULT_REVISION: &str = "HEAD";

/// The shard of a whole crate without `--shard`.
const DEFAULT_SHARD: &str = "0/20";

#[derive(clap::Args)]
pub struct Options {
    /// Mutate this package only. Without --in-diff: the part of it that --shard selects.
    #[arg(long = "crate", value_name = "PACKAGE")]
    package: Option<String>,
    /// Mutate lines that changed since this revision. Default without --crate: HEAD.
    #[arg(long, value_name = "REV")]
    in_diff: Option<String>,
    /// Test the K-th of N parts of the mutants, from 0. Default for a whole crate: 0/20.
    #[arg(long, value_name = "K/N")]
    shard: Option<String>,
    /// Run the tests of the whole workspace instead of the tests of the mutated package.
    #[arg(long)]
    all_tests: bool,
    /// Print the mutants only.
    #[arg(long)]
    list: bool,
}

pub fn mutants(options: &Options) -> Result<(), Failure> {
    let tool = MUTANTS.install()?;
    let cache = root().join(".cache");
    let mut command = program("cargo-mutants");
    command.env("PATH", path_with(&tool)?);
    command.args(["mutants", "--output"]).arg(&cache);
    if let Some(package) = &options.package {
        command.args(["--package", package]);
    }
    if let Some(revision) = revision(options) {
        // Without names of the user's own prefixes.
        let diff = output(program("git").args([
            "diff",
            "--no-ext-diff",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            revision,
        ]))?;
        let file = cache.join("mutants.diff");
        fs::write(&file, diff).map_err(|error| error.to_string())?;
        command.arg("--in-diff").arg(file);
    }
    if let Some(shard) = shard(options) {
        // Every N-th mutant: a sample of all files.
        command.args(["--shard", shard, "--sharding", "round-robin"]);
    }
    if options.all_tests {
        command.args(["--test-workspace", "true"]);
    }
    if options.list {
        command.arg("--list");
    }
    run(&mut command)
}

/// The revision whose changes are mutated. `None`: a whole crate.
fn revision(options: &Options) -> Option<&str> {
    if options.in_diff.is_none() && options.package.is_none() {
        return Some(DEFAULT_REVISION);
    }
    options.in_diff.as_deref()
}

/// The part of the mutants that is tested. `None`: all of them.
fn shard(options: &Options) -> Option<&str> {
    if options.shard.is_none() && revision(options).is_none() {
        return Some(DEFAULT_SHARD);
    }
    options.shard.as_deref()
}
