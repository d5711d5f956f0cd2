//! Tables that are being filled.

use etl_analysis::machine::Process;
use etl_format::Clock;

use super::Out;
use crate::Result;
use crate::builder::{Builder, Cell};
use crate::events::micros;
use crate::options::Options;
use crate::schema::Slot;
use crate::tables::Table;

/// The tables that are wanted, with their rows so far.
pub(super) struct Rows<'o> {
    tables: Vec<(&'static Table, Builder)>,
    out: &'o mut Out<'o>,
    failed: Result<()>,
}

impl<'o> Rows<'o> {
    pub fn new(tables: &[&'static Table], options: &Options, out: &'o mut Out<'o>) -> Result<Self> {
        let mut open = Vec::new();
        for table in tables {
            let wanted = options.wanted(table.name, table.columns)?;
            let slots: Vec<Slot> = table.columns.iter().map(Slot::from).collect();
            open.push((*table, Builder::new(&slots, &wanted, options.bounds)));
        }
        Ok(Rows { tables: open, out, failed: Ok(()) })
    }

    /// Whether a table is wanted.
    pub fn wants(&self, table: &Table) -> bool {
        self.tables.iter().any(|(known, _)| known.name == table.name)
    }

    /// Adds a row to a table, if that is wanted.
    pub fn add(&mut self, table: &Table, cells: &[Cell<'_>]) {
        let Rows { tables, out, failed } = self;
        let open = tables.iter_mut().find(|(known, _)| known.name == table.name);
        if let Some((table, builder)) = open
            && failed.is_ok()
            && builder.row(cells)
        {
            *failed = builder.take().map_err(Into::into).and_then(|batch| out(table, batch));
        }
    }

    /// Passes the last batches on.
    pub fn finish(self) -> Result<()> {
        let Rows { tables, out, failed } = self;
        failed?;
        for (table, mut builder) in tables {
            if builder.len() > 0 {
                out(table, builder.take()?)?;
            }
        }
        Ok(())
    }
}

/// A time in ticks as microseconds.
pub(super) fn time<'a>(clock: &Clock, ticks: Option<i64>) -> Cell<'a> {
    ticks.map_or(Cell::Null, |ticks| Cell::Int(micros(clock.filetime(ticks))))
}

/// The file name of a path.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().unwrap_or_default()
}

/// Whether the filter admits rows of a process, a thread and a time.
pub(super) fn admits(options: &Options, pid: Option<u32>, tid: Option<u32>, time: i64) -> bool {
    let filter = &options.filter;
    has_process(options, pid.map(|pid| (pid, time)))
        && (filter.threads.is_empty() || tid.is_none_or(|tid| filter.threads.contains(&tid)))
        && filter.from.is_none_or(|from| from <= time)
        && filter.to.is_none_or(|to| time < to)
}

/// Whether the filter admits rows of a process, at whatever time.
pub(super) fn admits_process(options: &Options, process: Option<&Process>) -> bool {
    // The id may be that of other processes before and after it.
    let start = |process: &Process| (process.pid(), process.started().unwrap_or(i64::MIN));
    has_process(options, process.map(start))
}

fn has_process(options: &Options, owner: Option<(u32, i64)>) -> bool {
    let filter = &options.filter;
    let any = filter.processes.is_empty() && filter.lives.is_empty();
    any || owner
        .is_some_and(|(pid, time)| filter.processes.contains(&pid) || filter.lives.has(pid, time))
}
