//! Finds PDBs by their identities, and names functions and source lines by them. Needs the feature
//! `pdb`.
//!
//! A recording has addresses. The PDB that the linker or the compiler wrote with an image says what
//! is there, and a [`PdbId`] identifies it. [`SymbolPaths`] looks for PDBs in files and in
//! directories, also in directories with the layout of a symbol server. It never downloads
//! anything. A [`Symbolizer`] names the code of a profile, and single addresses, with one call.
//!
//! | file | contains | read with |
//! |---|---|---|
//! | Windows PDB | functions, inlined functions, lines by offset in the image | [`functions`] |
//! | Windows PDB | all functions, for offsets that are not known yet | [`FunctionTable`] |
//! | Windows PDB | formats of WPP messages | [`message_formats`] |
//! | portable PDB | source lines by method and IL offset | [`source_lines`] |
//!
//! A file is read when it is needed, and only its parts that are needed. Files that are damaged, or
//! made to do harm, yield errors. The library that parses Windows PDBs panics where lengths in a
//! file contradict each other; such a panic becomes an error too, unless the program is built with
//! `panic = "abort"`: then it ends.
//!
//! ```
//! use etl_analysis::pdb::{PdbId, SymbolPaths, functions};
//! use etl_format::Guid;
//!
//! fn print_function(guid: Guid, age: u32, offset: u32) -> etl_analysis::pdb::Result<()> {
//!     let paths = SymbolPaths::new(["symbols".into()])?;
//!     let id = PdbId::new("app.pdb", guid, age);
//!     match paths.find(&id).found {
//!         Some(pdb) => {
//!             for function in functions(&pdb.path, &[offset])?.concat() {
//!                 println!("{} {:?}", function.name, function.source);
//!             }
//!         }
//!         None => println!("missing: {}", id.server_path()),
//!     }
//!     Ok(())
//! }
//! ```

mod error;
mod guard;
mod id;
mod messages;
mod native;
mod needed;
mod paths;
mod portable;
mod source;
mod symbolizer;
mod texts;
mod validate;

pub use error::{Error, Reason, Result};
pub use id::{PdbId, image_server_path};
pub use messages::message_formats;
pub use native::{FunctionTable, functions};
pub use needed::{CodeAddresses, NeededPdb, NeededPdbs};
pub use paths::{Found, PdbKind, Search, SymbolPaths};
pub use portable::source_lines;
pub use symbolizer::Symbolizer;
