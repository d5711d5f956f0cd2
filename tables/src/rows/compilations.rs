//! Methods that were compiled at run time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use etl_analysis::behavior::Distribution;
use etl_analysis::behavior::compilations::{Compilation, Compilations};
use etl_analysis::{Machine, ProcessIndex};

use super::{
    Durations, HasDurations, OfProcess, TID, add_durations, add_process, process_label, ticks,
};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind, Style};
use crate::comparison::Compared;
use crate::row::{Columns, Row};
use crate::selection::Selection;

/// A row of `compilations`.
#[derive(Clone, Debug)]
pub struct CompilationRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    compilation: &'m Compilation,
}

impl OfProcess for CompilationRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for CompilationRow<'_> {
    const NAME: &'static str = "compilations";
    const ROW: &'static str = "One method that was compiled at run time, the slowest first";
    const ABOUT: &'static str = "`analyze jit` prints the same rows.";
    const COMPARED: Option<Compared> = Some(Compared {
        name: "jit.compare.compilations",
        counted: "compiled",
        largest: "duration_us",
    });

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const DURATION: Column = Column::micros(
            "duration_us",
            "How long it took; null if its start was not recorded",
        )
        .sum(
            "duration_delta_us",
            "duration_before_us",
            "duration_after_us",
        );
        const TIER: Column = Column::new("tier", Kind::Word, "Optimization tier");
        const IL: Column = Column::bytes("il_bytes", "Size of its IL").style(Style::Plain);
        const CODE: Column = Column::bytes("code_bytes", "Size of its code")
            .sum("code_delta_bytes", "code_before_bytes", "code_after_bytes")
            .style(Style::Plain);
        const METHOD: Column = Column::new("method", Kind::Text, "Type and method").key();
        add_process(columns);
        columns.add(DURATION.or_null().heading("ms"), |row| {
            Cell::micros(row.duration())
        });
        columns.add(TIER.or_null().heading("tier"), |row| {
            Cell::text(row.compilation.tier_name())
        });
        columns.add(IL.or_null().heading("IL"), |row| {
            Cell::int(row.compilation.il_size)
        });
        columns.add(CODE.heading("code"), |row| {
            Cell::int(Some(row.compilation.code_size))
        });
        columns.add(
            Column::time("loaded", "When its code was loaded").heading("time"),
            |row| Cell::time(row.machine.clock(), Some(row.compilation.loaded)),
        );
        columns.add(TID.heading("tid"), |row| Cell::int(row.compilation.tid));
        columns.add(METHOD.or_null().heading("method"), |row| {
            Cell::text(&row.compilation.method)
        });
    }
}

impl CompilationRow<'_> {
    /// How long it took, in 100 ns; `None` if its start was not recorded.
    #[must_use]
    pub fn duration(&self) -> Option<u64> {
        let duration = self.compilation.duration?;
        Some(ticks(self.machine.clock(), duration))
    }
}

/// A row for each selected compilation, the slowest first.
#[must_use]
pub fn compilations<'m>(
    machine: &'m Machine,
    compilations: &'m Compilations,
    selection: &Selection,
) -> Vec<CompilationRow<'m>> {
    let mut rows = Vec::new();
    for compilation in compilations.list() {
        let process = Some(compilation.process);
        if selection.has_process(process) && selection.has_thread(compilation.tid) {
            rows.push(CompilationRow {
                machine,
                process: process_label(machine, process),
                compilation,
            });
        }
    }
    rows.sort_by_key(|row| (Reverse(row.compilation.duration), row.compilation.loaded));
    rows
}

/// A row of the sums of `analyze jit`.
#[derive(Clone, Debug)]
pub struct CompilationProcessRow<'m> {
    process: Label<'m>,
    methods: u64,
    durations: Durations,
}

impl OfProcess for CompilationProcessRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl HasDurations for CompilationProcessRow<'_> {
    fn durations(&self) -> &Durations {
        &self.durations
    }
}

impl Row for CompilationProcessRow<'_> {
    const NAME: &'static str = "jit.processes";
    const ROW: &'static str = "The compilations of one process";
    const COMPARED: Option<Compared> = Some(Compared {
        name: "jit.compare.processes",
        counted: "",
        largest: "total_us",
    });

    fn columns<C: Columns<Self>>(columns: &mut C) {
        add_process(columns);
        columns.add(
            Column::count("methods", "Compiled methods")
                .sum("methods_delta", "methods_before", "methods_after")
                .heading("methods"),
            |row| Cell::int(Some(row.methods)),
        );
        add_durations(columns);
    }
}

/// The sums of rows by process.
#[must_use]
pub fn compilation_processes<'m>(
    machine: &'m Machine,
    rows: &[CompilationRow<'m>],
) -> Vec<CompilationProcessRow<'m>> {
    let mut by_process: BTreeMap<ProcessIndex, Vec<&CompilationRow<'m>>> = BTreeMap::new();
    for row in rows {
        by_process
            .entry(row.compilation.process)
            .or_default()
            .push(row);
    }
    let mut sums = Vec::new();
    for (process, rows) in by_process {
        let durations = Distribution::new(rows.iter().filter_map(|row| row.duration()));
        sums.push(CompilationProcessRow {
            process: process_label(machine, Some(process)),
            methods: rows.len() as u64,
            durations: Durations::of_distribution(&durations),
        });
    }
    sums
}
