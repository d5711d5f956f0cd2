//! What a whole trace says of the values in its events: the names of processes and threads, the
//! drives of volumes, and what is at addresses.

use etl_format::{ProcessId, ThreadId, Ticks};
use std::borrow::Cow;

use etl_analysis::machine::{Process, Thread};
use etl_analysis::symbols::{FunctionNames, Symbol, Symbols};
use etl_analysis::{Analysis, Machine, RecordObserver, RecordOwner, Recording};
use etl_format::constants::hook;
use etl_format::read::{Limits, Record, Source};
use etl_schema::Meaning;
use etl_schema::decode::Utf16;
use etl_schema::render::{Names, PathStart};

/// The processes, threads, volumes and code of a trace.
#[derive(Clone, Debug)]
pub struct Context<'m> {
    machine: &'m Machine,
    /// Which of the traces of the machine it is about.
    file: usize,
    /// Whether any process and any thread has a name.
    named: (bool, bool),
    /// Whether paths keep the devices of volumes.
    raw_paths: bool,
    symbols: Option<Symbols<'m>>,
    functions: Option<&'m dyn FunctionNames>,
}

/// Whether methods and images are read, so that addresses can be resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Code {
    /// They are not read.
    #[default]
    Skip,
    /// They are read, which takes longer.
    Read,
}

/// Reads the processes, threads and volumes of a machine from its traces, and its code on request.
/// Each trace has a name for errors. `records` sees the records.
///
/// # Errors
/// When a trace cannot be read.
pub fn machine<S: Source, N: Into<String>>(
    traces: impl IntoIterator<Item = (S, N)>,
    limits: Limits,
    threads: usize,
    code: Code,
    records: &mut impl RecordObserver,
) -> Result<Machine, etl_analysis::Error> {
    let mut recording = Recording::open_within(traces, limits)?;
    let analysis = Analysis::new().addresses(false).threads(threads);
    if code == Code::Skip {
        return analysis.run_for_owners(&mut recording, records);
    }
    analysis
        .names(true)
        .run_split(&mut recording, records, &mut ())
}

impl<'m> Context<'m> {
    /// The context of the events of a machine.
    #[must_use]
    pub fn new(machine: &'m Machine) -> Self {
        let named = (
            machine
                .processes()
                .iter()
                .any(|process| !process.name().is_empty()),
            machine
                .threads()
                .iter()
                .any(|thread| !thread.name.is_empty()),
        );
        Context {
            machine,
            file: 0,
            named,
            raw_paths: false,
            symbols: None,
            functions: None,
        }
    }

    /// Which of several traces of the machine it is about. Default: the first.
    #[must_use]
    pub fn file(self, file: usize) -> Self {
        Context { file, ..self }
    }

    /// A timestamp of the trace as a time of the machine.
    fn time(&self, timestamp: Ticks) -> Ticks {
        self.machine.timeline().timestamp(self.file, timestamp)
    }

    /// Keeps the devices of volumes in paths (`\Device\HarddiskVolume2`) instead of drives.
    #[must_use]
    pub fn raw_paths(self) -> Self {
        Context {
            raw_paths: true,
            ..self
        }
    }

    /// Names what is at addresses: a method of a module, or an image. The machine must have been
    /// read with [`Code::Read`].
    #[must_use]
    pub fn resolve_addresses(self) -> Self {
        Context {
            symbols: Some(self.machine.symbols()),
            ..self
        }
    }

    /// What names the functions at addresses of images. Default: nothing does.
    #[must_use]
    pub fn functions(self, functions: Option<&'m dyn FunctionNames>) -> Self {
        Context { functions, ..self }
    }

    /// File name of the image of the process that had an id at a timestamp; "" where it is unknown.
    #[must_use]
    pub fn process_name(&self, pid: ProcessId, timestamp: Ticks) -> &'m str {
        if !self.named.0 {
            return "";
        }
        let process = self.process(pid, timestamp);
        let process = process.filter(|it| has_begun(it.started(), self.time(timestamp)));
        process.map_or("", |process| process.name())
    }

    fn process(&self, pid: ProcessId, timestamp: Ticks) -> Option<&'m Process> {
        let index = self
            .machine
            .process_at(pid, Ticks::new(self.time(timestamp).get()))?;
        self.machine.process(index)
    }

    fn thread(&self, tid: ThreadId, timestamp: Ticks) -> Option<&'m Thread> {
        self.machine
            .thread_at(tid, Ticks::new(self.time(timestamp).get()))
    }

    /// Name of the thread that had an id at a timestamp, in this process if one is given; "" where
    /// it has none.
    #[must_use]
    pub fn thread_name(&self, pid: Option<ProcessId>, tid: ThreadId, timestamp: Ticks) -> &'m str {
        if !self.named.1 {
            return "";
        }
        let is_it = |thread: &&Thread| {
            pid.is_none_or(|pid| pid == thread.pid)
                && has_begun(thread.started, self.time(timestamp))
        };
        self.thread(tid, timestamp)
            .filter(is_it)
            .map_or("", |thread| &thread.name)
    }

    /// The process and the thread of a record: from its header, but for a sample or a stack the
    /// process and the thread that ran.
    #[must_use]
    pub fn owner(&self, record: &Record<'_>) -> RecordOwner {
        let mut owner = etl_analysis::owner(record);
        let is_sample = owner.process_id.is_none() && record.hook() == Some(hook::SAMPLE);
        if is_sample && let Some(tid) = owner.thread_id {
            owner.process_id = if tid == 0 {
                // Thread 0 is the idle thread of every processor.
                Some(ProcessId::new(0))
            } else {
                self.thread(tid, record.timestamp())
                    .map(|thread| thread.pid)
            };
        }
        owner
    }

    /// The names for the values of a record.
    pub(crate) fn names(&self, pid: Option<ProcessId>, time: Ticks) -> EventNames<'_> {
        EventNames {
            context: self,
            pid,
            time,
            raw_paths: self.raw_paths,
        }
    }

    /// What is at an address of a process.
    fn symbol(&self, pid: ProcessId, address: u64, timestamp: Ticks) -> Option<String> {
        let symbol =
            self.symbols
                .as_ref()?
                .at(pid, address, Ticks::new(self.time(timestamp).get()))?;
        Some(match &symbol {
            Symbol::Method(method) => {
                format!("{symbol}+{:#x}", address.saturating_sub(method.start))
            }
            Symbol::Image(image) => {
                match self
                    .functions
                    .and_then(|names| names.function(self.machine, image))
                {
                    Some(function) => {
                        format!(
                            "{}!{}+{:#x}",
                            symbol.file_name(),
                            function.name,
                            function.offset
                        )
                    }
                    None => symbol.to_string(),
                }
            }
            _ => symbol.to_string(),
        })
    }
}

/// Whether what started at a time, if it did not before the recording, is there at another one.
fn has_begun(started: Option<Ticks>, time: Ticks) -> bool {
    started.is_none_or(|started| started <= time)
}

/// The names for the values of one event.
#[derive(Debug)]
pub struct EventNames<'c> {
    context: &'c Context<'c>,
    pid: Option<ProcessId>,
    time: Ticks,
    raw_paths: bool,
}

impl EventNames<'_> {
    /// Whether paths keep the devices of volumes, whatever the context says.
    pub(crate) fn raw_paths(self, raw_paths: bool) -> Self {
        EventNames {
            raw_paths: self.raw_paths || raw_paths,
            ..self
        }
    }

    /// Whether addresses are resolved.
    pub(crate) fn resolves(&self) -> bool {
        self.context.symbols.is_some()
    }

    /// What is at an address, if addresses are resolved.
    pub(crate) fn symbol(&self, address: u64) -> Option<String> {
        self.context
            .symbol(self.pid.unwrap_or_default(), address, self.time)
    }
}

impl Names for EventNames<'_> {
    fn has(&self, meaning: Meaning) -> bool {
        let Context {
            named: (processes, threads),
            symbols,
            ..
        } = self.context;
        match meaning {
            Meaning::Process => *processes,
            Meaning::Thread => *threads,
            Meaning::Address => symbols.is_some(),
        }
    }

    fn name(&self, meaning: Meaning, value: u64) -> Option<Cow<'_, str>> {
        let id = u32::try_from(value).ok();
        let name = match meaning {
            Meaning::Address => return self.symbol(value).map(Cow::Owned),
            // What an event is about may start after it.
            Meaning::Process => self.context.process(ProcessId::new(id?), self.time)?.name(),
            Meaning::Thread => &self.context.thread(ThreadId::new(id?), self.time)?.name,
        };
        (!name.is_empty()).then_some(Cow::Borrowed(name))
    }

    fn path(&self, text: Utf16<'_>) -> Option<PathStart<'_>> {
        if self.raw_paths || !text.bytes().starts_with(b"\\\0") {
            return None;
        }
        let starts_with = |device: &str| {
            let mut units = text.bytes().as_chunks::<2>().0.iter();
            // Names of devices are ASCII.
            device.bytes().all(|byte| {
                units
                    .next()
                    .is_some_and(|[low, high]| *high == 0 && low.eq_ignore_ascii_case(&byte))
            })
        };
        let volume = self
            .context
            .machine
            .volumes()
            .iter()
            .find(|v| starts_with(&v.device))?;
        Some(PathStart {
            units: volume.device.len(),
            name: &volume.path,
        })
    }
}
