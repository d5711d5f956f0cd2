//! `cargo xtask features`: each published crate without features, with each one, and with all.
//!
//! One crate is built at a time, so that features which other crates enable do not hide an error.
//! With `--together`, all libraries are built at once without features, and then the command line.

use std::process::Command;

use crate::metadata::{Metadata, Package};
use crate::process::{Failure, cargo, run};

#[derive(clap::Args)]
pub struct Options {
    /// Print the combinations only.
    #[arg(long)]
    list: bool,
    /// Also run the tests of crates with features.
    #[arg(long)]
    test: bool,
    /// Build without features only, all libraries at once: a minute instead of four.
    #[arg(long, conflicts_with_all = ["list", "test"])]
    together: bool,
}

pub fn features(options: &Options) -> Result<(), Failure> {
    if options.together {
        return check_without_features();
    }
    for package in Metadata::read()?.published() {
        let combinations = combinations(package);
        for combination in &combinations {
            println!("features: {} {}", package.name, combination.join(" "));
            if options.list {
                continue;
            }
            let mut check = check_command();
            run(check.args(["--package", &package.name]).args(combination))?;
            // The tests of a crate without features are run elsewhere.
            if options.test && combinations.len() > 1 {
                run(cargo("test")
                    .args(["--quiet", "--locked", "--package", &package.name])
                    .args(combination))?;
            }
        }
    }
    Ok(())
}

/// Checks all libraries in one build, and then the command line, which needs features of them.
fn check_without_features() -> Result<(), Failure> {
    let metadata = Metadata::read()?;
    let mut libraries = check_command();
    for package in metadata.published() {
        if package.name != "etlkit" {
            libraries.args(["--package", &package.name]);
        }
    }
    run(libraries.arg("--no-default-features"))?;
    run(check_command().args(["--package", "etlkit", "--no-default-features"]))
}

fn check_command() -> Command {
    let mut command = cargo("check");
    command.args(["--quiet", "--locked", "--lib"]);
    command
}

/// The arguments for cargo of each combination.
fn combinations(package: &Package) -> Vec<Vec<&str>> {
    let mut combinations = vec![vec!["--no-default-features"]];
    let mut has_default = false;
    let mut count = 0;
    for feature in &package.features {
        if feature == "default" {
            has_default = true;
        } else {
            combinations.push(vec!["--no-default-features", "--features", feature]);
            count += 1;
        }
    }
    if count > 1 || has_default {
        combinations.push(vec!["--all-features"]);
    }
    combinations
}
