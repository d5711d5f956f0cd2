//! The file system of a simulation, and which files were created in it.

use std::io;

use etl_format::write::Output;

use crate::file_system::{FileSystem, ReadSeek};

/// Notes each file that is created: what was in it before is gone.
pub(crate) struct NotedFiles<'s> {
    files: &'s mut dyn FileSystem,
    created: Vec<String>,
}

impl<'s> NotedFiles<'s> {
    pub fn new(files: &'s mut dyn FileSystem) -> Self {
        NotedFiles {
            files,
            created: Vec::new(),
        }
    }

    /// The files that were created since the last call.
    pub fn take_created(&mut self) -> Vec<String> {
        core::mem::take(&mut self.created)
    }
}

impl FileSystem for NotedFiles<'_> {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Output>> {
        self.created.push(name.to_owned());
        self.files.create(name)
    }

    fn reopen(&mut self, name: &str) -> io::Result<Box<dyn Output>> {
        self.files.reopen(name)
    }

    fn open(&mut self, name: &str) -> io::Result<Box<dyn ReadSeek>> {
        self.files.open(name)
    }

    fn truncate(&mut self, name: &str, len: u64) -> io::Result<()> {
        self.files.truncate(name, len)
    }

    fn overwrite(&mut self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.files.overwrite(name, offset, bytes)
    }
}
