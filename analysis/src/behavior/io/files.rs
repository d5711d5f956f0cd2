//! The files of a recording by their keys.

use foldhash::HashMap;

/// The names of files. A key is another file's when its file is gone.
#[derive(Clone, Debug, Default)]
pub(super) struct FileNames {
    /// Paths of files; empty as long as no event names it.
    paths: Vec<Box<str>>,
    /// Indices of files by their key.
    by_key: HashMap<u64, usize>,
}

impl FileNames {
    /// The path of a file by its index; `None` if no event names it.
    pub fn path(&self, file: Option<usize>) -> Option<&str> {
        let path = self.paths.get(file?)?;
        if path.is_empty() { None } else { Some(path) }
    }

    /// The file that has a key now.
    pub fn of_key(&mut self, key: u64) -> usize {
        let paths = &mut self.paths;
        *self.by_key.entry(key).or_insert_with(|| {
            paths.push(Box::default());
            paths.len() - 1
        })
    }

    /// The file of a read or write: by its key, or by the file object if only this has a name.
    pub fn of_transfer(&mut self, key: Option<u64>, object: Option<u64>) -> Option<usize> {
        let by_object = object.and_then(|object| self.by_key.get(&object).copied());
        let Some(key) = key else {
            return by_object;
        };
        let by_key = self.by_key.get(&key).copied();
        if self.path(by_key).is_none() && self.path(by_object).is_some() {
            return by_object;
        }
        Some(self.of_key(key))
    }

    /// A file with a key has this name.
    pub fn name(&mut self, key: u64, name: &str) {
        let mut file = self.of_key(key);
        // A key with another name is another file's now.
        let known = self.path(Some(file));
        if known.is_some_and(|known| known != name) {
            self.by_key.remove(&key);
            file = self.of_key(key);
        }
        if let Some(known) = self.paths.get_mut(file) {
            *known = name.into();
        }
    }

    /// A key is no longer the key of its file.
    pub fn forget(&mut self, key: u64) {
        self.by_key.remove(&key);
    }
}
