//! `etlkit analyze threadpool`: the thread pools of .NET in a recording.

use etl_analysis::Within;
use etl_analysis::behavior::missing::MissingData;
use etl_analysis::behavior::thread_pool::ThreadPool;
use etl_tables::ReportTable;
use etl_tables::rows::thread_pools::{thread_pool_changes, thread_pool_queues, thread_pools};

use super::{ReportArgs, report};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;

/// Prints the pools, the changes of their threads and the waits in their queues.
pub(super) fn threadpool(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args
        .recording
        .analyze(|span| Within::new(span, ThreadPool::new()))?;
    let machine = &analyzed.machine;
    let observed = &analyzed.observer.observer;
    let selection = args.selection(&analyzed);
    let changes = thread_pool_changes(machine, observed, &selection);
    let pools = thread_pools(machine, observed, &selection);
    let queues = thread_pool_queues(machine, observed, &selection);
    let mut report = report("threadpool", &analyzed);
    let count = plural(pools.len() as u64, "pool", "pools");
    let changed = plural(changes.len() as u64, "change", "changes");
    report
        .headline
        .push(format!("{count}, {changed} of threads"));
    if changes.is_empty() {
        report.add_missing([MissingData::PoolChanges]);
    }
    if queues.is_empty() {
        report.add_missing([MissingData::WorkItems]);
    }
    report
        .tables
        .push(ReportTable::new("changes of threads", changes));
    report.tables.push(ReportTable::new("pools", pools));
    report
        .tables
        .push(ReportTable::new("waits of work items", queues));
    // In text, the list comes last.
    if args.is_text() {
        report.tables.rotate_left(1);
    }
    args.print(&mut report, analyzed.outcome)
}
