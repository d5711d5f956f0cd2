//! The state that selected events need, and the records that define it.

use etl_events::Subject;
use etl_format::constants::hook;
use etl_format::read::{Header, Record, RecordLocation};
use etl_format::{Guid, ProcessId, ThreadId};
use etl_schema::providers::{EVENT_METADATA, IMAGE_ID, KERNEL_PROCESS, SYSTEM_CONFIG_EX};
use etl_schema::views::{kernel_process, merge::ImageId};
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};

use super::clr::ClrEvent;
use super::kernel::{KernelEvent, ThreadProcess, group};

/// Processes whose images every process sees: image events of the kernel name the idle process.
const KERNEL_PROCESSES: [ProcessId; 2] = [ProcessId::new(0), ProcessId::new(4)];

/// The most remembered entries of each kind. If more are needed, all of the kind are kept; the
/// process of further threads is unknown.
const MAX_ENTRIES: usize = 1 << 20;

/// The event with the manifest of an `EventSource`.
const MANIFEST_EVENT: u16 = 0xfffe;

etl_schema::named! {
    /// Why a record is kept that is not selected, in the order of the report.
    #[non_exhaustive]
    KeepReason {
        /// The session and the machine.
        System "system",
        /// Manifests and other schemas.
        Schema "schemas",
        /// Processes.
        Process "processes",
        /// Threads, and events that alone name the process of a thread.
        Thread "threads",
        /// Native images and their identity.
        Image "images",
        /// Managed code: runtimes, domains, assemblies, modules, methods, maps.
        ManagedCode "managed_code",
        /// Frames of stack keys.
        StackKey "stack_keys",
        /// Names of files and registry keys.
        Name "names",
    }
}

/// The state that selected events need.
#[derive(Debug)]
pub(super) struct Dependencies {
    processes: NeededSet<ProcessId>,
    threads: NeededSet<ThreadId>,
    keys: NeededSet<u64>,
    providers: NeededSet<Guid>,
    /// Kernel groups of selected events.
    groups: [bool; 256],
    /// All processes that a thread ever belonged to.
    owners: HashMap<ThreadId, Vec<ProcessId>>,
    /// The first event whose header names the process of a thread.
    first_mentions: HashMap<ThreadId, RecordLocation>,
}

/// The needed entries of a kind: all entries if they are more than [`MAX_ENTRIES`].
#[derive(Debug)]
enum NeededSet<T> {
    Some(HashSet<T>),
    All,
}

impl<T: std::hash::Hash + Eq> NeededSet<T> {
    fn new() -> Self {
        NeededSet::Some(HashSet::new())
    }

    fn add(&mut self, entry: T) {
        if let NeededSet::Some(entries) = self {
            entries.insert(entry);
            if entries.len() > MAX_ENTRIES {
                *self = NeededSet::All;
            }
        }
    }

    fn has(&self, entry: &T) -> bool {
        match self {
            NeededSet::Some(entries) => entries.contains(entry),
            NeededSet::All => true,
        }
    }
}

impl Default for Dependencies {
    fn default() -> Self {
        let mut processes = NeededSet::new();
        for process in KERNEL_PROCESSES {
            processes.add(process);
        }
        Dependencies {
            processes,
            threads: NeededSet::new(),
            keys: NeededSet::new(),
            providers: NeededSet::new(),
            groups: [false; 256],
            owners: HashMap::new(),
            first_mentions: HashMap::new(),
        }
    }
}

impl Dependencies {
    /// Adds the first event whose header names the process of a thread.
    pub fn add_first_mention(&mut self, mention: ThreadProcess, location: RecordLocation) {
        if self.first_mentions.len() < MAX_ENTRIES {
            self.first_mentions.insert(mention.thread, location);
        }
        self.add_owner(mention.thread, mention.process);
    }

    /// Adds a process of a thread.
    pub fn add_owner(&mut self, thread: ThreadId, process: ProcessId) {
        if self.owners.len() < MAX_ENTRIES || self.owners.contains_key(&thread) {
            let owners = self.owners.entry(thread).or_default();
            if !owners.contains(&process) && owners.len() < 64 {
                owners.push(process);
            }
        }
    }

    /// Adds the state that a selected event needs.
    pub fn add(
        &mut self,
        record: &Record<'_>,
        kernel: Option<&KernelEvent<'_>>,
        subject: &Subject,
    ) {
        for process in subject.processes() {
            self.processes.add(process);
        }
        // The header of any other event names the process of its thread.
        if kernel.is_some() || subject.processes().next().is_none() {
            for thread in subject.threads() {
                self.threads.add(thread);
            }
        }
        match kernel {
            Some(kernel) => {
                if let Some(is_selected) = self.groups.get_mut(usize::from(kernel.group())) {
                    *is_selected = true;
                }
                if kernel.stack_owner().is_some()
                    && let Some(key) = kernel.stack_key()
                {
                    self.keys.add(key);
                }
            }
            None => {
                if let Some(provider) = record.provider() {
                    self.providers.add(provider);
                }
                for item in record.extended() {
                    if let etl_format::read::ExtendedItem::StackKey { key, .. } = item {
                        self.keys.add(key);
                    }
                }
            }
        }
    }

    /// Ends the first pass: adds the processes of needed threads.
    pub fn finish(&mut self) {
        let owners = std::mem::take(&mut self.owners);
        for (thread, owners) in owners {
            if self.threads.has(&thread) {
                for process in owners {
                    self.processes.add(process);
                }
            }
        }
        let threads = &self.threads;
        self.first_mentions.retain(|thread, _| threads.has(thread));
    }

    /// The reason to keep a record, if it has to be kept.
    pub fn reason(
        &self,
        record: &Record<'_>,
        kernel: Option<&KernelEvent<'_>>,
        subject: &Subject,
    ) -> Option<KeepReason> {
        let reason = match kernel {
            Some(kernel) => self.kernel_reason(kernel, subject),
            None if record.is_event() => self.event_reason(record),
            None => self.classic_reason(record),
        };
        if reason.is_none() && self.is_first_mention(record) {
            return Some(KeepReason::Thread);
        }
        reason
    }

    /// Whether a record is the first whose header names the process of a needed thread.
    fn is_first_mention(&self, record: &Record<'_>) -> bool {
        let Some(thread) = record.thread_id() else {
            return false;
        };
        self.first_mentions.get(&thread) == Some(&record.location())
    }

    /// The reason to keep a kernel event: the kind of state that it defines, if that is needed.
    fn kernel_reason(&self, kernel: &KernelEvent<'_>, subject: &Subject) -> Option<KeepReason> {
        let is_process_needed = subject.processes().any(|id| self.processes.has(&id));
        let (is_needed, reason) = match kernel.hook {
            // The session's own records, and the configuration of the machine.
            0x0000..=0x00ff | 0x0b00..=0x0bff => (true, KeepReason::System),
            // The interval of samples, which is the time that each sample represents.
            hook::SET_INTERVAL..=hook::COLLECTION_END => (true, KeepReason::System),
            hook::PROCESS_START..=hook::PROCESS_DC_END | hook::PROCESS_DEFUNCT => {
                (is_process_needed, KeepReason::Process)
            }
            hook::THREAD_START..=hook::THREAD_DC_END | hook::THREAD_SET_NAME => {
                let is_thread_needed = subject.threads().any(|id| self.threads.has(&id));
                (is_process_needed || is_thread_needed, KeepReason::Thread)
            }
            hook::IMAGE_LOAD | hook::IMAGE_UNLOAD..=hook::IMAGE_DC_END => {
                (is_process_needed, KeepReason::Image)
            }
            hook::KERNEL_BASE | hook::HYPERCALL_PAGE => (true, KeepReason::Image),
            hook::STACK_KEY_CREATE..=hook::STACK_KEY_RUNDOWN => {
                let is_key_needed = kernel.stack_key().is_some_and(|key| self.keys.has(&key));
                (is_key_needed, KeepReason::StackKey)
            }
            // Disk, memory and file events name files by object; these records name the objects.
            hook::FILE_NAME | hook::FILE_CREATE | hook::FILE_DELETE | hook::FILE_RUNDOWN => {
                let groups = [group::DISK, group::MEMORY, group::FILE];
                (self.has_selected_group(&groups), KeepReason::Name)
            }
            // Likewise registry events and their control blocks.
            hook::KCB_CREATE..=hook::KCB_RUNDOWN_END => (
                self.has_selected_group(&[group::REGISTRY]),
                KeepReason::Name,
            ),
            _ => return None,
        };
        if is_needed { Some(reason) } else { None }
    }

    /// Whether an event of any of these groups was selected.
    fn has_selected_group(&self, groups: &[u8]) -> bool {
        groups
            .iter()
            .any(|group| self.groups.get(usize::from(*group)) == Some(&true))
    }

    fn event_reason(&self, record: &Record<'_>) -> Option<KeepReason> {
        let header = record.event()?;
        let (is_needed, reason) = if header.descriptor.id == MANIFEST_EVENT {
            (self.providers.has(&header.provider), KeepReason::Schema)
        } else if header.provider == KERNEL_PROCESS {
            let (process, reason) = match kernel_process::decode(record)? {
                kernel_process::Event::Process(process) => (process, KeepReason::Process),
                kernel_process::Event::Thread(process) => (process, KeepReason::Thread),
                kernel_process::Event::Image(process) => (process, KeepReason::Image),
                _ => return None,
            };
            (self.processes.has(&ProcessId::new(process)), reason)
        } else {
            let is_needed = self.processes.has(&header.process_id)
                && ClrEvent::of(record).is_some_and(ClrEvent::is_state);
            (is_needed, KeepReason::ManagedCode)
        };
        if is_needed { Some(reason) } else { None }
    }

    /// The reason to keep a record that a merge adds.
    fn classic_reason(&self, record: &Record<'_>) -> Option<KeepReason> {
        let Header::Full(header) = record.header() else {
            return None;
        };
        match header.class {
            EVENT_METADATA => Some(KeepReason::Schema),
            SYSTEM_CONFIG_EX => Some(KeepReason::System),
            IMAGE_ID => {
                // Versions of files have no process: any process may have loaded the file.
                if let Some(image) = ImageId::of(record)
                    && let Some(process) = image.process_id
                    && !self.processes.has(&ProcessId::new(process))
                {
                    return None;
                }
                Some(KeepReason::Image)
            }
            _ => None,
        }
    }
}
