//! Findings of the verifier.

use etl_format::Clock;
use etl_verify::Finding;

use super::{CPU, PID, TIME};
use crate::cell::Cell;
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};

/// A row of `findings`.
#[derive(Clone, Copy, Debug)]
pub struct FindingRow<'m> {
    pub(crate) clock: &'m Clock,
    pub(crate) finding: &'m Finding,
}

impl Row for FindingRow<'_> {
    const NAME: &'static str = "findings";
    const ROW: &'static str = "One finding of `verify`";
    const ABOUT: &'static str = "By the policy of `verify` without a configuration.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const SEVERITY: Column =
            Column::new("severity", Kind::Word, "`error`, `warning` or `note`");
        const OUTCOME: Column = Column::new("outcome", Kind::Word, "`broken` or `undecided`");
        const OFFSET: Column = Column::count(
            "offset",
            "Offset in the file of the record that shows it, in bytes",
        );
        columns.add(Column::new("rule", Kind::Word, "Id of the rule"), |row| {
            Cell::Text(row.finding.rule)
        });
        columns.add(SEVERITY, |row| Cell::Text(row.finding.severity.name()));
        columns.add(OUTCOME, |row| Cell::Text(row.finding.outcome.name()));
        columns.add(PID, |row| Cell::int(row.finding.pid));
        columns.add(TIME.or_null(), |row| {
            Cell::time(row.clock, row.finding.timestamp())
        });
        columns.add(
            CPU.meaning("The processor whose buffer shows it").or_null(),
            |row| Cell::int(row.finding.processor),
        );
        columns.add(OFFSET.or_null(), |row| Cell::int(row.finding.offset));
        columns.add(
            Column::new("message", Kind::Text, "What was found"),
            |row| Cell::Text(&row.finding.message),
        );
        columns.add(
            Column::new("because", Kind::Text, "Why it is undecided").or_null(),
            |row| Cell::text(row.finding.because.as_deref().unwrap_or_default()),
        );
    }
}
