//! `etlkit analyze processes`, `images` and `sessions`: what the machine of a recording had.

use std::fmt::Write;

use etl_analysis::Machine;
use etl_analysis::machine::images::ImageId;
use etl_format::{Clock, TimeRange};

use super::{ReportArgs, duration, report, span_facts};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::table::{Cell, Table};

/// Levels of the tree that are indented: a process may be the last of thousands, each started by
/// the one before.
const MAX_INDENT: usize = 64;

/// Whether something was there at any of the selected times.
fn was_there(range: TimeRange, began: Option<i64>, ended: Option<i64>) -> bool {
    if let (Some(from), Some(ended)) = (range.from, ended)
        && ended < from.get()
    {
        return false;
    }
    if let (Some(to), Some(began)) = (range.to, began) { began < to.get() } else { true }
}

/// Prints the processes as a tree: those that a process started follow it.
pub(super) fn processes_of(args: &ReportArgs) -> Result<Outcome, Failure> {
    let mut range = TimeRange::default();
    let analyzed = args.recording.analyze(|selected| range = selected)?;
    let machine = &analyzed.machine;
    let selected = &analyzed.selected;
    let clock = machine.clock();
    let columns = [
        ("pid", "pid"),
        ("parent_pid", "parent"),
        ("name", ""),
        ("tree", "process"),
        ("started", "start"),
        ("ended", "end"),
        ("exit_status", "exit"),
        ("threads", "threads"),
        ("user", ""),
        ("session_id", ""),
        ("command_line", "command line"),
    ];
    let mut table = Table::new("processes", "", &columns);
    let mut threads = vec![0u64; machine.processes().len()];
    for process in machine.threads().iter().filter_map(|thread| machine.process_of(thread)) {
        if let Some(count) = threads.get_mut(process) {
            *count += 1;
        }
    }
    for (index, depth) in tree(machine) {
        let Some(process) = machine.processes().get(index) else { continue };
        if selected.as_ref().is_some_and(|selected| !selected.contains(&index))
            || !was_there(range, process.started(), process.ended())
        {
            continue;
        }
        let name = if process.name().is_empty() { "?" } else { process.name() };
        table.rows.push(vec![
            Cell::Count(process.pid().into()),
            Cell::count(process.parent_pid()),
            Cell::text(process.name()),
            Cell::Text(format!("{}{name}", "  ".repeat(depth.min(MAX_INDENT)))),
            Cell::time(clock, process.started()),
            Cell::time(clock, process.ended()),
            process.exit_status().map_or(Cell::None, |status| Cell::Signed(status.into())),
            Cell::Count(threads.get(index).copied().unwrap_or(0)),
            Cell::text(process.user()),
            Cell::count(process.session_id()),
            Cell::text(process.command_line()),
        ]);
    }
    let mut report = report("processes", &analyzed);
    report.facts.extend(span_facts(machine));
    report.headline.push(plural(table.rows.len() as u64, "process", "processes"));
    if machine.processes().iter().all(|process| process.name().is_empty()) {
        report.missing.push(
            "events of processes: record them with `xperf -on PROC_THREAD`, or with the provider \
             Microsoft-Windows-Kernel-Process, keyword 0x10"
                .to_owned(),
        );
    }
    report.tables.push(table);
    args.print(&report, analyzed.outcome)
}

/// Indices of processes, each after the one that started it, with their depths.
fn tree(machine: &Machine) -> Vec<(usize, usize)> {
    let mut parents = machine.parents();
    for (parent, process) in parents.iter_mut().zip(machine.processes()) {
        // Without its start, the id of the parent may be another process's by now.
        *parent = parent.filter(|_| process.started().is_some());
    }
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); parents.len()];
    for (index, parent) in parents.iter().enumerate() {
        if let Some(children) = parent.and_then(|parent| children.get_mut(parent)) {
            children.push(index);
        }
    }
    let mut order = Vec::new();
    let mut seen = vec![false; parents.len()];
    let mut open: Vec<(usize, usize)> = Vec::new();
    // Those that are their own ancestors come last, as roots.
    let roots = (0..parents.len()).filter(|&index| parents.get(index) == Some(&None));
    for root in roots.chain(0..parents.len()) {
        open.push((root, 0));
        while let Some((index, depth)) = open.pop() {
            if std::mem::replace(seen.get_mut(index).unwrap_or(&mut true), true) {
                continue;
            }
            order.push((index, depth));
            let children = children.get(index).map_or(&[][..], Vec::as_slice);
            open.extend(children.iter().rev().map(|&child| (child, depth + 1)));
        }
    }
    order
}

/// Prints the images of the selected processes.
pub(super) fn images(args: &ReportArgs) -> Result<Outcome, Failure> {
    let mut range = TimeRange::default();
    let analyzed = args.recording.analyze(|selected| range = selected)?;
    let machine = &analyzed.machine;
    let selected = &analyzed.selected;
    let own = [
        ("start_address", "address"),
        ("bytes", "bytes"),
        ("loaded", "load"),
        ("unloaded", "unload"),
        ("pdb", "PDB"),
        ("path", "path"),
    ];
    let mut table = Table::new("images", "", &super::runtime::columns(&own));
    let clock = machine.clock();
    for image in machine.image_lives() {
        if selected.as_ref().is_some_and(|selected| !selected.contains(&image.process))
            || !was_there(range, image.loaded, image.unloaded)
        {
            continue;
        }
        let pdb = match image.id {
            Some(ImageId::Pdb(pdb)) => format!("{} {}", pdb.signature, pdb.age),
            _ => String::new(),
        };
        let mut row = super::process_cells(machine, image.process).to_vec();
        row.extend([
            Cell::Address(image.start),
            Cell::Count(image.end - image.start),
            Cell::time(clock, image.loaded),
            Cell::time(clock, image.unloaded),
            Cell::text(pdb),
            Cell::text(machine.user_path(image.path)),
        ]);
        table.rows.push(row);
    }
    let mut report = report("images", &analyzed);
    report.facts.extend(span_facts(machine));
    report.headline.push(plural(table.rows.len() as u64, "image", "images"));
    if machine.images().list().is_empty() {
        report.missing.push("events of images: record them with `xperf -on LOADER`".to_owned());
    }
    report.tables.push(table);
    args.print(&report, analyzed.outcome)
}

/// Prints the sessions whose headers the files have.
pub(super) fn sessions(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|_| ())?;
    let machine = &analyzed.machine;
    let columns = [
        ("session", "session"),
        ("file", "file"),
        ("started", "start"),
        ("ended", "end"),
        ("duration_us", "ms"),
        ("events_lost", "lost events"),
        ("buffers_lost", "lost buffers"),
    ];
    let mut table = Table::new("sessions", "", &columns);
    let clock = machine.clock();
    for file in machine.files() {
        for session in &file.sessions {
            let lasted = session.to.map(|to| duration(clock, session.from, to));
            table.rows.push(vec![
                Cell::text(session.name.as_str()),
                Cell::text(file.name.as_str()),
                Cell::time(clock, Some(session.from)),
                Cell::time(clock, session.to),
                lasted.map_or(Cell::None, Cell::Duration),
                Cell::Count(session.events_lost.into()),
                Cell::Count(session.buffers_lost.into()),
            ]);
        }
    }
    let mut report = report("sessions", &analyzed);
    report.facts.extend(span_facts(machine));
    report.headline.push(clock_line(clock));
    report.tables.push(table);
    args.print(&report, analyzed.outcome)
}

fn clock_line(clock: &Clock) -> String {
    let mut line = String::new();
    let _ = write!(
        line,
        "clock {}, start {}",
        clock.kind,
        etl_format::clock::iso_utc(clock.start_time)
    );
    line
}
