//! Names of code that the recording does not have: functions of images and source lines, from PDBs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use etl_schema::views::Pdb;
use foldhash::HashMap;

use crate::machine::Machine;
use crate::symbols::{Function, SourceLine};

/// A point in the IL of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IlPoint {
    /// Metadata token of the method.
    pub token: u32,
    /// Offset in its IL, in bytes.
    pub offset: u32,
}

/// The code in a profile whose names the recording does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WantedCode {
    /// Offsets in images, by the PDBs of the images.
    pub native: BTreeMap<Pdb, BTreeSet<u32>>,
    /// Points in the IL of methods, by the PDBs of their modules.
    pub managed: BTreeMap<Pdb, BTreeSet<IlPoint>>,
}

/// Finds functions and source lines for a profile:
/// [`ProfileOptions::code_source`](super::ProfileOptions::code_source).
///
/// With the feature `pdb`, a `pdb::Symbolizer` finds them in PDBs.
pub trait CodeSource: fmt::Debug + Send + Sync {
    /// The names of this code. Code without an entry in the result has no name. `machine` is the
    /// machine of the profile; its [`pdb_path`](Machine::pdb_path) returns the file names of PDBs.
    fn names(&self, machine: &Machine, wanted: &WantedCode) -> CodeNames;
}

/// Names of functions and source lines, as a [`CodeSource`] returns them.
///
/// ```
/// use etl_analysis::profile::CodeNames;
/// use etl_analysis::symbols::{Function, SourceLine};
/// use etl_format::Guid;
/// use etl_schema::views::Pdb;
///
/// let pdb = Pdb { signature: Guid::ZERO, age: 1 };
/// let source = SourceLine { file: "cart.cpp".into(), line: 12 };
/// let function = Function { name: "Cart::add".into(), source: Some(source) };
/// let mut names = CodeNames::new();
/// names.add_functions(pdb, 0x1010, vec![function.clone()]);
/// assert_eq!(names.functions(pdb, 0x1010), [function]);
/// assert!(names.functions(pdb, 0x2000).is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct CodeNames {
    functions: HashMap<(Pdb, u32), Vec<Function>>,
    lines: HashMap<(Pdb, IlPoint), SourceLine>,
}

impl CodeNames {
    /// No names.
    #[must_use]
    pub fn new() -> Self {
        CodeNames::default()
    }

    /// Adds the functions at an offset in the image of a PDB: first the function itself, then the
    /// function that was inlined there, and so on.
    pub fn add_functions(&mut self, pdb: Pdb, offset: u32, functions: Vec<Function>) {
        if !functions.is_empty() {
            self.functions.insert((pdb, offset), functions);
        }
    }

    /// Adds the source line of a point in the IL of a module.
    pub fn add_line(&mut self, pdb: Pdb, point: IlPoint, line: SourceLine) {
        self.lines.insert((pdb, point), line);
    }

    /// The functions at an offset in the image of a PDB; the innermost inlined one is last.
    #[must_use]
    pub fn functions(&self, pdb: Pdb, offset: u32) -> &[Function] {
        self.functions
            .get(&(pdb, offset))
            .map_or(&[], Vec::as_slice)
    }

    /// The source line of a point in the IL of a module.
    #[must_use]
    pub fn line(&self, pdb: Pdb, point: IlPoint) -> Option<&SourceLine> {
        self.lines.get(&(pdb, point))
    }
}
