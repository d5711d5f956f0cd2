//! Processes and their native images.

use etl_format::Guid;
use etl_format::constants::PointerSize;

use super::ClrPlan;
use crate::machine::Nanos;

/// A process: when it lives, and what is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessPlan {
    /// File name of its executable.
    pub name: String,
    /// Its id; chosen by the simulation when 0.
    pub pid: u32,
    /// Process id of its parent.
    pub parent: u32,
    /// Its command line.
    pub command_line: String,
    /// The SID of its user; that of a user of the machine when empty.
    pub user: Vec<u8>,
    /// Width of its pointers.
    pub pointer_size: PointerSize,
    /// When it starts. A process that is to be there before a trace starts before its session.
    pub start: Nanos,
    /// When it exits; never when `None`.
    pub exit: Option<Nanos>,
    /// Threads that do its work.
    pub threads: u32,
    /// Native images beside its executable and those that the system gives every process.
    pub images: Vec<ImagePlan>,
    /// Its CLRs, in the order in which they start.
    pub clrs: Vec<ClrPlan>,
}

impl ProcessPlan {
    /// A 64-bit process with two threads that is there from the beginning to the end.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        ProcessPlan {
            command_line: format!("\"{name}\""),
            name,
            user: Vec::new(),
            pid: 0,
            parent: 0,
            pointer_size: PointerSize::P8,
            start: 0,
            exit: None,
            threads: 2,
            images: Vec::new(),
            clrs: Vec::new(),
        }
    }

    /// Adds a CLR.
    #[must_use]
    pub fn with_clr(mut self, clr: ClrPlan) -> Self {
        self.clrs.push(clr);
        self
    }
}

/// A native image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImagePlan {
    /// Path as users write it: `C:\Windows\System32\ntdll.dll`.
    pub path: String,
    /// Bytes in memory.
    pub size: u32,
    /// Identity of its PDB: GUID and age; its path makes one where nothing is said.
    pub pdb: Option<(Guid, u32)>,
    /// Whether it has no PDB.
    pub bare: bool,
}

impl ImagePlan {
    /// An image of a path, half a MiB long.
    #[must_use]
    pub fn new(path: impl Into<String>) -> Self {
        ImagePlan { path: path.into(), size: 0x8_0000, pdb: None, bare: false }
    }
}
