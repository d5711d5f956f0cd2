//! Collects what the rules check in addition to the machine: enablements, payload sizes, stacks and
//! their events, activities, garbage collections.

mod activity;
mod classic;
pub(crate) mod collections;
pub(crate) mod enablement;
pub(crate) mod infer;
mod kernel_stacks;
mod kinds;
pub(crate) mod losses;
pub(crate) mod missing_stacks;
pub(crate) mod payload;
pub(crate) mod raised;
pub(crate) mod sampled_stacks;
pub(crate) mod sampling;
mod seen_sizes;
mod sizes;
mod stack_pairs;
pub(crate) mod times;

use etl_analysis::files::{FileFacts, Session};
use etl_analysis::machine::{Counted, Process};
use etl_analysis::{ClrEvent, Machine, ProcessIndex, RecordObserver, StateObserver};
use etl_control::controller::KERNEL_SESSION;
use etl_format::constants::hook;
use etl_format::cursor::Bytes;
use etl_format::read::{EventHeader, ExtendedItem, Note, Record};
use etl_format::{Clock, Guid, ProcessId, ThreadId, Ticks};
use etl_schema::providers::{self, CLR_RUNDOWN, CLR_RUNTIME, kernel_class};
use etl_schema::tables::TableSet;
use etl_schema::views::clr::ClrProvider;
use etl_schema::views::{kernel, kernel_process};

use crate::TraceOrigin;
use activity::Activities;
pub(crate) use activity::Balance;
use classic::ClassicCounts;
use collections::{Collections, Collectors};
use enablement::{Admission, Declaration, RuntimeOn};
use kernel_stacks::KernelStacks;
use kinds::Kinds;
use losses::Losses;
use missing_stacks::Kind;
use payload::{Fit, Payloads};
use sampled_stacks::SampledStacks;
use sampling::Sampling;
use seen_sizes::SeenSizes;
use sizes::Sizes;
use stack_pairs::{EventOwner, LoggedStack, StackPairs};

/// Everything that rules check.
#[derive(Debug)]
pub(crate) struct Facts {
    /// The traced machine.
    pub machine: Machine,
    /// Enablements, and counts of events.
    pub admission: Admission,
    /// When keywords of the runtime provider were on.
    pub runtime_on: RuntimeOn,
    /// How the CLR's stacks match their events.
    pub stacks: StackPairs,
    /// Starts, stops and parents of activities.
    pub activities: Activities,
    /// Garbage collections.
    collectors: Collectors,
    /// Losses, by the events that they may have removed.
    losses: Losses,
    /// Payloads that do not fit.
    pub payloads: Payloads,
    /// Events without a manifest.
    pub classic: ClassicCounts,
    /// Samples of the processors.
    pub sampling: Sampling,
    /// Stacks of the kernel whose event is missing.
    pub kernel_stacks: KernelStacks,
    /// Samples and their stacks.
    pub sampled_stacks: SampledStacks,
    /// Physical memory of the machine in MiB, if an event states it.
    pub memory: Option<u32>,
}

/// The garbage collections of a CLR.
pub(crate) struct ClrCollections<'f> {
    /// The process, if it is known.
    pub process: Option<&'f Process>,
    /// Instance id of the CLR.
    pub instance: u16,
    pub collections: &'f Collections,
}

/// The kernel's event about processors and memory (SystemConfig, CPU).
const SYSTEM_CONFIG_CPU: u16 = 0x0b0a;
/// Offset of the memory in its payload, after the speed and the number of processors.
const MEMORY: usize = 8;

impl Facts {
    /// The results of a pass.
    pub fn new(machine: Machine, mut records: RecordChecks<'_>, stacks: StackChecks) -> Self {
        records.progress.flush();
        let mut payloads = records.payloads;
        payloads.add(stacks.sizes);
        Facts {
            losses: Losses::new(&machine),
            machine,
            runtime_on: RuntimeOn::new(&records.admission),
            admission: records.admission,
            stacks: stacks.pairs,
            activities: records.activities,
            collectors: records.collectors,
            payloads,
            classic: records.classic,
            sampling: records.sampling,
            kernel_stacks: records.kernel_stacks,
            sampled_stacks: records.sampled_stacks,
            memory: records.memory,
        }
    }

    /// Ticks of the recording's clock in a second.
    pub fn ticks_per_second(&self) -> i64 {
        i64::try_from(self.machine.clock().frequency).unwrap_or(i64::MAX)
    }

    /// Ticks of the recording's clock in 10 ms: a stack follows its event sooner, requests that are
    /// made together are logged closer together, and the clocks of processors differ by less.
    pub fn ticks_per_10_ms(&self) -> i64 {
        self.ticks_per_second() / 100
    }

    /// What recorded the trace.
    pub fn origin(&self) -> TraceOrigin {
        let files = self.machine.files().iter();
        TraceOrigin::of(files.map(|file| &file.header))
    }

    /// Whether an EventPipe session of .NET recorded the trace.
    pub fn is_event_pipe(&self) -> bool {
        self.origin() == TraceOrigin::EventPipe
    }

    /// Whether the trace was a stream of EventPipe without its end. The rundown comes last: what is
    /// missing of it is certainly missing.
    pub fn is_cut_stream(&self) -> bool {
        let mut files = self.machine.files().iter();
        self.is_event_pipe() && files.any(|file| file.notes.contains(&Note::Unclosed))
    }

    /// Sessions that may have recorded the CLR: the sessions of the files, or of the files that
    /// were merged.
    pub fn clr_sessions(&self) -> Vec<&Session> {
        let files = self.machine.files().iter();
        let sessions = files.flat_map(FileFacts::recorded_sessions);
        sessions
            .filter(|session| !session.name.eq_ignore_ascii_case(KERNEL_SESSION))
            .collect()
    }

    /// Whether the trace was merged, or consists of several files.
    pub fn is_joined(&self) -> bool {
        self.machine.files().len() > 1 || self.machine.files().iter().any(|file| file.is_merged())
    }

    /// Whether the trace has a rundown of any process. A CLR that only states its version when a
    /// rundown is requested has none.
    pub fn has_rundown(&self) -> bool {
        self.machine.processes().iter().any(|process| {
            !process.brackets().is_empty()
                || process.methods_enumerated() > 0
                || process.outside().count > 0
        })
    }

    /// Whether a process has neither methods nor addresses, and no session is known to have
    /// requested a rundown: a trace of collections alone, for example, is not about code.
    pub fn has_nothing_to_name(&self, process: &Process) -> bool {
        process.methods() == 0
            && process.tallies().iter().all(|tally| tally.frames == 0)
            && !self.admission.requests_code()
    }

    /// The garbage collections of each CLR.
    pub fn collections(&self) -> impl Iterator<Item = ClrCollections<'_>> {
        self.collectors.all().map(|clr| {
            let index = self.machine.process_at(clr.pid, clr.since);
            ClrCollections {
                process: index.and_then(|index| self.machine.process(index)),
                instance: clr.instance,
                collections: clr.collections,
            }
        })
    }

    /// The name of a provider, or its GUID.
    pub fn provider_name(&self, provider: Guid) -> String {
        match provider {
            CLR_RUNTIME => "Microsoft-Windows-DotNETRuntime".to_owned(),
            CLR_RUNDOWN => "Microsoft-Windows-DotNETRuntimeRundown".to_owned(),
            _ => {
                let name = self.payloads.store().provider_name(provider);
                let name = name.or_else(|| providers::name(provider));
                name.map_or_else(|| provider.to_string(), str::to_owned)
            }
        }
    }
}

/// Adds the events of another count.
pub(crate) fn merge(sum: &mut Counted, other: Counted) {
    sum.count += other.count;
    sum.first = sum.first.into_iter().chain(other.first).min();
}

/// The provider of an event of the CLR.
fn provider_of(event: &ClrEvent<'_>) -> ClrProvider {
    if event.rundown {
        ClrProvider::Rundown
    } else {
        ClrProvider::Runtime
    }
}

/// Reports the number of bytes that were read.
#[derive(Default)]
struct Progress<'a> {
    unreported: u64,
    report: Option<&'a mut dyn FnMut(u64)>,
}

impl Progress<'_> {
    /// Bytes between two reports: a call for each record would take time.
    const STEP: u64 = 1 << 20;

    #[inline(always)]
    fn add(&mut self, record: &Record<'_>) {
        self.unreported += record.bytes().len() as u64;
        if self.unreported >= Self::STEP {
            self.flush();
        }
    }

    #[cold]
    fn flush(&mut self) {
        let bytes = std::mem::take(&mut self.unreported);
        if let Some(report) = &mut self.report {
            report(bytes);
        }
    }
}

/// What is known of a recording before its records are read.
#[derive(Clone, Copy)]
pub(crate) struct RecordedBy<'c> {
    pub clock: &'c Clock,
    pub origin: TraceOrigin,
}

/// Checks that need no state of the machine: kinds of events, enablements, activities,
/// collections, payloads.
pub(crate) struct RecordChecks<'a> {
    kinds: Kinds,
    admission: Admission,
    activities: Activities,
    collectors: Collectors,
    payloads: Payloads,
    classic: ClassicCounts,
    fitting: SeenSizes,
    sampling: Sampling,
    kernel_stacks: KernelStacks,
    sampled_stacks: SampledStacks,
    memory: Option<u32>,
    clock: Clock,
    /// The state of `admission` before the pass.
    enabled: Admission,
    tables: TableSet,
    progress: Progress<'a>,
}

impl<'a> RecordChecks<'a> {
    /// No records yet. `progress` is called with the bytes that were read since the last call.
    pub fn new(
        declared: &Declaration,
        recording: RecordedBy<'_>,
        tables: TableSet,
        progress: Option<&'a mut dyn FnMut(u64)>,
    ) -> Self {
        let RecordedBy { clock, origin } = recording;
        let progress = Progress {
            unreported: 0,
            report: progress,
        };
        let enabled = Admission::new(declared, clock, origin);
        Self::from_start(enabled, clock, tables, progress)
    }

    /// No records yet, with these enablements.
    fn from_start(
        enabled: Admission,
        clock: &Clock,
        tables: TableSet,
        progress: Progress<'a>,
    ) -> Self {
        RecordChecks {
            kinds: Kinds::default(),
            admission: enabled.clone(),
            activities: Activities::default(),
            collectors: Collectors::default(),
            payloads: Payloads::new(tables),
            classic: ClassicCounts::default(),
            fitting: SeenSizes::default(),
            sampling: Sampling::new(clock),
            kernel_stacks: KernelStacks::default(),
            sampled_stacks: SampledStacks::default(),
            memory: None,
            clock: *clock,
            enabled,
            tables,
            progress,
        }
    }
}

impl RecordObserver for RecordChecks<'_> {
    #[inline(always)]
    fn event(&mut self, record: &Record<'_>, header: &EventHeader, time: Ticks) {
        self.progress.add(record);
        self.kernel_stacks.add_record(record.timestamp());
        let RecordChecks {
            kinds,
            admission,
            activities,
            collectors,
            payloads,
            ..
        } = self;
        let is_plain = header.has_manifest_layout();
        let parent = if is_plain {
            None
        } else {
            parent_activity(record)
        };
        activities.event(header, parent, time);
        let Some(kind) = kinds.of(record, header, admission, payloads) else {
            return;
        };
        admission.count(kind.index, time);
        if kind.records_enablement {
            admission.learn(record, header, time);
        }
        if kind.is_of_collections {
            collectors.event(record, header, time);
        }
        if kind.is_of_processes
            && let Some(pid) = started_process(record)
        {
            collectors.process_started(ProcessId::new(pid));
        }
        let payload = if is_plain {
            record.bytes().get(EventHeader::SIZE..)
        } else {
            None
        };
        if !is_plain || !kind.fits(payload.unwrap_or_default(), record.pointer_size()) {
            payloads.event(record, header, &kind.layout, time);
        }
    }

    #[inline(always)]
    fn sample(&mut self, record: &Record<'_>, tid: ThreadId, time: Ticks) {
        self.progress.add(record);
        self.kernel_stacks.add_record(record.timestamp());
        self.classic.add_kernel(hook::SAMPLE);
        self.classic_size(record, time);
        self.sampling.sample(record.processor(), tid, time);
        if tid != 0 {
            self.sampled_stacks.add_sample(record, time);
        }
    }

    #[inline(always)]
    fn other(&mut self, record: &Record<'_>, time: Ticks) {
        self.progress.add(record);
        let Some(hook) = record.hook() else {
            self.kernel_stacks.add_record(record.timestamp());
            self.classic.add(record);
            self.payloads.learn(record);
            self.payloads.classic(record, time);
            if record.provider() == Some(kernel_class::PROCESS) {
                self.kernel_process(record);
            }
            return;
        };
        self.classic.add_kernel(hook);
        if hook == hook::PROCESS_START {
            self.kernel_process(record);
        }
        if kernel_stacks::is_about_stacks(hook) {
            if let Some(event_time) = kernel_stacks::event_time(record, hook) {
                self.kernel_stacks.add_stack(record, event_time, time);
                self.sampled_stacks.add_stack(record, event_time);
            }
            return;
        }
        self.classic_size(record, time);
        self.kernel_stacks.add_record(record.timestamp());
        self.sampling.record(record, hook, time);
        if hook == SYSTEM_CONFIG_CPU {
            self.memory = record.payload().u32_at(MEMORY).or(self.memory);
        }
    }

    fn restart(&mut self) {
        let enabled = self.enabled.clone();
        let clock = self.clock;
        let progress = std::mem::take(&mut self.progress);
        *self = Self::from_start(enabled, &clock, self.tables, progress);
    }
}

impl RecordChecks<'_> {
    /// Compares the size of a record of the kernel with its layout.
    #[inline(always)]
    fn classic_size(&mut self, record: &Record<'_>, time: Ticks) {
        if !self.fitting.has(record) && self.payloads.classic(record, time) == Fit::Always {
            self.fitting.add(record);
        }
    }

    /// Adds an event of the kernel that may be about the start of a process.
    #[inline(never)]
    fn kernel_process(&mut self, record: &Record<'_>) {
        let hook = hook::PROCESS_START;
        if kernel::hook_of(record) == Some(hook)
            && let Some(fields) = kernel::Fields::of(record, hook)
            && let Some(pid) = fields.process_id()
        {
            self.collectors.process_started(ProcessId::new(pid));
        }
    }
}

/// The id of the process that starts, if an event of Microsoft-Windows-Kernel-Process is about
/// that.
#[inline(never)]
fn started_process(record: &Record<'_>) -> Option<u32> {
    match kernel_process::process(record)? {
        kernel_process::Process::Described {
            is_start: true,
            pid,
            ..
        } => Some(pid),
        _ => None,
    }
}

/// The parent of an event's activity.
#[inline(never)]
fn parent_activity(record: &Record<'_>) -> Option<Guid> {
    let parents = record.extended().filter_map(|item| match item {
        ExtendedItem::RelatedActivity(parent) => Some(parent),
        _ => None,
    });
    parents.last()
}

/// Checks that need the processes of events: stacks and their events, payloads of variable size.
#[derive(Debug)]
pub(crate) struct StackChecks {
    sizes: Sizes,
    pairs: StackPairs,
    tables: TableSet,
}

impl StackChecks {
    /// No events yet.
    pub fn new(tables: TableSet) -> Self {
        StackChecks {
            sizes: Sizes::new(tables),
            pairs: StackPairs::default(),
            tables,
        }
    }
}

impl StateObserver for StackChecks {
    #[inline(always)]
    fn clr_event(&mut self, event: &ClrEvent<'_>) {
        if let Some(payload) = event.payload {
            self.sizes.event(event, payload);
        }
        let provider = provider_of(event);
        let owner = EventOwner {
            tid: event.tid,
            provider,
            process: event.process.map_or(usize::MAX, ProcessIndex::get),
        };
        if let Some((stated, actual)) = event.stack {
            let stack = LoggedStack {
                stated,
                actual,
                timestamp: event.time,
                is_at_start: event.begun,
            };
            self.pairs.stack(owner, stack);
            return;
        }
        let kind = match event.process {
            Some(_) => Kind::with_stack(provider, event.id, event.version),
            None => None,
        };
        self.pairs.event(owner, kind, event.time);
    }

    #[inline]
    fn kernel_stack(&mut self, event_time: Ticks, logged: Ticks) {
        self.pairs.kernel_stack(event_time, logged);
    }

    #[inline]
    fn thread_changed(&mut self, tid: ThreadId) {
        self.pairs.forget(tid);
    }

    fn restart(&mut self) {
        *self = StackChecks::new(self.tables);
    }
}
