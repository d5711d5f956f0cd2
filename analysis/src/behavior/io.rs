//! Reads and writes of disks and files, by process and path.
//!
//! Disks need the kernel's flag `DISK_IO`, files `FILE_IO` and `FILE_IO_INIT`, and the names of
//! files that were open before `FILENAME`. Events of disks name their process since Windows 8.
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

use std::collections::BTreeMap;
use std::ops::AddAssign;

use etl_format::constants::hook;
use etl_format::read::Record;
use etl_format::{ThreadId, Ticks, TimeRange};
use etl_schema::views::FieldReader;
use foldhash::HashMap;

use super::Histogram;
use crate::keys::ProcessIndex;
use crate::loss::Loss;
use crate::machine::Machine;
use crate::machine::names::text;
use crate::observe::{EventRef, Joins, Observer};
use crate::{OpenOperations, Scope};

/// Operations on files whose end is awaited.
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
    /// The thread that asked for it; events name it since Windows 8.
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

/// An event of a disk.
#[derive(Clone, Copy, Debug)]
struct DiskFields {
    operation: Operation,
    bytes: u64,
    file: Option<u64>,
    /// Ticks of the performance counter that it took.
    response: Option<u64>,
    tid: Option<u64>,
    disk: Option<u64>,
    offset: Option<u64>,
}

/// Collects the reads and writes of a recording.
#[derive(Clone, Debug)]
pub struct Io {
    totals: BTreeMap<Key, IoTotal>,
    /// Paths of files; empty as long as no event names it.
    files: Vec<Box<str>>,
    /// Indices of files by their key, which is another file's when the file is gone.
    by_key: HashMap<u64, usize>,
    /// Operations that have not ended, by their request.
    open: OpenOperations<u64, Open>,
    given_up: u64,
    /// The operations of disks, if they are kept.
    disk_operations: Option<Vec<DiskOperation>>,
    transfer: [FieldReader<6>; 2],
    flush: FieldReader<3>,
    file: [FieldReader<4>; 2],
    end: FieldReader<1>,
    names: [FieldReader<2>; 4],
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
        const TRANSFER: [&str; 6] = [
            "TransferSize",
            "FileObject",
            "HighResResponseTime",
            "IssuingThreadId",
            "DiskNumber",
            "ByteOffset",
        ];
        const FILE: [&str; 4] = ["IoSize", "FileKey", "IrpPtr", "TTID"];
        const NAME: [&str; 2] = ["FileObject", "FileName"];
        let flush = ["HighResResponseTime", "IssuingThreadId", "DiskNumber"];
        Io {
            totals: BTreeMap::new(),
            files: Vec::new(),
            by_key: HashMap::default(),
            open: OpenOperations::default(),
            given_up: 0,
            disk_operations: None,
            transfer: [hook::DISK_READ, hook::DISK_WRITE]
                .map(|hook| FieldReader::of_hook(hook, TRANSFER)),
            flush: FieldReader::of_hook(hook::DISK_FLUSH, flush),
            file: [hook::FILE_READ, hook::FILE_WRITE].map(|hook| FieldReader::of_hook(hook, FILE)),
            end: FieldReader::of_hook(hook::FILE_OPERATION_END, ["IrpPtr"]),
            names: [
                hook::FILE_NAME,
                hook::FILE_CREATE,
                hook::FILE_DELETE,
                hook::FILE_RUNDOWN,
            ]
            .map(|hook| FieldReader::of_hook(hook, NAME)),
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
        self.path(operation.file)
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
            path: self.path(key.file),
            operation: key.operation,
            total,
        })
    }

    /// The path of a file by its index; `None` if no event names it.
    fn path(&self, file: Option<usize>) -> Option<&str> {
        let path = self.files.get(file?)?;
        if path.is_empty() { None } else { Some(path) }
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

    /// The file that has a key now.
    fn file_of(&mut self, key: u64) -> usize {
        let files = &mut self.files;
        *self.by_key.entry(key).or_insert_with(|| {
            files.push(Box::default());
            files.len() - 1
        })
    }

    /// An event that names a file.
    fn name(&mut self, reader: usize, hook: u16, record: &Record<'_>) {
        let fields = self
            .names
            .get_mut(reader)
            .and_then(|reader| reader.read(record));
        let Some(fields) = fields else {
            return;
        };
        let Some(key) = fields.uint(0) else {
            return;
        };
        let Some(name) = fields.text(1).map(text) else {
            return;
        };
        let file = self.file_of(key);
        let known = self
            .files
            .get(file)
            .is_some_and(|known| !known.is_empty() && **known != *name);
        let file = if known {
            self.by_key.remove(&key);
            self.file_of(key)
        } else {
            file
        };
        if let Some(known) = self.files.get_mut(file) {
            *known = name.into();
        }
        if hook == hook::FILE_DELETE {
            self.by_key.remove(&key);
        }
    }

    fn add(&mut self, key: Key, bytes: u64) -> &mut IoTotal {
        let total = self.totals.entry(key).or_default();
        total.count += 1;
        total.bytes = total.bytes.saturating_add(bytes);
        total
    }

    fn disk_fields(&mut self, hook: u16, record: &Record<'_>) -> Option<DiskFields> {
        if hook == hook::DISK_FLUSH {
            let fields = self.flush.read(record)?;
            return Some(DiskFields {
                operation: Operation::DiskFlush,
                bytes: 0,
                file: None,
                response: fields.uint(0),
                tid: fields.uint(1),
                disk: fields.uint(2),
                offset: None,
            });
        }
        let is_write = hook == hook::DISK_WRITE;
        let fields = self.transfer.get_mut(usize::from(is_write))?.read(record)?;
        Some(DiskFields {
            operation: if is_write {
                Operation::DiskWrite
            } else {
                Operation::DiskRead
            },
            bytes: fields.uint(0).unwrap_or(0),
            file: fields.uint(1).filter(|&key| key != 0),
            response: fields.uint(2),
            tid: fields.uint(3),
            disk: fields.uint(4),
            offset: fields.uint(5),
        })
    }

    fn disk(&mut self, hook: u16, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(fields) = self.disk_fields(hook, record) else {
            return;
        };
        let file = fields.file.map(|key| self.file_of(key));
        let actor = Actor::new(machine, fields.tid);
        let key = Key {
            actor,
            file,
            operation: fields.operation,
        };
        let total = self.add(key, fields.bytes);
        // The response time counts the performance counter of the machine.
        let frequency = machine
            .files()
            .get(event.file)
            .map_or(0, |file| file.header.perf_freq);
        let ticks = fields.response.map(|ticks| u128::from(ticks) * 10_000_000);
        let latency = ticks.and_then(|t| t.checked_div(u128::try_from(frequency).ok()?));
        let duration = latency.map(|latency| u64::try_from(latency).unwrap_or(u64::MAX));
        if let Some(duration) = duration {
            total.latency.add(duration);
        }
        if let Some(operations) = &mut self.disk_operations {
            operations.push(DiskOperation {
                number: event.number,
                time: event.time,
                processor: event.processor,
                operation: fields.operation,
                tid: fields.tid.map(|tid| ThreadId::new(tid as u32)),
                disk: fields.disk.map(|disk| disk as u32),
                offset: fields.offset,
                bytes: fields.bytes,
                duration,
                actor,
                file,
            });
        }
    }

    fn file(&mut self, hook: u16, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        let is_write = hook == hook::FILE_WRITE;
        let reader = self.file.get_mut(usize::from(is_write));
        let Some(fields) = reader.and_then(|reader| reader.read(record)) else {
            return;
        };
        let operation = if is_write {
            Operation::FileWrite
        } else {
            Operation::FileRead
        };
        let file = fields
            .uint(1)
            .filter(|&key| key != 0)
            .map(|key| self.file_of(key));
        let key = Key {
            actor: Actor::new(machine, fields.uint(3)),
            file,
            operation,
        };
        self.add(key, fields.uint(0).unwrap_or(0));
        if let Some(request) = fields.uint(2)
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
        let request = self.end.read(record).and_then(|fields| fields.uint(0));
        let Some(open) = request.and_then(|request| self.open.end(&request)) else {
            return;
        };
        let clock = machine.clock();
        let taken = clock
            .time(event.time)
            .get()
            .saturating_sub(clock.time(open.since).get());
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
        let Some(hook) = event.kind.hook() else {
            return;
        };
        match hook {
            hook::DISK_READ | hook::DISK_WRITE | hook::DISK_FLUSH
                if self.range.contains(event.time) =>
            {
                self.disk(hook, machine, record, event);
            }
            hook::FILE_READ | hook::FILE_WRITE if self.range.contains(event.time) => {
                self.file(hook, machine, record, event);
            }
            hook::FILE_OPERATION_END => self.ended(machine, record, event),
            hook::FILE_NAME => self.name(0, hook, record),
            hook::FILE_CREATE => self.name(1, hook, record),
            hook::FILE_DELETE => self.name(2, hook, record),
            hook::FILE_RUNDOWN => self.name(3, hook, record),
            _ => {}
        }
    }

    fn loss(&mut self, loss: &Loss) {
        self.given_up += self.open.give_up(loss) as u64;
    }

    fn finish(&mut self, machine: &Machine) {
        self.open = OpenOperations::default();
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
