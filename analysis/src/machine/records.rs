//! What records change in the machine, by their kinds.

use etl_format::constants::{EventFlags, PointerSize};
use etl_format::read::{EventHeader, ExtendedItem, Header, Record, Source, Trace};
use etl_format::{FileHeader, ThreadId, Ticks};
use etl_schema::providers::{
    IMAGE_ID, KERNEL_DISK, KERNEL_FILE, KERNEL_PROCESS, LOST_EVENT, SYSTEM_CONFIG_EX, kernel_class,
    lost,
};
use etl_schema::views::clr::ClrProvider;
use etl_schema::views::{clr, kernel};

use super::IDLE;
use super::Machine;
use super::changes::{Change, ClrEvent, StateObserver};
use super::eventpipe::SELF_DESCRIBING;
use crate::address::{Origin, Sighting};
use crate::counted::{Span, widen};
use crate::files::{self, FileFacts};
use crate::keys::{ClrKey, ProcessIndex};
use crate::loss::{self, Loss, LossKind};
use crate::steps::{ClrHead, PlainClrEvent, Step, StepSink, Words};

/// Samples of threads without a known process that are kept, by thread and address. Other samples
/// are counted for the idle process.
const MAX_UNATTRIBUTED: usize = 1 << 20;

/// Records of each kind about losses that are kept apart in a file.
const MAX_LOSS_RECORDS: u64 = 1 << 10;

/// Who logged the record of a step.
enum StepSource {
    Clr,
    Kernel,
    Other,
}

impl StepSource {
    fn of(step: &Step<'_>) -> Self {
        let record = match step {
            Step::Words(Words::Sample { .. }) => return StepSource::Kernel,
            Step::Words(Words::Thread { .. }) => return StepSource::Other,
            Step::Words(Words::ClrEvent(_)) | Step::ClrEvent(..) => return StepSource::Clr,
            Step::Record(record) => record,
        };
        if let Some(header) = record.event() {
            return match ClrProvider::from_guid(header.provider) {
                Some(_) => StepSource::Clr,
                None => StepSource::Other,
            };
        }
        match kernel::hook_of(record) {
            // Group 0: every file has these events about itself.
            Some(hook) if hook >> 8 != 0 => StepSource::Kernel,
            _ => StepSource::Other,
        }
    }
}

/// Passes the steps of the records of a file to the machine.
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
    /// Adds a file, with what it states of itself.
    pub(crate) fn add_file<S: Source>(&mut self, trace: &Trace<S>, name: &str) {
        let source = self.files.len();
        let mut file = FileFacts::new(trace, source, name, &self.timeline);
        let mut earlier = self.files.iter();
        if let Some(first) = earlier.find(|first| file.is_of_session_of(first)) {
            file.session = first.index;
        }
        let losses = loss::of_file(trace, source, file.session, &self.timeline);
        self.losses.extend(losses);
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

    /// Sets what was counted while records were read: how many, and the spans of the kernel's
    /// records and of all others.
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

    /// The sink for the steps of the records of a file.
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

    /// Changes the machine by the step of a record.
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
            match StepSource::of(&step) {
                StepSource::Clr => file.has_clr = true,
                StepSource::Kernel => file.has_kernel = true,
                StepSource::Other => {}
            }
        }
        match step {
            Step::Words(Words::Sample { address, tid }) => self.sample(address, tid, time),
            Step::Words(Words::Thread { pid, tid }) => self.threads.seen(tid, pid),
            Step::Words(Words::ClrEvent(event)) => self.plain_clr_event(event, time, observer),
            Step::ClrEvent(head, payload) => {
                if !head.known {
                    self.threads.seen(head.tid, head.pid);
                }
                self.clr_event(&head, payload, None, time, observer);
            }
            Step::Record(record) => self.record(record, time, file, observer),
        }
    }

    /// Changes the machine by a record that may change it, or has addresses.
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
                    if let Some(hook) = kernel::hook_of(record)
                        && let Some(fields) = kernel::Fields::of(record, hook)
                        && let Some(event) = fields.event()
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
        let session = file.session;
        let counted = match opcode {
            lost::EVENT => &mut file.loss_records.events,
            lost::BUFFER => &mut file.loss_records.buffers,
            lost::FILE => &mut file.loss_records.files,
            _ => return,
        };
        counted.add(timestamp);
        // The last loss that is kept represents all that follow, which may have happened at any
        // time.
        let time = if counted.count < MAX_LOSS_RECORDS {
            Some(timestamp)
        } else {
            None
        };
        if counted.count <= MAX_LOSS_RECORDS {
            let what = match opcode {
                lost::EVENT => LossKind::EventsLost,
                _ => LossKind::BuffersLost,
            };
            self.losses.push(Loss {
                from: time,
                to: time,
                processor: None,
                what,
                source,
                session,
            });
        }
    }

    /// A header event among the records: the header of a session that was merged into the file.
    fn session(&mut self, record: &Record<'_>, timestamp: Ticks, source: usize) {
        let Ok(header) = FileHeader::parse(record.bytes(), 0) else {
            return;
        };
        let Some(file) = self.files.get_mut(source) else {
            return;
        };
        let loss = file.add_session(&header, timestamp, source, &self.timeline);
        self.losses.extend(loss);
    }

    /// An event of a manifest provider, or a TraceLogging event.
    fn event(
        &mut self,
        record: &Record<'_>,
        header: &EventHeader,
        timestamp: Ticks,
        observer: &mut impl StateObserver,
    ) {
        let pid = header.process_id;
        let tid = header.thread_id;
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
        // Reads and writes have a process even if no event describes it.
        if matches!(header.provider, KERNEL_FILE | KERNEL_DISK) && pid.is_known() {
            self.process_index(pid);
        }
        if header.descriptor.channel == SELF_DESCRIBING {
            self.eventpipe_process(record, header, timestamp);
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

    /// An event of the CLR whose fields the machine does not need.
    #[inline(always)]
    fn plain_clr_event(
        &mut self,
        event: PlainClrEvent,
        time: Ticks,
        observer: &mut impl StateObserver,
    ) {
        let head = event.head;
        if !head.known {
            self.threads.seen(head.tid, head.pid);
        }
        let mut seen = ClrEvent::new(head, time);
        if !event.is_short {
            let index = self.process_index(head.pid);
            widen(self.clr_span(head.provider), time);
            if let Some(process) = self.processes.get_mut(index.get()) {
                process.clr_seen(head.provider.is_rundown(), time);
                if event.is_il_map {
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

    /// An event of the CLR. `header` is present if names are read from the event.
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
        let mut seen = ClrEvent::new(*head, timestamp);
        if header.is_none_or(EventHeader::has_manifest_layout) {
            seen.payload = Some(payload);
        }
        let decoded = clr::decode_event(provider, id, version, payload, head.pointers());
        let Some(decoded) = decoded else {
            observer.clr_event(&seen);
            return;
        };
        seen.exact = decoded.exact;
        let index = self.process_index(pid);
        seen.process = Some(index);
        let span = self.clr_span(provider);
        widen(span, timestamp);
        let since_first = span.map_or(0, |span| timestamp.saturating_since(span.first));
        match decoded.event {
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
                seen.begun = since_first.unsigned_abs() <= self.clock.frequency / 100;
            }
            clr::Event::Exception(at) => self.address(index, Origin::Exception, at, timestamp),
            clr::Event::EntryPoint(at) => self.address(index, Origin::EntryPoint, at, timestamp),
            _ => {}
        }
        observer.clr_event(&seen);
        if let Some(process) = self.processes.get_mut(index.get()) {
            let mut code = None;
            if let (Some(names), Some(_)) = (&mut self.names, header) {
                let clr = ClrKey::new(index, process.instance_of(&decoded));
                code = names.learn(clr, &decoded, timestamp);
            }
            process.has_pointers(head.wide);
            process.clr_event(&decoded, code, timestamp, tid);
        }
        if let clr::Event::Method(clr::Change::Load | clr::Change::Unload, method) = decoded.event {
            let clr::Method { start, size, .. } = method;
            self.changed(|| Change::Code {
                process: index,
                start,
                size,
            });
        }
    }

    /// Resolves an address that is not part of a stack.
    #[inline]
    fn address(&mut self, process: ProcessIndex, origin: Origin, address: u64, time: Ticks) {
        let address = std::iter::once(address);
        self.resolver
            .stack(&mut self.processes, process, origin, address, time);
    }

    /// A sample of what a processor was doing.
    #[inline]
    pub(super) fn sample(&mut self, address: u64, tid: ThreadId, time: Ticks) {
        match self.running(tid) {
            Some(process) => self.address(process, Origin::Sample, address, time),
            None => self.unattributed_sample(address, tid, time),
        }
    }

    /// A sample of a thread whose process is not known yet.
    fn unattributed_sample(&mut self, address: u64, tid: ThreadId, time: Ticks) {
        // Without addresses, it only matters that the thread was there.
        let address = if self.resolver.counts { address } else { 0 };
        let none = Sighting {
            count: 0,
            first: time,
            last: time,
            in_image: false,
        };
        let sighting = self.unattributed.entry((tid, address)).or_insert(none);
        sighting.count += 1;
        sighting.last = time;
    }

    /// The process of a thread that runs; it is added if there is none.
    #[inline]
    pub(crate) fn running(&mut self, tid: ThreadId) -> Option<ProcessIndex> {
        match self.sampled.get(tid) {
            Some(process) => Some(process),
            None => self.process_of_sample(tid),
        }
    }

    /// The process of a thread that was not sampled before.
    #[inline(never)]
    fn process_of_sample(&mut self, tid: ThreadId) -> Option<ProcessIndex> {
        if let Some(pid) = self.pid_of_thread(tid) {
            let process = self.process_index(pid);
            self.sampled.insert(tid, process);
            return Some(process);
        }
        if self.unattributed.len() >= MAX_UNATTRIBUTED {
            return Some(self.process_index(IDLE));
        }
        None
    }
}
