//! `cargo xtask release`: the checks before a release. RELEASING.md has all steps.

use crate::metadata::Metadata;
use crate::process::{Failure, output, program, run, script};

#[derive(clap::Args)]
pub struct Options {
    /// The tag of the release before. Without it, nothing is compared.
    #[arg(long, value_name = "REV")]
    since: Option<String>,
}

/// Checks that nothing is uncommitted and that the packages build, compares the public items with
/// the release before, and prints the commands that publish. Publishes nothing.
pub fn release(options: &Options) -> Result<(), Failure> {
    let changes = output(program("git").args(["status", "--porcelain"]))?;
    if !changes.is_empty() {
        return Err(Failure::Message(format!(
            "these files are not committed:\n{changes}"
        )));
    }
    run(script("scripts/package.sh").arg("--verify"))?;
    if let Some(revision) = &options.since {
        crate::api::compare_with(revision)?;
    }
    println!("\nThe packages are ready. These commands publish them, in this order:");
    for package in Metadata::read()?.published() {
        println!("cargo publish --locked --package {}", package.name);
    }
    Ok(())
}
