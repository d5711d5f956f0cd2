//! Processes as they are at a moment.

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_schema::sources::provider_guid;

use super::{Nanos, Space};
use crate::model::About;

/// A native image in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// Path as users write it.
    pub path: String,
    pub base: u64,
    pub size: u64,
    pub checksum: u32,
    pub link_time: u32,
    pub pdb: Option<(Guid, u32)>,
    /// What its file says of itself.
    pub about: About,
}

impl Image {
    /// The PDB that an image has of which nothing is said: one for each path.
    pub fn usual_pdb(path: &str) -> (Guid, u32) {
        (provider_guid(&format!("pdb of {}", path.to_lowercase())), 1)
    }

    /// The path as the kernel tells it.
    pub fn kernel_path(&self) -> String {
        match self.path.get(..2) {
            Some("C:") => {
                format!("\\Device\\HarddiskVolume2{}", self.path.get(2..).unwrap_or_default())
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
    /// Its threads by index, those that ended included.
    pub threads: Vec<usize>,
    pub images: Vec<Image>,
    pub space: Space,
    /// Its CLRs by index.
    pub clrs: Vec<usize>,
    /// The thread whose turn it is.
    pub turn: usize,
    /// Whether it has turned work away.
    pub overloaded: bool,
    /// Whether it was told that it was asked for something too early.
    pub told_early: bool,
}

impl Process {
    pub fn new(pid: u32, name: &str, pointer_size: PointerSize) -> Self {
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
            images: Vec::new(),
            space: Space::new(pointer_size, pid),
            clrs: Vec::new(),
            turn: 0,
            overloaded: false,
            told_early: false,
        }
    }

    pub fn is_alive(&self) -> bool {
        self.started && self.exited.is_none()
    }
}
