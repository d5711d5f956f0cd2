//! `etlkit analyze allocations`: who allocates on the garbage collected heap.

use etl_analysis::behavior::allocations::{AllocationSource, Allocations, StackedAllocations};
use etl_format::TimeRange;
use etl_tables::rows::allocations::{
    AllocationRow, allocation_seconds, allocations as type_rows, large_objects, pinned_objects,
    survivors,
};
use etl_tables::{Cell, Column, Report, ReportTable};

use super::compare::{self, ComparableArgs, ReportKind};
use super::waits::StackArgs;
use super::{cpu, report};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::output;
use crate::profile::Profiled;
use crate::recording::Analyzed;

/// Memory for the row of a large object, with its type.
const ROW_BYTES: u64 = 256;

const BYTES: Column = Column::bytes("bytes", "Bytes that the allocation ticks state");

/// Arguments of `etlkit analyze allocations`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    stacks: StackArgs,
    #[command(flatten)]
    comparable: ComparableArgs,
}

/// Prints what processes allocated by type, large objects, survivors and pinned objects; or
/// allocations by their stacks.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.stacks.is_empty() {
        args.comparable.report.of_any_thread()?;
        let args = &args.comparable;
        return compare::print(&ByType { args });
    }
    let report_args = &args.comparable.report;
    let recording = &report_args.recording;
    let Profiled { analyzed, profile } = args.stacks.profile_of(
        recording,
        |range| StackedAllocations::new().within(range),
        |observer| observer.profile_bytes(),
        StackedAllocations::profile,
    )?;
    let mut report = report("allocations", &analyzed);
    let total = profile.total();
    report.fact(BYTES, Cell::int(Some(profile.size(total))));
    let events = plural(total.samples, "allocation event", "allocation events");
    let bytes = output::size(profile.size(total));
    let stacks = plural(profile.with_stack(), "event", "events");
    report.headline.push(format!(
        "{events}, {bytes}; stacks for {stacks} of all processes"
    ));
    report.add_missing(analyzed.observer.allocations().missing());
    cpu::add_unnamed(&mut report, &profile, &args.stacks.symbols);
    report.tables.push(args.stacks.table(&profile)?);
    report_args.print(&mut report, analyzed.outcome)
}

/// Allocations by type.
struct ByType<'a> {
    args: &'a ComparableArgs,
}

impl ReportKind for ByType<'_> {
    type Observer = Allocations;

    fn args(&self) -> &ComparableArgs {
        self.args
    }

    fn observer(&self) -> Result<Allocations, Failure> {
        Ok(Allocations::new())
    }

    fn within(observer: Allocations, range: TimeRange) -> Allocations {
        observer.within(range)
    }

    fn report<'a>(&self, analyzed: &'a Analyzed<Allocations>) -> Result<Report<'a>, Failure> {
        let machine = &analyzed.machine;
        let observed = &analyzed.observer;
        let large = observed.large_objects().len() as u64;
        analyzed.ensure_memory(large.saturating_mul(ROW_BYTES))?;
        let selection = self.args.report.selection(analyzed);
        let types = type_rows(machine, observed, &selection);
        let mut report = report("allocations", analyzed);
        let ticks = bytes_of(&types, AllocationSource::Tick);
        report.fact(BYTES, Cell::int(Some(ticks)));
        let bytes = output::size(ticks);
        report.headline.push(format!("{bytes} by allocation ticks"));
        let sampled = bytes_of(&types, AllocationSource::Sampled);
        if sampled > 0 {
            let bytes = output::size(sampled);
            report
                .headline
                .push(format!("{bytes} by samples of objects"));
        }
        let random = bytes_of(&types, AllocationSource::Random);
        if random > 0 {
            let bytes = output::size(random);
            report
                .headline
                .push(format!("about {bytes} by random samples of objects"));
        }
        report.add_missing(observed.missing());
        let large = large_objects(machine, observed, &selection);
        let seconds = allocation_seconds(machine, observed, &selection);
        let survivors = survivors(machine, observed, &selection);
        let pinned = pinned_objects(machine, observed, &selection);
        report.tables.push(ReportTable::new("by type", types));
        report.tables.push(ReportTable::new("large objects", large));
        report.tables.push(ReportTable::new("by second", seconds));
        report
            .tables
            .push(ReportTable::new("survivors of collections", survivors));
        report
            .tables
            .push(ReportTable::new("pinned objects", pinned));
        Ok(report)
    }
}

/// The bytes of the rows of a kind of events.
fn bytes_of(rows: &[AllocationRow<'_>], source: AllocationSource) -> u64 {
    let mut bytes = 0u64;
    for row in rows {
        if row.key().source == source {
            bytes = bytes.saturating_add(row.bytes());
        }
    }
    bytes
}
