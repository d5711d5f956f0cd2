//! Reports as tables: text for people, JSON and CSV for programs.

use std::fmt::Write;

use clap::ValueEnum;
use etl_format::Clock;
use serde_json::{Map, Value, json};

use crate::escape::one_line;
use crate::output;

/// Incremented when a member of the JSON changes its meaning or is removed.
const SCHEMA_VERSION: u32 = 2;

/// FILETIME ticks in a microsecond, a millisecond and a second.
const MICROSECOND: f64 = 10.0;
const MILLISECOND: f64 = 10_000.0;
const SECOND: f64 = 10_000_000.0;

/// The format of a report with tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// Tables for people
    #[default]
    Text,
    /// One JSON object
    Json,
    /// The rows of the table as comma-separated values, with a header line
    Csv,
}

/// A value of a table or of a report.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// Nothing is known.
    None,
    Text(String),
    Count(u64),
    Signed(i64),
    Number(f64),
    /// A difference of durations, in 100 ns.
    SignedDuration(i64),
    Bytes(u64),
    /// In 100 ns: milliseconds in text, microseconds elsewhere.
    Duration(u64),
    /// A FILETIME: seconds since the start of the recording in text, UTC elsewhere.
    Time(i64),
    /// A share of one.
    Share(f64),
    Address(u64),
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() { Cell::None } else { Cell::Text(text) }
    }

    pub fn count(count: Option<impl Into<u64>>) -> Self {
        count.map_or(Cell::None, |count| Cell::Count(count.into()))
    }

    /// A time of the recording.
    pub fn time(clock: &Clock, ticks: Option<i64>) -> Self {
        ticks.map_or(Cell::None, |ticks| Cell::Time(clock.filetime(ticks)))
    }

    /// The share that a part has of a whole.
    pub fn share(part: u64, whole: u64) -> Self {
        Cell::Share(if whole == 0 { 0.0 } else { part as f64 / whole as f64 })
    }

    fn is_number(&self) -> bool {
        !matches!(self, Cell::Text(_) | Cell::None)
    }

    /// For people, with times since `start`, a FILETIME.
    fn shown(&self, start: i64) -> String {
        match self {
            Cell::None => "-".to_owned(),
            Cell::Text(text) => one_line(text),
            Cell::Count(count) => count.to_string(),
            Cell::Signed(number) => number.to_string(),
            Cell::Number(number) => format!("{number:.1}"),
            Cell::SignedDuration(ticks) => format!("{:+.3}", *ticks as f64 / MILLISECOND),
            Cell::Bytes(bytes) => output::size(*bytes),
            Cell::Duration(ticks) => format!("{:.3}", *ticks as f64 / MILLISECOND),
            Cell::Time(time) => format!("{:.6}", time.saturating_sub(start) as f64 / SECOND),
            Cell::Share(share) => format!("{:.1}", share * 100.0),
            Cell::Address(address) => format!("{address:#x}"),
        }
    }

    fn json(&self) -> Value {
        match self {
            Cell::None => Value::Null,
            Cell::Text(text) => json!(text),
            Cell::Count(count) | Cell::Bytes(count) => json!(count),
            Cell::Signed(number) => json!(number),
            Cell::Duration(ticks) => json!(*ticks as f64 / MICROSECOND),
            Cell::Number(number) => json!(number),
            Cell::SignedDuration(ticks) => json!(*ticks as f64 / MICROSECOND),
            Cell::Time(time) => json!(etl_format::clock::iso_utc(*time)),
            Cell::Share(share) => json!((share * 1e6).round() / 1e4),
            Cell::Address(address) => json!(format!("{address:#x}")),
        }
    }

    fn csv(&self) -> String {
        match self.json() {
            Value::Null => String::new(),
            Value::String(text) if text.contains([',', '"', '\n', '\r']) => {
                format!("\"{}\"", text.replace('"', "\"\""))
            }
            Value::String(text) => text,
            other => other.to_string(),
        }
    }
}

/// A column: its member in JSON and its name in CSV, and its heading in text. One without a heading
/// is left out of the text.
pub(crate) type Column = (&'static str, &'static str);

/// Rows with the same columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// Its member in the JSON.
    pub name: &'static str,
    /// What stands above it in text.
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn new(name: &'static str, title: impl Into<String>, columns: &[Column]) -> Self {
        Table { name, title: title.into(), columns: columns.to_vec(), rows: Vec::new() }
    }

    /// The table with only its first rows, all if that is `None`.
    pub fn top(&self, limit: Option<usize>) -> &[Vec<Cell>] {
        self.rows.get(..limit.unwrap_or(usize::MAX)).unwrap_or(&self.rows)
    }
}

/// A report of `etlkit analyze`.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableReport {
    /// The kind of analysis.
    pub kind: &'static str,
    pub files: Vec<String>,
    /// Start of the recording, a FILETIME.
    pub start: i64,
    /// Member of the JSON, and value.
    pub facts: Vec<(&'static str, Cell)>,
    /// What stands above the tables in text.
    pub headline: Vec<String>,
    /// The first one is that of the CSV.
    pub tables: Vec<Table>,
    /// What is missing from the recording, and what would have recorded it.
    pub missing: Vec<String>,
}

impl TableReport {
    /// The report as text with the first `top` rows of each table, as JSON or as CSV. `is_of_span`
    /// is whether it is of a selected time only.
    pub fn render(&self, format: TableFormat, top: Option<usize>, is_of_span: bool) -> String {
        match format {
            TableFormat::Text => self.text(top, is_of_span),
            TableFormat::Json => self.json(top),
            TableFormat::Csv => self.csv(top),
        }
    }

    fn json(&self, top: Option<usize>) -> String {
        let mut out = Map::new();
        let mut add = |name: &str, value: Value| {
            let replaced = out.insert(name.to_owned(), value);
            debug_assert!(replaced.is_none(), "{}: two members are named {name}", self.kind);
        };
        add("schema_version", json!(SCHEMA_VERSION));
        add("kind", json!(self.kind));
        add("files", json!(self.files));
        for (name, cell) in &self.facts {
            add(name, cell.json());
        }
        for table in &self.tables {
            let row = |row: &Vec<Cell>| {
                let members = table.columns.iter().zip(row);
                let members = members.map(|((name, _), cell)| ((*name).to_owned(), cell.json()));
                Value::Object(members.collect())
            };
            let rows: Vec<Value> = table.top(top).iter().map(row).collect();
            add(table.name, Value::Array(rows));
        }
        add("missing", json!(self.missing));
        output::json(&Value::Object(out))
    }

    fn csv(&self, top: Option<usize>) -> String {
        let mut out = String::new();
        let Some(table) = self.tables.first() else { return out };
        let names: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
        out += &(names.join(",") + "\n");
        for row in table.top(top) {
            let cells: Vec<String> = row.iter().map(Cell::csv).collect();
            out += &(cells.join(",") + "\n");
        }
        out
    }

    fn text(&self, top: Option<usize>, is_of_span: bool) -> String {
        output::text(|out| {
            for file in &self.files {
                writeln!(out, "{}", one_line(file))?;
            }
            for line in &self.headline {
                writeln!(out, "  {}", one_line(line))?;
            }
            for table in &self.tables {
                if table.rows.is_empty() {
                    continue;
                }
                out.push('\n');
                if !table.title.is_empty() {
                    writeln!(out, "{}", one_line(&table.title))?;
                }
                self.write_table(out, table, top)?;
            }
            if !self.missing.is_empty() {
                let at = if is_of_span { " at this time" } else { "" };
                writeln!(out, "\nmissing{at}")?;
            }
            for missing in &self.missing {
                writeln!(out, "  {}", one_line(missing))?;
            }
            Ok(())
        })
    }

    fn write_table(&self, out: &mut String, table: &Table, top: Option<usize>) -> std::fmt::Result {
        let shown = table.top(top);
        let columns: Vec<usize> = (0..table.columns.len())
            .filter(|&at| table.columns.get(at).is_some_and(|(_, head)| !head.is_empty()))
            .collect();
        let cells: Vec<Vec<String>> = shown
            .iter()
            .map(|row| {
                let cell = |at: &usize| row.get(*at).map_or(String::new(), |c| c.shown(self.start));
                columns.iter().map(cell).collect()
            })
            .collect();
        let heads: Vec<&str> =
            columns.iter().filter_map(|&at| table.columns.get(at)).map(|(_, head)| *head).collect();
        let width = |at: usize| {
            let cells = cells.iter().filter_map(|row| row.get(at)).map(|c| c.chars().count());
            cells.chain(heads.get(at).map(|head| head.len())).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns.len()).map(width).collect();
        // Numbers stand under each other by their ends.
        let right = |at: &usize| shown.iter().filter_map(|row| row.get(*at)).any(Cell::is_number);
        let right: Vec<bool> = columns.iter().map(right).collect();
        let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
        for row in std::iter::once(&heads).chain(&cells) {
            let mut line = String::new();
            for ((cell, &width), &right) in row.iter().zip(&widths).zip(&right) {
                let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
                line += "  ";
                line += &(if right { pad + cell } else { cell.clone() + &pad });
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        let more = table.rows.len() - shown.len();
        if more > 0 {
            writeln!(out, "  ... and {more} more; --top 0 prints all")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> TableReport {
        let mut table = Table::new("rows", "", &[("name", "name"), ("time_us", "ms"), ("id", "")]);
        table.rows.push(vec![Cell::text("a,\"b\""), Cell::Duration(15_000), Cell::Count(7)]);
        table.rows.push(vec![Cell::None, Cell::Duration(5), Cell::Count(8)]);
        TableReport { kind: "test", tables: vec![table], ..TableReport::default() }
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        assert_eq!(report().csv(None), "name,time_us,id\n\"a,\"\"b\"\"\",1500.0,7\n,0.5,8\n");
    }

    #[test]
    fn text_aligns_numbers_and_states_what_is_left_out() {
        let more = "  ... and 1 more; --top 0 prints all\n";
        let text = format!("\n  name      ms\n  a,\"b\"  1.500\n{more}");
        assert_eq!(report().text(Some(1), false), text);
    }
}
