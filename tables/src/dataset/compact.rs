//! Packs the rows of many small files into few large ones.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::Compression;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::statistics::Statistics;

use super::files::{TRACES_KEY, properties, traces_of, unwritten};
use super::journal::Replacement;
use super::layout::{PACKED, files_in, table_folders};
use super::{Dataset, Hash, UNFINISHED, failed, remove_folder};
use crate::{Error, Result};

/// How large packed files are.
///
/// ```
/// use etl_tables::dataset::Packing;
///
/// assert_eq!(Packing::default().bytes, 128 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Bytes of the files that are packed into one. Files of half the size and more stay as they
    /// are.
    pub bytes: u64,
}

impl Default for Packing {
    fn default() -> Self {
        Packing { bytes: 128 << 20 }
    }
}

/// The result of [`Dataset::compact`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Files that were replaced.
    pub replaced: u64,
    /// Bytes of these files.
    pub replaced_bytes: u64,
    /// Files that replace them.
    pub written: u64,
    /// Bytes of these files.
    pub written_bytes: u64,
}

/// A file with rows.
#[derive(Debug)]
pub(super) struct DataFile {
    pub path: PathBuf,
    pub bytes: u64,
    schema: SchemaRef,
    compression: Compression,
    /// The earliest time of its rows, if they have one.
    first: Option<i64>,
    /// Its rows by trace, as it states them.
    pub traces: BTreeMap<String, u64>,
}

impl DataFile {
    /// Reads what a file states of itself.
    pub fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| failed(path, error))?;
        let bytes = file.metadata().map_err(|error| failed(path, error))?.len();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file)
            .map_err(|error| unwritten(path, error))?;
        let metadata = reader.metadata();
        let of_file = metadata.file_metadata();
        let mut traces = None;
        for pair in of_file.key_value_metadata().into_iter().flatten() {
            if pair.key == TRACES_KEY {
                traces = serde_json::from_str(pair.value.as_deref().unwrap_or_default()).ok();
            }
        }
        let Some(traces) = traces else {
            let reason = "it does not state its traces".to_owned();
            return Err(Error::NoEntry(path.display().to_string(), reason));
        };
        Ok(DataFile {
            path: path.to_owned(),
            bytes,
            schema: Arc::clone(reader.schema()),
            compression: compression(metadata),
            first: first_time(metadata),
            traces,
        })
    }

    /// Its rows, batch by batch.
    pub fn batches(&self) -> Result<ParquetRecordBatchReader> {
        let file = File::open(&self.path).map_err(|error| failed(&self.path, error))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(file);
        reader
            .and_then(ParquetRecordBatchReaderBuilder::build)
            .map_err(|error| unwritten(&self.path, error))
    }
}

/// How the pages of a file are compressed.
fn compression(metadata: &ParquetMetaData) -> Compression {
    let columns = metadata.row_groups().first().map(|group| group.columns());
    match columns.and_then(<[_]>::first) {
        Some(column) => column.compression(),
        None => Compression::UNCOMPRESSED,
    }
}

/// The earliest value of the column `time`, from the statistics of the groups of rows.
fn first_time(metadata: &ParquetMetaData) -> Option<i64> {
    let columns = metadata.file_metadata().schema_descr().columns();
    let column = columns.iter().position(|column| column.name() == "time")?;
    let mut first = None;
    for group in metadata.row_groups() {
        let statistics = group.columns().get(column)?.statistics();
        let Some(Statistics::Int64(statistics)) = statistics else {
            return None;
        };
        let least = statistics.min_opt().copied();
        first = match (first, least) {
            (Some(first), Some(least)) => Some(least.min(first)),
            (first, least) => first.or(least),
        };
    }
    first
}

impl Dataset {
    /// Packs the rows of small files into large ones, table by table, in the order of their times,
    /// compressed as before.
    /// Who reads meanwhile may find rows twice, until the replaced files are gone.
    ///
    /// # Errors
    /// When a file cannot be read, written or removed. Then the rows of its table are in the old
    /// files or in the new one, and the next process that opens the data set removes the others.
    pub fn compact(&self, packing: Packing) -> Result<Compacted> {
        let mut done = Compacted::default();
        for folder in table_folders(&self.root)? {
            for group in groups(&folder, packing)? {
                let written = pack(&self.root, &folder, &group.files)?;
                done.replaced += group.files.len() as u64;
                done.replaced_bytes += group.bytes;
                done.written += 1;
                done.written_bytes += written;
            }
        }
        remove_folder(&self.root.join(UNFINISHED))?;
        Ok(done)
    }
}

/// The files of a folder that are packed together.
fn groups(folder: &Path, packing: Packing) -> Result<Vec<Group>> {
    let mut small = Vec::new();
    for path in files_in(folder)? {
        let metadata = fs::metadata(&path).map_err(|error| failed(&path, error))?;
        if metadata.len() < packing.bytes / 2 {
            small.push(DataFile::read(&path)?);
        }
    }
    // Files without times come last; the names are in order already.
    small.sort_by_key(|file| file.first.unwrap_or(i64::MAX));
    let mut groups: Vec<Group> = Vec::new();
    for file in small {
        let fitting = groups.iter_mut().rev().find(|group| {
            let has_columns = group.schema.fields() == file.schema.fields();
            has_columns && group.bytes + file.bytes <= packing.bytes
        });
        match fitting {
            Some(group) => group.push(file),
            None => groups.push(Group::of(file)),
        }
    }
    groups.retain(|group| group.files.len() > 1);
    Ok(groups)
}

/// Files that are packed together.
#[derive(Debug)]
struct Group {
    schema: SchemaRef,
    bytes: u64,
    files: Vec<DataFile>,
}

impl Group {
    fn of(file: DataFile) -> Self {
        Group {
            schema: Arc::clone(&file.schema),
            bytes: file.bytes,
            files: vec![file],
        }
    }

    fn push(&mut self, file: DataFile) {
        self.bytes += file.bytes;
        self.files.push(file);
    }
}

/// Writes the rows of files into one, which replaces them. Returns its size.
fn pack(root: &Path, folder: &Path, files: &[DataFile]) -> Result<u64> {
    let mut traces = BTreeMap::new();
    for file in files {
        for (trace, rows) in &file.traces {
            *traces.entry(trace.clone()).or_default() += rows;
        }
    }
    replace(
        root,
        folder,
        files,
        &Kept {
            traces,
            trace: None,
        },
    )
}

/// Writes a packed file again without the rows of a trace.
pub(super) fn rewrite_without(root: &Path, file: &DataFile, trace: &str) -> Result<()> {
    let mut traces = file.traces.clone();
    traces.remove(trace);
    let folder = file.path.parent().unwrap_or(root);
    let kept = Kept {
        traces,
        trace: Some(trace),
    };
    let files = std::slice::from_ref(file);
    replace(root, folder, files, &kept)?;
    Ok(())
}

/// The rows that a new file has.
struct Kept<'t> {
    /// Their numbers by trace.
    traces: BTreeMap<String, u64>,
    /// The trace whose rows are left out.
    trace: Option<&'t str>,
}

fn replace(root: &Path, folder: &Path, files: &[DataFile], kept: &Kept<'_>) -> Result<u64> {
    let from_root = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_owned();
    let old: Vec<PathBuf> = files.iter().map(|file| from_root(&file.path)).collect();
    if kept.traces.is_empty() {
        Replacement { new: None, old }.carry_out(root, None)?;
        return Ok(0);
    }
    let new = folder.join(packed_name(folder, files, kept));
    let unfinished = root.join(UNFINISHED);
    fs::create_dir_all(&unfinished).map_err(|error| failed(&unfinished, error))?;
    let finished = unfinished.join("packed.parquet");
    let bytes = write(&finished, files, kept)?;
    let replacement = Replacement {
        new: Some(from_root(&new)),
        old,
    };
    replacement.carry_out(root, Some(&finished))?;
    Ok(bytes)
}

/// The name of a file with the rows of several traces: a hash of what it has.
fn packed_name(folder: &Path, files: &[DataFile], kept: &Kept<'_>) -> String {
    let mut content = String::new();
    for file in files {
        content += &format!("{}\n", file.path.display());
    }
    for (trace, rows) in &kept.traces {
        content += &format!("{trace} {rows}\n");
    }
    loop {
        let name = format!("{PACKED}{}.parquet", Hash::of(content.as_bytes()).short());
        if !folder.join(&name).exists() {
            return name;
        }
        content.push('+');
    }
}

fn write(path: &Path, files: &[DataFile], kept: &Kept<'_>) -> Result<u64> {
    let Some(first) = files.first() else {
        return Ok(0);
    };
    let file = File::create(path).map_err(|error| failed(path, error))?;
    let schema = Arc::clone(&first.schema);
    let properties = properties(first.compression);
    let writer = ArrowWriter::try_new(BufWriter::new(file), schema, Some(properties));
    let mut writer = writer.map_err(|error| unwritten(path, error))?;
    for file in files {
        for batch in file.batches()? {
            let batch = match kept.trace {
                Some(trace) => without(&batch?, trace)?,
                None => batch?,
            };
            let written = writer.write(&batch);
            written.map_err(|error| unwritten(path, error))?;
        }
    }
    writer.append_key_value_metadata(traces_of(&kept.traces)?);
    let finished = writer.finish();
    finished.map_err(|error| unwritten(path, error))?;
    Ok(writer.bytes_written() as u64)
}

/// The rows of a batch that are not of a trace.
fn without(batch: &RecordBatch, trace: &str) -> Result<RecordBatch> {
    let names = trace_names(batch);
    let kept: BooleanArray = names
        .iter()
        .map(|name| Some(*name != Some(trace)))
        .collect();
    Ok(arrow_select::filter::filter_record_batch(batch, &kept)?)
}

/// The names of the traces of the rows of a batch.
pub(super) fn trace_names(batch: &RecordBatch) -> Vec<Option<&str>> {
    let Some(column) = batch.column_by_name("trace") else {
        return vec![None; batch.num_rows()];
    };
    let Some(words) = column.as_dictionary_opt::<Int32Type>() else {
        return vec![None; batch.num_rows()];
    };
    let Some(texts) = words.values().as_string_opt::<i32>() else {
        return vec![None; batch.num_rows()];
    };
    let rows = 0..batch.num_rows();
    rows.map(|row| {
        let key = words.key(row)?;
        (key < texts.len()).then(|| texts.value(key))
    })
    .collect()
}
