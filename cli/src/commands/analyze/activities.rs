//! `etlkit analyze activities`: what starts and stops by events of any provider.

use etl_analysis::behavior::activities::Activities;
use etl_format::TimeRange;
use etl_tables::rows::activities::{activities as activity_rows, operations, sort_by_duration};
use etl_tables::{Report, ReportTable};

use super::compare::{self, ComparableArgs, ReportKind};
use super::report;
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::recording::Analyzed;
use crate::schemas::SchemaArgs;

/// Memory for the row of an activity, with its text in the report.
const ROW_BYTES: u64 = 512;

/// Arguments of `etlkit analyze activities`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Tell activities of one name apart by this field of their start events
    #[arg(long, value_name = "FIELD")]
    by: Option<String>,
    #[command(flatten)]
    schemas: SchemaArgs,
    #[command(flatten)]
    comparable: ComparableArgs,
}

/// Prints activities, and their sums by name.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    compare::print(args)
}

impl ReportKind for Args {
    type Observer = Activities;

    fn args(&self) -> &ComparableArgs {
        &self.comparable
    }

    fn observer(&self) -> Result<Activities, Failure> {
        let input = &self.comparable.report.recording.input;
        let activities = Activities::new(self.schemas.store(input)?);
        Ok(match &self.by {
            Some(field) => activities.by_field(field),
            None => activities,
        })
    }

    fn within(observer: Activities, _: TimeRange) -> Activities {
        observer
    }

    fn report<'a>(&self, analyzed: &'a Analyzed<Activities>) -> Result<Report<'a>, Failure> {
        let args = &self.comparable.report;
        let machine = &analyzed.machine;
        let observed = &analyzed.observer;
        let count = observed.list().len() as u64;
        analyzed.ensure_memory(count.saturating_mul(ROW_BYTES))?;
        let mut rows = activity_rows(machine, observed, &args.selection(analyzed));
        let sums = operations(&rows);
        sort_by_duration(&mut rows);
        let mut report = report("activities", analyzed);
        let count = plural(rows.len() as u64, "activity", "activities");
        let names = plural(sums.len() as u64, "operation", "operations");
        report.headline.push(format!("{count} of {names}"));
        if let Some(field) = &self.by
            && !rows.is_empty()
            && observed.has_no_values()
        {
            let hint = "`etlkit dump` prints the fields of events";
            let message = format!("no start event has a field \"{field}\"");
            return Err(Failure::new("--by", message).hint(hint));
        }
        report.add_missing(observed.missing());
        let mut sums = ReportTable::new("operations", sums);
        let mut list = ReportTable::new("activities", rows);
        if self.by.is_none() {
            sums = sums.without(&["value"]);
            list = list.without(&["value"]);
        }
        report.tables.push(list);
        report.tables.push(sums);
        if args.is_text() {
            report.tables.reverse();
        }
        Ok(report)
    }
}
