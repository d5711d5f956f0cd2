//! The machine that a recording describes, gathered in one pass in time order.

mod census;
pub(crate) mod changes;
mod drives;
mod eventpipe;
mod finish;
mod holders;
mod image_ids;
mod image_lives;
pub mod images;
mod kernel_events;
mod lookup;
mod mapped_files;
pub(crate) mod names;
mod process;
mod records;
mod resolve;
mod runtime;
mod signs;
mod threads;

use std::borrow::Cow;
use std::sync::OnceLock;

use etl_format::{Clock, ProcessId, ThreadId, Ticks};
use foldhash::HashMap;

use self::drives::Volumes;
use self::images::Images;
use self::lookup::IdHolders;
use self::mapped_files::MappedFiles;
use self::names::Names;
use self::resolve::Resolver;
use self::threads::Threads;
use crate::address::{DirectMapped, KERNEL_SPACE, Keys, Ranges, Sighting, Tallies};
use crate::files::{FileFacts, Timeline};
use crate::keys::ProcessIndex;
use crate::loss::Loss;

pub(crate) use crate::counted::widen;
pub use crate::counted::{Counted, Span};
pub use census::Census;
pub(crate) use changes::{Change, Life, StateObserver};
pub use drives::{SystemDirectory, Volume};
pub(crate) use eventpipe::event_name;
pub use finish::UnresolvedAddress;
pub(crate) use holders::Holders;
pub use image_lives::ImageLife;
pub use process::{CodeOverlap, Listed, Process, UnfinishedJit, UnresolvedCause};
pub use runtime::{Bracket, Clr, Counts, Item, Items, MethodUnloads, ModuleFacts};
pub use signs::{MethodSign, SignCount};
pub use threads::Thread;

/// The process of idle processors.
const IDLE: ProcessId = ProcessId::new(0);

/// The kernel's process, whose images every process sees.
const SYSTEM: ProcessId = ProcessId::new(4);

/// Slots for the processes that were looked up last.
const RECENT_PROCESSES: usize = 64;
/// Slots for the threads that were sampled last.
const RECENT_THREADS: usize = 256;

/// Processes that are kept apart; all others are counted as one. A machine has some hundreds.
const MAX_PROCESSES: usize = 1 << 16;

/// The id of the process under which the processes beyond the limit are counted.
const OTHERS: ProcessId = ProcessId::UNKNOWN;

/// The name of a process whose id never changes, for recordings without events of processes.
const fn well_known(pid: ProcessId) -> &'static str {
    match pid.get() {
        0 => "Idle",
        4 => "System",
        _ => "",
    }
}

with_accessors! {
    /// The machine that a recording describes.
    ///
    /// Times are ticks of the recording's [clock](Machine::clock).
    ///
    /// ```no_run
    /// use etl_analysis::{Analysis, Recording};
    ///
    /// let bytes = std::fs::read("trace.etl")?;
    /// let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
    /// let machine = Analysis::new().with_names().run(&mut recording, &mut ())?;
    /// for process in machine.processes() {
    ///     println!("{} {}: {} methods", process.pid(), process.name(), process.methods());
    /// }
    /// for image in machine.image_lives() {
    ///     println!("{:#x} {}", image.start, machine.user_path(image.path));
    /// }
    /// for loss in machine.losses() {
    ///     println!("{} on processor {:?}", loss.what.message(), loss.processor);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Debug)]
    pub struct Machine {
        copy {
            /// Records read.
            records: u64,
            /// Ticks of the first and the last record.
            span: Option<Span>,
            /// Ticks of the first and the last event of the runtime provider.
            runtime_span: Option<Span>,
            /// Ticks of the first and the last event of the rundown provider.
            rundown_span: Option<Span>,
            /// Ticks of the first and the last kernel record.
            kernel_span: Option<Span>,
            /// The kernel's lists of processes, threads and images, compared with its events of
            /// starts and ends.
            census: Census,
            /// Stack keys that were defined and that no event uses.
            #[doc(hidden)]
            unused_keys: Counted,
            /// Definitions of stack keys.
            #[doc(hidden)]
            definitions: u64,
            /// Whether events name stack keys in extended data, which are not followed.
            #[doc(hidden)]
            has_extended_keys: bool,
            /// Whether [`OrderCheck::Lookahead`](etl_format::read::OrderCheck) reads the files in
            /// time order.
            is_ordered: bool,
        }
        borrow {
            /// The files.
            files: Vec<FileFacts> => [FileFacts],
            /// The clock of the recording.
            clock: Clock => Clock,
            /// How the times of the files become times of the recording.
            timeline: Timeline => Timeline,
            /// What was lost.
            losses: Vec<Loss> => [Loss],
            /// Processes, in the order in which they appeared. A process id may come more than
            /// once.
            processes: Vec<Process> => [Process],
            /// Addresses that resolved to nothing, the most frequent first.
            unresolved: Vec<UnresolvedAddress> => [UnresolvedAddress],
            /// Images, and the identities that a merge adds.
            images: Images => Images,
        }
        own {
            /// Names of methods, modules, assemblies, domains and images, if they are kept.
            names: Option<Names>,
            /// What the last record changed, if an observer wants to know.
            changes: Option<Vec<Change>>,
            /// The last process with each id.
            by_pid: HashMap<ProcessId, ProcessIndex>,
            /// Whether the recording is read to its end.
            is_finished: bool,
            /// Who had the ids. It is made at the first look-up after the end of the recording.
            holders: OnceLock<IdHolders>,
            /// The processes that were looked up last, by id.
            recent: DirectMapped<Option<(ProcessId, ProcessIndex)>>,
            threads: Threads,
            volumes: Volumes,
            /// Whether it has events of `collect-linux`, whose stacks have native frames.
            has_native_stacks: bool,
            /// Files of streams of `collect-linux`.
            mapped_files: MappedFiles,
            /// The processes of the threads that were sampled last, by thread id.
            sampled: DirectMapped<Option<(ThreadId, ProcessIndex)>>,
            /// The thread of the last event: its process is known.
            last_thread: Option<ThreadId>,
            /// Samples of threads whose process is not known yet, by thread and address.
            unattributed: HashMap<(ThreadId, u64), Sighting>,
            /// Uses of stack keys that are not defined yet.
            keys: Keys,
            /// Ticks of a second.
            second: i64,
            /// Where the addresses of the kernel begin.
            kernel_begins: u64,
            resolver: Resolver,
        }
    }
}

impl Machine {
    /// A machine without processes. `names` keeps the names of methods, modules, assemblies,
    /// domains and images; the tags of code ([`crate::address::Tag`]) then hold the number of a
    /// method in [`Names`] instead of its id.
    pub(crate) fn new(timeline: Timeline, names: bool) -> Self {
        Machine {
            files: Vec::new(),
            second: i64::try_from(timeline.clock().frequency).unwrap_or(i64::MAX / 4),
            clock: timeline.clock(),
            losses: Vec::new(),
            processes: Vec::new(),
            records: 0,
            span: None,
            runtime_span: None,
            rundown_span: None,
            kernel_span: None,
            census: Census::default(),
            unused_keys: Counted::default(),
            definitions: 0,
            has_extended_keys: false,
            is_ordered: false,
            unresolved: Vec::new(),
            images: Images::default(),
            names: names.then(Names::default),
            kernel_begins: KERNEL_SPACE,
            timeline,
            changes: None,
            by_pid: HashMap::default(),
            is_finished: false,
            holders: OnceLock::new(),
            recent: DirectMapped::new(RECENT_PROCESSES),
            threads: Threads::default(),
            volumes: Volumes::default(),
            has_native_stacks: false,
            mapped_files: MappedFiles::default(),
            sampled: DirectMapped::new(RECENT_THREADS),
            last_thread: None,
            unattributed: HashMap::default(),
            keys: Keys::default(),
            resolver: Resolver::default(),
        }
    }

    /// Counts no addresses of samples and stacks.
    pub(crate) fn without_addresses(mut self) -> Self {
        self.resolver.counts = false;
        self
    }

    /// The volumes with their drive letters, if a merge recorded them.
    #[must_use]
    pub fn volumes(&self) -> &[Volume] {
        self.volumes.list()
    }

    /// A path of an event as users have it: with the drive letter of its volume, if that is known.
    #[must_use]
    pub fn user_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        self.volumes.user_path(path)
    }

    /// The directory of Windows with its drive; `None` if no merge states it.
    #[must_use]
    pub fn system_directory(&self) -> Option<SystemDirectory<'_>> {
        self.volumes.system_drive()
    }

    /// Where the addresses of the kernel begin.
    #[must_use]
    #[doc(hidden)]
    pub fn kernel_begins(&self) -> u64 {
        self.kernel_begins
    }

    /// Whether the stacks of events have frames of managed code only, as EventPipe sessions of .NET
    /// record them. Streams of `dotnet-trace collect-linux` also have frames of native code.
    #[must_use]
    pub fn has_managed_stacks_only(&self) -> bool {
        let mut files = self.files.iter();
        let are_streams = files.all(|file| file.header.is_event_pipe());
        are_streams && !self.files.is_empty() && !self.has_native_stacks
    }

    /// Images of the kernel by address.
    pub(crate) fn kernel_images(&self) -> &Ranges {
        &self.resolver.kernel
    }

    /// The session of a file: the index of the first file that the session wrote. A session may
    /// have written several.
    #[must_use]
    pub fn session_of(&self, file: usize) -> usize {
        self.files.get(file).map_or(file, |file| file.session)
    }

    /// Stacks whose key was never defined.
    #[must_use]
    pub fn undefined_stacks(&self) -> u64 {
        self.keys.undefined()
    }

    /// The first loss, if any, that may have happened within a span.
    #[must_use]
    pub fn lost_in(&self, from: Option<Ticks>, to: Option<Ticks>) -> Option<&Loss> {
        self.losses.iter().find(|loss| loss.touches(from, to))
    }

    /// What the addresses of all processes resolved to.
    #[must_use]
    #[doc(hidden)]
    pub fn tallies(&self) -> Tallies {
        let mut sums = Tallies::default();
        for process in &self.processes {
            for (sum, tally) in sums.iter_mut().zip(process.tallies) {
                *sum += tally;
            }
        }
        sums
    }

    /// Notes a change for the observer, if it wants to know.
    #[inline]
    pub(super) fn changed(&mut self, change: impl FnOnce() -> Change) {
        if let Some(changes) = &mut self.changes {
            changes.push(change());
        }
    }

    /// The process that has this id now; it is added if there is none.
    #[inline]
    pub(crate) fn process_index(&mut self, pid: ProcessId) -> ProcessIndex {
        match self.recent.get(pid) {
            Some(index) => index,
            None => self.look_up(pid),
        }
    }

    /// A process that is not among the recent ones.
    #[inline(never)]
    fn look_up(&mut self, pid: ProcessId) -> ProcessIndex {
        let index = match self.by_pid.get(&pid) {
            Some(&index) => index,
            None if self.processes.len() < MAX_PROCESSES => self.add(pid),
            None => return self.others(),
        };
        self.recent.insert(pid, index);
        index
    }

    fn add(&mut self, pid: ProcessId) -> ProcessIndex {
        let mut process = Process::with_clock(pid, self.second);
        well_known(pid).clone_into(&mut process.name);
        let index = ProcessIndex::new(self.processes.len());
        self.processes.push(process);
        self.holders.take();
        self.by_pid.insert(pid, index);
        index
    }

    /// The process under which all processes beyond the limit are counted.
    #[cold]
    fn others(&mut self) -> ProcessIndex {
        match self.by_pid.get(&OTHERS) {
            Some(&index) => index,
            None => self.add(OTHERS),
        }
    }
}
