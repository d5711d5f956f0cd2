//! Which events are asked for.

use std::collections::BTreeSet;

use etl_analysis::{ProcessLives, ProcessSelector};
use etl_control::enable::Enablement;
use etl_format::{Clock, FileTime, ProcessId, ThreadId, TimeRange};

use super::files::{Files, Naming, TraceFile};
use crate::Result;
use crate::conditions::Conditions;
use crate::filter::Filter;

/// Which events are asked for, and with which names.
#[derive(Clone, Debug, Default)]
pub(super) struct Query {
    pub providers: Vec<String>,
    pub ids: Vec<u16>,
    pub opcodes: Vec<u8>,
    pub level: u8,
    pub keyword: u64,
    pub pids: Vec<ProcessId>,
    pub threads: Vec<ThreadId>,
    /// Processes by name or id.
    pub processes: BTreeSet<String>,
    pub children: bool,
    pub time: TimeRange<FileTime>,
    pub conditions: Conditions,
    pub stale: bool,
    /// As the trace was opened, if it is not set.
    pub naming: Option<Naming>,
    pub raw_paths: bool,
}

impl Query {
    /// The filter for a trace with this clock, in which the selected processes had these lives.
    pub fn filter(&self, clock: &Clock, lives: ProcessLives) -> Filter {
        let from = self.time.from.map(|time| clock.ticks_at(time));
        let to = self.time.to.map(|time| clock.ticks_at(time));
        Filter {
            ids: self.ids.clone(),
            opcodes: self.opcodes.clone(),
            enablement: Enablement::new(self.level, self.keyword),
            processes: self.pids.clone(),
            lives,
            threads: self.threads.clone(),
            time: TimeRange::new(from, to),
            ..Filter::of_providers(&self.providers)
        }
    }

    /// The lives of the selected processes in each file. A file that does not name them has the
    /// lives of another file of its machine.
    ///
    /// # Errors
    /// When no file has such a process, or a file cannot be read.
    pub fn find_processes(&self, files: &mut Files) -> Result<Vec<ProcessLives>> {
        let mut selector = ProcessSelector::new(&self.processes);
        if self.children {
            selector = selector.with_children();
        }
        let limits = files.settings.limits;
        let mut lives = Vec::new();
        let mut failure = None;
        for file in &mut files.files {
            let mut filter = Filter::default();
            match filter.select_processes(file.input.source(), &file.name, &selector, limits) {
                Ok(()) => lives.push(Some(filter.lives)),
                Err(error) => {
                    failure = Some(error);
                    lives.push(None);
                }
            }
        }
        if lives.iter().all(Option::is_none)
            && let Some(failure) = failure
        {
            return Err(failure);
        }
        let mut all = Vec::new();
        for (file, file_lives) in files.files.iter().zip(&lives) {
            match file_lives {
                Some(lives) => all.push(lives.clone()),
                None => all.push(lives_on_machine(&files.files, &lives, file.machine)),
            }
        }
        Ok(all)
    }
}

/// The lives of the first file of a machine that has any; the lives of no process if none has any.
fn lives_on_machine(
    files: &[TraceFile],
    lives: &[Option<ProcessLives>],
    machine: usize,
) -> ProcessLives {
    for (file, lives) in files.iter().zip(lives) {
        if file.machine == machine
            && let Some(lives) = lives
        {
            return lives.clone();
        }
    }
    Filter::of_no_process().lives
}
