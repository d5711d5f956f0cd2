//! Reports with tables: text for people, JSON and CSV for programs.

use std::fmt::Write;
use std::io;

use etl_analysis::behavior::missing::MissingData;
use etl_events::rows::write_csv_field;
use etl_format::FileTime;
use etl_format::constants::FILETIME_PER_SECOND;
use etl_schema::render::{EscapedJson, one_line};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value, json};

use crate::cell::{Cell, percent};
use crate::column::{Column, Style};
use crate::comparison::{Changes, Compared, Renames, TableSums};
use crate::row::{Row, Values, columns_of};

/// Incremented when a member of the JSON changes its meaning or is removed.
pub const REPORT_VERSION: u32 = 3;

/// A report about a recording: facts, and tables.
///
/// ```
/// use etl_tables::{Cell, Column, Columns, Kind, Report, ReportTable, Row};
///
/// struct Lock {
///     name: &'static str,
///     wait: u64,
/// }
///
/// impl Row for Lock {
///     const NAME: &'static str = "locks";
///     const ROW: &'static str = "One lock";
///
///     fn columns<C: Columns<Self>>(columns: &mut C) {
///         let name = Column::new("name", Kind::Text, "Its name").heading("lock");
///         let wait = Column::micros("wait_us", "Time of the waits").heading("waited ms");
///         columns.add(name, |row| Cell::text(row.name));
///         columns.add(wait, |row| Cell::micros(Some(row.wait)));
///     }
/// }
///
/// let mut report = Report::new("locks");
/// report.headline.push("2 locks".to_owned());
/// let rows = vec![Lock { name: "cart", wait: 15_000 }, Lock { name: "orders", wait: 5 }];
/// report.tables.push(ReportTable::new("", rows));
///
/// assert_eq!(report.csv(None), "name,wait_us\ncart,1500.0\norders,0.5\n");
/// assert_eq!(report.json(Some(1))["locks"][0]["wait_us"], 1500.0);
/// let rows = "  lock    waited ms\n  cart        1.500\n  orders      0.001\n";
/// assert_eq!(report.text(None), format!("  2 locks\n\n{rows}"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Report<'r> {
    /// The kind of report.
    pub kind: &'static str,
    /// Names of the files.
    pub files: Vec<String>,
    /// Start of the recording. Text has seconds since this time.
    pub start: FileTime,
    facts: Vec<Fact>,
    /// Lines above the tables in text.
    pub headline: Vec<String>,
    /// The tables. CSV has the first one.
    pub tables: Vec<ReportTable<'r>>,
    /// What is missing from the recording, and what would have recorded it.
    pub missing: Vec<String>,
    /// Heading of what is missing in text.
    pub missing_heading: &'static str,
}

/// A member of the JSON.
#[derive(Clone, Debug, PartialEq)]
struct Fact {
    name: &'static str,
    value: Value,
}

impl<'r> Report<'r> {
    /// A report without files, facts and tables.
    #[must_use]
    pub fn new(kind: &'static str) -> Self {
        Report {
            kind,
            files: Vec::new(),
            start: FileTime::default(),
            facts: Vec::new(),
            headline: Vec::new(),
            tables: Vec::new(),
            missing: Vec::new(),
            missing_heading: "missing",
        }
    }

    /// Adds a member to the JSON.
    pub fn fact(&mut self, column: Column, value: Cell<'_>) {
        self.facts.push(Fact {
            name: column.name,
            value: json_value(&column, value),
        });
    }

    /// Adds data that the recording lacks.
    pub fn add_missing(&mut self, missing: impl IntoIterator<Item = MissingData>) {
        self.missing
            .extend(missing.into_iter().map(|missing| missing.to_string()));
    }

    /// The sums of the tables that can be compared. Programs have their new names.
    #[must_use]
    pub fn sums(&self, renames: &Renames) -> Vec<TableSums> {
        let tables = self.tables.iter();
        tables.filter_map(|table| table.sums(renames)).collect()
    }

    /// The report as JSON with the first `top` rows of each table, `None` for all.
    #[must_use]
    pub fn json(&self, top: Option<usize>) -> Value {
        // Strings, numbers and lists are all there is, so this does not fail.
        serde_json::to_value(JsonReport { report: self, top }).unwrap_or_default()
    }

    /// Writes the same as indented JSON, row by row. Characters on which a terminal could act are
    /// escaped.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_json(&self, top: Option<usize>, out: impl io::Write) -> io::Result<()> {
        let mut json = serde_json::Serializer::pretty(EscapedJson::new(out));
        let report = JsonReport { report: self, top };
        report.serialize(&mut json).map_err(io::Error::from)?;
        json.into_inner().into_inner().write_all(b"\n")
    }

    /// The first table as comma-separated values with its first `top` rows, `None` for all.
    #[must_use]
    pub fn csv(&self, top: Option<usize>) -> String {
        let mut out = Vec::new();
        // Writing to memory does not fail.
        let _ = self.write_csv(top, &mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    /// Writes the same row by row.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_csv(&self, top: Option<usize>, out: impl io::Write) -> io::Result<()> {
        match self.tables.first() {
            Some(table) => table.write_csv(top, out),
            None => Ok(()),
        }
    }

    /// The report as text with the first `top` rows of each table, `None` for all.
    #[must_use]
    pub fn text(&self, top: Option<usize>) -> String {
        let mut out = String::new();
        for file in &self.files {
            out += &(one_line(file) + "\n");
        }
        for line in &self.headline {
            out += &format!("  {}\n", one_line(line));
        }
        for table in &self.tables {
            table.text(self.start, top, &mut out);
        }
        if !self.missing.is_empty() {
            out += &format!("\n{}\n", self.missing_heading);
        }
        for missing in &self.missing {
            out += &format!("  {}\n", one_line(missing));
        }
        out
    }
}

/// A report as JSON. Rows become values one by one, because there may be millions.
struct JsonReport<'a, 'r> {
    report: &'a Report<'r>,
    top: Option<usize>,
}

/// A member of a report.
enum Member<'a> {
    Value(Value),
    Rows(JsonRows<'a>),
}

impl Serialize for JsonReport<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let JsonReport { report, top } = *self;
        let mut members: Vec<(&str, Member<'_>)> = vec![
            ("schema_version", Member::Value(json!(REPORT_VERSION))),
            ("kind", Member::Value(json!(report.kind))),
            ("files", Member::Value(json!(report.files))),
            ("missing", Member::Value(json!(report.missing))),
        ];
        for fact in &report.facts {
            members.push((fact.name, Member::Value(fact.value.clone())));
        }
        for table in &report.tables {
            members.push((table.name, Member::Rows(JsonRows { table, top })));
        }
        members.sort_by_key(|(name, _)| *name);
        debug_assert!(
            members.windows(2).all(|pair| match pair {
                [(first, _), (second, _)] => first != second,
                _ => true,
            }),
            "{}: two members have one name",
            report.kind
        );
        let mut map = serializer.serialize_map(Some(members.len()))?;
        for (name, member) in &members {
            match member {
                Member::Value(value) => map.serialize_entry(name, value)?,
                Member::Rows(rows) => map.serialize_entry(name, rows)?,
            }
        }
        map.end()
    }
}

/// The rows of a table as JSON.
struct JsonRows<'a> {
    table: &'a ReportTable<'a>,
    top: Option<usize>,
}

impl Serialize for JsonRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let count = self.table.shown(self.top);
        let mut rows = serializer.serialize_seq(Some(count))?;
        for row in 0..count {
            rows.serialize_element(&self.table.json_row(row))?;
        }
        rows.end()
    }
}

/// Rows of any type.
trait AnyRows {
    /// The number of rows.
    fn len(&self) -> usize;

    /// Passes the values of a row to a function, each with its column.
    fn visit(&self, row: usize, use_value: &mut dyn FnMut(Column, Cell<'_>));
}

impl<R: Row> AnyRows for Vec<R> {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn visit(&self, row: usize, use_value: &mut dyn FnMut(Column, Cell<'_>)) {
        if let Some(row) = self.get(row) {
            R::columns(&mut Values { row, use_value });
        }
    }
}

impl AnyRows for Changes {
    fn len(&self) -> usize {
        Changes::len(self)
    }

    fn visit(&self, row: usize, use_value: &mut dyn FnMut(Column, Cell<'_>)) {
        Changes::visit(self, row, use_value);
    }
}

/// A table of a report: rows, and the columns that are printed.
pub struct ReportTable<'r> {
    /// Its member in the JSON.
    name: &'static str,
    /// The line above it in text.
    title: String,
    /// Its columns, with `None` for a column that is left out.
    columns: Vec<Option<Column>>,
    rows: Box<dyn AnyRows + 'r>,
    compared: Option<Compared>,
}

impl std::fmt::Debug for ReportTable<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReportTable")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<'r> ReportTable<'r> {
    /// A table with all columns of its rows. The title is printed above it in text, unless it is
    /// empty. The member in the JSON is the name of the table, without the kind of report before a
    /// dot.
    #[must_use]
    pub fn new<R: Row + 'r>(title: impl Into<String>, rows: Vec<R>) -> Self {
        ReportTable {
            compared: R::COMPARED,
            ..ReportTable::of_columns(R::NAME, title.into(), columns_of::<R>(), rows)
        }
    }

    /// The table of a comparison.
    #[must_use]
    pub fn of_changes(changes: Changes) -> Self {
        let title = changes.title.clone();
        ReportTable::of_columns(changes.name, title, changes.columns.clone(), changes)
    }

    /// A table with these columns, which are the columns of its rows.
    fn of_columns(
        name: &'static str,
        title: String,
        columns: Vec<Column>,
        rows: impl AnyRows + 'r,
    ) -> Self {
        ReportTable {
            name: name.rsplit('.').next().unwrap_or(name),
            title,
            columns: columns.into_iter().map(Some).collect(),
            rows: Box::new(rows),
            compared: None,
        }
    }

    /// The sums of its rows by their keys; `None` if such tables are not compared. Programs have
    /// their new names.
    #[must_use]
    pub fn sums(&self, renames: &Renames) -> Option<TableSums> {
        let columns = self.columns.iter().flatten().copied();
        let mut sums = TableSums::new(self.compared?, &self.title, columns.collect());
        for row in 0..self.len() {
            let mut added = sums.row(renames);
            self.visit(row, |column, cell| added.value(column, cell));
            added.add();
        }
        Some(sums)
    }

    /// The same without these columns.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Self {
        for place in &mut self.columns {
            if let Some(column) = place
                && names.contains(&column.name)
            {
                *place = None;
            }
        }
        self
    }

    /// The same with another heading of a column in text; an empty heading leaves it out.
    #[must_use]
    pub fn with_heading(mut self, name: &str, heading: &'static str) -> Self {
        for column in self.columns.iter_mut().flatten() {
            if column.name == name {
                column.heading = heading;
            }
        }
        self
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of rows that are printed.
    fn shown(&self, top: Option<usize>) -> usize {
        top.unwrap_or(usize::MAX).min(self.len())
    }

    /// Passes the values of a row in the printed columns to a function.
    fn visit(&self, row: usize, mut use_value: impl FnMut(&Column, Cell<'_>)) {
        let mut columns = self.columns.iter();
        self.rows.visit(row, &mut |_, cell| {
            if let Some(Some(column)) = columns.next() {
                use_value(column, cell);
            }
        });
    }

    fn json_row(&self, row: usize) -> Map<String, Value> {
        let mut members = Map::new();
        self.visit(row, |column, cell| {
            members.insert(column.name.to_owned(), json_value(column, cell));
        });
        members
    }

    fn write_csv(&self, top: Option<usize>, mut out: impl io::Write) -> io::Result<()> {
        let columns = self.columns.iter().flatten();
        let names: Vec<&str> = columns.map(|column| column.name).collect();
        writeln!(out, "{}", names.join(","))?;
        let mut line = Vec::new();
        for row in 0..self.shown(top) {
            line.clear();
            self.visit(row, |column, cell| {
                write_csv_value(&mut line, column, cell);
                line.push(b',');
            });
            if let Some(last) = line.last_mut() {
                *last = b'\n';
            }
            out.write_all(&line)?;
        }
        Ok(())
    }

    fn text(&self, start: FileTime, top: Option<usize>, out: &mut String) {
        if self.is_empty() {
            return;
        }
        out.push('\n');
        if !self.title.is_empty() {
            *out += &(one_line(&self.title) + "\n");
        }
        let columns = self
            .columns
            .iter()
            .flatten()
            .filter(|column| !column.heading.is_empty());
        let mut grid = Grid::new(columns.map(heading));
        for row in 0..self.shown(top) {
            let mut cells = Vec::new();
            self.visit(row, |column, cell| {
                if !column.heading.is_empty() {
                    cells.push(text_value(column, cell, start));
                }
            });
            grid.add(cells);
        }
        grid.write(out);
        let more = self.len() - self.shown(top);
        if more > 0 {
            *out += &format!("  ... and {more} more; --top 0 prints all\n");
        }
    }
}

/// The heading of a column: a plus marks a difference.
fn heading(column: &Column) -> String {
    match column.style {
        Style::Signed => format!("{} +", column.heading),
        _ => column.heading.to_owned(),
    }
}

/// A value in text.
#[derive(Debug)]
struct TextValue {
    text: String,
    is_number: bool,
}

/// Values in text, aligned by column.
#[derive(Debug, Default)]
struct Grid {
    widths: Vec<usize>,
    /// Whether a column has numbers, which are aligned at their ends.
    is_number: Vec<bool>,
    lines: Vec<Vec<String>>,
}

impl Grid {
    fn new(headings: impl Iterator<Item = String>) -> Self {
        let headings: Vec<String> = headings.collect();
        Grid {
            widths: headings.iter().map(String::len).collect(),
            is_number: vec![false; headings.len()],
            lines: vec![headings],
        }
    }

    fn add(&mut self, cells: Vec<TextValue>) {
        let mut line = Vec::with_capacity(cells.len());
        for ((cell, width), is_number) in cells
            .into_iter()
            .zip(&mut self.widths)
            .zip(&mut self.is_number)
        {
            *width = (*width).max(cell.text.chars().count());
            *is_number |= cell.is_number;
            line.push(cell.text);
        }
        self.lines.push(line);
    }

    fn write(&self, out: &mut String) {
        for line in &self.lines {
            let mut text = String::new();
            for ((cell, &width), &is_number) in line.iter().zip(&self.widths).zip(&self.is_number) {
                // Writing to a string does not fail.
                let _ = match is_number {
                    true => write!(text, "  {cell:>width$}"),
                    false => write!(text, "  {cell:<width$}"),
                };
            }
            *out += text.trim_end();
            out.push('\n');
        }
    }
}

fn json_value(column: &Column, cell: Cell<'_>) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(value) => json!(value),
        Cell::Int(bits) if column.style == Style::Hexadecimal => json!(format!("{bits:#x}")),
        Cell::Int(number) => json!(number),
        Cell::Float(number) => json!(number),
        Cell::Share(share) => json!(percent(share)),
        Cell::Time(time) => json!(time.to_string()),
        Cell::Text(text) => json!(text),
        Cell::Bytes(bytes) => json!(String::from_utf8_lossy(bytes)),
        Cell::Label(label) if label.value().is_empty() => Value::Null,
        Cell::Label(label) => json!(label.value()),
    }
}

fn write_csv_value(out: &mut Vec<u8>, column: &Column, cell: Cell<'_>) {
    match json_value(column, cell) {
        Value::Null => {}
        Value::String(text) => write_csv_field(out, &text),
        other => out.extend(other.to_string().as_bytes()),
    }
}

/// A value for people. Times are seconds since `start`.
fn text_value(column: &Column, cell: Cell<'_>, start: FileTime) -> TextValue {
    let is_duration = column.unit == "µs";
    let is_size = matches!(column.unit, "bytes" | "bytes/s");
    let text = match cell {
        Cell::Null => "-".to_owned(),
        Cell::Bool(value) => value.to_string(),
        Cell::Int(bits) if column.style == Style::Hexadecimal => format!("{bits:#x}"),
        Cell::Int(size) if is_size && column.style == Style::Unit => {
            etl_events::input::size(size.cast_unsigned())
        }
        Cell::Int(size) if is_size && column.style == Style::Signed => {
            let sign = if size < 0 { '-' } else { '+' };
            format!("{sign}{}", etl_events::input::size(size.unsigned_abs()))
        }
        Cell::Int(number) if column.style == Style::Signed => format!("{number:+}"),
        Cell::Int(number) => number.to_string(),
        Cell::Float(micros) if is_duration && column.style == Style::Signed => {
            format!("{:+.3}", micros / 1000.0)
        }
        Cell::Float(micros) if is_duration => format!("{:.3}", micros / 1000.0),
        Cell::Float(number) => format!("{number:.1}"),
        Cell::Share(share) => format!("{:.1}", share * 100.0),
        Cell::Time(time) => {
            let units = time.get().saturating_sub(start.get());
            format!("{:.6}", units as f64 / FILETIME_PER_SECOND as f64)
        }
        Cell::Text(text) => one_line(text),
        Cell::Bytes(bytes) => one_line(&String::from_utf8_lossy(bytes)),
        Cell::Label(label) if label.is_empty() => "-".to_owned(),
        Cell::Label(label) => one_line(&label.to_string()),
    };
    let is_number = matches!(
        cell,
        Cell::Bool(_) | Cell::Int(_) | Cell::Float(_) | Cell::Share(_) | Cell::Time(_)
    );
    TextValue { text, is_number }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_schema::render::is_terminal_unsafe;
    use proptest::prelude::*;

    use crate::column::Kind;
    use crate::row::Columns;

    struct Lock {
        name: &'static str,
        wait: u64,
        id: u32,
    }

    impl Row for Lock {
        const NAME: &'static str = "test.rows";
        const ROW: &'static str = "One lock";

        fn columns<C: Columns<Self>>(columns: &mut C) {
            let wait = Column::micros("time_us", "");
            columns.add(Column::new("name", Kind::Text, "").heading("name"), |row| {
                Cell::text(row.name)
            });
            columns.add(wait.heading("ms"), |row| Cell::micros(Some(row.wait)));
            columns.add(Column::count("id", ""), |row| Cell::int(Some(row.id)));
        }
    }

    fn report() -> Report<'static> {
        let rows = vec![
            Lock {
                name: "a,\"b\"",
                wait: 15_000,
                id: 7,
            },
            Lock {
                name: "",
                wait: 5,
                id: 8,
            },
        ];
        let mut report = Report::new("test");
        report.tables.push(ReportTable::new("", rows));
        report
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        assert_eq!(
            report().csv(None),
            "name,time_us,id\n\"a,\"\"b\"\"\",1500.0,7\n,0.5,8\n"
        );
    }

    proptest! {
        #[test]
        fn no_form_of_a_report_acts(
            name in "[-=+@\t\n\r,\"a1\x1b\x7f\u{9b}\u{202e}\u{feff}＝ ]{1,8}",
        ) {
            let mut report = Report::new("test");
            let name: &'static str = Box::leak(name.into_boxed_str());
            let rows = vec![Lock { name, wait: 5, id: 8 }];
            report.tables.push(ReportTable::new(name, rows));
            report.files.push(name.to_owned());
            let mut json = Vec::new();
            report.write_json(None, &mut json).unwrap();
            let json = String::from_utf8(json).unwrap();
            let value: Value = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(&value, &report.json(None));
            prop_assert_eq!(&value["rows"][0]["name"], name);
            let csv = report.csv(None);
            for text in [&json, &csv, &report.text(None)] {
                let acts = |c: char| is_terminal_unsafe(c) && !matches!(c, '\n' | '\t');
                prop_assert!(!text.contains(acts), "{:?}", text);
            }
            let lines: Vec<&str> = csv.lines().collect();
            prop_assert_eq!(lines.len(), 2, "{:?}", csv);
            let field = lines[1].strip_prefix('"').unwrap_or(lines[1]);
            let field = field.trim_start();
            prop_assert!(!field.starts_with(['=', '+', '-', '@', '＝']) || is_number(name));
        }
    }

    fn is_number(text: &str) -> bool {
        text.parse::<f64>().is_ok()
    }

    #[test]
    fn text_aligns_numbers_and_states_what_is_left_out() {
        let more = "  ... and 1 more; --top 0 prints all\n";
        let text = format!("\n  name      ms\n  a,\"b\"  1.500\n{more}");
        assert_eq!(report().text(Some(1)), text);
    }

    #[test]
    fn a_column_is_left_out_and_another_has_a_new_heading() {
        let mut report = report();
        let table = report
            .tables
            .remove(0)
            .without(&["time_us"])
            .with_heading("id", "no");
        report.tables.push(table);
        assert_eq!(report.csv(Some(1)), "name,id\n\"a,\"\"b\"\"\",7\n");
        assert_eq!(
            report.json(Some(1))["rows"][0],
            json!({"name": "a,\"b\"", "id": 7})
        );
        assert_eq!(
            report.text(None),
            "\n  name   no\n  a,\"b\"   7\n  -       8\n"
        );
    }
}
