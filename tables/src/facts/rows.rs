//! Tables that are being filled.

use super::Out;
use crate::Result;
use crate::builder::Builder;
use crate::cell::Cell;
use crate::column::Column;
use crate::options::Options;
use crate::row::{Columns, Row};
use crate::tables::Table;

/// A table with its rows so far.
struct Filling {
    table: &'static Table,
    builder: Builder,
}

/// The requested tables.
pub(super) struct Rows<'o> {
    /// The value of the first column.
    trace: String,
    tables: Vec<Filling>,
    out: &'o mut Out<'o>,
    failed: Result<()>,
}

impl<'o> Rows<'o> {
    pub fn new(tables: &[&'static Table], options: &Options, out: &'o mut Out<'o>) -> Result<Self> {
        let mut open = Vec::new();
        for table in tables {
            let slots = table.slots();
            let requested = options.requested(table.name, &slots)?;
            let builder = Builder::new(&slots, &requested, options.bounds);
            open.push(Filling { table, builder });
        }
        Ok(Rows {
            trace: options.trace.clone(),
            tables: open,
            out,
            failed: Ok(()),
        })
    }

    /// Whether the table with these rows is requested.
    pub fn wants<R: Row>(&self) -> bool {
        self.wants_table(R::NAME)
    }

    /// Whether the table with a name is requested.
    pub fn wants_table(&self, name: &str) -> bool {
        self.tables.iter().any(|open| open.table.name == name)
    }

    /// Adds a row to its table, if that is requested.
    pub fn add<R: Row>(&mut self, row: &R) {
        let Rows {
            trace,
            tables,
            out,
            failed,
        } = self;
        let Some(open) = tables.iter_mut().find(|open| open.table.name == R::NAME) else {
            return;
        };
        if failed.is_err() {
            return;
        }
        open.builder.set(0, Cell::Text(trace));
        R::columns(&mut Values {
            row,
            builder: &mut open.builder,
            index: 1,
        });
        if open.builder.end_row() {
            let batch = open.builder.take().map_err(Into::into);
            *failed = batch.and_then(|batch| out(open.table, batch));
        }
    }

    /// Adds rows to their table, if that is requested.
    pub fn add_all<R: Row>(&mut self, rows: impl IntoIterator<Item = R>) {
        if self.wants::<R>() {
            for row in rows {
                self.add(&row);
            }
        }
    }

    /// Passes the last batches to the output.
    pub fn finish(self) -> Result<()> {
        let Rows {
            tables,
            out,
            failed,
            ..
        } = self;
        failed?;
        for mut open in tables {
            if open.builder.len() > 0 {
                out(open.table, open.builder.take()?)?;
            }
        }
        Ok(())
    }
}

/// Sets the values of a row, column by column.
struct Values<'b, 'r, R> {
    row: &'r R,
    builder: &'b mut Builder,
    /// The index of the next column.
    index: usize,
}

impl<R> Columns<R> for Values<'_, '_, R> {
    #[inline]
    fn add(&mut self, _: Column, value: impl for<'r> Fn(&'r R) -> Cell<'r>) {
        if self.builder.wants(self.index) {
            self.builder.set(self.index, value(self.row));
        }
        self.index += 1;
    }
}
