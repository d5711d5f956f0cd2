//! Names the code of a recording by PDBs.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use etl_schema::views::Pdb;

use super::error::{Error, Result};
use super::id::PdbId;
use super::native::{FunctionTable, functions};
use super::paths::{Found, PdbKind, SymbolPaths};
use super::portable::source_lines;
use crate::machine::Machine;
use crate::profile::{CodeNames, CodeSource, IlPoint, WantedCode};
use crate::symbols::{FunctionNames, FunctionOffset, Image};

/// Sees the errors of a [`Symbolizer`].
type ErrorObserver = Box<dyn Fn(&Error) + Send + Sync>;

/// Names the code of recordings by PDBs: the code of a profile, and single addresses.
///
/// A PDB is read when the first address needs it. A missing or damaged PDB is not an error:
/// its code has no names, [`take_missing`](Self::take_missing) counts it, and
/// [`on_error`](Self::on_error) sees what is wrong.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use etl_analysis::pdb::{SymbolPaths, Symbolizer};
/// use etl_analysis::profile::{FrameTotal, IlMaps, ProfileOptions, SampleCollector};
/// use etl_analysis::{Analysis, Recording};
///
/// let symbols = Arc::new(Symbolizer::new(SymbolPaths::new(["symbols".into()])?));
/// let bytes = std::fs::read("trace.etl")?;
/// let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
/// let mut observers = (SampleCollector::new(), IlMaps::new());
/// let machine = Analysis::new().with_names().run(&mut recording, &mut observers)?;
/// let (samples, maps) = observers;
///
/// let options = ProfileOptions::new().code_source(symbols.clone()).il_maps(maps);
/// let profile = samples.profile(&machine, &options);
/// for FrameTotal { frame, total, .. } in profile.by_frame() {
///     println!("{:8} {}", total.inclusive.samples, profile.label(frame));
/// }
/// println!("{} PDBs are missing", symbols.take_missing());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Symbolizer {
    paths: SymbolPaths,
    on_error: Option<ErrorObserver>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` for a PDB without functions: it is missing, damaged, or a portable PDB.
    tables: BTreeMap<Pdb, Option<Arc<FunctionTable>>>,
    missing: BTreeSet<Pdb>,
}

impl fmt::Debug for Symbolizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbolizer")
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}

impl PdbId {
    /// The identity of a PDB of a machine.
    ///
    /// ```
    /// use etl_analysis::Machine;
    /// use etl_analysis::pdb::PdbId;
    /// use etl_schema::views::Pdb;
    ///
    /// fn server_path(machine: &Machine, pdb: Pdb) -> String {
    ///     PdbId::of_machine(machine, pdb).server_path()
    /// }
    /// ```
    #[must_use]
    pub fn of_machine(machine: &Machine, pdb: Pdb) -> Self {
        PdbId::new(machine.pdb_path(pdb), pdb.signature, pdb.age)
    }
}

impl Symbolizer {
    /// Names code by the PDBs in these places.
    #[must_use]
    pub fn new(paths: SymbolPaths) -> Self {
        Symbolizer {
            paths,
            on_error: None,
            state: Mutex::default(),
        }
    }

    /// Calls a function with each error: a PDB that cannot be read, or a file with its name that is
    /// another PDB. Default: errors are ignored.
    #[must_use]
    pub fn on_error(self, observer: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        Symbolizer {
            on_error: Some(Box::new(observer)),
            ..self
        }
    }

    /// Where PDBs are looked for.
    #[must_use]
    pub fn paths(&self) -> &SymbolPaths {
        &self.paths
    }

    /// How many PDBs of images were needed since the last call and could not be used.
    pub fn take_missing(&self) -> usize {
        std::mem::take(&mut self.state().missing).len()
    }

    /// Looks for a PDB of a machine.
    #[must_use]
    pub fn find(&self, machine: &Machine, pdb: Pdb) -> Option<Found> {
        let search = self.paths.find(&PdbId::of_machine(machine, pdb));
        if search.found.is_none() {
            for error in &search.others {
                self.report(error);
            }
        }
        search.found
    }

    fn report(&self, error: &Error) {
        if let Some(observer) = &self.on_error {
            observer(error);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The functions of an image, from its PDB.
    fn read_table(&self, machine: &Machine, pdb: Pdb) -> Option<Arc<FunctionTable>> {
        let found = self.find(machine, pdb)?;
        if found.kind != PdbKind::Windows {
            return None;
        }
        match FunctionTable::read(&found.path) {
            Ok(table) => Some(Arc::new(table)),
            Err(error) => {
                self.report(&error);
                None
            }
        }
    }

    fn table(&self, machine: &Machine, pdb: Pdb) -> Option<Arc<FunctionTable>> {
        let state = &mut *self.state();
        let table = match state.tables.entry(pdb) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(self.read_table(machine, pdb)),
        };
        if table.is_none() {
            state.missing.insert(pdb);
        }
        table.clone()
    }
}

impl FunctionNames for Symbolizer {
    fn function(&self, machine: &Machine, image: &Image<'_>) -> Option<FunctionOffset> {
        let offset = u32::try_from(image.offset).ok()?;
        self.table(machine, image.pdb?)?.at(offset)
    }
}

impl CodeSource for Symbolizer {
    fn names(&self, machine: &Machine, wanted: &WantedCode) -> CodeNames {
        let mut names = CodeNames::new();
        let pdbs: BTreeSet<Pdb> = wanted
            .native
            .keys()
            .chain(wanted.managed.keys())
            .copied()
            .collect();
        for pdb in pdbs {
            let Some(found) = self.find(machine, pdb) else {
                if wanted.native.contains_key(&pdb) {
                    self.state().missing.insert(pdb);
                }
                continue;
            };
            let added = match found.kind {
                PdbKind::Windows => add_functions(&mut names, &found.path, pdb, wanted),
                PdbKind::Portable => add_lines(&mut names, &found.path, pdb, wanted),
            };
            if let Err(error) = added {
                self.report(&error);
            }
        }
        names
    }
}

/// Adds the functions that are wanted from a Windows PDB.
fn add_functions(names: &mut CodeNames, path: &Path, pdb: Pdb, wanted: &WantedCode) -> Result<()> {
    let offsets: Vec<u32> = wanted
        .native
        .get(&pdb)
        .into_iter()
        .flatten()
        .copied()
        .collect();
    for (offset, functions) in offsets.iter().zip(functions(path, &offsets)?) {
        names.add_functions(pdb, *offset, functions);
    }
    Ok(())
}

/// Adds the source lines that are wanted from a portable PDB.
fn add_lines(names: &mut CodeNames, path: &Path, pdb: Pdb, wanted: &WantedCode) -> Result<()> {
    let points: Vec<IlPoint> = wanted
        .managed
        .get(&pdb)
        .into_iter()
        .flatten()
        .copied()
        .collect();
    for (point, line) in points.iter().zip(source_lines(path, &points)?) {
        if let Some(line) = line {
            names.add_line(pdb, *point, line);
        }
    }
    Ok(())
}
