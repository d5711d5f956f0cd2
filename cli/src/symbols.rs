//! `--symbols`: names of native functions, and source lines, from PDBs.

use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "symbols")]
use etl_analysis::pdb::{SymbolPaths, Symbolizer};
use etl_analysis::profile::{CodeSource, IlMaps, ProfileOptions};
use etl_analysis::symbols::FunctionNames;

#[cfg(not(feature = "symbols"))]
use self::without::Symbolizer;
use crate::error::Failure;
#[cfg(feature = "symbols")]
use crate::input;

/// The places of PDBs.
#[derive(Debug, clap::Args)]
pub(crate) struct SymbolArgs {
    /// Name native functions and source lines by the PDBs in this file or directory; may be
    /// repeated. Nothing is downloaded: `etlkit symbols list` prints the missing PDBs
    #[arg(long, value_name = "PATH")]
    symbols: Vec<PathBuf>,
}

/// The PDBs in the places that the user names.
#[derive(Debug)]
pub(crate) struct Symbols(Option<Arc<Symbolizer>>);

impl SymbolArgs {
    /// Whether PDBs are used at all.
    pub fn is_asked(&self) -> bool {
        !self.symbols.is_empty()
    }

    /// The directory that PDBs are added to: the first one of the named places.
    #[cfg(feature = "symbols")]
    pub fn folder(&self) -> String {
        match self.symbols.iter().find(|path| path.is_dir()) {
            Some(folder) => folder.display().to_string(),
            None => "symbols".to_owned(),
        }
    }

    /// Lists the PDBs in the named places, if there are any.
    pub fn open(&self) -> Result<Symbols, Failure> {
        if !self.is_asked() {
            return Ok(Symbols(None));
        }
        Ok(Symbols(Some(Arc::new(self.symbolizer()?))))
    }

    /// Names code by the PDBs in the named places. Errors of PDBs are printed.
    #[cfg(feature = "symbols")]
    pub fn symbolizer(&self) -> Result<Symbolizer, Failure> {
        let paths = SymbolPaths::new(self.symbols.iter().cloned()).map_err(|error| {
            Failure::new(error.path().display().to_string(), error.reason().to_string())
                .hint("--symbols names a PDB, or a directory with PDBs: check the name; it is relative to the current directory")
        })?;
        for path in paths.files() {
            input::note_opened(path);
        }
        for path in paths.not_pdbs() {
            stderr_line!("warning: {}: not a PDB file", path.display());
        }
        Ok(Symbolizer::new(paths).on_error(|error| stderr_line!("warning: {error}")))
    }

    /// Fails: this build cannot read PDBs.
    #[cfg(not(feature = "symbols"))]
    fn symbolizer(&self) -> Result<Symbolizer, Failure> {
        Err(missing("--symbols"))
    }
}

impl Symbols {
    /// The collector of the maps of managed code that PDBs need, if PDBs are used at all.
    pub fn maps(&self) -> Option<IlMaps> {
        self.0.as_ref().map(|_| IlMaps::new())
    }

    /// Options for a profile with names from the PDBs. `maps` were collected in the same pass.
    pub fn apply(&self, options: ProfileOptions, maps: Option<&IlMaps>) -> ProfileOptions {
        let options = match maps {
            Some(maps) => options.il_maps(maps.clone()),
            None => options,
        };
        match &self.0 {
            Some(symbolizer) => options.code_source(Arc::clone(symbolizer) as Arc<dyn CodeSource>),
            None => options,
        }
    }

    /// Names functions at single addresses, if PDBs are used at all.
    pub fn functions(&self) -> Option<&dyn FunctionNames> {
        self.0.as_deref().map(|symbolizer| symbolizer as _)
    }

    /// Prints the number of missing PDBs of the code that was named since the last call.
    pub fn note_missing(&self) {
        let Some(symbolizer) = &self.0 else { return };
        let count = symbolizer.take_missing();
        if count > 0 {
            stderr_line!(
                "note: the PDBs of {count} images are not there: `etlkit symbols list` prints them"
            );
        }
    }
}

/// The failure of an option or command that needs PDBs, in a build that cannot read them.
#[cfg(not(feature = "symbols"))]
pub(crate) fn missing(subject: &str) -> Failure {
    Failure::new(subject, "this etlkit was built without it").hint(
        "the programs of a release have it; or build one that has it: `cargo install --path cli \
         --features symbols`, or `cargo run --release --features symbols --bin etlkit -- ...`",
    )
}

/// Replaces the reader of PDBs in a build without it.
#[cfg(not(feature = "symbols"))]
mod without {
    use etl_analysis::Machine;
    use etl_analysis::profile::{CodeNames, CodeSource, WantedCode};
    use etl_analysis::symbols::{FunctionNames, FunctionOffset, Image};

    /// A type without values: this build reads no PDBs.
    #[derive(Debug)]
    pub(super) enum Symbolizer {}

    impl Symbolizer {
        pub fn take_missing(&self) -> usize {
            match *self {}
        }
    }

    impl CodeSource for Symbolizer {
        fn names(&self, _: &Machine, _: &WantedCode) -> CodeNames {
            match *self {}
        }
    }

    impl FunctionNames for Symbolizer {
        fn function(&self, _: &Machine, _: &Image<'_>) -> Option<FunctionOffset> {
            match *self {}
        }
    }
}
