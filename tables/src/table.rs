//! Tables as data.

use std::fmt;

use crate::column::{Column, Kind};
use crate::comparison::change_columns;
use crate::row::{Row, columns_of};

/// The first column of every table of a data set.
pub(crate) const TRACE: Column = Column::new(
    "trace",
    Kind::Word,
    "Name of the trace: the name of its file without the folder",
);

/// A table with columns that are the same for every trace.
///
/// ```
/// use etl_tables::Table;
///
/// let table = Table::named("gcs").unwrap();
/// let columns = table.columns();
/// assert!(columns.iter().any(|column| column.name == "heap_bytes" && column.unit == "bytes"));
/// assert!(Table::named("GCS").is_none());
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Table {
    /// The name that readers, commands and folders of data sets use.
    pub name: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// A remark on the rows; may be empty.
    pub about: &'static str,
    list: fn() -> Vec<Column>,
}

impl Table {
    /// The table with these rows.
    #[must_use]
    pub const fn of<R: Row>() -> Self {
        Table {
            name: R::NAME,
            row: R::ROW,
            about: R::ABOUT,
            list: columns_of::<R>,
        }
    }

    /// The comparison of two tables with these rows, which have to be comparable.
    pub(crate) const fn of_changes<R: Row>() -> Self {
        Table {
            name: match R::COMPARED {
                Some(compared) => compared.name,
                None => "",
            },
            row: "The sums of the rows with the same key, in two recordings",
            about: "`_before` is the sum in the earlier recording, `_after` in the later one, and \
                    `_delta` the difference.",
            list: changes_of::<R>,
        }
    }

    /// A table whose columns are listed without the values of rows.
    pub(crate) const fn listed(
        name: &'static str,
        row: &'static str,
        about: &'static str,
        list: fn() -> Vec<Column>,
    ) -> Self {
        Table {
            name,
            row,
            about,
            list,
        }
    }

    /// Its columns, without `trace`, the first column of each table of a data set.
    #[must_use]
    pub fn columns(&self) -> Vec<Column> {
        (self.list)()
    }

    /// Its columns in Arrow and Parquet: `trace` and [`Table::columns`].
    #[must_use]
    pub fn data_set_columns(&self) -> Vec<Column> {
        let mut columns = vec![TRACE];
        columns.extend(self.columns());
        columns
    }
}

/// The columns of the comparison of two tables with these rows.
fn changes_of<R: Row>() -> Vec<Column> {
    match R::COMPARED {
        Some(compared) => change_columns(compared, &columns_of::<R>()),
        None => Vec::new(),
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Table").field(&self.name).finish()
    }
}
