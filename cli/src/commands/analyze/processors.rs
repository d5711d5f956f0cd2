//! `etlkit analyze dpc` and `processors`: drivers that interrupt threads, and the use of
//! processors over time.

use etl_analysis::behavior::interrupts::Interrupts;
use etl_analysis::behavior::processors::ProcessorUse;
use etl_events::time::TimePoint;
use etl_tables::rows::interrupts::{
    InterruptProcessorRow, InterruptRow, InterruptSampleRow, interrupt_processors,
    interrupt_samples, interrupts as routine_rows,
};
use etl_tables::rows::processor_use::processor_use;
use etl_tables::{Cell, Column, ReportTable};

use super::{ReportArgs, report, selected_time};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::symbols::SymbolArgs;

/// Memory for the row of an interval.
const ROW_BYTES: u64 = 256;

/// Arguments of `etlkit analyze dpc`.
#[derive(Debug, clap::Args)]
pub(super) struct DpcArgs {
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Prints deferred procedure calls and interrupt service routines by driver, and by processor.
pub(super) fn dpc(args: &DpcArgs) -> Result<Outcome, Failure> {
    const SAMPLED: Column = Column::count("samples", "All samples of the processors");
    let pdbs = args.symbols.open()?;
    let args = args.report.of_any_process()?;
    let analyzed = args
        .recording
        .analyze(|range| Interrupts::new().within(range))?;
    let machine = &analyzed.machine;
    let interrupts = &analyzed.observer;
    let routines = routine_rows(machine, interrupts, pdbs.functions());
    let sampled = interrupt_samples(machine, interrupts, pdbs.functions());
    pdbs.note_missing();
    let processors = interrupt_processors(machine, interrupts, selected_time(&analyzed));
    let mut report = report("dpc", &analyzed);
    report.fact(SAMPLED, Cell::int(Some(interrupts.samples())));
    let count: u64 = routines.iter().map(InterruptRow::count).sum();
    if count > 0 {
        let own: u64 = processors.iter().map(InterruptProcessorRow::own).sum();
        let millis = own as f64 / 1e4;
        let calls = plural(count, "DPC or ISR", "DPCs and ISRs");
        report.headline.push(format!("{calls}, {millis:.3} ms"));
    }
    let in_calls: u64 = sampled.iter().map(InterruptSampleRow::samples).sum();
    let all = plural(interrupts.samples(), "sample", "samples");
    report
        .headline
        .push(format!("{in_calls} of {all} in DPCs and ISRs"));
    report.add_missing(interrupts.missing());
    report.tables.push(ReportTable::new("routines", routines));
    report
        .tables
        .push(ReportTable::new("processors", processors));
    report
        .tables
        .push(ReportTable::new("code in samples", sampled));
    args.print(&mut report, analyzed.outcome)
}

/// Arguments of `etlkit analyze processors`.
#[derive(Debug, clap::Args)]
pub(super) struct UseArgs {
    /// Length of an interval: a duration (100ms), or seconds
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = length_of_time)]
    interval: u64,
    #[command(flatten)]
    report: ReportArgs,
}

/// A length of time in 100 ns.
pub(super) fn length_of_time(text: &str) -> Result<u64, String> {
    if let Ok(TimePoint::SinceStart(units)) = text.parse()
        && let Ok(units @ 1..) = u64::try_from(units)
    {
        return Ok(units);
    }
    Err("a duration such as 100ms or 1s is expected".to_owned())
}

/// Prints the use of processors over time.
pub(super) fn processors(args: &UseArgs) -> Result<Outcome, Failure> {
    const INTERVAL: Column = Column::micros("interval_us", "Length of an interval");
    let interval = args.interval;
    let args = args.report.of_any_process()?;
    let analyzed = args
        .recording
        .analyze(|range| ProcessorUse::new(interval).within(range))?;
    let used = &analyzed.observer;
    let count = used.list().len() as u64;
    analyzed.ensure_memory(count.saturating_mul(ROW_BYTES))?;
    let rows = processor_use(&analyzed.machine, used);
    let mut report = report("processors", &analyzed);
    report.fact(INTERVAL, Cell::micros(Some(used.interval())));
    let millis = used.interval() as f64 / 1e4;
    let count = plural(rows.len() as u64, "interval", "intervals");
    report
        .headline
        .push(format!("{count} of {millis} ms by processor"));
    report.add_missing(used.missing());
    report.tables.push(ReportTable::new("", rows));
    args.print(&mut report, analyzed.outcome)
}
