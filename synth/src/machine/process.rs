//! The state of processes.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use etl_format::constants::PointerSize;
use etl_schema::sources::provider_guid;

use super::{OpenFile, Socket, Space};
use crate::model::{PdbIdentity, VersionInfo};
use crate::rng::Source;
use crate::time::Nanos;

/// A native image in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// Path as users write it.
    pub path: String,
    pub base: u64,
    pub size: u64,
    pub checksum: u32,
    pub timestamp: u32,
    pub pdb: Option<PdbIdentity>,
    /// The version information of its file.
    pub about: VersionInfo,
}

impl Image {
    /// The PDB of an image for which the scenario names none: derived from the path.
    pub fn usual_pdb(path: &str) -> PdbIdentity {
        let signature = provider_guid(&format!("pdb of {}", path.to_lowercase()));
        PdbIdentity { signature, age: 1 }
    }

    /// The path as the kernel reports it.
    pub fn kernel_path(&self) -> String {
        match self.path.get(..2) {
            Some("C:") => {
                format!(
                    "\\Device\\HarddiskVolume2{}",
                    self.path.get(2..).unwrap_or_default()
                )
            }
            _ => self.path.clone(),
        }
    }
}

/// A process.
#[derive(Debug)]
pub(crate) struct Process {
    pub pid: u32,
    pub parent: u32,
    pub name: String,
    pub command_line: String,
    /// The SID of its user.
    pub user: Vec<u8>,
    pub pointer_size: PointerSize,
    /// Address of the kernel's object, which names the process in its events.
    pub key: u64,
    pub directory: u64,
    pub started: bool,
    pub exited: Option<Nanos>,
    /// Its threads by index: workers, then service threads, which do no work of the program.
    pub threads: Vec<usize>,
    /// How many of them are not workers.
    pub service_threads: usize,
    /// Threads that it has or had.
    pub threads_made: u64,
    /// The chance in what happens in it.
    pub source: Source,
    pub images: Vec<Image>,
    pub space: Space,
    /// Its CLRs by index.
    pub clrs: Vec<usize>,
    /// Files that it opened, by path in lower case, and their threads.
    pub files: BTreeMap<String, OpenFile>,
    /// Its connections and UDP ports.
    pub sockets: BTreeMap<(bool, SocketAddr), Socket>,
    /// Index of the worker thread that worked last.
    turn: usize,
    /// Whether rejected work was reported.
    pub overloaded: bool,
    /// Whether work that came before its start was reported.
    pub warned_early: bool,
}

impl Process {
    pub fn new(pid: u32, name: &str, pointer_size: PointerSize, source: Source) -> Self {
        Process {
            pid,
            parent: 4,
            name: name.to_owned(),
            command_line: String::new(),
            user: Vec::new(),
            pointer_size,
            key: 0xffff_9a01_0000_0080 + u64::from(pid) * 0x1000,
            directory: 0x1_0000_0000 + u64::from(pid) * 0x1000,
            started: false,
            exited: None,
            threads: Vec::new(),
            service_threads: 0,
            threads_made: 0,
            source,
            images: Vec::new(),
            space: Space::new(pointer_size, pid),
            clrs: Vec::new(),
            files: BTreeMap::new(),
            sockets: BTreeMap::new(),
            turn: 0,
            overloaded: false,
            warned_early: false,
        }
    }

    /// Threads that do the work of the program: at least one.
    pub fn workers(&self) -> usize {
        self.threads
            .len()
            .saturating_sub(self.service_threads)
            .max(1)
    }

    /// The worker thread whose turn it is.
    pub fn next_worker(&mut self) -> Option<usize> {
        self.turn = (self.turn + 1) % self.workers();
        self.threads.get(self.turn).copied()
    }

    /// The thread that runs the callbacks of providers.
    pub fn callback_thread(&self) -> Option<usize> {
        self.threads.last().copied()
    }

    /// The thread on which the runtime runs finalizers.
    pub fn finalizer(&self) -> Option<usize> {
        self.threads.get(self.workers()).copied()
    }

    /// The thread on which the runtime compiles methods again, if it has one.
    pub fn tiering_thread(&self) -> Option<usize> {
        if self.service_threads < 3 {
            return None;
        }
        self.threads.get(self.workers() + 1).copied()
    }

    pub fn is_alive(&self) -> bool {
        self.started && self.exited.is_none()
    }
}
