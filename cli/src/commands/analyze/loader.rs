//! `etlkit analyze loader`: the loads of the processes of a recording, in time order.

use etl_analysis::Within;
use etl_analysis::behavior::loads::Loads;
use etl_tables::ReportTable;
use etl_tables::rows::loads::loads as load_rows;

use super::{ReportArgs, report};
use crate::Outcome;
use crate::error::Failure;

/// Prints images, domains, assemblies and modules, in the order in which they were loaded.
pub(super) fn loader(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args
        .recording
        .analyze(|span| Within::new(span, Loads::new()))?;
    let loads = &analyzed.observer.observer;
    let rows = load_rows(&analyzed.machine, loads, &args.selection(&analyzed));
    let mut report = report("loader", &analyzed);
    let images = rows.iter().filter(|row| row.is_image()).count();
    let others = rows.len() - images;
    report.headline.push(format!(
        "{images} images, {others} domains, assemblies and modules of CLRs were loaded"
    ));
    report.add_missing(loads.missing(&analyzed.machine));
    report.tables.push(ReportTable::new("", rows));
    args.print(&mut report, analyzed.outcome)
}
