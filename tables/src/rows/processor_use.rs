//! The use of processors over time.

use etl_analysis::behavior::processors::{Place, ProcessorUse, Used};
use etl_analysis::{Interrupt, Machine};
use etl_format::TimeRange;

use super::{CPU, duration};
use crate::cell::Cell;
use crate::column::Column;
use crate::row::{Columns, Row};

/// A row of `processor_use`.
#[derive(Clone, Debug)]
pub struct ProcessorUseRow<'m> {
    machine: &'m Machine,
    place: Place,
    span: TimeRange,
    used: Used,
    dpc: Option<f64>,
    isr: Option<f64>,
}

impl Row for ProcessorUseRow<'_> {
    const NAME: &'static str = "processor_use";
    const ROW: &'static str = "What one processor did in one interval";
    const ABOUT: &'static str = "`analyze processors` prints the same rows, and has a choice of \
        intervals; in a data set they last a second. Shares come from context switches and from \
        events of DPCs and ISRs, or else from samples.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const FROM: Column = Column::time("interval_start", "The start of the interval");
        const LENGTH: Column = Column::micros("interval_us", "Its recorded length");
        const BUSY: Column = Column::percent(
            "busy_percent",
            "Share in which threads, DPCs or ISRs ran; null if neither context switches nor \
             samples say it",
        );
        const DPC: Column = Column::percent(
            "dpc_percent",
            "Share in which DPCs ran, without the ISRs that interrupted them",
        );
        const ISR: Column = Column::percent("isr_percent", "Share in which ISRs ran");
        const SAMPLES: Column = Column::count("samples", "Samples of the processor");
        columns.add(FROM.heading("from"), |row| {
            Cell::time(row.machine.clock(), row.span.from)
        });
        columns.add(LENGTH.heading("ms"), |row| Cell::micros(row.length()));
        columns.add(CPU.heading("cpu"), |row| {
            Cell::int(Some(row.place.processor))
        });
        columns.add(BUSY.or_null().heading("busy %"), |row| {
            share(row.used.busy())
        });
        columns.add(DPC.or_null().heading("DPC %"), |row| share(row.dpc));
        columns.add(ISR.or_null().heading("ISR %"), |row| share(row.isr));
        columns.add(SAMPLES.heading("samples"), |row| {
            Cell::int(Some(row.used.samples))
        });
    }
}

impl ProcessorUseRow<'_> {
    /// The recorded length of the interval, in 100 ns.
    fn length(&self) -> Option<u64> {
        Some(duration(
            self.machine.clock(),
            self.span.from?,
            self.span.to?,
        ))
    }
}

fn share(share: Option<f64>) -> Cell<'static> {
    share.map_or(Cell::Null, Cell::Share)
}

/// A row for each interval of each processor, in time order.
#[must_use]
pub fn processor_use<'m>(
    machine: &'m Machine,
    processors: &ProcessorUse,
) -> Vec<ProcessorUseRow<'m>> {
    let mut rows = Vec::new();
    for (&place, &used) in processors.list() {
        rows.push(ProcessorUseRow {
            machine,
            place,
            span: processors.span(machine, place.interval),
            used,
            dpc: processors.share_of(machine, place, Interrupt::Dpc),
            isr: processors.share_of(machine, place, Interrupt::Isr),
        });
    }
    rows
}
