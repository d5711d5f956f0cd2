//! Data sets: folders of Parquet files with the tables of many traces.
//!
//! A file is `TABLE/STEM-HASH.parquet` with the rows of one trace, or `TABLE/packed.HASH.parquet`
//! with the rows of several ([`Dataset::compact`]). The column `trace` distinguishes them. Tables
//! without rows have no file but `TABLE/schema.parquet`, which each table has, so that engines find
//! its columns. A trace is written to a separate folder first and moved to its final folders when
//! it is complete; its entry in `_traces` comes last. One process writes to a data set at a time.
//! The next one removes what a killed process left.

mod check;
mod compact;
mod entry;
mod files;
mod journal;
mod layout;
mod lock;
mod remove;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use etl_format::read::{Damage, Source};

use crate::options::Options;
use crate::recorded::Recorded;
use crate::rows::traces::AboutFile;
use crate::tables::{self, EVENTS, Table};
use crate::{Error, Result};

pub use check::{Checked, Problem};
pub use compact::{Compacted, Packing};
use entry::Entry;
pub use entry::{Hash, hash};
pub use files::Codec;
use files::{Files, Totals};
use lock::Lock;
use remove::remove_incomplete;

/// The folder of traces that are not complete.
const UNFINISHED: &str = ".unfinished";
/// The word for the tables of the events of one kind, among the names of tables.
const TYPED: &str = "typed";

/// A data set.
///
/// ```no_run
/// use std::fs::File;
///
/// use etl_format::read::FileSource;
/// use etl_tables::Options;
/// use etl_tables::dataset::{Added, Dataset, hash};
///
/// let dataset = Dataset::open("dataset")?.tables(&["gcs", "samples"])?;
/// let hash = hash(&mut FileSource::new(File::open("trace.etl")?)?)?;
/// let source = FileSource::new(File::open("trace.etl")?)?;
/// let added = dataset.add(source, "trace.etl", &hash, Options::new("trace.etl"))?;
/// if let Added::Written { rows, .. } = added {
///     println!("{rows} rows");
/// }
/// dataset.finish()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dataset {
    root: PathBuf,
    tables: Vec<&'static Table>,
    typed: bool,
    by_provider: bool,
    codec: Codec,
    selection: String,
    entries: Vec<Entry>,
    names: Arc<Mutex<Names>>,
    /// The tables whose columns have a file.
    described: Arc<Mutex<BTreeSet<String>>>,
    lock: Arc<Lock>,
}

/// The hashes of the traces that have names, by the names in lower case: file systems may not
/// distinguish capital letters.
type Names = BTreeMap<String, String>;

/// The result of adding a trace.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Added {
    /// It was in the data set before.
    Known,
    /// It was written.
    Written {
        /// Its name in the data set: the value of `trace`.
        trace: String,
        /// Rows of all tables.
        rows: u64,
        /// Bytes of all files.
        bytes: u64,
        /// What could not be read of the trace.
        damage: Vec<Damage>,
    },
}

impl Dataset {
    /// Opens a data set, or creates it. No other process can write to it until the result and its
    /// clones are dropped. Removes what a killed process left.
    ///
    /// # Errors
    /// [`Error::Locked`] when another process, or another part of this one, has opened the data
    /// set. When the folder cannot be created or read, or its file system has no locks.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self> {
        let root = root.into();
        let lock = Lock::take(&root)?;
        Self::open_locked(root, lock)
    }

    /// As [`Dataset::open`], but waits until no other process has opened the data set.
    ///
    /// # Errors
    /// When the folder cannot be created or read, or its file system has no locks.
    pub fn open_when_free(root: impl Into<PathBuf>) -> Result<Self> {
        let root = root.into();
        let lock = Lock::wait(&root)?;
        Self::open_locked(root, lock)
    }

    fn open_locked(root: PathBuf, lock: Lock) -> Result<Self> {
        remove_folder(&root.join(UNFINISHED))?;
        journal::recover(&root)?;
        let entries = entry::read_all(&root)?;
        for trace in entry::announced(&root)? {
            let entry = entries.iter().find(|entry| entry.trace == trace);
            remove_incomplete(&root, &trace, entry)?;
        }
        let mut names = Names::new();
        for entry in &entries {
            names.insert(entry.trace.to_ascii_lowercase(), entry.hash.clone());
        }
        Ok(Dataset {
            root,
            tables: tables::ALL.to_vec(),
            typed: false,
            by_provider: false,
            codec: Codec::default(),
            selection: String::new(),
            entries,
            names: Arc::new(Mutex::new(names)),
            described: Arc::default(),
            lock: Arc::new(lock),
        })
    }

    /// The folder of traces that are not complete. Removing it ends the runs that write to it.
    #[must_use]
    pub fn unfinished(&self) -> PathBuf {
        self.root.join(UNFINISHED)
    }

    /// The tables that are written. Default: [`tables::ALL`].
    ///
    /// # Errors
    /// If there is no table with one of the names.
    pub fn tables<T: AsRef<str>>(self, names: &[T]) -> Result<Self> {
        let mut tables = Vec::new();
        for name in names {
            let name = name.as_ref();
            let table = Table::named(name).ok_or_else(|| Error::NoTable(name.to_owned()))?;
            tables.push(table);
        }
        Ok(Dataset { tables, ..self })
    }

    /// Also writes a table for each kind of event: `typed/Provider.Event`.
    #[must_use]
    pub fn typed_tables(self) -> Self {
        Dataset {
            typed: true,
            ..self
        }
    }

    /// Writes the rows of `events` to a file for each provider.
    #[must_use]
    pub fn events_by_provider(self) -> Self {
        Dataset {
            by_provider: true,
            ..self
        }
    }

    /// How pages are compressed. Default: Snappy.
    #[must_use]
    pub fn codec(self, codec: Codec) -> Self {
        Dataset { codec, ..self }
    }

    /// The filter of the options, in words. All traces of a data set must have the same selection.
    /// Default: the empty text, which selects everything.
    ///
    /// # Errors
    /// When the data set has a trace with another selection.
    pub fn selection(self, selection: impl Into<String>) -> Result<Self> {
        let selection = selection.into();
        for entry in &self.entries {
            if entry.selection != selection {
                let trace = entry.trace.clone();
                return Err(Error::OtherSelection(trace, entry.selection.clone()));
            }
        }
        Ok(Dataset { selection, ..self })
    }

    /// The names of the requested tables in entries.
    fn requested(&self) -> Vec<String> {
        let mut names = Vec::new();
        for table in &self.tables {
            if table.name == EVENTS.name && self.by_provider {
                names.push(format!("{} by provider", table.name));
            } else {
                names.push(table.name.to_owned());
            }
        }
        if self.typed {
            names.push(TYPED.to_owned());
        }
        names
    }

    /// The entry of the trace with this hash.
    fn entry(&self, hash: &Hash) -> Option<&Entry> {
        let hash = hash.to_string();
        self.entries.iter().find(|entry| entry.hash == hash)
    }

    /// Whether the data set has all requested tables of a trace.
    #[must_use]
    pub fn has(&self, hash: &Hash) -> bool {
        match self.entry(hash) {
            Some(entry) => self.missing(entry).is_empty(),
            None => false,
        }
    }

    /// The requested tables that an entry does not have.
    fn missing(&self, entry: &Entry) -> Vec<String> {
        let mut missing = self.requested();
        missing.retain(|table| !entry.tables.contains(table));
        missing
    }

    /// Chooses the name of a trace: the stem of its file and the beginning of its hash, or its
    /// whole hash if another trace has that name. Threads that add traces choose the names in any
    /// order; call this before for each trace, so that the names do not depend on the threads.
    pub fn name(&self, file: &str, hash: &Hash) -> String {
        if let Some(entry) = self.entry(hash) {
            return entry.trace.clone();
        }
        let all = hash.to_string();
        let short = entry::trace_name(file, &hash.short());
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = names.entry(short.to_ascii_lowercase());
        if *owner.or_insert_with(|| all.clone()) == all {
            return short;
        }
        entry::trace_name(file, &all)
    }

    /// Adds the tables of a trace that are not there yet. `file` is the path of its file. Several
    /// threads may add different traces.
    ///
    /// # Errors
    /// When the trace cannot be read or a file cannot be written. Then the data set does not
    /// change.
    pub fn add<S: Source>(
        &self,
        source: S,
        file: &str,
        hash: &Hash,
        options: Options,
    ) -> Result<Added> {
        let old = self.entry(hash);
        let mut entry = match old {
            Some(entry) => entry.clone(),
            None => Entry::new(self.name(file, hash), file, hash, &self.selection),
        };
        let missing = self.missing(&entry);
        if missing.is_empty() {
            return Ok(Added::Known);
        }
        let about = AboutFile {
            path: file.to_owned(),
            size_bytes: source.size(),
            sha256: hash.to_string(),
        };
        let options = options.about(about);
        let trace = entry.trace.clone();
        let folder = self.unfinished().join(&trace);
        remove_folder(&folder)?;
        let mut files = Files::new(&self.root, &folder, &trace, self.codec);
        let written = self.write(source, options, &missing, &mut files);
        let written = written.and_then(|damage| {
            let totals = files.finish()?;
            let new = NewTables {
                names: missing,
                rows: totals.rows.clone(),
                files: files.paths(),
            };
            self.move_files(&folder, &mut entry, new)?;
            Ok(WrittenTables { totals, damage })
        });
        // An error of the trace is more important than an error of removing the folder.
        let removed = remove_folder(&folder);
        let WrittenTables { totals, damage } = written?;
        removed?;
        Ok(Added::Written {
            trace,
            rows: totals.rows.values().sum(),
            bytes: totals.bytes,
            damage,
        })
    }

    /// Moves the tables of a trace from its unfinished folder to their final folders, and adds them
    /// to its entry once all files are there. After an error the data set has none of them.
    fn move_files(&self, folder: &Path, entry: &mut Entry, new: NewTables) -> Result<()> {
        let had_tables = entry.tables.len();
        // A table in another layout replaces the old one.
        let is_replaced = |old: &String| new.names.iter().any(|new| table_of(new) == table_of(old));
        entry.tables.retain(|old| !is_replaced(old));
        if entry.tables.len() < had_tables {
            entry.rows.retain(|table, _| is_among(table, &entry.tables));
            entry.announce(&self.root)?;
            entry.complete(&self.root)?;
            self.remove_tables(&entry.trace, &new.names)?;
        }
        let kept = (had_tables > 0).then(|| entry.clone());
        entry.tables.extend(new.names);
        entry.rows.extend(new.rows);
        entry.announce(&self.root)?;
        let moved = move_all(folder, &self.root, &new.files);
        let completed = moved.and_then(|()| entry.complete(&self.root));
        if completed.is_err() {
            remove_incomplete(&self.root, &entry.trace, kept.as_ref())?;
        }
        completed
    }

    /// Writes `views.sql`, and removes the folder of unfinished traces, if it is empty; if the data
    /// set has no trace, also the files that are about the data set. Call it once all traces were
    /// added.
    ///
    /// # Errors
    /// When `views.sql` cannot be written.
    pub fn finish(&self) -> Result<()> {
        // A folder that is not empty stays.
        let _ = fs::remove_dir(self.unfinished());
        if entry::read_all(&self.root)?.is_empty() {
            let _ = fs::remove_dir(self.root.join(entry::FOLDER));
            self.remove_descriptions();
            self.lock.remove();
            return Ok(());
        }
        views::write(&self.root)
    }

    /// Removes the files of the columns of tables, which have no rows.
    fn remove_descriptions(&self) {
        let described = self
            .described
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for table in described.iter() {
            let folder = self.root.join(table);
            // What is not empty stays.
            let _ = fs::remove_file(folder.join(layout::SCHEMA_FILE));
            let _ = fs::remove_dir(folder);
        }
    }

    /// Writes the file of the columns of a table, once.
    fn describe(&self, table: &str, schema: &SchemaRef) -> Result<()> {
        let mut described = self
            .described
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A file that cannot be written has a folder to remove all the same.
        if described.insert(table.to_owned()) {
            files::write_schema(&self.root, table, schema)?;
        }
        Ok(())
    }

    fn write<S: Source>(
        &self,
        source: S,
        options: Options,
        missing: &[String],
        files: &mut Files,
    ) -> Result<Vec<Damage>> {
        let options = Options {
            trace: files.trace().to_owned(),
            columns: Vec::new(),
            ..options
        };
        let mut recorded = Recorded::open(source, options)?;
        let mut facts = self.tables.clone();
        facts.retain(|table| table.name != EVENTS.name && is_among(table.name, missing));
        if !facts.is_empty() {
            for table in &facts {
                self.describe(table.name, &table.schema())?;
            }
            recorded.write_facts(&facts, &mut |table, batch| files.write(table.name, &batch))?;
        }
        if is_among(EVENTS.name, missing) {
            let by_provider = self.by_provider;
            if !by_provider {
                self.describe(EVENTS.name, &EVENTS.schema())?;
            }
            recorded.write_events(&mut |batch: RecordBatch| match by_provider {
                true => files.write_by(EVENTS.name, "provider", &batch),
                false => files.write(EVENTS.name, &batch),
            })?;
        }
        if is_among(TYPED, missing) {
            let tables = recorded.typed()?;
            recorded.write_typed(&tables, &mut |table, batch| {
                let folder = layout::typed_folder(&table.name);
                files.write(&format!("{TYPED}/{folder}"), &batch)
            })?;
        }
        Ok(recorded.into_damage())
    }
}

/// Moves files, whose paths are from both folders, to the data set.
fn move_all(from: &Path, root: &Path, files: &[PathBuf]) -> Result<()> {
    for file in files {
        let target = root.join(file);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        }
        fs::rename(from.join(file), &target).map_err(|error| failed(&target, error))?;
    }
    Ok(())
}

/// Tables of a trace that are written and not in the data set yet.
struct NewTables {
    /// Their names in entries.
    names: Vec<String>,
    /// Their rows, by the folder of the table.
    rows: BTreeMap<String, u64>,
    /// Their files, from the folder of the data set.
    files: Vec<PathBuf>,
}

/// The tables of a trace that were written.
struct WrittenTables {
    totals: Totals,
    damage: Vec<Damage>,
}

/// The name of a table in the name that entries have for it, or in the path of its folder: without
/// its layout, and without the kind of events.
fn table_of(requested: &str) -> Option<&str> {
    requested.split([' ', '/']).next()
}

/// Whether a table is among the tables of an entry, in any layout.
fn is_among(table: &str, requested: &[String]) -> bool {
    requested
        .iter()
        .any(|name| table_of(name) == table_of(table))
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::File(path.display().to_string(), error)
}

/// Removes a folder with its content, if it exists.
fn remove_folder(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
mod tests;
