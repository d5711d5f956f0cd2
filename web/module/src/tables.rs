//! The tables of etl-tables: their columns, and their rows as JSON or CSV.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use etl_events::filter::Filter;
use etl_events::input::AnySource;
use etl_events::rows::write_csv_field;
use etl_events::{NamedSource, Trace};
use etl_format::TimeRange;
use etl_tables::tables::ALL;
use etl_tables::{Column, Options, Style, Table, for_each_batch};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::query::Seconds;

/// Rows of a reply, unless the request asks for another number.
const MAX_ROWS: usize = 100_000;

/// The largest integer that a number of JavaScript has exactly.
const MAX_SAFE: i64 = (1 << 53) - 1;

/// Which rows of which table are asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TableRequest {
    pub table: String,
    pub from: Option<f64>,
    pub to: Option<f64>,
    /// Names of columns; empty for all that are not on request.
    pub columns: Vec<String>,
    /// At most so many rows are returned; all are counted.
    pub max_rows: Option<usize>,
}

impl TableRequest {
    pub fn seconds(&self) -> Seconds {
        Seconds {
            from: self.from,
            to: self.to,
        }
    }
}

/// Every table with its columns.
pub fn list() -> Value {
    let mut tables = Vec::new();
    for table in ALL {
        tables.push(json!({
            "name": table.name,
            "row": table.row,
            "about": table.about,
            "columns": table.data_set_columns().iter().map(describe).collect::<Vec<_>>(),
        }));
    }
    Value::Array(tables)
}

fn describe(column: &Column) -> Value {
    let style = match column.style {
        Style::Hexadecimal => "hexadecimal",
        Style::Signed => "signed",
        Style::Plain => "plain",
        _ => "unit",
    };
    json!({
        "name": column.name,
        "type": column.kind.sql(),
        "unit": column.unit,
        "meaning": column.meaning,
        "heading": column.heading,
        "style": style,
        "on_request": column.on_request,
    })
}

/// The rows of a table as JSON: `{"columns": [...], "rows": [[...]], "count": n}`.
pub fn rows(trace: &mut Trace, request: &TableRequest) -> Result<Vec<u8>> {
    let max_rows = request.max_rows.unwrap_or(MAX_ROWS);
    let hexadecimal = hexadecimal_columns(&request.table);
    let mut columns: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    let mut count = 0;
    for_each_batch_of(trace, request, |batch| {
        if columns.is_empty() {
            let schema = batch.schema();
            columns = schema
                .fields()
                .iter()
                .map(|field| field.name().clone())
                .collect();
        }
        for row in 0..batch.num_rows() {
            if count < max_rows {
                if count > 0 {
                    rows.push(b',');
                }
                write_row(&mut rows, &batch, row, &hexadecimal)?;
            }
            count += 1;
        }
        Ok(())
    })?;
    let mut out = Vec::new();
    write!(
        out,
        "{{\"columns\":{},\"count\":{count},\"rows\":[",
        json!(columns)
    )?;
    out.append(&mut rows);
    out.extend_from_slice(b"]}");
    Ok(out)
}

/// Passes the batches of all files to a function.
pub fn for_each_batch_of(
    trace: &mut Trace,
    request: &TableRequest,
    mut use_batch: impl FnMut(RecordBatch) -> Result<()>,
) -> Result<()> {
    let times = request.seconds().times(trace.start_time());
    let mut failure = None;
    for NamedSource {
        name, mut source, ..
    } in trace.sources()
    {
        let clock = clock_of(&mut source)?;
        let from = times.from.map(|time| clock.ticks_at(time));
        let to = times.to.map(|time| clock.ticks_at(time));
        let filter = Filter {
            time: TimeRange::new(from, to),
            ..Filter::default()
        };
        let options = Options::new(etl_format::file_name(&name))
            .filter(filter)
            .columns(request.columns.clone());
        let made = for_each_batch(source, &request.table, options, |batch| {
            use_batch(batch).map_err(|error| {
                failure = Some(error);
                etl_tables::Error::Stopped
            })
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        made?;
    }
    Ok(())
}

fn clock_of(source: &mut AnySource<'_>) -> Result<etl_format::Clock> {
    let options = etl_format::read::Options::salvage();
    Ok(etl_format::read::Trace::open(source, &options)?.clock())
}

/// The names of the columns whose numbers are bits.
fn hexadecimal_columns(table: &str) -> Vec<&'static str> {
    let Some(table) = Table::named(table) else {
        return Vec::new();
    };
    let columns = table.columns();
    let bits = columns
        .iter()
        .filter(|column| column.style == Style::Hexadecimal);
    bits.map(|column| column.name).collect()
}

fn write_row(
    out: &mut Vec<u8>,
    batch: &RecordBatch,
    row: usize,
    hexadecimal: &[&str],
) -> Result<()> {
    let schema = batch.schema();
    out.push(b'[');
    for (index, field) in schema.fields().iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let is_bits = hexadecimal.contains(&field.name().as_str());
        serde_json::to_writer(&mut *out, &value(batch.column(index), row, is_bits))?;
    }
    out.push(b']');
    Ok(())
}

/// The value of a row in a column. Times are microseconds since 1970. Bits are text in hexadecimal,
/// and numbers that JavaScript would round are text in decimal.
fn value(column: &dyn Array, row: usize, is_bits: bool) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Boolean => json!(column.as_boolean().value(row)),
        DataType::Int32 => json!(column.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => integer(column.as_primitive::<Int64Type>().value(row), is_bits),
        DataType::Float64 => json!(column.as_primitive::<Float64Type>().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            json!(column.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Utf8 => json!(column.as_string::<i32>().value(row)),
        DataType::Binary => json!(hexadecimal(column.as_binary::<i32>().value(row))),
        DataType::Dictionary(_, _) => {
            let words = column.as_dictionary::<Int32Type>();
            match words.key(row) {
                Some(key) => json!(words.values().as_string::<i32>().value(key)),
                None => Value::Null,
            }
        }
        _ => Value::Null,
    }
}

fn integer(number: i64, is_bits: bool) -> Value {
    if is_bits {
        json!(format!("{number:#x}"))
    } else if (-MAX_SAFE..=MAX_SAFE).contains(&number) {
        json!(number)
    } else {
        json!(number.to_string())
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// Writes a table as CSV, with the values of its JSON. Returns the number of rows.
pub fn write_csv(trace: &mut Trace, request: &TableRequest, mut out: impl Write) -> Result<u64> {
    let hexadecimal = hexadecimal_columns(&request.table);
    let mut rows = 0;
    let mut line = Vec::new();
    for_each_batch_of(trace, request, |batch| {
        let schema = batch.schema();
        if rows == 0 {
            let names: Vec<&str> = schema
                .fields()
                .iter()
                .map(|field| field.name().as_str())
                .collect();
            writeln!(out, "{}", names.join(","))?;
        }
        for row in 0..batch.num_rows() {
            line.clear();
            for (index, field) in schema.fields().iter().enumerate() {
                if index > 0 {
                    line.push(b',');
                }
                let is_bits = hexadecimal.contains(&field.name().as_str());
                match value(batch.column(index), row, is_bits) {
                    Value::Null => {}
                    Value::String(text) => write_csv_field(&mut line, &text),
                    other => write!(line, "{other}")?,
                }
            }
            line.push(b'\n');
            out.write_all(&line)?;
        }
        rows += batch.num_rows() as u64;
        Ok(())
    })?;
    if rows == 0 {
        return Err(Error::new(format!(
            "the table {} has no rows",
            request.table
        )));
    }
    Ok(rows)
}
