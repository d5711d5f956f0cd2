//! `etlkit analyze gc`: the garbage collections of a recording.

use std::collections::BTreeMap;

use etl_analysis::Machine;
use etl_analysis::behavior::Distribution;
use etl_analysis::behavior::collections::{Collection, Collections};
use etl_format::Clock;

use super::runtime::{DISTRIBUTION, columns, distribution};
use super::{
    ReportArgs, duration, note_given_up, process_cells, process_label, report, selected_time,
    span_facts, ticks,
};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::table::{Cell, Table};

/// Ticks of 100 ns in a second.
const SECOND: u128 = 10_000_000;

/// Bytes that were allocated in a second since the collection before started.
fn allocated_per_second(clock: &Clock, gc: &Collection) -> Option<u64> {
    let elapsed = ticks(clock, gc.since_previous?);
    let rate = (u128::from(gc.allocated) * SECOND).checked_div(elapsed.into())?;
    u64::try_from(rate).ok().filter(|_| gc.allocated > 0)
}

/// What collections did to each heap.
fn heaps(machine: &Machine, collections: &[&Collection]) -> Table {
    let own = [
        ("clr", ""),
        ("number", "gc"),
        ("heap", "heap"),
        ("before_bytes", "before"),
        ("after_bytes", "after"),
        ("survived_bytes", "survived"),
        ("fragmented_bytes", "free inside"),
        ("gen0_before_bytes", ""),
        ("gen0_bytes", "gen 0 after"),
        ("gen1_before_bytes", ""),
        ("gen1_bytes", "gen 1"),
        ("gen2_before_bytes", ""),
        ("gen2_bytes", "gen 2"),
        ("large_object_before_bytes", ""),
        ("large_object_bytes", "large"),
        ("pinned_object_before_bytes", ""),
        ("pinned_object_bytes", "pinned"),
    ];
    let mut table = Table::new("heaps", "heaps", &columns(&own));
    for gc in collections {
        for heap in &gc.heaps {
            let mut row = process_cells(machine, gc.process).to_vec();
            row.extend([
                Cell::Count(gc.clr.into()),
                Cell::Count(gc.number.into()),
                Cell::Count(heap.heap.into()),
                Cell::Bytes(heap.before.iter().sum()),
                Cell::Bytes(heap.after.iter().sum()),
                Cell::Bytes(heap.survived),
                Cell::Bytes(heap.fragmented),
            ]);
            let sizes = heap.before.iter().zip(&heap.after);
            row.extend(sizes.flat_map(|(before, after)| [*before, *after]).map(Cell::Bytes));
            table.rows.push(row);
        }
    }
    table
}

/// Prints each collection, sums for each process, and the heaps of servers.
pub(super) fn gc(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|range| Collections::new().within(range))?;
    let (machine, collections) = (&analyzed.machine, &analyzed.observer);
    let selected = &analyzed.selected;
    let clock = machine.clock();
    let admits = |process: usize| selected.as_ref().is_none_or(|s| s.contains(&process));
    let own = [
        ("clr", ""),
        ("number", "gc"),
        ("generation", "gen"),
        ("reason", "reason"),
        ("type", "type"),
        ("started", "start"),
        ("duration_us", "ms"),
        ("pauses", ""),
        ("pause_us", "pause ms"),
        ("allocated_bytes", "allocated"),
        ("allocated_per_second_bytes", "per second"),
        ("heap_before_bytes", "heap before"),
        ("heap_bytes", "after"),
        ("promoted_bytes", "promoted"),
        ("fragmented_bytes", "free inside"),
        ("fragmented_percent", ""),
        ("gen0_bytes", ""),
        ("gen1_bytes", ""),
        ("gen2_bytes", ""),
        ("large_object_bytes", ""),
        ("pinned_object_bytes", ""),
    ];
    let mut list = Table::new("collections", "collections", &columns(&own));
    let mut by_process: BTreeMap<usize, Vec<&Collection>> = BTreeMap::new();
    let of_thread = |gc: &&Collection| args.has_thread(gc.started_by);
    let allocated = |bytes: u64| match collections.has_allocations() {
        true => Cell::Bytes(bytes),
        false => Cell::None,
    };
    for gc in collections.selected().filter(|gc| admits(gc.process)).filter(of_thread) {
        by_process.entry(gc.process).or_default().push(gc);
        let bytes = |bytes: Option<u64>| bytes.map_or(Cell::None, Cell::Bytes);
        let mut row = process_cells(machine, gc.process).to_vec();
        row.extend([
            Cell::Count(gc.clr.into()),
            Cell::Count(gc.number.into()),
            Cell::Count(gc.generation.into()),
            Cell::text(gc.reason.to_string()),
            Cell::text(gc.kind.to_string()),
            Cell::time(clock, Some(gc.started)),
            gc.ended.map_or(Cell::None, |e| Cell::Duration(duration(clock, gc.started, e))),
            Cell::Count(gc.pauses.into()),
            gc.pause().map_or(Cell::None, |paused| Cell::Duration(ticks(clock, paused))),
            allocated(gc.allocated),
            bytes(allocated_per_second(clock, gc)),
            bytes(gc.heap_before()),
            bytes(gc.heap_size()),
            bytes(gc.promoted),
            bytes(gc.fragmented()),
            match (gc.fragmented(), gc.heap_size()) {
                (Some(free), Some(size)) if size > 0 => Cell::share(free, size),
                _ => Cell::None,
            },
        ]);
        row.extend(gc.sizes().map(bytes));
        list.rows.push(row);
    }
    let own = [
        ("collections", "gcs"),
        ("gen0", "gen 0"),
        ("gen1", "gen 1"),
        ("gen2", "gen 2"),
        ("induced", "induced"),
        ("allocated_bytes", "allocated"),
        ("largest_heap_bytes", "largest heap"),
        ("pause_percent", "pause %"),
    ];
    let mut sums = Table::new("processes", "pauses by process", &columns(&own));
    sums.columns.extend(DISTRIBUTION);
    let whole = selected_time(args, machine)?;
    // Of a pause that crosses the ends of the selected time, its share is that of the part inside.
    let mut shares: BTreeMap<usize, u64> = BTreeMap::new();
    for (pause, paused) in collections.selected_pauses() {
        let of = pause.collection.and_then(|of| collections.list().get(of));
        if of.is_some_and(|gc| args.has_thread(gc.started_by)) {
            *shares.entry(pause.process).or_default() += paused;
        }
    }
    for (process, gcs) in &by_process {
        let pauses =
            Distribution::new(gcs.iter().filter_map(|gc| gc.pause()).map(|p| ticks(clock, p)));
        let of = |generation: u32| {
            Cell::Count(gcs.iter().filter(|gc| gc.generation == generation).count() as u64)
        };
        let is_induced =
            |gc: &&&Collection| gc.reason.name().is_some_and(|name| name.starts_with("Induced"));
        let mut row = process_cells(machine, *process).to_vec();
        row.extend([
            Cell::Count(gcs.len() as u64),
            of(0),
            of(1),
            of(2),
            Cell::Count(gcs.iter().filter(is_induced).count() as u64),
            allocated(gcs.iter().map(|gc| gc.allocated).sum()),
            gcs.iter().filter_map(|gc| gc.heap_size()).max().map_or(Cell::None, Cell::Bytes),
            Cell::share(ticks(clock, shares.get(process).copied().unwrap_or(0)), whole),
        ]);
        row.extend(distribution(&pauses));
        sums.rows.push(row);
    }
    let mut report = report("gc", &analyzed);
    report.facts.extend(span_facts(machine));
    report.headline.push(plural(list.rows.len() as u64, "collection", "collections"));
    // Which thread suspended the others is not kept.
    let has_pauses = args.has_thread(None);
    if args.recording.has_span() && has_pauses {
        let own = collections.selected_pauses().filter(|(pause, _)| admits(pause.process));
        let paused = ticks(clock, own.map(|(_, ticks)| ticks).sum()) as f64 / 1e4;
        report.headline.push(format!("suspended for {paused:.3} ms of this time"));
    }
    let other_pauses = collections.other_pauses().filter(|((p, _), _)| has_pauses && admits(*p));
    for ((process, _), other) in other_pauses {
        let paused = ticks(clock, other.paused) as f64 / 1e4;
        report.headline.push(format!(
            "{}: {} suspensions without a collection, {paused:.3} ms",
            process_label(machine, process),
            other.count
        ));
    }
    if collections.list().is_empty() {
        report.missing.push(
            "events of collections: enable Microsoft-Windows-DotNETRuntime with the keyword GC \
             (0x1) at level 4, or at level 5 for allocations as well"
                .to_owned(),
        );
    }
    note_given_up(&mut report, collections.given_up(), "suspensions without a time");
    if !list.rows.is_empty() && !collections.has_allocations() {
        report.missing.push(
            "allocations: enable Microsoft-Windows-DotNETRuntime with the keyword GC (0x1) at \
             level 5"
                .to_owned(),
        );
    }
    let admitted: Vec<&Collection> = by_process.values().flatten().copied().collect();
    if !admitted.is_empty() && admitted.iter().all(|gc| gc.heaps.is_empty()) {
        report.missing.push(
            "sizes of the heap before collections, free space, and sizes by heap: .NET Framework \
             4.6, .NET Core and later state them with the keyword GC (0x1) at level 4"
                .to_owned(),
        );
    }
    let heaps = heaps(machine, &admitted);
    report.tables = vec![list, sums];
    // In text, the sums come first, and a single heap has the sizes of the collection.
    if args.is_text() {
        report.tables.reverse();
    }
    if !args.is_text() || admitted.iter().any(|gc| gc.heaps.len() > 1) {
        report.tables.push(heaps);
    }
    args.print(&report, analyzed.outcome)
}
