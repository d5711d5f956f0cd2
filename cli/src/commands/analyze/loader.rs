//! `etlkit analyze loader`: what the processes of a recording loaded, and when.

use etl_analysis::Machine;
use etl_analysis::behavior::loads::{Load, LoadKind, Loads};
use etl_format::file_name;

use super::runtime::columns;
use super::{ReportArgs, process_cells, report, span_facts, ticks};
use crate::Outcome;
use crate::error::Failure;
use crate::recording::Between;
use crate::table::{Cell, Table, TableReport};

/// Prints images, domains, assemblies and modules, in the order in which they were loaded.
pub(super) fn loader(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|span| Between::new(span, Loads::new()))?;
    let (machine, loads) = (&analyzed.machine, &analyzed.observer.observer);
    let selected = &analyzed.selected;
    let admits = |process: usize| selected.as_ref().is_none_or(|s| s.contains(&process));
    let clock = machine.clock();
    let own = [
        ("loaded", "time"),
        ("kind", "kind"),
        ("duration_us", "ms"),
        ("unloaded", "unload"),
        ("tid", ""),
        ("clr", ""),
        ("result", ""),
        ("name", "name"),
        ("path", "path"),
        ("native_path", ""),
    ];
    let mut rows = Vec::new();
    let is_loaded = |time: &i64| analyzed.observer.has(*time);
    // The thread that loaded an image is not kept.
    let has_images = args.has_thread(None);
    for image in machine.image_lives().filter(|image| has_images && admits(image.process)) {
        let Some(loaded) = image.loaded.filter(is_loaded) else { continue };
        let path = machine.user_path(image.path);
        let name = file_name(&path).to_owned();
        let mut row = process_cells(machine, image.process).to_vec();
        row.extend([
            Cell::time(clock, Some(loaded)),
            Cell::text("image"),
            Cell::None,
            Cell::time(clock, image.unloaded),
            Cell::None,
            Cell::None,
            Cell::text("loaded"),
            Cell::text(name),
            Cell::text(path),
            Cell::None,
        ]);
        rows.push((loaded, row));
    }
    let images = rows.len();
    let of_thread = |load: &&Load| args.has_thread(load.tid);
    for load in loads.list().iter().filter(|load| admits(load.process)).filter(of_thread) {
        let (name, path, native) = match load.kind {
            LoadKind::Module => {
                let name = file_name(&load.path);
                (name, &*load.path, &*load.name)
            }
            LoadKind::Domain | LoadKind::Assembly => (&*load.name, &*load.path, ""),
            _ => (&*load.name, "", ""),
        };
        let mut row = process_cells(machine, load.process).to_vec();
        row.extend([
            Cell::time(clock, Some(load.loaded)),
            Cell::text(load.kind.name()),
            load.duration.map_or(Cell::None, |d| Cell::Duration(ticks(clock, d))),
            Cell::time(clock, load.unloaded),
            Cell::count(load.tid),
            Cell::Count(load.clr.into()),
            Cell::text(if load.has_failed { "not found" } else { "loaded" }),
            Cell::text(if load.has_failed { format!("{name} (not found)") } else { name.into() }),
            Cell::text(path),
            Cell::text(native),
        ]);
        rows.push((load.loaded, row));
    }
    let others = rows.len() - images;
    rows.sort_by_key(|(loaded, _)| *loaded);
    let mut table = Table::new("loads", "", &columns(&own));
    table.rows = rows.into_iter().map(|(_, row)| row).collect();
    let mut report = report("loader", &analyzed);
    report.facts.extend(span_facts(machine));
    report.headline.push(format!(
        "{images} images, {others} domains, assemblies and modules of CLRs were loaded"
    ));
    missing(&mut report, machine, loads, [images, others]);
    report.tables.push(table);
    args.print(&report, analyzed.outcome)
}

fn missing(
    report: &mut TableReport,
    machine: &Machine,
    loads: &Loads,
    [images, others]: [usize; 2],
) {
    if images == 0 && machine.image_lives().all(|image| image.loaded.is_none()) {
        report.missing.push("loads of images: record them with `xperf -on LOADER`".to_owned());
    }
    if others == 0 && loads.list().is_empty() {
        report.missing.push(
            "loads of assemblies and modules of .NET, or their events: enable \
             Microsoft-Windows-DotNETRuntime with the keyword Loader (0x8) at level 4"
                .to_owned(),
        );
    } else if loads.list().iter().all(|load| load.duration.is_none()) {
        report.missing.push(
            "how long loads of assemblies took: enable Microsoft-Windows-DotNETRuntime with the \
             keyword Fusion (0x4) at level 4, for .NET 5 and later"
                .to_owned(),
        );
    }
}
