//! `etlkit analyze loader`: what the processes of a recording loaded, and when.

use etl_analysis::Machine;
use etl_analysis::behavior::loads::Loads;
use etl_tables::rows::loads::{LoadRow, loads as load_rows};
use etl_tables::{Report, ReportTable};

use super::{ReportArgs, report};
use crate::Outcome;
use crate::error::Failure;
use crate::recording::Between;

/// Prints images, domains, assemblies and modules, in the order in which they were loaded.
pub(super) fn loader(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|span| Between::new(span, Loads::new()))?;
    let loads = &analyzed.observer.observer;
    let rows = load_rows(&analyzed.machine, loads, &args.selection(&analyzed));
    let mut report = report("loader", &analyzed);
    describe(&mut report, &analyzed.machine, loads, &rows);
    report.tables.push(ReportTable::new("", rows));
    args.print(&mut report, analyzed.outcome)
}

/// Adds the numbers of loads, and what is missing.
fn describe(report: &mut Report<'_>, machine: &Machine, loads: &Loads, rows: &[LoadRow<'_>]) {
    let images = rows.iter().filter(|row| row.is_image()).count();
    let others = rows.len() - images;
    report.headline.push(format!(
        "{images} images, {others} domains, assemblies and modules of CLRs were loaded"
    ));
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
