//! The error of this module: a PDB, or a place to look for PDBs, that cannot be read.

use std::io;
use std::path::{Path, PathBuf};

use etl_format::Guid;

/// A PDB, or a place to look for PDBs, cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct Error {
    path: PathBuf,
    reason: Reason,
}

/// Why a PDB, or a place to look for PDBs, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The file or directory does not exist.
    #[error("there is no such file or directory")]
    NotFound,
    /// The system cannot read it.
    #[error(transparent)]
    Io(io::Error),
    /// A directory has more files than are searched.
    #[error("too many files: name a directory with fewer of them")]
    TooManyFiles,
    /// A portable PDB has more bytes than are read.
    #[error("the portable PDB is larger than 256 MiB")]
    TooLarge,
    /// A container with a compressed PDB (MSFZ), which is not read.
    #[error("it is a compressed PDB (MSFZ), which is not read: use the uncompressed PDB (MSF)")]
    Msfz,
    /// A portable PDB without the identity that images refer to.
    #[error("the portable PDB has no identity")]
    NoIdentity,
    /// The PDB of another image, or of another build of this one.
    #[error("it is {found}; the recording needs {guid} age {age}")]
    OtherPdb {
        /// The identity of the file: its GUID, and its age if it is a Windows PDB.
        found: String,
        /// The GUID that the image states.
        guid: Guid,
        /// The age that the image states.
        age: u32,
    },
    /// Lengths and offsets in the file contradict each other.
    #[error("the PDB is damaged: its parts contradict each other")]
    Contradiction,
    /// The header states more types than the file has.
    #[error("the PDB is damaged: it states more types than it has")]
    MissingTypes,
    /// The file does not have the format of a PDB.
    #[error(transparent)]
    Malformed(Box<dyn std::error::Error + Send + Sync>),
}

impl Reason {
    /// The error of a parser.
    pub(super) fn malformed(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Reason::Malformed(Box::new(error))
    }
}

impl Error {
    pub(super) fn new(path: &Path, reason: Reason) -> Self {
        Error {
            path: path.to_owned(),
            reason,
        }
    }

    pub(super) fn io(path: &Path, error: io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::NotFound => Reason::NotFound,
            _ => Reason::Io(error),
        };
        Error::new(path, reason)
    }

    /// The file or directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with it.
    #[must_use]
    pub fn reason(&self) -> &Reason {
        &self.reason
    }
}

/// The result of reading a PDB.
pub type Result<T, E = Error> = std::result::Result<T, E>;
