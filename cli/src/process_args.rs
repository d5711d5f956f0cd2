//! The arguments that select processes.

use clap::Args;
use etl_events::Error;
use etl_events::filter::Filter;
use etl_verify::ProcessSelector;

use crate::error::Failure;
use crate::input::Input;

/// Selects processes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ProcessArgs {
    /// Select the process with this id, or the processes with this file name, with or without .exe
    /// and with `*` for any characters; may be repeated
    #[arg(long, value_name = "NAME|PID")]
    process: Vec<String>,
    /// Also select the child processes of the processes of --process, recursively
    #[arg(long, requires = "process")]
    children: bool,
}

impl ProcessArgs {
    /// The hint for a process that is not in the trace.
    pub const HINT: &str = "--process takes a process id, or the file name of a program, with `*` \
                            for any characters";

    /// The selection of the arguments.
    pub fn selector(&self) -> ProcessSelector {
        self.selector_with([])
    }

    /// The same, and the processes with these names if any process is selected.
    pub fn selector_with<'n>(
        &'n self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> ProcessSelector {
        let mut all: Vec<&str> = self.process.iter().map(String::as_str).collect();
        if !all.is_empty() {
            all.extend(names);
        }
        let selector = ProcessSelector::new(all);
        if self.children {
            selector.with_children()
        } else {
            selector
        }
    }

    /// The values of --process, in the order of the command line.
    pub fn names(&self) -> &[String] {
        &self.process
    }

    /// The arguments as words of the command line.
    #[cfg(feature = "parquet")]
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for name in &self.process {
            words.push(format!("--process {name}"));
        }
        if self.children {
            words.push("--children".to_owned());
        }
        words
    }

    /// Selects the events of the selected processes of a trace, which is read for them; all events
    /// if no process is selected.
    pub fn filter(&self, input: &mut Input) -> Result<Filter, Failure> {
        let mut filter = Filter::default();
        let about = input.about().clone();
        let selector = self.selector();
        let limits = input.limits();
        filter
            .select_processes(input.source(), &about.name, &selector, limits)
            .map_err(|e| match e {
                Error::Recording(error) => about.not_a_trace(&error.into_source()),
                error => Failure::new(&about.name, error.to_string()).hint(ProcessArgs::HINT),
            })?;
        Ok(filter)
    }
}
