//! The part of a pass that needs no state of the machine: finds what the machine needs of each
//! record.

use etl_format::constants::{EventFlags, PointerSize, hook};
use etl_format::read::{EventHeader, Header, Record};
use etl_format::{ThreadId, Ticks};
use etl_schema::providers::{
    IMAGE_ID, KERNEL_DISK, KERNEL_FILE, KERNEL_PROCESS, LOST_EVENT, SYSTEM_CONFIG_EX, kernel_class,
};
use etl_schema::views::clr::{ClrProvider, PlainEvent};
use etl_schema::views::{clr, kernel};

use crate::address::DirectMapped;
use crate::machine::{Span, widen};
use crate::observe::RecordObserver;
use crate::steps::{ClrHead, PlainClrEvent, Step, StepSink, Words};

/// Slots for threads; a power of two.
const THREADS: usize = 1 << 10;

/// Slots for kinds of the CLR's events; a power of two.
const PLAIN: usize = 1 << 8;

/// Finds the steps of records, and counts the records.
#[derive(Debug)]
pub(crate) struct Scan {
    pub records: u64,
    pub kernel_span: Option<Span>,
    /// Of all other records.
    pub other_span: Option<Span>,
    /// Threads of the last events, by their lowest bits: the machine knows their process.
    threads: DirectMapped<Option<ThreadId>>,
    /// Events of the CLR from which nothing is read, by id.
    plain: DirectMapped<Option<(u32, Option<PlainEvent>)>>,
    /// Whether the machine needs the CLR's events as a whole, for the names in them.
    names: bool,
}

impl Scan {
    pub fn new(names: bool) -> Self {
        Scan {
            records: 0,
            kernel_span: None,
            other_span: None,
            threads: DirectMapped::new(THREADS),
            plain: DirectMapped::new(PLAIN),
            names,
        }
    }

    /// Passes what the machine needs of a record to `sink`. Each kind of step has its own call,
    /// into which the code of the sink is inlined.
    #[inline(always)]
    pub fn record(
        &mut self,
        record: &Record<'_>,
        time: Ticks,
        observer: &mut impl RecordObserver,
        sink: impl StepSink,
    ) {
        self.records += 1;
        if let Some(id) = record.hook() {
            widen(&mut self.kernel_span, time);
            if id == hook::SAMPLE
                && let Some(kernel::Sample { address, tid, .. }) = kernel::sample(record)
            {
                observer.sample(record, ThreadId::new(tid), time);
                let tid = ThreadId::new(tid);
                return sink.step(Step::Words(Words::Sample { address, tid }), time);
            }
            observer.other(record, time);
            // A session's header is looked at as well.
            if id == hook::HEADER || kernel::is_read(id) {
                sink.step(Step::Record(record), time);
            }
        } else if let Some(header) = record.event() {
            widen(&mut self.other_span, time);
            observer.event(record, &header, time);
            self.event(record, &header, time, sink);
        } else {
            widen(&mut self.other_span, time);
            observer.other(record, time);
            if describes_machine(record) {
                sink.step(Step::Record(record), time);
            }
        }
    }

    #[inline(always)]
    fn event(
        &mut self,
        record: &Record<'_>,
        header: &EventHeader,
        time: Ticks,
        sink: impl StepSink,
    ) {
        let pid = header.process_id;
        let tid = header.thread_id;
        let thread = self.threads.slot_mut(tid.get() as usize);
        // The machine needs the process of a thread once. To state it again does no harm.
        let known = thread.is_some_and(|thread| thread.replace(tid) == Some(tid));
        let Some(provider) = ClrProvider::from_guid(header.provider) else {
            let has_process = matches!(header.provider, KERNEL_PROCESS | KERNEL_FILE | KERNEL_DISK);
            if header.flags.has(EventFlags::EXTENDED_INFO) || has_process {
                sink.step(Step::Record(record), time);
            } else if !known {
                sink.step(Step::Words(Words::Thread { pid, tid }), time);
            }
            return;
        };
        if self.names || !header.has_manifest_layout() {
            return sink.step(Step::Record(record), time);
        }
        let payload = record.bytes().get(EventHeader::SIZE..).unwrap_or_default();
        let id = header.descriptor.id;
        let head = ClrHead {
            pid,
            tid,
            known,
            id,
            version: header.descriptor.version,
            provider,
            wide: record.pointer_size() == Some(PointerSize::P8),
        };
        match self.plain_event(provider, id) {
            None => sink.step(Step::ClrEvent(head, payload), time),
            Some(PlainEvent {
                min_size,
                is_il_map,
            }) => {
                let event = PlainClrEvent {
                    head,
                    is_short: payload.len() < min_size,
                    is_il_map,
                };
                sink.step(Step::Words(Words::ClrEvent(event)), time);
            }
        }
    }

    /// [`clr::plain_event`], which is looked up once for each kind of event.
    #[inline(always)]
    fn plain_event(&mut self, provider: ClrProvider, id: u16) -> Option<PlainEvent> {
        // The cache expects multiples of four.
        let key = (u32::from(id) << 1 | u32::from(provider.is_rundown())) << 2;
        self.plain.get(key).unwrap_or_else(|| {
            let plain = clr::plain_event(provider, id);
            self.plain.insert(key, plain);
            plain
        })
    }
}

/// Whether a merge added a record to describe the machine or its images, it says that something was
/// lost, or it is an event of the kernel about a process, a thread or an image in the form that
/// some relogged traces have.
#[inline(never)]
fn describes_machine(record: &Record<'_>) -> bool {
    use kernel_class::{IMAGE, PROCESS, THREAD};
    let Header::Full(header) = record.header() else {
        return false;
    };
    matches!(
        header.class,
        IMAGE_ID | SYSTEM_CONFIG_EX | LOST_EVENT | PROCESS | THREAD | IMAGE
    )
}
