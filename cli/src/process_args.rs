//! The arguments that select processes.

use clap::Args;
use etl_verify::ProcessSelector;

/// Selects processes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ProcessArgs {
    /// Select the process with this id, or the processes whose file name this is, with or without
    /// .exe; may be repeated
    #[arg(long, value_name = "NAME|PID")]
    process: Vec<String>,
    /// Select the processes, too, that those of --process started, and those that these started
    #[arg(long, requires = "process")]
    children: bool,
}

impl ProcessArgs {
    /// What to do about a process that is not in the trace.
    pub const HINT: &str = "--process takes a process id, or the file name of a program";

    /// What the arguments select.
    pub fn selector(&self) -> ProcessSelector {
        ProcessSelector::new(&self.process).children(self.children)
    }
}
