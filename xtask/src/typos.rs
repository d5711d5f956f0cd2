//! `cargo xtask typos`: the spelling of code and pages, by the rules of typos.toml.

use crate::process::{Failure, Tool, path_with, program, run};

const TYPOS: Tool = Tool {
    package: "typos-cli",
    program: "typos",
    version: "1.52.0",
};

#[derive(clap::Args)]
pub struct Options {
    /// Correct words that have one correction only.
    #[arg(long)]
    write: bool,
    /// Files and folders. Default: the whole checkout.
    paths: Vec<std::path::PathBuf>,
}

pub fn typos(options: &Options) -> Result<(), Failure> {
    let tool = TYPOS.install()?;
    let mut command = program("typos");
    command
        .env("PATH", path_with(&tool)?)
        .arg("--force-exclude");
    if options.write {
        command.arg("--write-changes");
    }
    run(command.args(&options.paths))
}
