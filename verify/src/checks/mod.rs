//! What rules need of a trace besides its machine: enablements, payload sizes, stacks and their
//! events, activities, garbage collections.

mod activity;
pub(crate) mod carried;
mod classic;
mod collections;
pub(crate) mod enablement;
pub(crate) mod infer;
mod kinds;
pub(crate) mod missing_stacks;
pub(crate) mod payload;
pub(crate) mod raised;
pub(crate) mod sampled_stacks;
pub(crate) mod sampling;
mod sizes;
mod stack_pairs;
mod times;
mod walked;

use etl_analysis::machine::Process;
use etl_analysis::{ClrEvent, Machine, ProcessIndex, RecordObserver, StateObserver};
use etl_format::constants::hook;
use etl_format::cursor::Bytes;
use etl_format::read::{EventHeader, ExtendedItem, Record};
use etl_format::{Clock, Guid, ProcessId, ThreadId, Ticks};
use etl_schema::providers::{self, CLR_RUNDOWN, CLR_RUNTIME, kernel_class};
use etl_schema::tables::TableSet;
use etl_schema::views::{kernel, kernel_process};

use activity::Activities;
pub(crate) use activity::Balance;
use carried::LossTimes;
use classic::ClassicCounts;
use collections::{Collections, Collectors};
use enablement::{Admission, Enabled, RuntimeOn};
use kinds::Kinds;
use missing_stacks::Kind;
use payload::Payloads;
use sampled_stacks::SampledStacks;
use sampling::Sampling;
use sizes::Sizes;
use stack_pairs::{EventOwner, StackPairs};
use walked::Walked;

/// What rules look at.
#[derive(Debug)]
pub(crate) struct Facts {
    /// The traced machine.
    pub machine: Machine,
    /// Enablements, and counts of events.
    pub admission: Admission,
    /// When keywords of the runtime provider were enabled.
    pub runtime_on: RuntimeOn,
    /// How the CLR's stacks match their events.
    pub stacks: StackPairs,
    /// Activities.
    pub activities: Activities,
    /// Garbage collections.
    collectors: Collectors,
    /// Losses, by what they may have taken.
    loss_times: LossTimes,
    /// Payloads that do not fit.
    pub payloads: Payloads,
    /// Events without a manifest.
    pub classic: ClassicCounts,
    /// Samples of the processors.
    pub sampling: Sampling,
    /// Stacks of the kernel and their events.
    pub walked: Walked,
    /// Samples and their stacks.
    pub sampled_stacks: SampledStacks,
    /// Physical memory of the machine in MiB, if an event states it.
    pub memory: Option<u32>,
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
            loss_times: LossTimes::new(&machine),
            machine,
            runtime_on: RuntimeOn::of(&records.admission),
            admission: records.admission,
            stacks: stacks.pairs,
            activities: records.activities,
            collectors: records.collectors,
            payloads,
            classic: records.classic,
            sampling: records.sampling,
            walked: records.walked,
            sampled_stacks: records.sampled_stacks,
            memory: records.memory,
        }
    }

    /// Whether the trace was merged, or consists of several files.
    pub fn is_joined(&self) -> bool {
        self.machine.files().len() > 1 || self.machine.files().iter().any(|file| file.is_merged())
    }

    /// Whether the trace has a rundown of any process. What a CLR says of itself when a rundown is
    /// requested is none.
    pub fn has_rundown(&self) -> bool {
        let has = |p: &Process| {
            !p.brackets().is_empty() || p.methods_enumerated() > 0 || p.outside().count > 0
        };
        self.machine.processes().iter().any(has)
    }

    /// Whether a process has neither methods nor addresses, and no session is known to have
    /// requested a rundown: a trace of collections alone, for example, is not about code.
    pub fn has_nothing_to_name(&self, process: &Process) -> bool {
        process.methods() == 0
            && process.tallies().iter().all(|tally| tally.frames == 0)
            && self.admission.of(CLR_RUNDOWN).next().is_none()
    }

    /// The garbage collections of each CLR, with its process and instance.
    pub fn collections(&self) -> impl Iterator<Item = (Option<&Process>, u16, &Collections)> {
        self.collectors.all().map(|(pid, since, instance, known)| {
            let index = self.machine.process_at(pid, since);
            (
                index.and_then(|index| self.machine.process(index)),
                instance,
                known,
            )
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

/// Reports the bytes that were read, now and then.
#[derive(Default)]
struct Progress<'a> {
    unreported: u64,
    report: Option<&'a mut dyn FnMut(u64)>,
}

impl Progress<'_> {
    /// Bytes after which the next report is due: calls for each record would cost time.
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

/// Checks that need no state of the machine: kinds of events, enablements, activities,
/// collections, payloads.
pub(crate) struct RecordChecks<'a> {
    kinds: Kinds,
    admission: Admission,
    activities: Activities,
    collectors: Collectors,
    payloads: Payloads,
    classic: ClassicCounts,
    sampling: Sampling,
    walked: Walked,
    sampled_stacks: SampledStacks,
    memory: Option<u32>,
    clock: Clock,
    /// As it was before the pass.
    enabled: Admission,
    tables: TableSet,
    progress: Progress<'a>,
}

impl<'a> RecordChecks<'a> {
    /// Nothing seen yet. `progress` is called with the bytes that were read since the last call.
    pub fn new(
        declared: &[Enabled],
        clock: &Clock,
        tables: TableSet,
        progress: Option<&'a mut dyn FnMut(u64)>,
    ) -> Self {
        let progress = Progress {
            unreported: 0,
            report: progress,
        };
        Self::from_start(Admission::new(declared, clock), clock, tables, progress)
    }

    /// Nothing seen yet of the events of these enablements.
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
            sampling: Sampling::new(clock),
            walked: Walked::default(),
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
        self.walked.add(record.timestamp());
        let RecordChecks {
            kinds,
            admission,
            activities,
            collectors,
            payloads,
            ..
        } = self;
        let plain = header.has_manifest_layout();
        activities.event(header, if plain { None } else { related(record) }, time);
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
            && let Some(pid) = described_start(record)
        {
            collectors.process_started(ProcessId::new(pid));
        }
        let payload = if plain {
            record.bytes().get(EventHeader::SIZE..)
        } else {
            None
        };
        if !plain || !kind.fits(payload.unwrap_or_default(), record.pointer_size()) {
            payloads.event(record, header, &kind.layout, time);
        }
    }

    #[inline(always)]
    fn sample(&mut self, record: &Record<'_>, tid: ThreadId, time: Ticks) {
        self.progress.add(record);
        self.walked.add(record.timestamp());
        self.classic.add_kernel(hook::SAMPLE);
        self.sampling.sample(record.processor(), tid, time);
        if tid != 0 {
            self.sampled_stacks.sample(record, time);
        }
    }

    #[inline(always)]
    fn other(&mut self, record: &Record<'_>, time: Ticks) {
        self.progress.add(record);
        let Some(hook) = record.hook() else {
            self.walked.add(record.timestamp());
            self.classic.add(record);
            self.payloads.learn(record);
            if record.provider() == Some(kernel_class::PROCESS) {
                self.process_started(record);
            }
            return;
        };
        self.classic.add_kernel(hook);
        if hook == hook::PROCESS_START {
            self.process_started(record);
        }
        if Walked::is_stack(hook) {
            self.walked.stack(record, hook, time);
            self.sampled_stacks.stack(record, hook);
            return;
        }
        self.walked.add(record.timestamp());
        self.sampling.record(record, hook, time);
        if hook == SYSTEM_CONFIG_CPU {
            self.memory = record.payload().u32_at(MEMORY).or(self.memory);
        }
    }

    fn restart(&mut self) {
        let (enabled, clock) = (self.enabled.clone(), self.clock);
        let progress = std::mem::take(&mut self.progress);
        *self = Self::from_start(enabled, &clock, self.tables, progress);
    }
}

impl RecordChecks<'_> {
    /// Takes in an event of the kernel that may be about the start of a process.
    #[inline(never)]
    fn process_started(&mut self, record: &Record<'_>) {
        let hook = kernel::hook_of(record).filter(|&hook| hook == hook::PROCESS_START);
        let fields = hook.and_then(|hook| kernel::Fields::of(record, hook));
        if let Some(pid) = fields.and_then(|fields| fields.process_id()) {
            self.collectors.process_started(ProcessId::new(pid));
        }
    }
}

/// The process that starts, as an event of Microsoft-Windows-Kernel-Process shows it.
#[inline(never)]
fn described_start(record: &Record<'_>) -> Option<u32> {
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
fn related(record: &Record<'_>) -> Option<Guid> {
    let items = record.extended().filter_map(|item| match item {
        ExtendedItem::RelatedActivity(parent) => Some(parent),
        _ => None,
    });
    items.last()
}

/// Checks that need the processes of events: stacks and their events, payloads of variable size.
#[derive(Debug)]
pub(crate) struct StackChecks {
    sizes: Sizes,
    pairs: StackPairs,
    tables: TableSet,
}

impl StackChecks {
    /// Nothing seen yet.
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
        let ClrEvent {
            tid, rundown, time, ..
        } = *event;
        let owner = EventOwner {
            tid,
            rundown,
            process: event.process.map_or(usize::MAX, ProcessIndex::get),
        };
        match event.stack {
            Some(counts) => self.pairs.stack(owner, counts, time, event.begun),
            None => {
                let kind = event
                    .process
                    .and_then(|_| Kind::with_stack(rundown, event.id, event.version));
                self.pairs.event(owner, kind, time);
            }
        }
    }

    #[inline]
    fn kernel_stack(&mut self, event_time: Ticks, logged: Ticks) {
        self.pairs.kernel(event_time, logged);
    }

    #[inline]
    fn thread_changed(&mut self, tid: ThreadId) {
        self.pairs.forget(tid);
    }

    fn restart(&mut self) {
        *self = StackChecks::new(self.tables);
    }
}
