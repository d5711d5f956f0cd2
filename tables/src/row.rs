//! Tables as code: a column and the value that a row has in it are declared together.

use crate::cell::Cell;
use crate::column::Column;
use crate::comparison::Compared;

/// A row of a table. The table has the columns that [`Row::columns`] declares, in this order.
///
/// ```
/// use etl_tables::{Cell, Column, Columns, Kind, Row, Table};
///
/// struct Lock {
///     name: String,
///     waits: u64,
/// }
///
/// impl Row for Lock {
///     const NAME: &'static str = "locks";
///     const ROW: &'static str = "One lock";
///
///     fn columns<C: Columns<Self>>(columns: &mut C) {
///         columns.add(Column::new("name", Kind::Text, "Its name"), |row| Cell::text(&row.name));
///         columns.add(Column::count("waits", "Waits for it"), |row| Cell::int(Some(row.waits)));
///     }
/// }
///
/// const LOCKS: Table = Table::of::<Lock>();
/// let names: Vec<&str> = LOCKS.columns().iter().map(|column| column.name).collect();
/// assert_eq!(names, ["name", "waits"]);
/// ```
pub trait Row: Sized {
    /// The name of the table.
    const NAME: &'static str;
    /// What one row is.
    const ROW: &'static str;
    /// A remark on the rows; may be empty.
    const ABOUT: &'static str = "";
    /// How two tables of these rows are compared; `None` if they cannot be.
    const COMPARED: Option<Compared> = None;

    /// Declares the columns, each with the value of a row in it.
    fn columns<C: Columns<Self>>(columns: &mut C);
}

/// Receives the columns of a table: to list them, or to write the values of a row.
pub trait Columns<R> {
    /// Adds a column, with the value that a row has in it.
    fn add(&mut self, column: Column, value: impl for<'r> Fn(&'r R) -> Cell<'r>);
}

/// Lists columns.
#[derive(Debug, Default)]
struct List {
    columns: Vec<Column>,
}

impl<R> Columns<R> for List {
    fn add(&mut self, column: Column, _: impl for<'r> Fn(&'r R) -> Cell<'r>) {
        self.columns.push(column);
    }
}

/// The columns of the table with these rows.
pub(crate) fn columns_of<R: Row>() -> Vec<Column> {
    let mut list = List::default();
    R::columns(&mut list);
    list.columns
}

/// Passes the values of a row to a function, each with its column.
pub(crate) struct Values<'r, R, F> {
    pub row: &'r R,
    pub use_value: F,
}

impl<R, F: FnMut(Column, Cell<'_>)> Columns<R> for Values<'_, R, F> {
    #[inline]
    fn add(&mut self, column: Column, value: impl for<'r> Fn(&'r R) -> Cell<'r>) {
        (self.use_value)(column, value(self.row));
    }
}
