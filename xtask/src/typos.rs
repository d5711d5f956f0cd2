//! `cargo xtask typos`: the spelling of code and pages, by the rules of typos.toml.

use crate::process::{Failure, program, root, run, script};

/// Installed from PyPI with the pins of scripts/requirements.txt: building it takes minutes.
const PROGRAM: &str = if cfg!(windows) {
    ".venv/Scripts/typos.exe"
} else {
    ".venv/bin/typos"
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
    let path = root().join(PROGRAM);
    if !path.exists() {
        run(script("scripts/install.sh").arg("venv"))?;
    }
    let mut command = program(&path);
    command.arg("--force-exclude");
    if options.write {
        command.arg("--write-changes");
    }
    run(command.args(&options.paths))
}
