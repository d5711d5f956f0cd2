//! Comparisons of two reports: the sums of their rows by key, and how they changed.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::cell::Cell;
use crate::column::{Column, Comparing, Style};

/// How two tables of the same rows are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The name of the comparison: `KIND.compare.MEMBER`.
    pub name: &'static str,
    /// The heading of the number of rows with the same key; empty if rows are sums already.
    pub counted: &'static str,
    /// The sum whose growth orders the rows.
    pub largest: &'static str,
}

/// The number of rows with the same key.
const COUNT: Column =
    Column::count("count", "How many").sum("count_delta", "count_before", "count_after");

/// Programs that have another name in the later recording.
///
/// ```
/// use etl_tables::comparison::Renames;
///
/// let mut renames = Renames::default();
/// renames.add("Shop", "Orders");
/// assert_eq!(renames.new_name("shop.exe"), "Orders.exe");
/// assert_eq!(renames.new_name("Shopping.exe"), "Shopping.exe");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Renames {
    list: Vec<Rename>,
}

/// The names of a program, in lower case the old one.
#[derive(Clone, Debug)]
struct Rename {
    old: String,
    new: String,
}

impl Renames {
    /// Adds a program with its old and its new name, with or without the extension of the file.
    pub fn add(&mut self, old: &str, new: &str) {
        self.list.push(Rename {
            old: old.to_lowercase(),
            new: new.to_owned(),
        });
    }

    /// The new name of a file of a program; the same name if it has no other.
    #[must_use]
    pub fn new_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        if self.list.is_empty() {
            return Cow::Borrowed(name);
        }
        let lower = name.to_lowercase();
        for Rename { old, new } in &self.list {
            if lower == *old {
                return Cow::Owned(new.clone());
            }
            let Some(extension) = lower.strip_prefix(old.as_str()) else {
                continue;
            };
            if matches!(extension, ".exe" | ".dll") {
                return Cow::Owned(format!("{new}{extension}"));
            }
        }
        Cow::Borrowed(name)
    }
}

/// A value of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum KeyValue {
    Null,
    Int(i64),
    Text(String),
}

impl KeyValue {
    fn of(cell: Cell<'_>) -> Self {
        let text = match cell {
            Cell::Int(number) => return KeyValue::Int(number),
            Cell::Text(text) => text,
            // Ids of processes differ in each recording.
            Cell::Label(label) => label.value(),
            _ => "",
        };
        if text.is_empty() {
            return KeyValue::Null;
        }
        KeyValue::Text(text.to_owned())
    }

    fn cell(&self) -> Cell<'_> {
        match self {
            KeyValue::Null => Cell::Null,
            KeyValue::Int(number) => Cell::Int(*number),
            KeyValue::Text(text) => Cell::text(text),
        }
    }
}

/// The sums of the rows with one key.
#[derive(Clone, Debug, Default)]
struct Sums {
    /// The key as it is printed: the first row decides the case of letters.
    shown: Vec<KeyValue>,
    rows: i64,
    /// A value for each summed column; `None` if no row has one.
    values: Vec<Option<i64>>,
}

/// The sums of a table by its keys.
#[derive(Clone, Debug)]
pub struct TableSums {
    compared: Compared,
    title: String,
    /// The columns of the table that are compared.
    columns: Vec<Column>,
    sums: BTreeMap<Vec<KeyValue>, Sums>,
}

impl TableSums {
    /// A table with these columns, without rows.
    pub(crate) fn new(compared: Compared, title: &str, mut columns: Vec<Column>) -> Self {
        columns.retain(|column| column.comparing != Comparing::Nothing);
        TableSums {
            compared,
            title: title.to_owned(),
            columns,
            sums: BTreeMap::new(),
        }
    }

    /// Begins a row.
    pub(crate) fn row<'a>(&'a mut self, renames: &'a Renames) -> AddedRow<'a> {
        AddedRow {
            table: self,
            renames,
            key: Vec::new(),
            sums: Sums::default(),
        }
    }

    /// The changes since an earlier recording, the largest growth first. With a scale, the sums of
    /// the earlier recording are multiplied with it.
    #[must_use]
    pub fn since(self, earlier: TableSums, scale: Option<Scale>) -> Changes {
        let mut rows: BTreeMap<Vec<KeyValue>, ChangeRow> = BTreeMap::new();
        let absent = vec![Some(0); self.summed().count()];
        for (key, sums) in self.sums {
            rows.insert(
                key,
                ChangeRow {
                    key: sums.shown,
                    rows_before: 0,
                    rows_after: sums.rows,
                    before: absent.clone(),
                    after: sums.values,
                },
            );
        }
        for (key, mut sums) in earlier.sums {
            if let Some(scale) = scale {
                sums.scale(scale);
            }
            match rows.entry(key) {
                Entry::Occupied(mut row) => {
                    row.get_mut().rows_before = sums.rows;
                    row.get_mut().before = sums.values;
                }
                Entry::Vacant(place) => {
                    place.insert(ChangeRow {
                        key: sums.shown,
                        rows_before: sums.rows,
                        rows_after: 0,
                        before: sums.values,
                        after: absent.clone(),
                    });
                }
            }
        }
        let mut changes = Changes {
            name: self.compared.name,
            title: self.title,
            columns: change_columns(self.compared, &self.columns),
            compared: self.compared,
            of: self.columns,
            rows: rows.into_values().collect(),
        };
        changes.sort();
        changes
    }

    /// The summed columns.
    fn summed(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| is_sum(column))
    }
}

fn is_sum(column: &Column) -> bool {
    matches!(column.comparing, Comparing::Sum(_))
}

/// A row that is added to a [`TableSums`].
#[derive(Debug)]
pub(crate) struct AddedRow<'a> {
    table: &'a mut TableSums,
    renames: &'a Renames,
    key: Vec<KeyValue>,
    sums: Sums,
}

impl AddedRow<'_> {
    /// Adds a value of the row.
    pub fn value(&mut self, column: &Column, cell: Cell<'_>) {
        match column.comparing {
            Comparing::Nothing => {}
            Comparing::Key => {
                let value = KeyValue::of(cell);
                self.key.push(value.clone());
                self.sums.shown.push(value);
            }
            Comparing::KeyOfAnyCase => {
                let mut value = KeyValue::of(cell);
                if let KeyValue::Text(name) = &mut value {
                    *name = self.renames.new_name(name).into_owned();
                }
                self.key.push(match &value {
                    KeyValue::Text(name) => KeyValue::Text(name.to_lowercase()),
                    other => other.clone(),
                });
                self.sums.shown.push(value);
            }
            Comparing::Sum(_) => self.sums.values.push(whole(cell)),
        }
    }

    /// Ends the row.
    pub fn add(self) {
        let AddedRow {
            table, key, sums, ..
        } = self;
        match table.sums.entry(key) {
            Entry::Vacant(place) => {
                place.insert(Sums { rows: 1, ..sums });
            }
            Entry::Occupied(mut place) => place.get_mut().add(&sums),
        }
    }
}

/// A number as a whole number: of 100 ns if it is a duration in microseconds.
fn whole(cell: Cell<'_>) -> Option<i64> {
    match cell {
        Cell::Int(number) => Some(number),
        Cell::Float(micros) => Some((micros * 10.0).round() as i64),
        _ => None,
    }
}

impl Sums {
    fn add(&mut self, row: &Sums) {
        self.rows += 1;
        for (sum, value) in self.values.iter_mut().zip(&row.values) {
            if let Some(value) = value {
                *sum = Some(sum.unwrap_or(0).saturating_add(*value));
            }
        }
    }

    fn scale(&mut self, scale: Scale) {
        self.rows = scale.apply(self.rows);
        for value in self.values.iter_mut().flatten() {
            *value = scale.apply(*value);
        }
    }
}

/// Lengths of two recordings, to compare what happened in the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Length of the earlier recording.
    pub before: u64,
    /// Length of the later recording, in the same unit.
    pub after: u64,
}

impl Scale {
    fn apply(self, value: i64) -> i64 {
        let before = i128::from(self.before);
        let product = i128::from(value) * i128::from(self.after);
        // Half of the divisor rounds.
        let scaled = (product + before / 2).checked_div(before).unwrap_or(0);
        i64::try_from(scaled).unwrap_or(i64::MAX)
    }
}

/// How the sums of a table changed.
#[derive(Clone, Debug)]
pub struct Changes {
    pub(crate) name: &'static str,
    pub(crate) title: String,
    pub(crate) columns: Vec<Column>,
    compared: Compared,
    /// The compared columns of the table.
    of: Vec<Column>,
    rows: Vec<ChangeRow>,
}

/// The sums of both recordings with one key.
#[derive(Clone, Debug)]
struct ChangeRow {
    key: Vec<KeyValue>,
    rows_before: i64,
    rows_after: i64,
    before: Vec<Option<i64>>,
    after: Vec<Option<i64>>,
}

impl ChangeRow {
    /// The growth of a sum; `None` if one of the recordings has no value.
    fn growth(&self, sum: usize) -> Option<i64> {
        let after = (*self.after.get(sum)?)?;
        let before = (*self.before.get(sum)?)?;
        Some(after.saturating_sub(before))
    }
}

impl Changes {
    /// Puts the largest growth first, then the largest sums.
    fn sort(&mut self) {
        let mut summed = self.of.iter().filter(|column| is_sum(column));
        let largest = summed.position(|column| column.name == self.compared.largest);
        let largest = largest.unwrap_or(0);
        self.rows.sort_by_cached_key(|row| {
            let growth = row.growth(largest);
            let rows = row.rows_after.saturating_sub(row.rows_before);
            let others: Vec<_> = (0..row.after.len()).map(|sum| row.growth(sum)).collect();
            let after = row.after.get(largest).copied().flatten();
            Reverse((growth, rows, others, after, Reverse(row.key.clone())))
        });
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Passes the values of a row to a function, each with its column.
    pub(crate) fn visit(&self, row: usize, use_value: &mut dyn FnMut(Column, Cell<'_>)) {
        let Some(row) = self.rows.get(row) else {
            return;
        };
        let mut cells: Vec<Cell<'_>> = Vec::new();
        let mut keys = row.key.iter();
        let mut sum = 0;
        for column in &self.of {
            if !is_sum(column) {
                cells.push(keys.next().map_or(Cell::Null, KeyValue::cell));
                continue;
            }
            if sum == 0 && !self.compared.counted.is_empty() {
                let growth = row.rows_after.saturating_sub(row.rows_before);
                cells.push(Cell::Int(growth));
                cells.push(Cell::Int(row.rows_before));
                cells.push(Cell::Int(row.rows_after));
            }
            cells.push(number(column, row.growth(sum)));
            cells.push(number(column, row.before.get(sum).copied().flatten()));
            cells.push(number(column, row.after.get(sum).copied().flatten()));
            sum += 1;
        }
        for (column, cell) in self.columns.iter().zip(cells) {
            use_value(*column, cell);
        }
    }
}

/// A whole number in the unit of its column.
fn number(column: &Column, value: Option<i64>) -> Cell<'static> {
    match value {
        Some(tenths) if column.unit == "µs" => Cell::Float(tenths as f64 / 10.0),
        Some(number) => Cell::Int(number),
        None => Cell::Null,
    }
}

/// The columns of a comparison of tables with these columns.
pub(crate) fn change_columns(compared: Compared, columns: &[Column]) -> Vec<Column> {
    let mut list = Vec::new();
    let mut is_counted = compared.counted.is_empty();
    for column in columns {
        match column.comparing {
            Comparing::Nothing => {}
            Comparing::Key | Comparing::KeyOfAnyCase => list.push(*column),
            Comparing::Sum(_) => {
                if !is_counted {
                    is_counted = true;
                    add_changes(&mut list, COUNT.heading(compared.counted), true);
                }
                let is_largest = column.name == compared.largest;
                add_changes(&mut list, *column, is_largest);
            }
        }
    }
    list
}

/// Adds the columns of a sum. Text has the growth, and of the sum that orders the rows all three.
fn add_changes(list: &mut Vec<Column>, column: Column, has_sums: bool) {
    let Comparing::Sum(names) = column.comparing else {
        return;
    };
    let column = Column {
        comparing: Comparing::Nothing,
        ..column
    };
    let has_sums = has_sums && !column.heading.is_empty();
    let heading_before = if has_sums { "before" } else { "" };
    let heading_after = if has_sums { "after" } else { "" };
    let growth = Column {
        name: names.delta,
        ..column
    };
    let before = Column {
        name: names.before,
        ..column
    };
    let after = Column {
        name: names.after,
        ..column
    };
    list.push(growth.style(Style::Signed));
    list.push(before.heading(heading_before));
    list.push(after.heading(heading_after));
}
