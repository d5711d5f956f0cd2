//! Names for the values in events that only the whole trace contains: processes and threads, the
//! drives of volumes, and the methods and images at addresses.

use std::borrow::Cow;

use etl_analysis::machine::{Process, Thread};
use etl_analysis::symbols::{FunctionNames, Symbol, Symbols};
use etl_analysis::{Analysis, Machine, RecordObserver, RecordOwner, Recording};
use etl_format::read::{Limits, Record, Source};
use etl_format::{ProcessId, ThreadId, Ticks};
use etl_schema::Meaning;
use etl_schema::decode::Utf16;
use etl_schema::render::{Names, PathStart};

/// The processes, threads, volumes and code of a trace.
#[derive(Clone, Debug)]
pub struct Context<'m> {
    machine: &'m Machine,
    /// Which of the traces of the machine it is about.
    file: usize,
    /// Whether any process has a name.
    has_process_names: bool,
    /// Whether any thread has a name.
    has_thread_names: bool,
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
    let analysis = Analysis::new().without_addresses().threads(threads);
    if code == Code::Skip {
        return analysis.run_for_owners(&mut recording, records);
    }
    analysis
        .with_names()
        .run_split(&mut recording, records, &mut ())
}

impl<'m> Context<'m> {
    /// The context of the events of a machine.
    #[must_use]
    pub fn new(machine: &'m Machine) -> Self {
        let mut processes = machine.processes().iter();
        let mut threads = machine.threads().iter();
        Context {
            machine,
            file: 0,
            has_process_names: processes.any(|process| !process.name().is_empty()),
            has_thread_names: threads.any(|thread| !thread.name.is_empty()),
            raw_paths: false,
            symbols: None,
            functions: None,
        }
    }

    /// The index of the trace among the traces of the machine. Default: 0.
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

    /// Names the functions at addresses of images, for example from PDB files. Default: nothing
    /// does.
    #[must_use]
    pub fn functions(self, functions: Option<&'m dyn FunctionNames>) -> Self {
        Context { functions, ..self }
    }

    /// File name of the image of the process that had an id at a timestamp; "" if it is unknown.
    #[must_use]
    pub fn process_name(&self, pid: ProcessId, timestamp: Ticks) -> &'m str {
        if !self.has_process_names {
            return "";
        }
        match self.process(pid, timestamp) {
            Some(process) if has_begun(process.started(), self.time(timestamp)) => process.name(),
            _ => "",
        }
    }

    fn process(&self, pid: ProcessId, timestamp: Ticks) -> Option<&'m Process> {
        let index = self.machine.process_at(pid, self.time(timestamp))?;
        self.machine.process(index)
    }

    fn thread(&self, tid: ThreadId, timestamp: Ticks) -> Option<&'m Thread> {
        self.machine.thread_at(tid, self.time(timestamp))
    }

    /// Name of the thread that had an id at a timestamp, in the process `pid` if it is given; "" if
    /// there is no such thread, or it has no name.
    #[must_use]
    pub fn thread_name(&self, pid: Option<ProcessId>, tid: ThreadId, timestamp: Ticks) -> &'m str {
        if !self.has_thread_names {
            return "";
        }
        let Some(thread) = self.thread(tid, timestamp) else {
            return "";
        };
        let is_in_process = pid.is_none_or(|pid| pid == thread.pid);
        if is_in_process && has_begun(thread.started, self.time(timestamp)) {
            &thread.name
        } else {
            ""
        }
    }

    /// The process and the thread of a record: from its header, but for a sample or a stack the
    /// process and the thread that ran, and for events of connections and of disks the process and
    /// the thread in the payload.
    #[must_use]
    pub fn owner(&self, record: &Record<'_>) -> RecordOwner {
        let mut owner = etl_analysis::owner(record);
        if etl_analysis::has_thread_only(record, &owner)
            && let Some(tid) = owner.thread_id
        {
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

    /// The method or the image at an address of a process: `Orders.dll!Handle+0x12`.
    fn symbol(&self, pid: ProcessId, address: u64, timestamp: Ticks) -> Option<String> {
        let symbols = self.symbols.as_ref()?;
        let symbol = symbols.at(pid, address, self.time(timestamp))?;
        if let Symbol::Method(method) = &symbol {
            let offset = address.saturating_sub(method.start);
            return Some(format!("{symbol}+{offset:#x}"));
        }
        if let Symbol::Image(image) = &symbol
            && let Some(names) = self.functions
            && let Some(function) = names.function(self.machine, image)
        {
            let file = symbol.file_name();
            return Some(format!("{file}!{}+{:#x}", function.name, function.offset));
        }
        if let Symbol::Image(image) = &symbol
            && let Some(function) = image.function
        {
            let offset = address.saturating_sub(function.start);
            return Some(format!("{symbol}+{offset:#x}"));
        }
        Some(symbol.to_string())
    }
}

/// Whether a process or thread is there at a time. `started` is `None` if it started before the
/// recording.
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
    /// If `raw_paths` is true, paths keep the devices of volumes.
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

    /// The method or the image at an address, if addresses are resolved.
    pub(crate) fn symbol(&self, address: u64) -> Option<String> {
        self.context
            .symbol(self.pid.unwrap_or_default(), address, self.time)
    }
}

impl Names for EventNames<'_> {
    fn has(&self, meaning: Meaning) -> bool {
        match meaning {
            Meaning::Process => self.context.has_process_names,
            Meaning::Thread => self.context.has_thread_names,
            Meaning::Address => self.context.symbols.is_some(),
        }
    }

    fn name(&self, meaning: Meaning, value: u64) -> Option<Cow<'_, str>> {
        let id = u32::try_from(value).ok();
        let name = match meaning {
            Meaning::Address => return self.symbol(value).map(Cow::Owned),
            // The process or thread that an event is about may start after it, so its start is not
            // compared.
            Meaning::Process => self.context.process(ProcessId::new(id?), self.time)?.name(),
            Meaning::Thread => &self.context.thread(ThreadId::new(id?), self.time)?.name,
        };
        if name.is_empty() {
            return None;
        }
        Some(Cow::Borrowed(name))
    }

    fn path(&self, text: Utf16<'_>) -> Option<PathStart<'_>> {
        if self.raw_paths || !text.bytes().starts_with(b"\\\0") {
            return None;
        }
        let machine = self.context.machine;
        let mut volumes = machine.volumes().iter();
        if let Some(volume) = volumes.find(|volume| starts_with(text, &volume.device)) {
            return Some(PathStart {
                units: volume.device.len(),
                name: &volume.path,
            });
        }
        // Loads of images state paths without a volume.
        let system = machine.system_directory()?;
        let units = system.directory.len();
        let is_within = text.bytes().get(2 * units..2 * units + 2) == Some(b"\\\0");
        if is_within && starts_with(text, system.directory) {
            return Some(PathStart {
                units: 0,
                name: system.drive,
            });
        }
        None
    }
}

/// Whether a text starts with the name of a device, which is ASCII; case-insensitively.
fn starts_with(text: Utf16<'_>, device: &str) -> bool {
    let mut units = text.bytes().as_chunks::<2>().0.iter();
    device.bytes().all(|byte| match units.next() {
        Some([low, high]) => *high == 0 && low.eq_ignore_ascii_case(&byte),
        None => false,
    })
}
