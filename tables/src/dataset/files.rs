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

use super::{Hash, failed};
use crate::{Error, Result};

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
/// The most characters of a name.
const MAX_WORD: usize = 100;
/// Bytes of a value in the name of a partition: file systems allow 255 for the whole name.
const MAX_PARTITION: usize = 200;

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

/// A value as the name of a partition, which engines decode. Other characters than plain ones are
/// percent signs and the numbers of their bytes, as in Hive.
fn partition(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let start = out.len();
        if is_plain(c) {
            out.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        // The hash distinguishes long names with the same beginning.
        if out.len() > MAX_PARTITION {
            out.truncate(start);
            return format!("{out}-{}", Hash::of(text.as_bytes()).short());
        }
    }
    // Windows drops a dot at the end.
    match out.strip_suffix('.') {
        Some(rest) => format!("{rest}%2E"),
        None => out,
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-".contains(c)
}

/// A text as the name of a folder, with underscores instead of characters that are not plain.
pub(super) fn word(text: &str) -> String {
    let mut word = String::new();
    for c in text.chars().take(MAX_WORD) {
        word.push(if is_plain(c) { c } else { '_' });
    }
    if word.trim_matches('.').is_empty() {
        "_".to_owned()
    } else {
        word
    }
}

/// The name of the folder of the events of one kind. A hash distinguishes long names with the same
/// beginning.
pub(super) fn typed_folder(table: &str) -> String {
    let folder = word(table);
    match table.chars().nth(MAX_WORD) {
        Some(_) => format!("{folder}-{}", Hash::of(table.as_bytes()).short()),
        None => folder,
    }
}

/// The name of a file of a table.
fn part_name(number: usize) -> String {
    format!("part-{number}.parquet")
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
}

impl Writer {
    /// The error of writing the file.
    fn unwritten(&self, error: ParquetError) -> Error {
        unwritten(&self.path, error)
    }
}

fn unwritten(path: &Path, error: ParquetError) -> Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => failed(path, *error),
            Err(error) => ParquetError::External(error).into(),
        },
        error => error.into(),
    }
}

/// The files of one trace.
pub(super) struct Files {
    /// The folder of the data set.
    root: PathBuf,
    /// The folder of the files until all are complete.
    folder: PathBuf,
    trace: String,
    properties: WriterProperties,
    tables: BTreeMap<String, Table>,
    /// The partitions that have files of their own.
    partitions: BTreeSet<String>,
    open: usize,
    uses: u64,
    rows: u64,
    bytes: u64,
}

impl Files {
    pub fn new(root: &Path, folder: &Path, trace: &str, codec: Codec, hash: &Hash) -> Self {
        let version = crate::SCHEMA_VERSION.to_string();
        let keys = vec![
            KeyValue::new("etlkit.schema".to_owned(), version),
            KeyValue::new("etlkit.trace.sha256".to_owned(), hash.to_string()),
        ];
        let mut properties = WriterProperties::builder()
            .set_compression(codec.compression())
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
        Files {
            root: root.to_owned(),
            folder: folder.to_owned(),
            trace: trace.to_owned(),
            properties: properties.build(),
            tables: BTreeMap::new(),
            partitions: BTreeSet::new(),
            open: 0,
            uses: 0,
            rows: 0,
            bytes: 0,
        }
    }

    /// The paths of all files so far, in the data set.
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for (key, table) in &self.tables {
            for part in 0..table.parts {
                paths.push(self.root.join(key).join(part_name(part)));
            }
        }
        paths
    }

    /// The name of the trace.
    pub fn trace(&self) -> &str {
        &self.trace
    }

    /// Adds a table, so that it has a file even without rows.
    pub fn table(&mut self, name: &str, schema: &SchemaRef) -> Result<()> {
        let projection = Projection::without(schema, &["trace"]);
        self.writer(name, "", projection.schema)?;
        Ok(())
    }

    /// Writes a batch as a group of rows; the column `trace` is the name of the folder.
    pub fn write(&mut self, name: &str, batch: &RecordBatch) -> Result<()> {
        self.group(name, "", &["trace"], batch)
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
            self.group(name, &partition, &["trace", column], &selected)?;
        }
        if !others.is_empty() {
            others.sort_unstable();
            let selected = take(batch, &UInt32Array::from(others))?;
            let selected = renamed(&selected, column, OTHER_PROVIDER)?;
            let partition = format!("{column}={}", partition(OTHERS));
            self.group(name, &partition, &["trace"], &selected)?;
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
        let projection = Projection::without(&batch.schema(), left_out);
        let batch = batch.project(&projection.indices)?;
        let writer = self.writer(name, partition, projection.schema)?;
        let written = writer.to.write(&batch).and_then(|()| writer.to.flush());
        written.map_err(|error| writer.unwritten(error))?;
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// The open file of a table. If too many files are open, closes the least recently used one.
    fn writer(&mut self, name: &str, partition: &str, schema: SchemaRef) -> Result<&mut Writer> {
        let key = format!("{name}/trace={}/{partition}", self.trace);
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
                let part = part_name(table.parts);
                let path = self.root.join(key).join(&part);
                let file =
                    fs::create_dir_all(&folder).and_then(|()| File::create(folder.join(part)));
                let file = file.map_err(|error| failed(&path, error))?;
                table.parts += 1;
                self.open += 1;
                let properties = self.properties.clone();
                let to = ArrowWriter::try_new(BufWriter::new(file), schema, Some(properties))
                    .map_err(|error| unwritten(&path, error))?;
                Ok(closed.insert(Writer { to, path }))
            }
        }
    }

    /// Closes the least recently used file.
    fn close_oldest(&mut self) -> Result<()> {
        let tables = self.tables.values_mut();
        let open = tables.filter(|table| table.writer.is_some());
        if let Some(oldest) = open.min_by_key(|table| table.used) {
            self.bytes += close(oldest.writer.take())?;
            self.open -= 1;
        }
        Ok(())
    }

    /// Closes all files; returns their sizes.
    pub fn finish(&mut self) -> Result<Totals> {
        for table in self.tables.values_mut() {
            self.bytes += close(table.writer.take())?;
        }
        self.open = 0;
        Ok(Totals {
            rows: self.rows,
            bytes: self.bytes,
        })
    }
}

/// The sizes of all files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    pub rows: u64,
    pub bytes: u64,
}

/// Closes a file; returns its size.
fn close(writer: Option<Writer>) -> Result<u64> {
    let Some(mut writer) = writer else {
        return Ok(0);
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_have_names_that_are_values_again() {
        for (value, name) in [
            ("Contoso.Shop_1-2", "Contoso.Shop_1-2"),
            ("KernelTraceControl/ImageID", "KernelTraceControl%2FImageID"),
            ("50% {a=b}", "50%25%20%7Ba%3Db%7D"),
            ("\u{e9}.", "%C3%A9%2E"),
        ] {
            assert_eq!(partition(value), name);
        }
    }

    #[test]
    fn long_names_are_distinct() {
        let long = |last: &str| "\u{e9}".repeat(150) + last;
        assert_ne!(partition(&long("a")), partition(&long("b")));
        assert!(partition(&long("a")).len() < 220);
        assert_ne!(typed_folder(&long("a")), typed_folder(&long("b")));
        assert_eq!(typed_folder(&"a".repeat(MAX_WORD)), "a".repeat(MAX_WORD));
    }
}
