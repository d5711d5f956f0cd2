//! `etlkit analyze gc`: the garbage collections of a recording.

use etl_analysis::behavior::collections::Collections;
use etl_format::TimeRange;
use etl_tables::rows::gcs::{GcRow, gc_heaps, gc_processes, gcs};
use etl_tables::rows::{process_label, ticks};
use etl_tables::{Report, ReportTable, Selection};

use super::compare::{self, ComparableArgs, ReportKind};
use super::{ReportArgs, report, selected_time};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::recording::Analyzed;

/// Prints each collection, sums for each process, and the heaps of servers.
pub(super) fn gc(args: &ComparableArgs) -> Result<Outcome, Failure> {
    compare::print(&Gc { args })
}

/// The garbage collections of a recording.
struct Gc<'a> {
    args: &'a ComparableArgs,
}

impl ReportKind for Gc<'_> {
    type Observer = Collections;

    fn args(&self) -> &ComparableArgs {
        self.args
    }

    fn observer(&self) -> Result<Collections, Failure> {
        Ok(Collections::new())
    }

    fn within(observer: Collections, range: TimeRange) -> Collections {
        observer.within(range)
    }

    fn report<'a>(&self, analyzed: &'a Analyzed<Collections>) -> Result<Report<'a>, Failure> {
        let args = &self.args.report;
        let machine = &analyzed.machine;
        let collections = &analyzed.observer;
        let selection = args.selection(analyzed);
        let rows = gcs(machine, collections, &selection);
        let time = selected_time(analyzed);
        let sums = gc_processes(machine, collections, &rows, &selection, time);
        let heaps = gc_heaps(&rows);
        let has_several_heaps = rows.iter().any(|row| row.collection().heaps.len() > 1);
        let mut report = report("gc", analyzed);
        report
            .headline
            .push(plural(rows.len() as u64, "collection", "collections"));
        describe_pauses(&mut report, args, analyzed, &selection);
        let missing = collections.missing(rows.iter().map(GcRow::collection));
        report.add_missing(missing);
        report.tables.push(ReportTable::new("collections", rows));
        report
            .tables
            .push(ReportTable::new("pauses by process", sums));
        // In text, the sums come first, and a single heap has the sizes of the collection.
        if args.is_text() {
            report.tables.reverse();
        }
        if !args.is_text() || has_several_heaps {
            report.tables.push(ReportTable::new("heaps", heaps));
        }
        Ok(report)
    }
}

/// Adds the pauses of the selected time, and the suspensions without a collection.
fn describe_pauses(
    report: &mut Report<'_>,
    args: &ReportArgs,
    analyzed: &Analyzed<Collections>,
    selection: &Selection,
) {
    // Which thread suspended the others is not kept.
    if !selection.has_thread(None) {
        return;
    }
    let machine = &analyzed.machine;
    let collections = &analyzed.observer;
    if args.recording.has_range() {
        let mut paused = 0;
        for selected in collections.selected_pauses() {
            if selection.has_process(Some(selected.pause.process)) {
                paused += selected.ticks;
            }
        }
        let millis = ticks(machine.clock(), paused) as f64 / 1e4;
        report
            .headline
            .push(format!("suspended for {millis:.3} ms of this time"));
    }
    for other in collections.other_pauses() {
        let process = Some(other.clr.process);
        if selection.has_process(process) {
            let millis = ticks(machine.clock(), other.paused) as f64 / 1e4;
            let process = process_label(machine, process);
            let count = other.count;
            report.headline.push(format!(
                "{process}: {count} suspensions without a collection, {millis:.3} ms"
            ));
        }
    }
}
