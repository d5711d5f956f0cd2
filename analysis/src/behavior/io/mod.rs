//! Reads and writes of disks and files, by process and path.
//!
//! Disks need the kernel's flag `DISK_IO`, files `FILE_IO` and `FILE_IO_INIT`, and the names of
//! files that were open before `FILENAME`. Events of disks name their thread since Windows 8;
//! before, the flag `DISK_IO_INIT` is needed as well. The providers Microsoft-Windows-Kernel-Disk
//! and Microsoft-Windows-Kernel-File have the same data, but for the threads of disks.
//!
//! ```no_run
//! use etl_analysis::behavior::io::Io;
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut io = Io::new();
//! let machine = Analysis::new().run(&mut recording, &mut io)?;
//! for (key, total) in io.by_path(&machine) {
//!     let process = key.process.and_then(|index| machine.process(index));
//!     let name = process.map_or("?", |process| process.name());
//!     println!("{name} {}: {} times {:?}", key.path, total.count, key.operation);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod files;
mod hard_faults;
mod reader;

use std::collections::BTreeMap;
use std::ops::AddAssign;

use etl_format::read::Record;
use etl_format::{ThreadId, Ticks, TimeRange};

use self::files::FileNames;
use self::reader::{DiskFields, Reader, Step, StepKind};
use super::Histogram;
use crate::keys::ProcessIndex;
use crate::loss::Loss;
use crate::machine::Machine;
use crate::machine::names::text;
use crate::observe::{EventRef, Joins, Observer};
use crate::{OpenOperations, Scope};

pub use self::hard_faults::{FaultKey, FaultTotal, HardFault, HardFaults, ListedFault};
pub(super) use self::reader::is_transfer_of_file;

/// Operations on files, and of disks, whose end is awaited.
const MAX_OPEN: usize = 1 << 16;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// A disk read.
    DiskRead,
    /// A disk wrote.
    DiskWrite,
    /// A disk flushed its cache.
    DiskFlush,
    /// A process read from a file, from a disk or from the cache.
    FileRead,
    /// A process wrote to a file.
    FileWrite,
}

impl Operation {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Operation::DiskRead => "disk read",
            Operation::DiskWrite => "disk write",
            Operation::DiskFlush => "disk flush",
            Operation::FileRead => "file read",
            Operation::FileWrite => "file write",
        }
    }

    /// Whether a disk did it.
    #[must_use]
    pub const fn is_of_disk(self) -> bool {
        matches!(
            self,
            Operation::DiskRead | Operation::DiskWrite | Operation::DiskFlush
        )
    }
}

/// What a process did with a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct IoKey {
    /// The process; `None` if the recording names none.
    pub process: Option<ProcessIndex>,
    /// Path of the file as users have it; empty if no event names it.
    pub path: String,
    /// What was done.
    pub operation: Operation,
}

/// Operations of one kind by a process on a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoTotal {
    /// How many.
    pub count: u64,
    /// Bytes that were read or written.
    pub bytes: u64,
    /// How long they took, in 100 ns.
    pub latency: Histogram,
}

/// The total of a process, a file and an operation, from [`Io::totals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileTotal<'a> {
    /// The process; `None` if the recording names none.
    pub process: Option<ProcessIndex>,
    /// Path of the file as the kernel has it; `None` if no event names it.
    pub path: Option<&'a str>,
    /// What was done.
    pub operation: Operation,
    /// How much.
    pub total: &'a IoTotal,
}

/// One operation of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskOperation {
    /// The number of its event in time order.
    pub number: u64,
    /// When it ended, in ticks of the recording's clock.
    pub time: Ticks,
    /// The processor that logged it.
    pub processor: u16,
    /// What was done.
    pub operation: Operation,
    /// The thread that asked for it.
    pub tid: Option<ThreadId>,
    /// Number of the disk.
    pub disk: Option<u32>,
    /// Offset on the disk, in bytes; `None` for a flush.
    pub offset: Option<u64>,
    /// Bytes that were read or written.
    pub bytes: u64,
    /// How long it took, in 100 ns.
    pub duration: Option<u64>,
    actor: Actor,
    file: Option<usize>,
}

impl DiskOperation {
    /// Its process; `None` if the recording names none.
    #[must_use]
    pub fn process(&self) -> Option<ProcessIndex> {
        self.actor.process()
    }
}

impl AddAssign<&IoTotal> for IoTotal {
    fn add_assign(&mut self, other: &IoTotal) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.latency += &other.latency;
    }
}

/// Who did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Actor {
    /// A process, by its index; `None` if the recording names none.
    Process(Option<ProcessIndex>),
    /// A thread whose process no event has named yet.
    Thread(ThreadId),
}

impl Actor {
    fn new(machine: &Machine, tid: Option<u64>) -> Self {
        let Some(tid) = tid.map(|tid| ThreadId::new(tid as u32)) else {
            return Actor::Process(None);
        };
        match machine.process_of_thread(tid) {
            None => Actor::Thread(tid),
            process => Actor::Process(process),
        }
    }

    /// The thread in the header of an event, or else its process.
    fn of_event(machine: &Machine, event: &EventRef) -> Self {
        match (event.process, event.tid) {
            (None, Some(tid)) => Actor::new(machine, Some(tid.get().into())),
            (process, _) => Actor::Process(process),
        }
    }

    fn process(self) -> Option<ProcessIndex> {
        match self {
            Actor::Process(process) => process,
            Actor::Thread(_) => None,
        }
    }
}

/// What totals are kept by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    actor: Actor,
    /// The index of the file.
    file: Option<usize>,
    operation: Operation,
}

/// An operation on a file that has not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    key: Key,
    since: Ticks,
}

/// Who asked for an operation of a disk.
#[derive(Clone, Copy, Debug)]
struct Issuer {
    actor: Actor,
    tid: Option<ThreadId>,
}

/// Collects the reads and writes of a recording.
#[derive(Clone, Debug)]
pub struct Io {
    totals: BTreeMap<Key, IoTotal>,
    files: FileNames,
    /// Operations that have not ended, by their request.
    open: OpenOperations<u64, Open>,
    given_up: u64,
    /// Who began the operations of disks that have not ended, by their request.
    issuers: OpenOperations<u64, Issuer>,
    /// The operations of disks, if they are kept.
    disk_operations: Option<Vec<DiskOperation>>,
    /// Whether the kernel's own events of disks and of files have come. The events of providers are
    /// about the same operations.
    has_classic_disks: bool,
    has_classic_files: bool,
    reader: Reader,
    range: TimeRange,
}

impl Default for Io {
    fn default() -> Self {
        Io::new()
    }
}

impl Io {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        Io {
            totals: BTreeMap::new(),
            files: FileNames::default(),
            open: OpenOperations::default(),
            given_up: 0,
            issuers: OpenOperations::default(),
            disk_operations: None,
            has_classic_disks: false,
            has_classic_files: false,
            reader: Reader::new(),
            range: TimeRange::default(),
        }
    }

    /// Counts only the operations that began in a range of the recording's clock. Their files are
    /// named by all events of the recording.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        Io { range, ..self }
    }

    /// Keeps each operation of a disk: see [`Io::disk_operations`].
    #[must_use]
    pub fn keep_disk_operations(self) -> Self {
        Io {
            disk_operations: Some(Vec::new()),
            ..self
        }
    }

    /// The operations of disks in time order; none unless they are kept.
    #[must_use]
    pub fn disk_operations(&self) -> &[DiskOperation] {
        self.disk_operations.as_deref().unwrap_or_default()
    }

    /// The path of the file of an operation, as events state it; `None` if no event names it.
    #[must_use]
    pub fn path_of(&self, operation: &DiskOperation) -> Option<&str> {
        self.files.path(operation.file)
    }

    /// Operations on files whose time is not known, as records are missing in which they may have
    /// ended.
    #[must_use]
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// The totals of each process, file and operation. A file that was closed and opened again has
    /// several.
    pub fn totals(&self) -> impl Iterator<Item = FileTotal<'_>> {
        let totals = self.totals.iter();
        totals.map(|(key, total)| FileTotal {
            process: key.actor.process(),
            path: self.files.path(key.file),
            operation: key.operation,
            total,
        })
    }

    /// The totals by process, path and operation. Paths are as users have them, with the letters of
    /// drives.
    #[must_use]
    pub fn by_path(&self, machine: &Machine) -> BTreeMap<IoKey, IoTotal> {
        let mut out: BTreeMap<IoKey, IoTotal> = BTreeMap::new();
        for file in self.totals() {
            let path = file.path.map(|path| machine.user_path(path).into_owned());
            let key = IoKey {
                process: file.process,
                path: path.unwrap_or_default(),
                operation: file.operation,
            };
            *out.entry(key).or_default() += file.total;
        }
        out
    }

    /// An event that names a file.
    fn name(&mut self, kind: StepKind, record: &Record<'_>) {
        let Some(fields) = self.reader.name(record, kind.is_classic) else {
            return;
        };
        self.files.name(fields.key, &text(fields.name));
        if kind.step == Step::LastName {
            self.files.forget(fields.key);
        }
    }

    /// Whether an event is counted. Classic events replace the events of providers.
    fn is_counted(&mut self, kind: StepKind) -> bool {
        let is_of_disk = match kind.step {
            Step::Disk(_) => true,
            Step::File(_) => false,
            _ => return true,
        };
        let has_classic = match is_of_disk {
            true => &mut self.has_classic_disks,
            false => &mut self.has_classic_files,
        };
        if !kind.is_classic {
            return !*has_classic;
        }
        if !*has_classic {
            *has_classic = true;
            self.totals
                .retain(|key, _| key.operation.is_of_disk() != is_of_disk);
            if is_of_disk && let Some(operations) = &mut self.disk_operations {
                operations.clear();
            }
        }
        true
    }

    fn add(&mut self, key: Key, bytes: u64) -> &mut IoTotal {
        let total = self.totals.entry(key).or_default();
        total.count += 1;
        total.bytes = total.bytes.saturating_add(bytes);
        total
    }

    /// A thread begins an operation of a disk.
    fn disk_begin(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(begun) = self.reader.disk_begin(record) else {
            return;
        };
        let issuer = match begun.tid {
            Some(tid) => Issuer {
                actor: Actor::new(machine, Some(tid)),
                tid: Some(ThreadId::new(tid as u32)),
            },
            None => Issuer {
                actor: Actor::of_event(machine, event),
                tid: event.tid,
            },
        };
        let request = begun.request;
        if self.issuers.len() < MAX_OPEN || self.issuers.get(&request).is_some() {
            let scope = Scope::session(event.session);
            self.issuers.begin(request, scope, issuer);
        }
    }

    /// Who asked for an operation of a disk that ended.
    fn issuer(&mut self, machine: &Machine, fields: &DiskFields, event: &EventRef) -> Issuer {
        let begun = fields
            .request
            .and_then(|request| self.issuers.end(&request));
        if let Some(tid) = fields.tid {
            return Issuer {
                actor: Actor::new(machine, Some(tid)),
                tid: Some(ThreadId::new(tid as u32)),
            };
        }
        if let Some(begun) = begun {
            return begun;
        }
        // The events of the provider may have a process in their header.
        let actor = match event.kind.hook() {
            Some(_) => Actor::Process(None),
            None => Actor::of_event(machine, event),
        };
        Issuer { actor, tid: None }
    }

    fn disk(
        &mut self,
        operation: Operation,
        machine: &Machine,
        record: &Record<'_>,
        event: &EventRef,
    ) {
        let is_classic = event.kind.hook().is_some();
        let Some(fields) = self.reader.disk(record, is_classic) else {
            return;
        };
        let file = fields.file.map(|key| self.files.of_key(key));
        let Issuer { actor, tid } = self.issuer(machine, &fields, event);
        if !self.range.contains(event.time) {
            return;
        }
        let key = Key {
            actor,
            file,
            operation,
        };
        let total = self.add(key, fields.bytes);
        // The response time counts the performance counter of the machine.
        let frequency = machine
            .files()
            .get(event.file)
            .map_or(0, |file| file.header.perf_freq);
        let mut duration = None;
        if let Some(ticks) = fields.response
            && let Ok(frequency @ 1..) = u128::try_from(frequency)
        {
            let rounded = (u128::from(ticks) * 10_000_000 + frequency / 2) / frequency;
            duration = Some(u64::try_from(rounded).unwrap_or(u64::MAX));
        }
        if let Some(duration) = duration {
            total.latency.add(duration);
        }
        if let Some(operations) = &mut self.disk_operations {
            operations.push(DiskOperation {
                number: event.number,
                time: event.time,
                processor: event.processor,
                operation,
                tid,
                disk: fields.disk.map(|disk| disk as u32),
                offset: fields.offset,
                bytes: fields.bytes,
                duration,
                actor,
                file,
            });
        }
    }

    fn file(
        &mut self,
        operation: Operation,
        machine: &Machine,
        record: &Record<'_>,
        event: &EventRef,
    ) {
        let is_classic = event.kind.hook().is_some();
        let Some(fields) = self.reader.file(record, is_classic) else {
            return;
        };
        let file = self.files.of_transfer(fields.file, fields.object);
        let actor = match fields.tid {
            // The header of an event of the provider names the process of the same thread.
            Some(tid) if is_classic || event.tid.is_none_or(|own| u64::from(own.get()) != tid) => {
                Actor::new(machine, Some(tid))
            }
            _ => Actor::of_event(machine, event),
        };
        let key = Key {
            actor,
            file,
            operation,
        };
        self.add(key, fields.bytes);
        if let Some(request) = fields.request
            && (self.open.len() < MAX_OPEN || self.open.get(&request).is_some())
        {
            // A packet that is used again replaces the operation whose end is missing.
            let open = Open {
                key,
                since: event.time,
            };
            self.open
                .begin(request, Scope::session(event.session), open);
        }
    }

    fn ended(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        let is_classic = event.kind.hook().is_some();
        let request = self.reader.file_end(record, is_classic);
        let Some(open) = request.and_then(|request| self.open.end(&request)) else {
            return;
        };
        let taken = machine.clock().duration(open.since, event.time);
        if let Some(total) = self.totals.get_mut(&open.key)
            && let Ok(taken) = u64::try_from(taken)
        {
            total.latency.add(taken);
        }
    }
}

impl Observer for Io {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(kind) = StepKind::of(event) else {
            return;
        };
        if !self.is_counted(kind) {
            return;
        }
        match kind.step {
            Step::Disk(operation) => self.disk(operation, machine, record, event),
            Step::DiskBegin => self.disk_begin(machine, record, event),
            Step::File(operation) => {
                if self.range.contains(event.time) {
                    self.file(operation, machine, record, event);
                }
            }
            Step::FileEnd => self.ended(machine, record, event),
            Step::Name | Step::LastName => self.name(kind, record),
            Step::Closed => {
                if let Some(object) = self.reader.closed(record) {
                    self.files.forget(object);
                }
            }
        }
    }

    fn loss(&mut self, loss: &Loss) {
        self.given_up += self.open.give_up(loss) as u64;
        self.issuers.give_up(loss);
    }

    fn finish(&mut self, machine: &Machine) {
        self.open = OpenOperations::default();
        self.issuers = OpenOperations::default();
        for (mut key, total) in std::mem::take(&mut self.totals) {
            if let Actor::Thread(tid) = key.actor {
                key.actor = Actor::Process(machine.first_process_of_thread(tid));
            }
            *self.totals.entry(key).or_default() += &total;
        }
        for operation in self.disk_operations.iter_mut().flatten() {
            if let Actor::Thread(tid) = operation.actor {
                operation.actor = Actor::Process(machine.first_process_of_thread(tid));
            }
        }
    }

    fn restart(&mut self) {
        let disk_operations = self.disk_operations.as_ref().map(|_| Vec::new());
        *self = Io {
            range: self.range,
            disk_operations,
            ..Io::new()
        };
    }
}
