//! `--symbols`: names of native functions, and source lines, from PDBs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use etl_analysis::Machine;
use etl_analysis::pdb::{Found, FunctionTable, PdbId, PdbKind, SymbolPaths};
use etl_analysis::profile::{
    CodeNames, FunctionName, IlMaps, ProfileOptions, SampleCollector, SourceLine, WantedCode,
};
use etl_analysis::symbols::Image;
use etl_schema::views::Pdb;
use etl_tools::context::FunctionNames;

use crate::error::Failure;
use crate::recording::{Analyzed, RecordingArgs, TimeSpan};

/// Where PDBs are.
#[derive(Debug, clap::Args)]
pub(crate) struct SymbolArgs {
    /// Name native functions and source lines by the PDBs in this file or directory; may be
    /// repeated. Nothing is downloaded: `etlkit symbols list` prints what is missing
    #[arg(long, value_name = "PATH")]
    symbols: Vec<PathBuf>,
}

/// The names that PDBs have for what was sampled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Option<Arc<CodeNames>>);

impl Names {
    /// The options with these names.
    pub fn apply(&self, options: ProfileOptions) -> ProfileOptions {
        match &self.0 {
            Some(names) => options.code_names(Arc::clone(names)),
            None => options,
        }
    }
}

impl SymbolArgs {
    /// Whether PDBs are used at all.
    pub fn is_asked(&self) -> bool {
        !self.symbols.is_empty()
    }

    /// Lists the PDBs in the named places.
    pub fn open(&self) -> Result<Symbols, Failure> {
        let paths = SymbolPaths::new(self.symbols.iter().cloned()).map_err(|error| {
            Failure::new(error.path().display().to_string(), error.reason())
                .hint("--symbols names a PDB, or a directory with PDBs: check the name; it is relative to the current directory")
        })?;
        for path in paths.not_pdbs() {
            stderr_line!("warning: {}: this is no PDB", path.display());
        }
        Ok(Symbols { paths, is_asked: self.is_asked() })
    }

    /// Reads the samples of a recording, and their names from the PDBs.
    pub fn collect(
        &self,
        recording: &RecordingArgs,
        collector: impl FnOnce(TimeSpan) -> SampleCollector,
    ) -> Result<(Analyzed<SampleCollector>, Names), Failure> {
        self.collect_files(recording, &recording.files, collector)
    }

    /// The same for other files than those of the arguments.
    pub fn collect_files(
        &self,
        recording: &RecordingArgs,
        files: &[PathBuf],
        collector: impl FnOnce(TimeSpan) -> SampleCollector,
    ) -> Result<(Analyzed<SampleCollector>, Names), Failure> {
        let symbols = self.open()?;
        let analyzed = recording.analyze_files(files, |span| (collector(span), symbols.maps()))?;
        let Analyzed { names: files, machine, selected, span, observer, outcome } = analyzed;
        let (samples, maps) = observer;
        let names = symbols.names(&machine, &maps, |maps| samples.wanted_code(&machine, maps));
        let observer = samples;
        Ok((Analyzed { names: files, machine, selected, span, observer, outcome }, names))
    }
}

/// The PDBs in the places that the user names.
#[derive(Debug)]
pub(crate) struct Symbols {
    pub paths: SymbolPaths,
    is_asked: bool,
}

/// The identity of a PDB of a recording.
pub(crate) fn pdb_id(machine: &Machine, pdb: Pdb) -> PdbId {
    PdbId::new(machine.pdb_path(pdb), pdb.signature, pdb.age)
}

impl Symbols {
    /// The collector of what is needed besides samples, if PDBs are used at all.
    pub fn maps(&self) -> Option<IlMaps> {
        self.is_asked.then(IlMaps::new)
    }

    /// The names of what was sampled. What is wrong with PDBs is printed.
    pub fn names(
        &self,
        machine: &Machine,
        maps: &Option<IlMaps>,
        wanted: impl FnOnce(&IlMaps) -> WantedCode,
    ) -> Names {
        let names = |maps| Arc::new(names(&self.paths, machine, wanted(maps), maps));
        Names(maps.as_ref().map(names))
    }

    /// What names functions at single addresses, if PDBs are used at all.
    pub fn functions<'m>(&'m self, machine: &'m Machine) -> Option<Functions<'m>> {
        let tables = Mutex::default();
        self.is_asked.then_some(Functions { machine, paths: &self.paths, tables })
    }
}

/// Names functions at single addresses. Each PDB is read when the first address needs it.
#[derive(Debug)]
pub(crate) struct Functions<'m> {
    machine: &'m Machine,
    paths: &'m SymbolPaths,
    tables: Mutex<BTreeMap<Pdb, Option<Arc<FunctionTable>>>>,
}

impl Functions<'_> {
    fn table(&self, pdb: Pdb) -> Option<Arc<FunctionTable>> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let table = tables.entry(pdb).or_insert_with(|| {
            let found = find(self.paths, &pdb_id(self.machine, pdb))?;
            if found.kind != PdbKind::Windows {
                return None;
            }
            let read = FunctionTable::read(&found.path);
            read.map(Arc::new).map_err(|error| stderr_line!("warning: {error}")).ok()
        });
        table.clone()
    }

    /// Says how many PDBs were needed that are not there.
    pub fn note_missing(&self) {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        note_missing(tables.values().filter(|table| table.is_none()).count());
    }
}

impl FunctionNames for Functions<'_> {
    fn function(&self, image: &Image<'_>) -> Option<(Arc<str>, u32)> {
        let offset = u32::try_from(image.offset).ok()?;
        let table = self.table(image.pdb?)?;
        let (name, offset) = table.at(offset)?;
        Some((Arc::clone(name), offset))
    }
}

fn note_missing(count: usize) {
    if count > 0 {
        stderr_line!(
            "note: the PDBs of {count} images are not there: `etlkit symbols list` prints them"
        );
    }
}

fn names(paths: &SymbolPaths, machine: &Machine, wanted: WantedCode, maps: &IlMaps) -> CodeNames {
    let WantedCode { native, managed, .. } = wanted;
    let mut names = CodeNames::new(maps.clone());
    let mut missing = 0;
    let pdbs: BTreeSet<Pdb> = native.keys().chain(managed.keys()).copied().collect();
    for pdb in pdbs {
        let Some(Found { path, kind, .. }) = find(paths, &pdb_id(machine, pdb)) else {
            missing += usize::from(native.contains_key(&pdb));
            continue;
        };
        let added = match kind {
            PdbKind::Windows => {
                let offsets: Vec<u32> = native.get(&pdb).into_iter().flatten().copied().collect();
                etl_analysis::pdb::functions(&path, &offsets).map(|found| {
                    for (offset, functions) in offsets.into_iter().zip(found) {
                        let functions = functions.into_iter().map(function_name).collect();
                        names.add_functions(pdb, offset, functions);
                    }
                })
            }
            _ => {
                let points: Vec<_> = managed.get(&pdb).into_iter().flatten().copied().collect();
                etl_analysis::pdb::source_lines(&path, &points).map(|found| {
                    for (point, line) in points.into_iter().zip(found) {
                        if let Some(etl_analysis::pdb::SourceLine { file, line, .. }) = line {
                            names.add_line(pdb, point, SourceLine { file, line });
                        }
                    }
                })
            }
        };
        if let Err(error) = added {
            stderr_line!("warning: {error}");
        }
    }
    note_missing(missing);
    names
}

fn function_name(function: etl_analysis::pdb::Function) -> FunctionName {
    let line = function.file.zip(function.line).map(|(file, line)| SourceLine { file, line });
    FunctionName { name: function.name, line }
}

/// Looks for a PDB. Files with its name that are another one are printed.
pub(crate) fn find(paths: &SymbolPaths, id: &PdbId) -> Option<Found> {
    let search = paths.find(id);
    if search.found.is_none() {
        for other in &search.others {
            stderr_line!("warning: {other}");
        }
    }
    search.found
}
