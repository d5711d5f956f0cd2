//! `cargo xtask features`: each published crate without features, with each one, and with all.
//!
//! One crate is built at a time, so that features which other crates enable do not hide an error.

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
}

pub fn features(options: &Options) -> Result<(), Failure> {
    for package in Metadata::read()?.published() {
        let combinations = combinations(package);
        for combination in &combinations {
            println!("features: {} {}", package.name, combination.join(" "));
            if options.list {
                continue;
            }
            run(cargo("check")
                .args(["--quiet", "--locked", "--lib", "--package", &package.name])
                .args(combination))?;
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
