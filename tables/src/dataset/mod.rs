//! Data sets: folders of Parquet files with the tables of many traces.
//!
//! A file is `TABLE/trace=STEM-HASH/part-0.parquet`, as Hive lays partitions out: the column
//! `trace` is the name of the folder. A trace is written to a folder of its own first and moved to
//! its places when it is whole; its entry in `_traces` comes last. So a run that is killed leaves
//! nothing that the next run would take for a whole trace.

mod entry;
mod files;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use etl_format::read::{Damage, Source};

use crate::options::Options;
use crate::recorded::Recorded;
use crate::tables::{self, EVENTS, Table};
use crate::{Error, Result};

use entry::Entry;
pub use entry::{Hash, hash};
pub use files::Codec;
use files::Files;

/// Where traces that are not whole yet are written.
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
/// dataset.finish();
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
}

/// What became of a trace.
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
    /// Opens a data set, or creates it. What a killed run left is removed: only one process may
    /// write to a data set at a time.
    ///
    /// # Errors
    /// When the folder cannot be created or read.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self> {
        let root = root.into();
        let unfinished = root.join(UNFINISHED);
        fs::create_dir_all(&root).map_err(|error| failed(&root, error))?;
        remove(&unfinished)?;
        let entries = entry::read_all(&root)?;
        Ok(Dataset {
            root,
            tables: tables::ALL.to_vec(),
            typed: false,
            by_provider: false,
            codec: Codec::default(),
            selection: String::new(),
            entries,
        })
    }

    /// The folder of traces that are not whole yet. It may be removed at any time: that ends the
    /// traces in it.
    #[must_use]
    pub fn unfinished(&self) -> PathBuf {
        self.root.join(UNFINISHED)
    }

    /// The tables that are written. Default: [`tables::ALL`].
    ///
    /// # Errors
    /// For a name of no table.
    pub fn tables<T: AsRef<str>>(self, names: &[T]) -> Result<Self> {
        let table = |name: &T| {
            let name = name.as_ref();
            Table::named(name).ok_or_else(|| Error::NoTable(name.to_owned()))
        };
        let tables = names.iter().map(table).collect::<Result<_>>()?;
        Ok(Dataset { tables, ..self })
    }

    /// Whether there is a table for each kind of event: `typed/Provider.Event`. Default: off.
    #[must_use]
    pub fn typed(self, typed: bool) -> Self {
        Dataset { typed, ..self }
    }

    /// Whether the rows of `events` are in a file for each provider. Default: off.
    #[must_use]
    pub fn by_provider(self, by_provider: bool) -> Self {
        Dataset {
            by_provider,
            ..self
        }
    }

    /// How pages are compressed. Default: Snappy.
    #[must_use]
    pub fn codec(self, codec: Codec) -> Self {
        Dataset { codec, ..self }
    }

    /// What the filter of the options selects, in words: a data set has all traces with the same
    /// one. Default: everything, the empty text.
    ///
    /// # Errors
    /// When the data set has a trace with another selection.
    pub fn selection(self, selection: impl Into<String>) -> Result<Self> {
        let selection = selection.into();
        match self
            .entries
            .iter()
            .find(|entry| entry.selection != selection)
        {
            Some(entry) => Err(Error::OtherSelection(
                entry.trace.clone(),
                entry.selection.clone(),
            )),
            None => Ok(Dataset { selection, ..self }),
        }
    }

    /// The names of what is written, as entries have them.
    fn wanted(&self) -> Vec<String> {
        let word = |table: &&Table| match table.name {
            name if name == EVENTS.name && self.by_provider => format!("{name} by provider"),
            name => name.to_owned(),
        };
        let tables = self.tables.iter().map(word);
        tables.chain(self.typed.then(|| TYPED.to_owned())).collect()
    }

    /// Whether all tables that are wanted of a trace are there.
    #[must_use]
    pub fn has(&self, hash: &Hash) -> bool {
        let entry = self
            .entries
            .iter()
            .find(|entry| entry.hash == hash.to_string());
        entry.is_some_and(|entry| {
            self.wanted()
                .iter()
                .all(|table| entry.tables.contains(table))
        })
    }

    /// Adds the tables of a trace that are not there yet. `file` is the name of its file. Several
    /// threads may add different traces.
    ///
    /// # Errors
    /// When the trace cannot be read or a file cannot be written; the data set then is as before.
    pub fn add<S: Source>(
        &self,
        source: S,
        file: &str,
        hash: &Hash,
        options: Options,
    ) -> Result<Added> {
        let known = self
            .entries
            .iter()
            .find(|entry| entry.hash == hash.to_string());
        let mut entry = known
            .cloned()
            .unwrap_or_else(|| Entry::new(file, hash, &self.selection));
        let missing: Vec<String> = self
            .wanted()
            .into_iter()
            .filter(|table| !entry.tables.contains(table))
            .collect();
        if missing.is_empty() {
            return Ok(Added::Known);
        }
        let trace = entry.trace.clone();
        let folder = self.unfinished().join(&trace);
        remove(&folder)?;
        let mut files = Files::new(&self.root, &folder, &trace, self.codec, hash);
        let written = self.write(source, &trace, options, &missing, &mut files);
        let totals = written.and_then(|damage| Ok((files.finish()?, damage)));
        let moved = totals.and_then(|totals| {
            for table in fs::read_dir(&folder).into_iter().flatten() {
                let table = table.map_err(|error| failed(&folder, error))?;
                self.place(&table.path(), Path::new(&table.file_name()))?;
            }
            Ok(totals)
        });
        // Gone or not, the error of the trace is what counts.
        let removed = remove(&folder);
        let ((rows, bytes), damage) = moved?;
        removed?;
        let layout = |name: &str| name.split(' ').next().map(str::to_owned);
        entry
            .tables
            .retain(|old| !missing.iter().any(|new| layout(new) == layout(old)));
        entry.tables.extend(missing);
        entry.write(&self.root)?;
        Ok(Added::Written {
            trace,
            rows,
            bytes,
            damage,
        })
    }

    /// Removes the folder of unfinished traces, if it is empty. Call it once all traces were added.
    pub fn finish(&self) {
        // A folder that is not empty stays.
        let _ = fs::remove_dir(self.unfinished());
    }

    fn write<S: Source>(
        &self,
        source: S,
        trace: &str,
        options: Options,
        missing: &[String],
        files: &mut Files,
    ) -> Result<Vec<Damage>> {
        let wants = |name: &str| {
            let is_it = |word: &String| word.split(' ').next() == Some(name);
            missing.iter().any(is_it)
        };
        let options = Options {
            trace: trace.to_owned(),
            columns: Vec::new(),
            ..options
        };
        let mut recorded = Recorded::open(source, options)?;
        let facts: Vec<&'static Table> = self
            .tables
            .iter()
            .copied()
            .filter(|table| table.name != EVENTS.name && wants(table.name))
            .collect();
        if !facts.is_empty() {
            // Empty tables have a file as well, so that engines find their columns.
            for table in &facts {
                files.table(table.name, &table.schema())?;
            }
            recorded.write_facts(&facts, &mut |table, batch| files.write(table.name, &batch))?;
        }
        if wants(EVENTS.name) {
            let by_provider = self.by_provider;
            if !by_provider {
                files.table(EVENTS.name, &EVENTS.schema())?;
            }
            recorded.write_events(&mut |batch: RecordBatch| match by_provider {
                true => files.write_by(EVENTS.name, "provider", &batch),
                false => files.write(EVENTS.name, &batch),
            })?;
        }
        if wants(TYPED) {
            let tables = recorded.typed()?;
            recorded.write_typed(&tables, &mut |table, batch| {
                files.write(
                    &format!("{TYPED}/{}", files::typed_folder(&table.name)),
                    &batch,
                )
            })?;
        }
        Ok(recorded.into_damage())
    }

    /// Moves the folder of a table of a trace, and those in it, to their place.
    fn place(&self, from: &Path, to: &Path) -> Result<()> {
        let is_trace = |path: &Path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("trace="))
        };
        let entries = fs::read_dir(from).map_err(|error| failed(from, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| failed(from, error))?;
            let path = entry.path();
            let place = to.join(entry.file_name());
            if !is_trace(&path) {
                self.place(&path, &place)?;
                continue;
            }
            let target = self.root.join(&place);
            // What a killed run left, or another layout.
            remove(&target)?;
            let parent = self.root.join(to);
            fs::create_dir_all(&parent).map_err(|error| failed(&parent, error))?;
            fs::rename(&path, &target).map_err(|error| failed(&target, error))?;
        }
        Ok(())
    }
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::File(path.display().to_string(), error)
}

/// Removes a folder with all that is in it, if it is there.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, error)),
        _ => Ok(()),
    }
}
