//! Which rows of the tables about the machine the filter of the options selects.

use etl_analysis::Machine;
use etl_analysis::machine::Process;
use etl_format::{ProcessId, ThreadId, Ticks};

use crate::options::Options;
use crate::selection::Selection;

/// The selection of the filter. Lifetimes of processes and images are not compared with its times.
pub(super) fn selection(options: &Options, machine: &Machine) -> Selection {
    let filter = &options.filter;
    let mut selection = Selection::new().threads(filter.threads.clone());
    if !(filter.processes.is_empty() && filter.lives.is_empty()) {
        let indices = machine.indexed_processes();
        let selected = indices.filter(|(_, process)| has_process(options, process));
        selection = selection.processes(Some(selected.map(|(index, _)| index).collect()));
    }
    selection
}

/// Whether the filter selects a process. Earlier and later processes may have the same id.
fn has_process(options: &Options, process: &Process) -> bool {
    let start = process.started().unwrap_or(Ticks::MIN);
    has_process_at(options, Some(process.pid()), start)
}

fn has_process_at(options: &Options, pid: Option<ProcessId>, time: Ticks) -> bool {
    let filter = &options.filter;
    if filter.processes.is_empty() && filter.lives.is_empty() {
        return true;
    }
    pid.is_some_and(|pid| filter.processes.contains(&pid) || filter.lives.has(pid, time))
}

/// Whether the filter selects a time.
pub(super) fn has_time(options: &Options, time: Ticks) -> bool {
    options.filter.time.contains(time)
}

/// Whether the filter selects a process, a thread and a time.
pub(super) fn admits(
    options: &Options,
    pid: Option<ProcessId>,
    tid: Option<ThreadId>,
    time: Ticks,
) -> bool {
    let threads = &options.filter.threads;
    has_process_at(options, pid, time)
        && (threads.is_empty() || tid.is_none_or(|tid| threads.contains(&tid)))
        && has_time(options, time)
}
