//! Finds PDBs by their identities, and names functions and source lines by them.
//!
//! A recording has addresses. What they are stands in the PDB that the linker or the compiler
//! wrote with the image, and a [`PdbId`] says which one that is. [`SymbolPaths`] looks for it in
//! files and directories, also in those with the layout of a symbol server. It never downloads
//! anything.
//!
//! | file | contains | read with |
//! |---|---|---|
//! | Windows PDB | functions, inlined functions, lines by offset in the image | [`functions`] |
//! | Windows PDB | all functions, for offsets that are not known yet | [`FunctionTable`] |
//! | portable PDB | source lines by method and IL offset | [`source_lines`] |
//!
//! A file is read when it is needed, and only the parts of it that are. Files that are damaged, or
//! made to do harm, yield errors.

mod error;
mod id;
mod native;
mod paths;
mod portable;
mod source;
mod validate;

pub use error::{Error, Result};
pub use id::{PdbId, image_server_path};
pub use native::{Function, FunctionTable, functions};
pub use paths::{Found, PdbKind, Search, SymbolPaths};
pub use portable::{SourceLine, source_lines};
