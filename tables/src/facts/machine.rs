//! Tables of what a machine had: they are known once it is.

use etl_analysis::Machine;
use etl_analysis::loss::LossKind;
use etl_analysis::machine::images::ImageId;
use etl_schema::views::Pdb;

use super::rows::{Rows, admits_process, file_name, time};
use crate::builder::Cell;
use crate::events::micros;
use crate::options::Options;
use crate::recorded::Before;
use crate::tables::{IMAGES, LOSSES, METHODS, MODULES, PROCESSES, THREADS, TRACES};

/// Id and name of a process by its index.
pub(super) fn process<'m>(machine: &'m Machine, index: usize) -> [Cell<'m>; 2] {
    let process = machine.processes().get(index);
    [
        Cell::int(process.map(|process| process.pid())),
        Cell::text(process.map_or("", |process| process.name())),
    ]
}

/// Adds the rows of the tables that are wanted.
pub(super) fn write(before: &Before, options: &Options, rows: &mut Rows<'_>) {
    let machine = &before.machine;
    traces(machine, options, rows);
    processes(machine, options, rows);
    threads(machine, options, rows);
    images(machine, options, rows);
    if rows.wants(&MODULES) || rows.wants(&METHODS) {
        code(machine, options, rows);
    }
    losses(machine, options, rows);
}

fn traces(machine: &Machine, options: &Options, rows: &mut Rows<'_>) {
    let clock = machine.clock();
    for file in machine.files() {
        let header = &file.header;
        let session = String::from_utf16_lossy(&header.logger_name);
        let span = machine.span();
        let booted = (header.boot_time > 0).then_some(micros(header.boot_time));
        rows.add(
            &TRACES,
            &[
                Cell::Text(&options.trace),
                Cell::text(session.trim_end_matches('\0')),
                Cell::int(Some(machine.records())),
                time(clock, span.map(|span| span.0)),
                time(clock, span.map(|span| span.1)),
                Cell::Int(micros(clock.start_time)),
                Cell::Text(&format!("{}.{}", header.os_major, header.os_minor)),
                Cell::int(Some(header.build)),
                Cell::int(Some(header.processors)),
                Cell::int(Some(header.pointer_size.bytes())),
                Cell::int(booted),
                Cell::Text(&clock.kind.to_string()),
                Cell::bits(Some(clock.frequency)),
                Cell::int(Some(header.buffers_written)),
                Cell::int(Some(header.events_lost)),
                Cell::int(Some(header.buffers_lost)),
            ],
        );
    }
}

fn processes(machine: &Machine, options: &Options, rows: &mut Rows<'_>) {
    let clock = machine.clock();
    for process in machine.processes() {
        if !admits_process(options, Some(process)) {
            continue;
        }
        rows.add(
            &PROCESSES,
            &[
                Cell::Text(&options.trace),
                Cell::int(Some(process.pid())),
                Cell::text(process.name()),
                Cell::int(process.parent_pid()),
                time(clock, process.started()),
                time(clock, process.ended()),
                Cell::int(process.exit_status()),
                Cell::int(process.session_id()),
                Cell::text(process.user()),
                Cell::text(process.command_line()),
            ],
        );
    }
}

fn threads(machine: &Machine, options: &Options, rows: &mut Rows<'_>) {
    let clock = machine.clock();
    for thread in machine.threads() {
        let process = machine.process_of(thread);
        let threads = &options.filter.threads;
        if !process.is_some_and(|process| is_selected(machine, process, options))
            || !(threads.is_empty() || threads.contains(&thread.tid))
        {
            continue;
        }
        let start = Some(thread.start_address).filter(|&address| address != 0);
        rows.add(
            &THREADS,
            &[
                Cell::Text(&options.trace),
                Cell::int(Some(thread.tid)),
                Cell::int(Some(thread.pid)),
                Cell::text(&thread.name),
                time(clock, thread.started),
                time(clock, thread.ended),
                Cell::bits(start),
            ],
        );
    }
}

fn images(machine: &Machine, options: &Options, rows: &mut Rows<'_>) {
    let clock = machine.clock();
    for image in machine.image_lives() {
        let [pid, name] = process(machine, image.process);
        if !is_selected(machine, image.process, options) {
            continue;
        }
        let pdb = match image.id {
            Some(ImageId::Pdb(pdb)) => Some(pdb),
            _ => None,
        };
        let path = machine.user_path(image.path);
        let guid = guid(pdb);
        rows.add(
            &IMAGES,
            &[
                Cell::Text(&options.trace),
                pid,
                name,
                Cell::text(&path),
                Cell::text(file_name(&path)),
                Cell::bits(Some(image.start)),
                Cell::bits(Some(image.end.saturating_sub(image.start))),
                time(clock, image.loaded),
                time(clock, image.unloaded),
                Cell::text(&guid),
                Cell::int(pdb.map(|pdb| pdb.age)),
            ],
        );
    }
}

fn is_selected(machine: &Machine, process: usize, options: &Options) -> bool {
    admits_process(options, machine.processes().get(process))
}

fn guid(pdb: Option<Pdb>) -> String {
    pdb.map_or_else(String::new, |pdb| pdb.signature.to_string())
}

fn code(machine: &Machine, options: &Options, rows: &mut Rows<'_>) {
    let (symbols, clock) = (machine.symbols(), machine.clock());
    for (index, clr, module, (from, to)) in symbols.modules() {
        let [pid, name] = process(machine, index);
        if !is_selected(machine, index, options) {
            continue;
        }
        let guid = guid(module.il_pdb);
        rows.add(
            &MODULES,
            &[
                Cell::Text(&options.trace),
                pid,
                name,
                Cell::int(Some(clr)),
                Cell::bits(Some(module.id)),
                Cell::text(module.path),
                Cell::text(module.native_path),
                Cell::text(module.assembly),
                Cell::text(module.domain),
                Cell::text(&guid),
                Cell::int(module.il_pdb.map(|pdb| pdb.age)),
                time(clock, from),
                time(clock, to),
            ],
        );
    }
    for (index, method) in symbols.methods() {
        let [pid, name] = process(machine, index);
        if !is_selected(machine, index, options) {
            continue;
        }
        rows.add(
            &METHODS,
            &[
                Cell::Text(&options.trace),
                pid,
                name,
                Cell::int(Some(method.clr)),
                Cell::bits(Some(method.id)),
                Cell::bits(method.module.map(|module| module.id)),
                Cell::text(method.module.map_or("", |module| file_name(module.path))),
                Cell::text(method.namespace),
                Cell::text(method.name),
                Cell::text(method.signature),
                Cell::int(Some(method.token)),
                Cell::bits(Some(method.start)),
                Cell::bits(Some(method.end.saturating_sub(method.start))),
                Cell::Bool(method.jitted),
                Cell::Bool(method.dynamic),
                time(clock, method.from),
                time(clock, method.to),
            ],
        );
    }
}

/// The word for a loss, as the JSON of reports has it.
const fn word(kind: LossKind) -> &'static str {
    match kind {
        LossKind::EventsLost => "events_lost",
        LossKind::BuffersLost => "buffers_lost",
        LossKind::FileDamaged => "file_damaged",
        LossKind::EndMissing => "end_missing",
        LossKind::Overwritten => "overwritten",
        _ => "other",
    }
}

fn losses(machine: &Machine, options: &Options, rows: &mut Rows<'_>) {
    let clock = machine.clock();
    for loss in machine.losses() {
        rows.add(
            &LOSSES,
            &[
                Cell::Text(&options.trace),
                Cell::Text(word(loss.what)),
                time(clock, loss.from),
                time(clock, loss.to),
                Cell::int(loss.processor),
            ],
        );
    }
}
