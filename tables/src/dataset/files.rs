//! The Parquet files of one trace, while it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use super::failed;
use super::layout::{SCHEMA_FILE, part_name, partition};
use crate::{Error, Result};

/// The key of the traces of a file in its metadata: their rows by their names, as JSON.
pub(super) const TRACES_KEY: &str = "etlkit.traces";

/// The most files that are open at a time; systems allow about a thousand for a process.
const MAX_OPEN: usize = 64;
/// The most partitions of the events of a trace, one for each provider; a machine has some thousand
/// providers, and a trace has events of some hundred. Events of further ones share a partition.
const MAX_PARTITIONS: usize = 1 << 10;
/// The partition of the events of further providers. Its files have the names of the providers in a
/// column of their own.
const OTHERS: &str = "(other providers)";
/// The column with the names of further providers.
const OTHER_PROVIDER: &str = "other_provider";
/// The most rows of a group; batches are not larger.
const GROUP: usize = 1 << 16;

/// How pages are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Codec {
    /// Not at all.
    None,
    /// Snappy: fast, and read by every engine.
    #[default]
    Snappy,
    /// Zstandard: smaller files.
    #[cfg(feature = "zstd")]
    Zstd,
}

impl Codec {
    fn compression(self) -> Compression {
        match self {
            Codec::None => Compression::UNCOMPRESSED,
            Codec::Snappy => Compression::SNAPPY,
            #[cfg(feature = "zstd")]
            Codec::Zstd => Compression::ZSTD(parquet::basic::ZstdLevel::default()),
        }
    }
}

/// A table that is written.
#[derive(Default)]
struct Table {
    /// The number of its files so far.
    parts: usize,
    /// The file that is open.
    writer: Option<Writer>,
    /// The number of the last use.
    used: u64,
}

/// A file that is open.
struct Writer {
    to: ArrowWriter<BufWriter<File>>,
    /// Its final path in the data set, for errors.
    path: PathBuf,
    rows: u64,
}

impl Writer {
    /// The error of writing the file.
    fn unwritten(&self, error: ParquetError) -> Error {
        unwritten(&self.path, error)
    }
}

pub(super) fn unwritten(path: &Path, error: ParquetError) -> Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => failed(path, *error),
            Err(error) => ParquetError::External(error).into(),
        },
        error => error.into(),
    }
}

/// How the files of a data set are written, with these pairs in their metadata.
pub(super) fn properties(compression: Compression) -> WriterProperties {
    let version = crate::SCHEMA_VERSION.to_string();
    let keys = vec![KeyValue::new("etlkit.schema".to_owned(), version)];
    let mut properties = WriterProperties::builder()
        .set_compression(compression)
        .set_created_by("etlkit".to_owned())
        .set_max_row_group_row_count(Some(GROUP))
        .set_key_value_metadata(Some(keys));
    // The values of these columns grow from row to row.
    for column in ["sequence", "time", "filetime"] {
        let path = ColumnPath::from(column);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

/// Rows by the names of their traces, as the metadata of a file.
pub(super) fn traces_of(rows: &BTreeMap<String, u64>) -> Result<KeyValue> {
    let text = serde_json::to_string(rows).map_err(|error| ParquetError::External(error.into()))?;
    Ok(KeyValue::new(TRACES_KEY.to_owned(), text))
}

/// Writes a file without rows into the folder of a table, so that engines find its columns.
pub(super) fn write_schema(root: &Path, table: &str, schema: &SchemaRef) -> Result<()> {
    let folder = root.join(table);
    let path = folder.join(SCHEMA_FILE);
    let unfinished = folder.join(format!(".{SCHEMA_FILE}"));
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    let file = File::create(&unfinished).map_err(|error| failed(&unfinished, error))?;
    let properties = properties(Compression::UNCOMPRESSED);
    let writer = ArrowWriter::try_new(file, Arc::clone(schema), Some(properties));
    let closed = writer.and_then(ArrowWriter::close);
    let closed = closed.map_err(|error| unwritten(&path, error));
    let renamed =
        closed.and_then(|_| fs::rename(&unfinished, &path).map_err(|error| failed(&path, error)));
    if renamed.is_err() {
        // The error of writing it is more important.
        let _ = fs::remove_file(&unfinished);
    }
    renamed
}

/// Whether a folder has the file of the columns of its table.
pub(super) fn has_schema(folder: &Path) -> bool {
    folder.join(SCHEMA_FILE).is_file()
}

/// The files of one trace.
pub(super) struct Files {
    /// The folder of the data set.
    root: PathBuf,
    /// The folder of the files until all are complete.
    folder: PathBuf,
    trace: String,
    properties: WriterProperties,
    /// The tables by their folders.
    tables: BTreeMap<String, Table>,
    /// The partitions that have files of their own.
    partitions: BTreeSet<String>,
    open: usize,
    uses: u64,
    /// Rows by table.
    rows: BTreeMap<String, u64>,
    bytes: u64,
}

impl Files {
    pub fn new(root: &Path, folder: &Path, trace: &str, codec: Codec) -> Self {
        Files {
            root: root.to_owned(),
            folder: folder.to_owned(),
            trace: trace.to_owned(),
            properties: properties(codec.compression()),
            tables: BTreeMap::new(),
            partitions: BTreeSet::new(),
            open: 0,
            uses: 0,
            rows: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// The paths of all files so far, from the folder of the data set.
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for (folder, table) in &self.tables {
            for part in 0..table.parts {
                paths.push(Path::new(folder).join(part_name(&self.trace, part)));
            }
        }
        paths
    }

    /// The name of the trace.
    pub fn trace(&self) -> &str {
        &self.trace
    }

    /// Writes a batch as a group of rows.
    pub fn write(&mut self, name: &str, batch: &RecordBatch) -> Result<()> {
        self.group(name, "", &[], batch)
    }

    /// Writes the rows of each value of a column to a file of its own, and the rows of values after
    /// the first [`MAX_PARTITIONS`] to one.
    pub fn write_by(&mut self, name: &str, column: &str, batch: &RecordBatch) -> Result<()> {
        let Some(values) = batch.column_by_name(column) else {
            return Ok(());
        };
        let Some(words) = values.as_dictionary_opt::<Int32Type>() else {
            return Ok(());
        };
        let texts = words.values().as_string::<i32>();
        let mut rows: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for row in 0..batch.num_rows() {
            let text = words.key(row).map_or("", |key| texts.value(key));
            rows.entry(text)
                .or_default()
                .push(u32::try_from(row).unwrap_or(u32::MAX));
        }
        let mut others = Vec::new();
        for (text, rows) in rows {
            // Hive's name of the partition of rows without a value.
            let value = if text.is_empty() {
                "__HIVE_DEFAULT_PARTITION__"
            } else {
                text
            };
            let partition = format!("{column}={}", partition(value));
            if !self.has_partition(&partition) {
                others.extend(rows);
                continue;
            }
            let selected = take(batch, &UInt32Array::from(rows))?;
            self.group(name, &partition, &[column], &selected)?;
        }
        if !others.is_empty() {
            others.sort_unstable();
            let selected = take(batch, &UInt32Array::from(others))?;
            let selected = renamed(&selected, column, OTHER_PROVIDER)?;
            let partition = format!("{column}={}", partition(OTHERS));
            self.group(name, &partition, &[], &selected)?;
        }
        Ok(())
    }

    /// Whether a partition has files of its own: it has some, or there are not too many yet.
    fn has_partition(&mut self, partition: &str) -> bool {
        if self.partitions.contains(partition) {
            return true;
        }
        let is_free = self.partitions.len() < MAX_PARTITIONS;
        if is_free {
            self.partitions.insert(partition.to_owned());
        }
        is_free
    }

    fn group(
        &mut self,
        name: &str,
        partition: &str,
        left_out: &[&str],
        batch: &RecordBatch,
    ) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let rows = batch.num_rows() as u64;
        let projection = Projection::without(&batch.schema(), left_out);
        let batch = batch.project(&projection.indices)?;
        let writer = self.writer(name, partition, projection.schema)?;
        let written = writer.to.write(&batch).and_then(|()| writer.to.flush());
        written.map_err(|error| writer.unwritten(error))?;
        writer.rows += rows;
        *self.rows.entry(name.to_owned()).or_default() += rows;
        Ok(())
    }

    /// The open file of a table. If too many files are open, closes the least recently used one.
    fn writer(&mut self, name: &str, partition: &str, schema: SchemaRef) -> Result<&mut Writer> {
        let key = match partition {
            "" => name.to_owned(),
            partition => format!("{name}/{partition}"),
        };
        let is_open = match self.tables.get(&key) {
            Some(table) => table.writer.is_some(),
            None => false,
        };
        if !is_open && self.open >= MAX_OPEN {
            self.close_oldest()?;
        }
        self.uses += 1;
        let table = self.tables.entry(key.clone()).or_default();
        table.used = self.uses;
        match &mut table.writer {
            Some(writer) => Ok(writer),
            closed => {
                let folder = self.folder.join(&key);
                let part = part_name(&self.trace, table.parts);
                let path = self.root.join(key).join(&part);
                let file =
                    fs::create_dir_all(&folder).and_then(|()| File::create(folder.join(part)));
                let file = file.map_err(|error| failed(&path, error))?;
                table.parts += 1;
                self.open += 1;
                let properties = self.properties.clone();
                let to = ArrowWriter::try_new(BufWriter::new(file), schema, Some(properties))
                    .map_err(|error| unwritten(&path, error))?;
                let rows = 0;
                Ok(closed.insert(Writer { to, path, rows }))
            }
        }
    }

    /// Closes the least recently used file.
    fn close_oldest(&mut self) -> Result<()> {
        let tables = self.tables.values_mut();
        let open = tables.filter(|table| table.writer.is_some());
        if let Some(oldest) = open.min_by_key(|table| table.used) {
            self.bytes += close(&self.trace, oldest.writer.take())?;
            self.open -= 1;
        }
        Ok(())
    }

    /// Closes all files; returns their sizes.
    pub fn finish(&mut self) -> Result<Totals> {
        for table in self.tables.values_mut() {
            self.bytes += close(&self.trace, table.writer.take())?;
        }
        self.open = 0;
        Ok(Totals {
            rows: std::mem::take(&mut self.rows),
            bytes: self.bytes,
        })
    }
}

/// The sizes of all files.
#[derive(Clone, Debug)]
pub(super) struct Totals {
    /// Rows by table.
    pub rows: BTreeMap<String, u64>,
    pub bytes: u64,
}

/// Closes a file; returns its size.
fn close(trace: &str, writer: Option<Writer>) -> Result<u64> {
    let Some(mut writer) = writer else {
        return Ok(0);
    };
    let rows = BTreeMap::from([(trace.to_owned(), writer.rows)]);
    writer.to.append_key_value_metadata(traces_of(&rows)?);
    let finished = writer.to.finish();
    finished.map_err(|error| writer.unwritten(error))?;
    Ok(writer.to.bytes_written() as u64)
}

/// Some columns of batches.
struct Projection {
    schema: SchemaRef,
    /// The indices of the columns.
    indices: Vec<usize>,
}

impl Projection {
    /// All columns, except the columns with these names.
    fn without(schema: &Schema, names: &[&str]) -> Self {
        let mut fields = Vec::new();
        let mut indices = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            if !names.contains(&field.name().as_str()) {
                fields.push(Arc::clone(field));
                indices.push(index);
            }
        }
        let schema = Schema::new(fields).with_metadata(schema.metadata().clone());
        Projection {
            schema: Arc::new(schema),
            indices,
        }
    }
}

/// A batch with another name of a column.
fn renamed(batch: &RecordBatch, column: &str, name: &str) -> Result<RecordBatch> {
    let schema = batch.schema();
    let mut fields = Vec::new();
    for field in schema.fields() {
        if field.name() == column {
            fields.push(Arc::new(field.as_ref().clone().with_name(name)));
        } else {
            fields.push(Arc::clone(field));
        }
    }
    let schema = Schema::new(fields).with_metadata(schema.metadata().clone());
    Ok(RecordBatch::try_new(
        Arc::new(schema),
        batch.columns().to_vec(),
    )?)
}

/// Some rows of a batch.
fn take(batch: &RecordBatch, rows: &UInt32Array) -> Result<RecordBatch> {
    Ok(arrow_select::take::take_record_batch(batch, rows)?)
}
