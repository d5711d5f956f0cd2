//! `etlkit completions` and the manual page.

use clap::Command;
use clap_complete::Shell;

use crate::Outcome;
use crate::error::Failure;
use crate::output;

/// Arguments of `etlkit completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, mut command: Command) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "etlkit", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Fine)
}

pub(crate) fn man(command: Command) -> Result<Outcome, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    output::print(&String::from_utf8_lossy(&page))?;
    Ok(Outcome::Fine)
}
