//! Losses.

use etl_analysis::Machine;
use etl_analysis::loss::{Loss, LossKind};

use super::CPU;
use crate::cell::Cell;
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};

/// A row of `losses`.
#[derive(Clone, Debug)]
pub struct LossRow<'m> {
    machine: &'m Machine,
    loss: &'m Loss,
}

impl Row for LossRow<'_> {
    const NAME: &'static str = "losses";
    const ROW: &'static str = "One loss";
    const ABOUT: &'static str = "`verify` reports the same losses: what may be missing, and where. The \
        numbers of events and buffers that the header counts as lost are in `traces`.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const KIND: Column = Column::new(
            "kind",
            Kind::Word,
            "`events_lost`, `buffers_lost`, `file_damaged`, `end_missing` or `overwritten`",
        );
        columns.add(KIND, |row| Cell::Text(word(row.loss.what)));
        columns.add(
            Column::time("from", "Since when; null for the beginning").or_null(),
            |row| Cell::time(row.machine.clock(), row.loss.from),
        );
        columns.add(
            Column::time("to", "Until when; null for the end").or_null(),
            |row| Cell::time(row.machine.clock(), row.loss.to),
        );
        columns.add(
            CPU.meaning("Processor; null if it is not known").or_null(),
            |row| Cell::int(row.loss.processor),
        );
    }
}

/// The word for a loss, as the JSON of reports has it.
const fn word(kind: LossKind) -> &'static str {
    match kind {
        LossKind::EventsLost => "events_lost",
        LossKind::BuffersLost => "buffers_lost",
        LossKind::FileDamaged => "file_damaged",
        LossKind::EndMissing => "end_missing",
        LossKind::Overwritten => "overwritten",
        _ => "other",
    }
}

/// A row for each loss of a recording.
pub fn losses(machine: &Machine) -> impl Iterator<Item = LossRow<'_>> {
    machine
        .losses()
        .iter()
        .map(move |loss| LossRow { machine, loss })
}
