//! The state that selected events need, and the records that define it.

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};

use etl_events::Subject;
use etl_format::constants::hook;
use etl_format::read::{Header, Record, RecordLocation};
use etl_format::{Guid, ProcessId, ThreadId};
use etl_schema::providers::{EVENT_METADATA, IMAGE_ID, KERNEL_PROCESS, SYSTEM_CONFIG_EX};
use etl_schema::views::{kernel_process, merge::ImageId};

use super::clr::ClrEvent;
use super::kernel::{KernelEvent, group};

/// Processes whose images every process sees: image events of the kernel name the idle process.
const KERNEL_PROCESSES: [ProcessId; 2] = [ProcessId::new(0), ProcessId::new(4)];

/// Entries of each kind that are remembered. Beyond, everything of a kind that is needed is kept;
/// further threads have no known process.
const MAX_ENTRIES: usize = 1 << 20;

/// The event with the manifest of an `EventSource`.
const MANIFEST_EVENT: u16 = 0xfffe;

etl_schema::named! {
    /// Why a record is kept that is not selected. The order is that of the report.
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
    processes: Known<ProcessId>,
    threads: Known<ThreadId>,
    keys: Known<u64>,
    providers: Known<Guid>,
    /// Kernel groups of selected events.
    groups: [bool; 256],
    /// All processes that a thread ever belonged to.
    owners: HashMap<ThreadId, Vec<ProcessId>>,
    /// The first event whose header names the process of a thread.
    first_mentions: HashMap<ThreadId, RecordLocation>,
}

/// A set that turns into "all" when it grows too large.
#[derive(Debug)]
struct Known<T> {
    known: HashSet<T>,
    all: bool,
}

impl<T: std::hash::Hash + Eq> Known<T> {
    fn new() -> Self {
        Known {
            known: HashSet::new(),
            all: false,
        }
    }

    fn add(&mut self, one: T) {
        if !self.all {
            self.known.insert(one);
            if self.known.len() > MAX_ENTRIES {
                self.all = true;
                self.known = HashSet::new();
            }
        }
    }

    fn has(&self, one: &T) -> bool {
        self.all || self.known.contains(one)
    }
}

impl Default for Dependencies {
    fn default() -> Self {
        let mut processes = Known::new();
        KERNEL_PROCESSES
            .into_iter()
            .for_each(|process| processes.add(process));
        Dependencies {
            processes,
            threads: Known::new(),
            keys: Known::new(),
            providers: Known::new(),
            groups: [false; 256],
            owners: HashMap::new(),
            first_mentions: HashMap::new(),
        }
    }
}

impl Dependencies {
    /// Adds the first event whose header names the process of a thread.
    pub fn add_first_mention(
        &mut self,
        thread: ThreadId,
        process: ProcessId,
        location: RecordLocation,
    ) {
        if self.first_mentions.len() < MAX_ENTRIES {
            self.first_mentions.insert(thread, location);
        }
        self.add_owner(thread, process);
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
        subject
            .processes()
            .for_each(|process| self.processes.add(process));
        // The header of any other event names the process of its thread.
        if kernel.is_some() || subject.processes().next().is_none() {
            subject
                .threads()
                .for_each(|thread| self.threads.add(thread));
        }
        match kernel {
            Some(kernel) => {
                if let Some(all) = self.groups.get_mut(usize::from(kernel.group())) {
                    *all = true;
                }
                if let (Some(_), Some(key)) = (kernel.stack_owner(), kernel.stack_key()) {
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
                owners
                    .into_iter()
                    .for_each(|process| self.processes.add(process));
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
            Some(kernel) => self.kernel(kernel, subject),
            None if record.is_event() => self.event(record),
            None => self.classic(record),
        };
        reason.or_else(|| {
            let thread = record.thread_id()?;
            (self.first_mentions.get(&thread) == Some(&record.location()))
                .then_some(KeepReason::Thread)
        })
    }

    fn kernel(&self, kernel: &KernelEvent<'_>, subject: &Subject) -> Option<KeepReason> {
        let process = subject.processes().any(|p| self.processes.has(&p));
        let any = |groups: &[u8]| {
            groups
                .iter()
                .any(|&group| self.groups.get(usize::from(group)) == Some(&true))
        };
        match kernel.hook {
            // The session's own records, and the configuration of the machine.
            0x0000..=0x00ff | 0x0b00..=0x0bff => Some(KeepReason::System),
            // A sample stands for so much time.
            hook::SET_INTERVAL..=hook::COLLECTION_END => Some(KeepReason::System),
            hook::PROCESS_START..=hook::PROCESS_DC_END | hook::PROCESS_DEFUNCT => {
                process.then_some(KeepReason::Process)
            }
            hook::THREAD_START..=hook::THREAD_DC_END | hook::THREAD_SET_NAME => {
                let thread = subject.threads().any(|t| self.threads.has(&t));
                (process || thread).then_some(KeepReason::Thread)
            }
            hook::IMAGE_LOAD | hook::IMAGE_UNLOAD..=hook::IMAGE_DC_END => {
                process.then_some(KeepReason::Image)
            }
            hook::KERNEL_BASE | hook::HYPERCALL_PAGE => Some(KeepReason::Image),
            hook::STACK_KEY_CREATE..=hook::STACK_KEY_RUNDOWN => {
                let needed = kernel.stack_key().is_some_and(|key| self.keys.has(&key));
                needed.then_some(KeepReason::StackKey)
            }
            // Disk, memory and file events name files by object; these records name the objects.
            hook::FILE_NAME | hook::FILE_CREATE | hook::FILE_DELETE | hook::FILE_RUNDOWN => {
                any(&[group::DISK, group::MEMORY, group::FILE]).then_some(KeepReason::Name)
            }
            // Likewise registry events and their control blocks.
            hook::KCB_CREATE..=hook::KCB_RUNDOWN_END => {
                any(&[group::REGISTRY]).then_some(KeepReason::Name)
            }
            _ => None,
        }
    }

    fn event(&self, record: &Record<'_>) -> Option<KeepReason> {
        let header = record.event()?;
        let id = header.descriptor.id;
        if id == MANIFEST_EVENT {
            return self
                .providers
                .has(&header.provider)
                .then_some(KeepReason::Schema);
        }
        if header.provider == KERNEL_PROCESS {
            let (process, why) = match kernel_process::decode(record)? {
                kernel_process::Event::Process(process) => (process, KeepReason::Process),
                kernel_process::Event::Thread(process) => (process, KeepReason::Thread),
                kernel_process::Event::Image(process) => (process, KeepReason::Image),
                _ => return None,
            };
            return self.processes.has(&ProcessId::new(process)).then_some(why);
        }
        if !self.processes.has(&header.process_id) {
            return None;
        }
        ClrEvent::of(record)
            .is_some_and(ClrEvent::is_state)
            .then_some(KeepReason::ManagedCode)
    }

    /// Records that a merge adds.
    fn classic(&self, record: &Record<'_>) -> Option<KeepReason> {
        let Header::Full(header) = record.header() else {
            return None;
        };
        match header.class {
            EVENT_METADATA => Some(KeepReason::Schema),
            SYSTEM_CONFIG_EX => Some(KeepReason::System),
            IMAGE_ID => {
                // Versions of files have no process: any may have loaded the file.
                let process = ImageId::of(record).and_then(|image| image.process_id);
                process
                    .is_none_or(|p| self.processes.has(&ProcessId::new(p)))
                    .then_some(KeepReason::Image)
            }
            _ => None,
        }
    }
}
