//! Hard faults: threads that touched a page which had to be read from a disk.

use std::collections::BTreeMap;

use etl_format::constants::hook;
use etl_format::read::Record;
use etl_format::{ThreadId, Ticks, TimeRange};
use etl_schema::views::FieldReader;

use super::files::FileNames;
use super::reader::{Reader, Step, StepKind};
use super::{Actor, IoTotal};
use crate::keys::ProcessIndex;
use crate::machine::Machine;
use crate::machine::names::text;
use crate::observe::{EventRef, Joins, Observer};

/// What faults are summed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    actor: Actor,
    file: Option<usize>,
}

/// A hard fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HardFault {
    /// When the thread touched the page, in ticks.
    pub started: Ticks,
    /// How long the thread waited, in 100 ns.
    pub duration: u64,
    /// The thread.
    pub tid: Option<ThreadId>,
    /// Bytes that were read.
    pub bytes: u64,
}

/// A hard fault that is kept.
#[derive(Clone, Copy, Debug)]
struct KeptFault {
    fault: HardFault,
    key: Key,
}

/// A hard fault with its process and its file, from [`HardFaults::list`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedFault<'a> {
    /// The fault.
    pub fault: HardFault,
    /// The process; `None` if the recording names none.
    pub process: Option<ProcessIndex>,
    /// Path of the file as the kernel has it; `None` if no event names it.
    pub path: Option<&'a str>,
}

/// The hard faults of a process in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultTotal {
    /// How many, the bytes that were read, and how long they took.
    pub total: IoTotal,
    /// The longest one.
    pub longest: Option<HardFault>,
}

/// What a process touched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct FaultKey {
    /// The process; `None` if the recording names none.
    pub process: Option<ProcessIndex>,
    /// Path of the file as users have it; empty if no event names it.
    pub path: String,
}

impl FaultTotal {
    fn add(&mut self, fault: HardFault) {
        self.total.count += 1;
        self.total.bytes = self.total.bytes.saturating_add(fault.bytes);
        self.total.latency.add(fault.duration);
        self.longer(Some(fault));
    }

    fn add_all(&mut self, other: &FaultTotal) {
        self.total += &other.total;
        self.longer(other.longest);
    }

    /// Replaces the longest fault by a longer one.
    fn longer(&mut self, other: Option<HardFault>) {
        if let Some(other) = other
            && self
                .longest
                .is_none_or(|known| known.duration < other.duration)
        {
            self.longest = Some(other);
        }
    }
}

/// Collects hard faults. Needs the kernel's flag `HARD_FAULTS`, and for the names of files
/// `FILENAME`.
///
/// ```no_run
/// use etl_analysis::behavior::io::HardFaults;
/// use etl_analysis::{Analysis, Recording};
///
/// let bytes = std::fs::read("trace.etl")?;
/// let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
/// let mut faults = HardFaults::new();
/// let machine = Analysis::new().run(&mut recording, &mut faults)?;
/// for (key, faults) in faults.by_path(&machine) {
///     println!("{}: {} faults, {} bytes", key.path, faults.total.count, faults.total.bytes);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct HardFaults {
    totals: BTreeMap<Key, FaultTotal>,
    /// Each of them, if they are kept.
    list: Option<Vec<KeptFault>>,
    files: FileNames,
    names: Reader,
    fault: FieldReader<4>,
    range: TimeRange,
}

impl Default for HardFaults {
    fn default() -> Self {
        HardFaults::new()
    }
}

impl HardFaults {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        let fields = ["InitialTime", "FileObject", "TThreadId", "ByteCount"];
        HardFaults {
            totals: BTreeMap::new(),
            list: None,
            files: FileNames::default(),
            names: Reader::new(),
            fault: FieldReader::of_hook(hook::HARD_FAULT, fields),
            range: TimeRange::default(),
        }
    }

    /// Counts only the faults that began in a range of the recording's clock. Their files are
    /// named by all events of the recording.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        HardFaults { range, ..self }
    }

    /// Keeps each fault: see [`HardFaults::list`].
    #[must_use]
    pub fn keep_faults(self) -> Self {
        HardFaults {
            list: Some(Vec::new()),
            ..self
        }
    }

    /// The faults in the order of their ends; none unless they are kept.
    pub fn list(&self) -> impl Iterator<Item = ListedFault<'_>> {
        let kept = self.list.iter().flatten();
        kept.map(|kept| ListedFault {
            fault: kept.fault,
            process: kept.key.actor.process(),
            path: self.files.path(kept.key.file),
        })
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.totals.is_empty()
    }

    /// The faults by process and path. Paths are as users have them, with the letters of drives.
    #[must_use]
    pub fn by_path(&self, machine: &Machine) -> BTreeMap<FaultKey, FaultTotal> {
        let mut out: BTreeMap<FaultKey, FaultTotal> = BTreeMap::new();
        for (key, total) in &self.totals {
            let path = self.files.path(key.file);
            let path = path.map(|path| machine.user_path(path).into_owned());
            let key = FaultKey {
                process: key.actor.process(),
                path: path.unwrap_or_default(),
            };
            out.entry(key).or_default().add_all(total);
        }
        out
    }

    fn fault(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) -> Option<()> {
        let fields = self.fault.read(record)?;
        let raw = Ticks::new(fields.uint(0)?.cast_signed());
        let started = machine.timeline().timestamp(event.file, raw);
        let file = fields.uint(1).filter(|&key| key != 0);
        let tid = fields.uint(2);
        let bytes = fields.uint(3)?;
        let file = file.map(|key| self.files.of_key(key));
        if !self.range.contains(started) {
            return None;
        }
        let duration = machine.clock().duration(started, event.time);
        let fault = HardFault {
            started,
            duration: u64::try_from(duration).ok()?,
            tid: tid.map(|tid| ThreadId::new(tid as u32)),
            bytes,
        };
        let actor = Actor::new(machine, tid);
        let key = Key { actor, file };
        self.totals.entry(key).or_default().add(fault);
        if let Some(list) = &mut self.list {
            list.push(KeptFault { fault, key });
        }
        Some(())
    }

    fn file(&mut self, kind: StepKind, record: &Record<'_>) -> Option<()> {
        match kind.step {
            Step::Name | Step::LastName => {
                let fields = self.names.name(record, kind.is_classic)?;
                self.files.name(fields.key, &text(fields.name));
                if kind.step == Step::LastName {
                    self.files.forget(fields.key);
                }
            }
            Step::Closed => self.files.forget(self.names.closed(record)?),
            _ => {}
        }
        Some(())
    }
}

impl Observer for HardFaults {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        if event.kind.hook() == Some(hook::HARD_FAULT) {
            self.fault(machine, record, event);
        } else if let Some(kind) = StepKind::of(event) {
            self.file(kind, record);
        }
    }

    fn finish(&mut self, machine: &Machine) {
        for (mut key, total) in std::mem::take(&mut self.totals) {
            if let Actor::Thread(tid) = key.actor {
                key.actor = Actor::Process(machine.first_process_of_thread(tid));
            }
            self.totals.entry(key).or_default().add_all(&total);
        }
        for kept in self.list.iter_mut().flatten() {
            if let Actor::Thread(tid) = kept.key.actor {
                kept.key.actor = Actor::Process(machine.first_process_of_thread(tid));
            }
        }
    }

    fn restart(&mut self) {
        let list = self.list.as_ref().map(|_| Vec::new());
        *self = HardFaults {
            range: self.range,
            list,
            ..HardFaults::new()
        };
    }
}
