//! Tables as Arrow IPC: a stream, or a file (Feather).

use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use etl_format::read::{Damage, Source};

use crate::options::Options;
use crate::recorded::Recorded;
use crate::{Error, Result};

/// The two forms of Arrow IPC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// A stream, which is read from front to back, as from a pipe.
    #[default]
    Stream,
    /// A file, also called Feather: its batches can be read in any order. Words are plain texts,
    /// since a file has one dictionary for all of its batches.
    File,
}

/// What was written of a table.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Written {
    /// Rows.
    pub rows: u64,
    /// What could not be read of the trace.
    pub damage: Vec<Damage>,
}

/// Writes a table of a trace. Damage is not an error: the intact records are written.
///
/// # Errors
/// When the trace cannot be read, there is no such table or column, or writing fails.
///
/// ```no_run
/// use std::fs::File;
///
/// use etl_format::read::FileSource;
/// use etl_tables::{Options, ipc};
///
/// let source = FileSource::new(File::open("trace.etl")?)?;
/// let options = Options::new("trace.etl");
/// let out = File::create("samples.arrow")?;
/// let written = ipc::write(source, "samples", options, ipc::Form::File, out)?;
/// println!("{} samples", written.rows);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write<S: Source, W: Write>(
    source: S,
    table: &str,
    options: Options,
    form: Form,
    out: W,
) -> Result<Written> {
    let mut recorded = Recorded::open(source, options)?;
    let plan = recorded.plan(table)?;
    let schema = plan.schema();
    let mut rows = 0;
    match form {
        Form::Stream => {
            let mut writer = StreamWriter::try_new(out, &schema).map_err(unwritten)?;
            recorded.write(&plan, &mut |batch| {
                rows += batch.num_rows() as u64;
                writer.write(&batch).map_err(unwritten)
            })?;
            writer.finish().map_err(unwritten)?;
        }
        Form::File => {
            let plain = plain_schema(&schema);
            let mut writer = FileWriter::try_new(out, &plain).map_err(unwritten)?;
            recorded.write(&plan, &mut |batch| {
                rows += batch.num_rows() as u64;
                writer
                    .write(&plain_batch(&plain, &batch)?)
                    .map_err(unwritten)
            })?;
            writer.finish().map_err(unwritten)?;
        }
    }
    Ok(Written {
        rows,
        damage: recorded.into_damage(),
    })
}

/// The error of writing a batch.
fn unwritten(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, error) => Error::Output(error),
        error => error.into(),
    }
}

/// A schema with plain texts instead of words.
fn plain_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Dictionary(..) => field.as_ref().clone().with_data_type(DataType::Utf8),
        _ => field.as_ref().clone(),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()).with_metadata(schema.metadata().clone()))
}

fn plain_batch(schema: &SchemaRef, batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch
        .columns()
        .iter()
        .map(|column| match column.data_type() {
            DataType::Dictionary(..) => plain(column),
            _ => Arc::clone(column),
        });
    Ok(RecordBatch::try_new(Arc::clone(schema), columns.collect())?)
}

fn plain(column: &ArrayRef) -> ArrayRef {
    let Some(words) = column.as_dictionary_opt::<Int32Type>() else {
        return Arc::clone(column);
    };
    let texts = words.values().as_string::<i32>();
    let mut plain = StringBuilder::new();
    for row in 0..words.len() {
        match words.key(row) {
            Some(key) if words.is_valid(row) => plain.append_value(texts.value(key)),
            _ => plain.append_null(),
        }
    }
    Arc::new(plain.finish())
}
