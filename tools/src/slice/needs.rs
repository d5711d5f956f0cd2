//! What kept events need of others, and which records are such state.

use std::collections::{HashMap, HashSet};

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::cursor::Bytes;
use etl_format::read::{Header, Record, RecordLocation};
use etl_schema::providers::{
    CLR_RUNDOWN, CLR_RUNTIME, EVENT_METADATA, IMAGE_ID, KERNEL_PROCESS, SYSTEM_CONFIG_EX,
};

use super::subject::{Kernel, Subject};

/// Processes whose images every process sees: the idle one stands for the kernel in image events.
const KERNEL_PROCESSES: [u32; 2] = [0, 4];

/// Entries of each kind that are remembered one by one. Beyond, everything of the kind is kept.
const MOST: usize = 1 << 20;

/// The event by which an `EventSource` tells its manifest.
const MANIFEST_EVENT: u16 = 0xfffe;

/// Why a record is kept that nobody selected. The order is that of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Why {
    /// What the session says of itself and of the machine.
    System,
    /// Manifests and other descriptions of events.
    Schema,
    /// Processes.
    Process,
    /// Threads, and events that alone tell whose a thread is.
    Thread,
    /// Native images and their identity.
    Image,
    /// Managed code: runtimes, domains, assemblies, modules, methods, maps.
    ManagedCode,
    /// What stack keys stand for.
    StackKey,
    /// Names of files and registry keys.
    Name,
}

impl Why {
    /// All reasons, in the order of the report.
    pub const ALL: [Why; 8] = [
        Why::System,
        Why::Schema,
        Why::Process,
        Why::Thread,
        Why::Image,
        Why::ManagedCode,
        Why::StackKey,
        Why::Name,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Why::System => "system",
            Why::Schema => "schemas",
            Why::Process => "processes",
            Why::Thread => "threads",
            Why::Image => "images",
            Why::ManagedCode => "managed_code",
            Why::StackKey => "stack_keys",
            Why::Name => "names",
        }
    }
}

/// What the kept events need.
#[derive(Debug)]
pub(super) struct Needs {
    processes: Known<u32>,
    threads: Known<u32>,
    keys: Known<u64>,
    providers: Known<Guid>,
    /// Kernel groups of kept events.
    groups: [bool; 256],
    /// All processes that a thread was ever said to be of.
    owners: HashMap<u32, Vec<u32>>,
    /// The record that first told whose a thread is, where that was an event's header.
    witnesses: HashMap<u32, RecordLocation>,
}

/// A set that turns into "all" when it grows too large.
#[derive(Debug)]
struct Known<T> {
    known: HashSet<T>,
    all: bool,
}

impl<T: std::hash::Hash + Eq> Known<T> {
    fn new() -> Self {
        Known { known: HashSet::new(), all: false }
    }

    fn add(&mut self, one: T) {
        if !self.all {
            self.known.insert(one);
            if self.known.len() > MOST {
                self.all = true;
                self.known = HashSet::new();
            }
        }
    }

    fn has(&self, one: &T) -> bool {
        self.all || self.known.contains(one)
    }
}

impl Default for Needs {
    fn default() -> Self {
        let mut processes = Known::new();
        KERNEL_PROCESSES.into_iter().for_each(|process| processes.add(process));
        Needs {
            processes,
            threads: Known::new(),
            keys: Known::new(),
            providers: Known::new(),
            groups: [false; 256],
            owners: HashMap::new(),
            witnesses: HashMap::new(),
        }
    }
}

impl Needs {
    /// An event's header was the first to tell whose a thread is.
    pub fn witness(&mut self, thread: u32, process: u32, place: RecordLocation) {
        if self.witnesses.len() < MOST {
            self.witnesses.insert(thread, place);
        }
        self.owner(thread, process);
    }

    /// A thread is said to be a process's.
    pub fn owner(&mut self, thread: u32, process: u32) {
        if self.owners.len() < MOST || self.owners.contains_key(&thread) {
            let owners = self.owners.entry(thread).or_default();
            if !owners.contains(&process) && owners.len() < 64 {
                owners.push(process);
            }
        }
    }

    /// An event is kept: what it needs is needed.
    pub fn of(&mut self, record: &Record<'_>, kernel: Option<&Kernel<'_>>, subject: &Subject) {
        subject.processes().for_each(|process| self.processes.add(process));
        // The header of any other event says itself whose its thread is.
        if kernel.is_some() || subject.processes().next().is_none() {
            subject.threads().for_each(|thread| self.threads.add(thread));
        }
        match kernel {
            Some(kernel) => {
                if let Some(all) = self.groups.get_mut(usize::from(kernel.group())) {
                    *all = true;
                }
                if let (Some(_), Some(key)) = (kernel.stack_of(), kernel.stack_key())
                    && kernel.hook != 0x1820
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

    /// All events are known: what was told of needed threads is needed.
    pub fn finish(&mut self) {
        let owners = std::mem::take(&mut self.owners);
        for (thread, owners) in owners {
            if self.threads.has(&thread) {
                owners.into_iter().for_each(|process| self.processes.add(process));
            }
        }
        let threads = &self.threads;
        self.witnesses.retain(|thread, _| threads.has(thread));
    }

    /// Why a record has to be kept, if it has to.
    pub fn why(
        &self,
        record: &Record<'_>,
        kernel: Option<&Kernel<'_>>,
        subject: &Subject,
    ) -> Option<Why> {
        let why = match kernel {
            Some(kernel) => self.kernel(kernel, subject),
            None if record.is_event() => self.event(record),
            None => self.classic(record),
        };
        why.or_else(|| {
            let thread = record.thread_id()?;
            (self.witnesses.get(&thread) == Some(&record.location())).then_some(Why::Thread)
        })
    }

    fn kernel(&self, kernel: &Kernel<'_>, subject: &Subject) -> Option<Why> {
        let process = subject.processes().any(|p| self.processes.has(&p));
        let group = |group: u8| self.groups.get(usize::from(group)).copied().unwrap_or(false);
        match kernel.hook {
            // The session's own records, and the configuration of the machine.
            0x0000..=0x00ff | 0x0b00..=0x0bff => Some(Why::System),
            // Sampling intervals: what a sample weighs.
            0x0f48..=0x0f4a => Some(Why::System),
            0x0301..=0x0304 | 0x0327 => process.then_some(Why::Process),
            0x0501..=0x0504 | 0x0548 => {
                let thread = subject.threads().any(|t| self.threads.has(&t));
                (process || thread).then_some(Why::Thread)
            }
            0x030a | 0x1402..=0x1404 => process.then_some(Why::Image),
            // Where the kernel and the hypercall page are.
            0x1421 | 0x1422 => Some(Why::Image),
            0x1822..=0x1824 => {
                kernel.stack_key().is_some_and(|key| self.keys.has(&key)).then_some(Why::StackKey)
            }
            // Disk, memory and file events name files by object; the names stand elsewhere.
            0x0400 | 0x0420 | 0x0423 | 0x0424 => {
                (group(0x01) || group(0x02) || group(0x04)).then_some(Why::Name)
            }
            // Likewise registry events and their control blocks.
            0x0916..=0x0919 => group(0x09).then_some(Why::Name),
            _ => None,
        }
    }

    fn event(&self, record: &Record<'_>) -> Option<Why> {
        let header = record.event()?;
        let id = header.descriptor.id;
        if id == MANIFEST_EVENT {
            return self.providers.has(&header.provider).then_some(Why::Schema);
        }
        if header.provider == KERNEL_PROCESS {
            let payload = record.payload();
            let wide = record.pointer_size() != Some(PointerSize::P4);
            let (process, why) = match id {
                1 | 2 | 15 => (payload.u32_at(0), Why::Process),
                3 | 4 => (payload.u32_at(0), Why::Thread),
                5 | 6 => (payload.u32_at(if wide { 16 } else { 8 }), Why::Image),
                _ => return None,
            };
            return process.is_some_and(|p| self.processes.has(&p)).then_some(why);
        }
        if !self.processes.has(&header.process_id) {
            return None;
        }
        let state = match header.provider {
            // All it raises is state, but for its own stacks.
            CLR_RUNDOWN => id != 0,
            CLR_RUNTIME => is_runtime_state(id),
            _ => false,
        };
        state.then_some(Why::ManagedCode)
    }

    /// What a merge adds.
    fn classic(&self, record: &Record<'_>) -> Option<Why> {
        let Header::Full(header) = record.header() else { return None };
        match header.class {
            EVENT_METADATA => Some(Why::Schema),
            SYSTEM_CONFIG_EX => Some(Why::System),
            IMAGE_ID => {
                let wide = record.pointer_size() != Some(PointerSize::P4);
                let pointer = if wide { 8 } else { 4 };
                let process = match header.opcode {
                    0 => record.payload().u32_at(2 * pointer),
                    32 | 36..=38 | 40 => record.payload().u32_at(pointer),
                    // Versions of files are told by timestamp and size of the file, which any process
                    // may have loaded.
                    _ => None,
                };
                process.is_none_or(|p| self.processes.has(&p)).then_some(Why::Image)
            }
            _ => None,
        }
    }
}

/// Whether an event of the CLR's runtime provider says what others need: type names, code, modules,
/// assemblies and domains, entry points, maps from IL to code, and which runtime it is.
///
/// Source: the provider's tables; 135 to 140, 149 and 150 are the rundown of the first release.
pub(super) fn is_runtime_state(id: u16) -> bool {
    matches!(id, 15 | 72 | 135..=144 | 149..=160 | 187 | 190)
}

/// Whether an event is the stack of the CLR's event before it on the same thread.
pub(crate) fn is_clr_stack(record: &Record<'_>) -> bool {
    is_clr(record)
        && record
            .event()
            .is_some_and(|h| h.descriptor.id == if h.provider == CLR_RUNTIME { 82 } else { 0 })
}

/// Whether an event is one of the CLR's two providers.
pub(super) fn is_clr(record: &Record<'_>) -> bool {
    record.is_event() && record.provider().is_some_and(|p| p == CLR_RUNTIME || p == CLR_RUNDOWN)
}
