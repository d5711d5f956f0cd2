//! What events refer to by id.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use crate::error::{Error, Result};
use crate::labels::Label;
use crate::metadata::Metadata;
use crate::sequence_point::SequencePoint;
use crate::stacks::StackTable;
use crate::threads::Thread;

/// About how many bytes an entry takes in addition to its value: key, pointers, counters.
const ENTRY: usize = 64;

/// Metadata, stacks, threads and label lists, with a limit on their memory.
#[derive(Debug)]
pub(crate) struct Tables {
    pub stacks: StackTable,
    metadata: HashMap<u32, Arc<Metadata>>,
    threads: HashMap<u64, Arc<Thread>>,
    label_lists: HashMap<u32, Arc<[Label]>>,
    /// Bytes of metadata, of threads, and of label lists.
    metadata_size: usize,
    threads_size: usize,
    label_lists_size: usize,
    /// Bytes of what was replaced or removed. Held events may still refer to it.
    replaced_size: usize,
    limit: u64,
}

impl Tables {
    pub fn new(limit: u64) -> Self {
        Tables {
            stacks: StackTable::default(),
            metadata: HashMap::new(),
            threads: HashMap::new(),
            label_lists: HashMap::new(),
            metadata_size: 0,
            threads_size: 0,
            label_lists_size: 0,
            replaced_size: 0,
            limit,
        }
    }

    pub fn metadata(&self, id: u32) -> Option<&Arc<Metadata>> {
        self.metadata.get(&id)
    }

    pub fn thread(&self, index: u64) -> Option<&Arc<Thread>> {
        self.threads.get(&index)
    }

    pub fn label_list(&self, id: u32) -> Option<&Arc<[Label]>> {
        self.label_lists.get(&id)
    }

    /// Adds metadata, or replaces the metadata of its id.
    pub fn add_metadata(&mut self, metadata: &Arc<Metadata>) {
        self.metadata_size += metadata.size_in_memory() + ENTRY;
        let replaced = self
            .metadata
            .insert(metadata.metadata_id, Arc::clone(metadata));
        if let Some(replaced) = replaced {
            let size = replaced.size_in_memory() + ENTRY;
            self.metadata_size -= size;
            self.replaced_size += size;
        }
    }

    /// Adds a thread, or replaces the thread of its index.
    pub fn add_thread(&mut self, thread: &Arc<Thread>) {
        self.threads_size += thread.size_in_memory() + ENTRY;
        if let Some(replaced) = self.threads.insert(thread.index, Arc::clone(thread)) {
            let size = replaced.size_in_memory() + ENTRY;
            self.threads_size -= size;
            self.replaced_size += size;
        }
    }

    pub fn remove_thread(&mut self, index: u64) {
        if let Some(removed) = self.threads.remove(&index) {
            let size = removed.size_in_memory() + ENTRY;
            self.threads_size -= size;
            self.replaced_size += size;
        }
    }

    /// Adds a label list, or replaces the list of its id.
    pub fn add_label_list(&mut self, id: u32, labels: Vec<Label>) {
        self.label_lists_size += Label::size_in_memory(&labels) + ENTRY;
        if let Some(replaced) = self.label_lists.insert(id, labels.into()) {
            let size = Label::size_in_memory(&replaced) + ENTRY;
            self.label_lists_size -= size;
            self.replaced_size += size;
        }
    }

    /// Bytes of memory of what was replaced while events were held, which may refer to it.
    pub fn replaced_size(&self) -> usize {
        self.replaced_size
    }

    /// Says that no events are held that may refer to what was replaced.
    pub fn reset_replaced_size(&mut self) {
        self.replaced_size = 0;
    }

    /// Forgets what the writer forgets at a sequence point.
    pub fn forget(&mut self, point: &SequencePoint) {
        self.stacks.clear();
        self.label_lists.clear();
        self.label_lists_size = 0;
        if point.forgets_threads {
            self.threads.clear();
            self.threads_size = 0;
        }
        if point.forgets_metadata {
            self.metadata.clear();
            self.metadata_size = 0;
        }
    }

    /// Fails if all of it takes more memory than the limit. `offset` is for the error.
    pub fn check_limit(&self, offset: u64) -> Result<()> {
        let own = self.metadata_size + self.threads_size + self.label_lists_size;
        let need = (own + self.stacks.size_in_memory()) as u64;
        if need <= self.limit {
            return Ok(());
        }
        let what = "metadata, stacks, threads and labels";
        Err(Error::limit(offset, what, need, self.limit))
    }
}
