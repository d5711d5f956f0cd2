//! Processes.

use etl_analysis::machine::Process;
use etl_analysis::{Machine, ProcessIndex};

use super::{ENDED, STARTED};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind, Style};
use crate::row::{Columns, Row};
use crate::selection::Selection;

/// Levels of the tree that are indented: a process may be the last of thousands, each started by
/// the previous one.
const MAX_INDENT: usize = 64;

/// A row of `processes`.
#[derive(Clone, Debug)]
pub struct ProcessRow<'m> {
    machine: &'m Machine,
    process: &'m Process,
    label: Label<'m>,
    threads: u64,
    depth: usize,
}

impl Row for ProcessRow<'_> {
    const NAME: &'static str = "processes";
    const ROW: &'static str = "One process, in the order in which they appear";
    const ABOUT: &'static str =
        "An id may occur more than once: a new process may have the id of an ended one.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const PID: Column = Column::count("pid", "Its id");
        const PARENT: Column =
            Column::count("parent_pid", "Id of the process that started it").or_null();
        const PROCESS: Column = Column::new("process", Kind::Word, "File name of its image");
        const EXIT: Column = Column::new(
            "exit_status",
            Kind::Int32,
            "Exit status, if it ended in the trace",
        );
        const THREADS: Column = Column::count("threads", "Its known threads");
        const USER: Column = Column::new("user", Kind::Word, "Its user as a SID");
        const SESSION: Column = Column::count("session_id", "Terminal session");
        const LINE: Column = Column::new("command_line", Kind::Text, "Command line");
        const DEPTH: Column = Column::new(
            "depth",
            Kind::Int32,
            "Known ancestors: its parent, the parent of its parent, and so on",
        );
        columns.add(PID.heading("pid"), |row| Cell::int(Some(row.process.pid())));
        columns.add(PARENT.heading("parent"), |row| {
            Cell::int(row.process.parent_pid())
        });
        columns.add(PROCESS.or_null().heading("process"), |row| {
            Cell::Label(&row.label)
        });
        columns.add(STARTED, |row| {
            Cell::time(row.machine.clock(), row.process.started())
        });
        columns.add(ENDED, |row| {
            Cell::time(row.machine.clock(), row.process.ended())
        });
        columns.add(EXIT.or_null().heading("exit").style(Style::Plain), |row| {
            Cell::int(row.process.exit_status())
        });
        columns.add(THREADS.heading("threads"), |row| {
            Cell::int(Some(row.threads))
        });
        columns.add(USER.or_null().heading("user"), |row| {
            Cell::text(row.process.user())
        });
        columns.add(SESSION.or_null(), |row| Cell::int(row.process.session_id()));
        columns.add(LINE.or_null().heading("command line"), |row| {
            Cell::text(row.process.command_line())
        });
        columns.add(DEPTH, |row| Cell::int(Some(row.depth)));
    }
}

/// A row for each selected process, in the order in which they appear.
#[must_use]
pub fn processes<'m>(machine: &'m Machine, selection: &Selection) -> Vec<ProcessRow<'m>> {
    let mut entries = tree(machine);
    entries.sort_by_key(|entry| entry.process);
    rows(machine, selection, &entries)
}

/// A row for each selected process, each after the process that started it.
#[must_use]
pub fn processes_as_tree<'m>(machine: &'m Machine, selection: &Selection) -> Vec<ProcessRow<'m>> {
    rows(machine, selection, &tree(machine))
}

fn rows<'m>(
    machine: &'m Machine,
    selection: &Selection,
    entries: &[TreeEntry],
) -> Vec<ProcessRow<'m>> {
    let threads = thread_counts(machine);
    let mut rows = Vec::new();
    for entry in entries {
        let Some(process) = machine.process(entry.process) else {
            continue;
        };
        if !selection.has_process(Some(entry.process))
            || !selection.has_lifetime(process.started(), process.ended())
        {
            continue;
        }
        let depth = entry.depth.min(MAX_INDENT);
        rows.push(ProcessRow {
            machine,
            process,
            label: Label::Indented {
                name: process.name(),
                depth,
            },
            threads: threads.get(entry.process.get()).copied().unwrap_or(0),
            depth: entry.depth,
        });
    }
    rows
}

/// The number of known threads of each process, by its index.
fn thread_counts(machine: &Machine) -> Vec<u64> {
    let mut counts = vec![0; machine.processes().len()];
    for thread in machine.threads() {
        let process = machine.process_of(thread);
        if let Some(count) = process.and_then(|process| counts.get_mut(process.get())) {
            *count += 1;
        }
    }
    counts
}

/// A process in the tree of processes.
#[derive(Clone, Copy, Debug)]
struct TreeEntry {
    /// The process.
    process: ProcessIndex,
    /// Number of its ancestors.
    depth: usize,
}

/// All processes, each after the process that started it.
fn tree(machine: &Machine) -> Vec<TreeEntry> {
    let parents = machine.parents();
    let mut children: Vec<Vec<ProcessIndex>> = vec![Vec::new(); parents.len()];
    for (index, parent) in parents.iter().enumerate() {
        if let Some(children) = parent.and_then(|parent| children.get_mut(parent.get())) {
            children.push(ProcessIndex::new(index));
        }
    }
    let mut order = Vec::new();
    let mut seen = vec![false; parents.len()];
    let mut open: Vec<TreeEntry> = Vec::new();
    // Processes that are their own ancestors come last, as roots.
    let roots = (0..parents.len()).filter(|&index| parents.get(index) == Some(&None));
    for root in roots.chain(0..parents.len()) {
        open.push(TreeEntry {
            process: ProcessIndex::new(root),
            depth: 0,
        });
        while let Some(entry) = open.pop() {
            if std::mem::replace(seen.get_mut(entry.process.get()).unwrap_or(&mut true), true) {
                continue;
            }
            order.push(entry);
            let children = children
                .get(entry.process.get())
                .map_or(&[][..], Vec::as_slice);
            for &child in children.iter().rev() {
                open.push(TreeEntry {
                    process: child,
                    depth: entry.depth + 1,
                });
            }
        }
    }
    order
}
