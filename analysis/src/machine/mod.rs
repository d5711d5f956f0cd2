//! The machine that a recording describes, gathered in one pass in time order.

mod census;
pub(crate) mod changes;
mod drives;
mod finish;
mod holders;
mod image_ids;
mod image_lives;
pub mod images;
mod kernel_events;
mod listed;
pub(crate) mod names;
mod process;
mod resolve;
mod runtime;
mod signs;
mod threads;

use std::borrow::Cow;
use std::sync::OnceLock;

use etl_format::constants::{EventFlags, PointerSize};
use etl_format::read::{EventHeader, ExtendedItem, Header, Record, Source, Trace};
use etl_format::{Clock, FileHeader, ProcessId, ThreadId, Ticks};
use etl_schema::providers::{
    IMAGE_ID, KERNEL_PROCESS, LOST_EVENT, SYSTEM_CONFIG_EX, kernel_class, lost,
};
use etl_schema::views::clr::ClrProvider;
use etl_schema::views::{clr, kernel};
use foldhash::{HashMap, HashSet};

use crate::address::{DirectMapped, KERNEL_SPACE, Keys, Origin, Ranges, Sighting, Tallies};
use crate::files::{self, FileFacts, Timeline};
use crate::keys::{ClrKey, ProcessIndex};
use crate::loss::{self, Loss, LossKind};
use crate::steps::{ClrHead, Step, StepSink, Words};
use drives::Volumes;
pub(crate) use holders::Holders;
use images::Images;
use names::Names;
use resolve::Resolver;
use threads::Threads;

pub(crate) use crate::counted::widen;
pub use crate::counted::{Counted, Span};
pub use census::Census;
pub(crate) use changes::{Change, ClrEvent, Life, StateObserver};
pub use drives::Volume;
pub use finish::UnresolvedAddress;
pub use image_lives::ImageLife;
pub use listed::Listed;
pub use process::{CodeOverlap, Process, UnfinishedJit, UnresolvedCause};
pub use runtime::{Bracket, Clr, Counts, Item, Items, MethodUnloads, ModuleFacts};
pub use signs::{MethodSign, SignCount};
pub use threads::Thread;

/// The process of idle processors.
const IDLE: ProcessId = ProcessId::new(0);

/// The kernel's process, whose images every process sees.
const SYSTEM: ProcessId = ProcessId::new(4);

/// The name of a process whose id never changes, for recordings without events of processes.
const fn well_known(pid: ProcessId) -> &'static str {
    match pid.get() {
        0 => "Idle",
        4 => "System",
        _ => "",
    }
}

/// Slots for processes and for threads that were looked up last.
const RECENT_PROCESSES: usize = 64;
const RECENT_THREADS: usize = 256;

/// Samples of threads without a known process that are kept, by thread and address; others count
/// for the idle process.
const MAX_UNATTRIBUTED: usize = 1 << 20;

/// Processes that are kept apart; all others count as one. A machine has some hundreds.
const MAX_PROCESSES: usize = 1 << 16;

/// Records of each kind about losses that are kept apart in a file.
const MAX_LOSS_RECORDS: u64 = 1 << 10;

/// The id under which processes beyond the limit count.
const OTHERS: ProcessId = ProcessId::UNKNOWN;

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
    /// let machine = Analysis::new().names(true).run(&mut recording, &mut ())?;
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
            /// What the kernel's lists and its events of starts and ends say of each other.
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
            /// Names of methods, modules, assemblies, domains and images, where they are kept.
            names: Option<Names>,
            /// What the last record changed, where an observer wants to know.
            changes: Option<Vec<Change>>,
            by_pid: HashMap<ProcessId, ProcessIndex>,
            /// Whether the recording is read to its end.
            is_finished: bool,
            /// Who had the ids, from the end of the recording on.
            holders: OnceLock<IdHolders>,
            /// Indices of the processes that were looked up last, by id.
            recent: DirectMapped<Option<(ProcessId, ProcessIndex)>>,
            threads: Threads,
            volumes: Volumes,
            /// Indices of the processes of the threads that were sampled last, by thread id.
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

/// Who had the ids of processes and threads.
#[derive(Debug)]
pub(crate) struct IdHolders {
    processes: Holders<ProcessId>,
    threads: Holders<ThreadId>,
    /// By the ids of process and thread.
    of_processes: Holders<(ProcessId, ThreadId)>,
}

/// Whether a step is of an event of the CLR, and whether of one of the kernel.
fn origin(step: &Step<'_>) -> (bool, bool) {
    match step {
        Step::Words(Words::Sample { .. }) => (false, true),
        Step::Words(Words::Thread { .. }) => (false, false),
        Step::Words(Words::ClrEvent { .. }) | Step::ClrEvent(..) => (true, false),
        Step::Record(record) => match record.event() {
            Some(header) => (ClrProvider::from_guid(header.provider).is_some(), false),
            // Every file has events about itself.
            None => (
                false,
                kernel::hook_of(record).is_some_and(|hook| hook >> 8 != 0),
            ),
        },
    }
}

/// Takes in the steps of the records of a file.
pub(crate) struct MachineSink<'m, O> {
    machine: &'m mut Machine,
    file: usize,
    observer: &'m mut O,
}

impl<O: StateObserver> StepSink for MachineSink<'_, O> {
    #[inline(always)]
    fn step(self, step: Step<'_>, time: Ticks) {
        self.machine.apply(step, time, self.file, self.observer);
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
            sampled: DirectMapped::new(RECENT_THREADS),
            last_thread: None,
            unattributed: HashMap::default(),
            keys: Keys::default(),
            resolver: Resolver::default(),
        }
    }

    /// Who had the ids, once that does not change any more.
    fn holders(&self) -> Option<&IdHolders> {
        self.is_finished.then(|| {
            self.holders.get_or_init(|| {
                let threads = self.threads.list().iter();
                IdHolders {
                    processes: Holders::new(self.processes.iter().map(|p| (p.pid, p.started))),
                    threads: Holders::new(threads.clone().map(|t| (t.tid, t.started))),
                    of_processes: Holders::new(threads.map(|t| ((t.pid, t.tid), t.started))),
                }
            })
        })
    }

    /// Index of the process that had an id at a time: of several, the last that had started by
    /// then.
    ///
    /// ```
    /// use etl_analysis::Machine;
    /// use etl_format::{ProcessId, Ticks};
    ///
    /// fn process_name(machine: &Machine, pid: ProcessId, time: Ticks) -> &str {
    ///     match machine.process_at(pid, time).and_then(|index| machine.process(index)) {
    ///         Some(process) => process.name(),
    ///         None => "(unknown process)",
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn process_at(&self, pid: ProcessId, time: Ticks) -> Option<ProcessIndex> {
        if let Some(holders) = self.holders() {
            return holders.processes.at(pid, time).map(ProcessIndex::new);
        }
        let had_started = |process: &Process| process.started.is_none_or(|start| start <= time);
        if let Some(&index) = self.by_pid.get(&pid)
            && self.process(index).is_none_or(had_started)
        {
            return Some(index);
        }
        let mut first = None;
        for (index, process) in self.indexed_processes().rev() {
            if process.pid == pid {
                if had_started(process) {
                    return Some(index);
                }
                first = Some(index);
            }
        }
        first
    }

    /// The process with an index.
    ///
    /// ```
    /// use etl_analysis::{EventRef, Machine};
    ///
    /// fn process_name<'m>(machine: &'m Machine, event: &EventRef) -> &'m str {
    ///     let process = event.process.and_then(|index| machine.process(index));
    ///     process.map_or("", |process| process.name())
    /// }
    /// ```
    #[must_use]
    pub fn process(&self, index: ProcessIndex) -> Option<&Process> {
        self.processes.get(index.get())
    }

    /// The processes with their indices, in the order in which they appeared.
    pub fn indexed_processes(&self) -> impl DoubleEndedIterator<Item = (ProcessIndex, &Process)> {
        let processes = self.processes.iter().enumerate();
        processes.map(|(index, process)| (ProcessIndex::new(index), process))
    }

    /// Index of the process that has an id now.
    #[must_use]
    pub fn index_of(&self, pid: ProcessId) -> Option<ProcessIndex> {
        self.recent
            .get(pid)
            .or_else(|| self.by_pid.get(&pid).copied())
    }

    /// The threads, in the order in which they appeared. A thread id may come more than once.
    #[must_use]
    pub fn threads(&self) -> &[Thread] {
        self.threads.list()
    }

    /// The thread that had an id at a time: of several, the last that had started by then.
    ///
    /// ```
    /// use etl_analysis::Machine;
    /// use etl_format::{ThreadId, Ticks};
    ///
    /// fn thread_name(machine: &Machine, tid: ThreadId, time: Ticks) -> &str {
    ///     machine.thread_at(tid, time).map_or("", |thread| &thread.name)
    /// }
    /// ```
    #[must_use]
    pub fn thread_at(&self, tid: ThreadId, time: Ticks) -> Option<&Thread> {
        if let Some(holders) = self.holders() {
            return self.threads.list().get(holders.threads.at(tid, time)?);
        }
        let own = || {
            self.threads
                .list()
                .iter()
                .filter(|thread| thread.tid == tid)
        };
        own()
            .rfind(|t| t.started.is_none_or(|at| at <= time))
            .or_else(|| own().next())
    }

    /// The thread of a process that had an id: of several, the last one. Without a process, the
    /// last one of all.
    #[must_use]
    pub fn thread_of(&self, process: Option<ProcessIndex>, tid: ThreadId) -> Option<&Thread> {
        let Some(process) = process else {
            return self.thread_at(tid, Ticks::MAX);
        };
        let process = self.process(process)?;
        // The id of the process may be that of others before and after it.
        let until = process.ended.unwrap_or(Ticks::MAX);
        let list = self.threads.list();
        let thread = match self.holders() {
            Some(holders) => list.get(holders.of_processes.begun((process.pid, tid), until)?)?,
            None => {
                let own = |t: &&Thread| (t.pid, t.tid) == (process.pid, tid);
                list.iter()
                    .filter(own)
                    .rfind(|t| t.started.is_none_or(|at| at <= until))?
            }
        };
        let is_earlier = thread
            .ended
            .zip(process.started)
            .is_some_and(|(end, start)| end < start);
        (!is_earlier).then_some(thread)
    }

    /// Index of the process of a thread of this machine.
    #[must_use]
    pub fn process_of(&self, thread: &Thread) -> Option<ProcessIndex> {
        // One that was there from the beginning is one of the first process with the id.
        self.process_at(
            thread.pid,
            thread.started.or(thread.ended).unwrap_or(Ticks::MIN),
        )
    }

    /// Index of the process that a thread belongs to now. Thread 0 is the idle one of every
    /// processor.
    #[must_use]
    pub fn process_of_thread(&self, tid: ThreadId) -> Option<ProcessIndex> {
        self.sampled.get(tid).or_else(|| {
            let pid = if tid == 0 {
                Some(IDLE)
            } else {
                self.threads.pid_of(tid)
            };
            self.index_of(pid?)
        })
    }

    /// Index of the process of a thread that did something before any event named its process: the
    /// first one that the recording names.
    #[must_use]
    pub fn first_process_of_thread(&self, tid: ThreadId) -> Option<ProcessIndex> {
        if tid == 0 {
            return self.process_at(IDLE, Ticks::MIN);
        }
        let thread = self.thread_at(tid, Ticks::MIN)?;
        self.process_at(thread.pid, thread.started.unwrap_or(Ticks::MIN))
    }

    /// Whether no process id has been that of several processes, and of these threads none that of
    /// threads of several.
    pub(crate) fn has_own_ids(&self, threads: impl Iterator<Item = ThreadId>) -> bool {
        if self.processes.len() != self.by_pid.len() || self.processes.len() >= MAX_PROCESSES {
            return false;
        }
        let wanted: HashSet<ThreadId> = threads.collect();
        let of_wanted = || {
            self.threads
                .list()
                .iter()
                .filter(|t| wanted.contains(&t.tid))
        };
        of_wanted().all(|thread| self.threads.pid_of(thread.tid) == Some(thread.pid))
    }

    /// The volumes with their drive letters, where a merge recorded them.
    #[must_use]
    pub fn volumes(&self) -> &[Volume] {
        self.volumes.list()
    }

    /// A path of an event as users have it: with the drive letter of its volume, where that is
    /// known.
    #[must_use]
    pub fn user_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        self.volumes.user_path(path)
    }

    /// Where the addresses of the kernel begin.
    #[must_use]
    #[doc(hidden)]
    pub fn kernel_begins(&self) -> u64 {
        self.kernel_begins
    }

    /// Images of the kernel by address.
    pub(crate) fn kernel_images(&self) -> &Ranges {
        &self.resolver.kernel
    }

    /// Counts no addresses of samples and stacks.
    pub(crate) fn without_addresses(mut self) -> Self {
        self.resolver.counts = false;
        self
    }

    /// Adds a file, with what it states of itself.
    pub(crate) fn add_file<S: Source>(&mut self, trace: &Trace<S>, name: &str) {
        let source = self.files.len();
        let at = |raw| self.timeline.timestamp(source, raw);
        let mut file = FileFacts::new(trace, source, name, &self.timeline);
        let is_part_of = |first: &&FileFacts| {
            let parts = first.part.as_ref().zip(file.part.as_ref());
            parts.is_some_and(|(first, part)| part.is_of_session_of(first))
        };
        file.session = self
            .files
            .iter()
            .find(is_part_of)
            .map_or(source, |first| first.index);
        self.losses
            .extend(loss::of_file(trace, source, file.session, at));
        if trace.header().pointer_size == PointerSize::P4 {
            self.kernel_begins = 1 << 31;
        }
        self.files.push(file);
    }

    /// Adds what is missing between the files, once all are added.
    pub(crate) fn add_gaps(&mut self) {
        let gaps = files::gaps_between(&self.files);
        for gap in gaps.iter().filter(|gap| gap.is_loss) {
            self.losses.push(Loss {
                from: Some(self.timeline.timestamp(gap.before, Ticks::new(gap.from))),
                to: Some(self.timeline.timestamp(gap.after, Ticks::new(gap.to))),
                processor: None,
                what: LossKind::BuffersLost,
                source: gap.after,
                session: self.session_of(gap.after),
            });
        }
    }

    /// The index of the first of the files that hold the session of a file: a session may have
    /// written several.
    #[must_use]
    pub fn session_of(&self, file: usize) -> usize {
        self.files.get(file).map_or(file, |file| file.session)
    }

    /// Sets what was counted where records were read: how many, and the spans of the kernel's and
    /// of all others.
    pub(crate) fn set_totals(
        &mut self,
        records: u64,
        kernel_span: Option<Span>,
        other_span: Option<Span>,
    ) {
        self.records = records;
        self.kernel_span = kernel_span;
        self.span = other_span;
        if let Some(kernel) = kernel_span {
            widen(&mut self.span, kernel.first);
            widen(&mut self.span, kernel.last);
        }
    }

    /// Takes in the steps of the records of a file.
    #[inline(always)]
    pub(crate) fn sink<'m, O: StateObserver>(
        &'m mut self,
        file: usize,
        observer: &'m mut O,
    ) -> MachineSink<'m, O> {
        MachineSink {
            machine: self,
            file,
            observer,
        }
    }

    /// Takes in the step of a record.
    #[inline(always)]
    pub(crate) fn apply(
        &mut self,
        step: Step<'_>,
        time: Ticks,
        file: usize,
        observer: &mut impl StateObserver,
    ) {
        if self.files.len() > 1
            && let Some(file) = self.files.get_mut(file)
        {
            let (clr, kernel) = origin(&step);
            file.has_clr |= clr;
            file.has_kernel |= kernel;
        }
        match step {
            Step::Words(Words::Sample { address, tid }) => self.sample(address, tid, time),
            Step::Words(Words::Thread { pid, tid }) => self.threads.seen(tid, pid),
            Step::Words(Words::ClrEvent {
                head,
                is_short,
                is_il_map,
            }) => {
                self.clr_header(head, (is_short, is_il_map), time, observer);
            }
            Step::ClrEvent(head, payload) => {
                if !head.known {
                    self.threads.seen(head.tid, head.pid);
                }
                self.clr_event(&head, payload, None, time, observer);
            }
            Step::Record(record) => self.record(record, time, file, observer),
        }
    }

    /// Takes in a record that may change the machine, or has addresses.
    #[inline(never)]
    fn record(
        &mut self,
        record: &Record<'_>,
        timestamp: Ticks,
        file: usize,
        observer: &mut impl StateObserver,
    ) {
        if let Some(header) = record.event() {
            self.event(record, &header, timestamp, observer);
        } else if record.is_kernel() {
            if let Some(event) = kernel::decode(record) {
                self.kernel_event(event, record, timestamp, observer);
            } else if record.hook() == Some(0) {
                self.session(record, timestamp, file);
            }
        } else if let Header::Full(header) = record.header() {
            match header.class {
                IMAGE_ID => self.images.identity(record, timestamp, self.names.as_mut()),
                SYSTEM_CONFIG_EX => self.volumes.record(header.opcode, record.payload()),
                LOST_EVENT => self.lost(header.opcode, timestamp, file),
                kernel_class::PROCESS | kernel_class::THREAD | kernel_class::IMAGE => {
                    let fields = |hook| kernel::Fields::of(record, hook);
                    if let Some(event) = kernel::hook_of(record).and_then(fields)
                        && let Some(event) = event.event()
                    {
                        self.kernel_event(event, record, timestamp, observer);
                    }
                }
                _ => {}
            }
        }
    }

    /// A record that says that something was lost.
    #[cold]
    fn lost(&mut self, opcode: u8, timestamp: Ticks, source: usize) {
        let Some(file) = self.files.get_mut(source) else {
            return;
        };
        let (session, records) = (file.session, &mut file.loss_records);
        let (counted, what) = match opcode {
            lost::EVENT => (&mut records.events, LossKind::EventsLost),
            lost::BUFFER => (&mut records.buffers, LossKind::BuffersLost),
            lost::FILE => (&mut records.files, LossKind::BuffersLost),
            _ => return,
        };
        counted.add(timestamp);
        // Beyond this many, they may have happened at any time.
        let from = Some(timestamp).filter(|_| counted.count < MAX_LOSS_RECORDS);
        if counted.count <= MAX_LOSS_RECORDS {
            self.losses.push(Loss {
                from,
                to: from,
                processor: None,
                what,
                source,
                session,
            });
        }
    }

    /// A header event among the records: a session that a merge carried over.
    fn session(&mut self, record: &Record<'_>, timestamp: Ticks, source: usize) {
        let Ok(header) = FileHeader::parse(record.bytes(), 0) else {
            return;
        };
        let Some(file) = self.files.get_mut(source) else {
            return;
        };
        self.losses
            .extend(file.add_session(&header, timestamp, source, &self.timeline));
    }

    fn event(
        &mut self,
        record: &Record<'_>,
        header: &EventHeader,
        timestamp: Ticks,
        observer: &mut impl StateObserver,
    ) {
        let (pid, tid) = (header.process_id, header.thread_id);
        if self.last_thread != Some(tid) {
            self.threads.seen(tid, pid);
            self.last_thread = Some(tid);
        }
        if let Some(provider) = ClrProvider::from_guid(header.provider) {
            let head = ClrHead {
                pid,
                tid,
                known: true,
                id: header.descriptor.id,
                version: header.descriptor.version,
                provider,
                wide: record.pointer_size() == Some(PointerSize::P8),
            };
            self.clr_event(&head, record.payload(), Some(header), timestamp, observer);
        }
        if header.provider == KERNEL_PROCESS {
            self.described_process(record, timestamp);
        }
        if header.flags.has(EventFlags::EXTENDED_INFO) {
            for item in record.extended() {
                match item {
                    ExtendedItem::Stack(stack) => {
                        let process = self.process_index(pid);
                        self.resolver.stack(
                            &mut self.processes,
                            process,
                            Origin::ExtendedStack,
                            stack.addresses(),
                            timestamp,
                        );
                    }
                    ExtendedItem::StackKey { .. } => self.has_extended_keys = true,
                    _ => {}
                }
            }
        }
    }

    /// Takes in an event of the CLR none of whose fields matters.
    #[inline(always)]
    fn clr_header(
        &mut self,
        head: ClrHead,
        (is_short, is_il_map): (bool, bool),
        time: Ticks,
        observer: &mut impl StateObserver,
    ) {
        if !head.known {
            self.threads.seen(head.tid, head.pid);
        }
        let mut seen = ClrEvent::new(head, time);
        if !is_short {
            let index = self.process_index(head.pid);
            widen(self.clr_span(head.provider), time);
            if let Some(process) = self.processes.get_mut(index.get()) {
                process.clr_seen(head.provider.is_rundown(), time);
                if is_il_map {
                    process.map_seen(head.provider.is_rundown(), time);
                }
            }
            seen.process = Some(index);
        }
        observer.clr_event(&seen);
    }

    /// The span of the events of one of the CLR's providers.
    fn clr_span(&mut self, provider: ClrProvider) -> &mut Option<Span> {
        match provider {
            ClrProvider::Runtime => &mut self.runtime_span,
            ClrProvider::Rundown => &mut self.rundown_span,
        }
    }

    /// Takes in an event of the CLR; `header` where it is looked at as a whole.
    fn clr_event(
        &mut self,
        head: &ClrHead,
        payload: &[u8],
        header: Option<&EventHeader>,
        timestamp: Ticks,
        observer: &mut impl StateObserver,
    ) {
        let &ClrHead {
            pid,
            tid,
            provider,
            id,
            version,
            ..
        } = head;
        let pointers = head.pointers();
        let from = clr::decode_event(provider, id, version, payload, pointers);
        let mut seen = ClrEvent::new(*head, timestamp);
        seen.payload = header
            .is_none_or(EventHeader::has_manifest_layout)
            .then_some(payload);
        let Some(from) = from else {
            observer.clr_event(&seen);
            return;
        };
        seen.exact = from.exact;
        let index = self.process_index(pid);
        seen.process = Some(index);
        let span = self.clr_span(provider);
        widen(span, timestamp);
        let since = span.map_or(0, |span| timestamp.saturating_since(span.first));
        match from.event {
            clr::Event::Stack { stated, frames } => {
                self.resolver.frames(
                    &mut self.processes,
                    index,
                    Origin::ClrStack,
                    frames,
                    timestamp,
                );
                seen.stack = Some((stated, frames.len()));
                // A stack comes microseconds after its event.
                seen.begun = since.unsigned_abs() <= self.clock.frequency / 100;
            }
            clr::Event::Exception(at) => self.address(index, Origin::Exception, at, timestamp),
            clr::Event::EntryPoint(at) => self.address(index, Origin::EntryPoint, at, timestamp),
            _ => {}
        }
        observer.clr_event(&seen);
        if let Some(process) = self.processes.get_mut(index.get()) {
            let mut code = None;
            if let (Some(names), Some(_)) = (&mut self.names, header) {
                let clr = ClrKey::new(index, process.instance_of(&from));
                code = names.learn(clr, &from, timestamp);
            }
            process.has_pointers(head.wide);
            process.clr_event(&from, code, timestamp, tid);
        }
        if let clr::Event::Method(clr::Change::Load | clr::Change::Unload, method) = from.event {
            let clr::Method { start, size, .. } = method;
            self.changed(|| Change::Code {
                process: index,
                start,
                size,
            });
        }
    }

    /// Resolves an address that comes alone.
    #[inline]
    fn address(&mut self, process: ProcessIndex, origin: Origin, address: u64, time: Ticks) {
        let address = std::iter::once(address);
        self.resolver
            .stack(&mut self.processes, process, origin, address, time);
    }

    /// Takes in a sample of what a processor was doing.
    #[inline]
    fn sample(&mut self, address: u64, tid: ThreadId, time: Ticks) {
        let Some(process) = self.running(tid) else {
            // Without addresses, what counts is that the thread was there.
            let address = if self.resolver.counts { address } else { 0 };
            let none = Sighting {
                count: 0,
                first: time,
                last: time,
                in_image: false,
            };
            let sighting = self.unattributed.entry((tid, address)).or_insert(none);
            (sighting.count, sighting.last) = (sighting.count + 1, time);
            return;
        };
        self.address(process, Origin::Sample, address, time);
    }

    /// Index of the process of a thread that runs; it is added if there is none.
    #[inline]
    pub(crate) fn running(&mut self, tid: ThreadId) -> Option<ProcessIndex> {
        self.sampled
            .get(tid)
            .or_else(|| self.process_of_sample(tid))
    }

    /// Index of the process of a thread that was not sampled before.
    #[inline(never)]
    fn process_of_sample(&mut self, tid: ThreadId) -> Option<ProcessIndex> {
        let pid = if tid == 0 {
            Some(IDLE)
        } else {
            self.threads.pid_of(tid)
        };
        let is_full = self.unattributed.len() >= MAX_UNATTRIBUTED;
        let process = self.process_index(pid.or(is_full.then_some(IDLE))?);
        if pid.is_some() {
            self.sampled.insert(tid, process);
        }
        Some(process)
    }

    #[inline]
    fn changed(&mut self, change: impl FnOnce() -> Change) {
        if let Some(changes) = &mut self.changes {
            changes.push(change());
        }
    }

    /// Index of the process that has this id now; it is added if there is none.
    #[inline]
    pub(crate) fn process_index(&mut self, pid: ProcessId) -> ProcessIndex {
        self.recent.get(pid).unwrap_or_else(|| self.look_up(pid))
    }

    /// Index of a process that is not among the recent ones.
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

    /// Index of the process that stands for all beyond the limit.
    #[cold]
    fn others(&mut self) -> ProcessIndex {
        self.by_pid
            .get(&OTHERS)
            .copied()
            .unwrap_or_else(|| self.add(OTHERS))
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

    /// All tallies of the trace.
    #[must_use]
    #[doc(hidden)]
    pub fn tallies(&self) -> Tallies {
        let mut sum = Tallies::default();
        for process in &self.processes {
            for (sum, tally) in sum.iter_mut().zip(process.tallies) {
                *sum += tally;
            }
        }
        sum
    }
}
