//! The part of a pass that needs no state of the machine: finds what the machine needs of each
//! record.

use etl_format::constants::{EventFlags, PointerSize, hook};
use etl_format::read::{EventHeader, Header, Record};
use etl_schema::providers::{IMAGE_ID, KERNEL_PROCESS, SYSTEM_CONFIG_EX};
use etl_schema::views::clr::PlainEvent;
use etl_schema::views::{clr, kernel};

use crate::address::DirectMapped;
use crate::machine::{Span, widen};
use crate::observe::RecordObserver;
use crate::steps::{ClrHead, Step, Words};

/// Slots for threads; a power of two.
const THREADS: usize = 1 << 10;

/// What is counted where records are read.
#[derive(Debug)]
pub(crate) struct Scan {
    pub records: u64,
    pub kernel_span: Span,
    /// Of all other records.
    pub other_span: Span,
    /// Threads of the last events, by their lowest bits: the machine knows their process.
    threads: DirectMapped<Option<u32>>,
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
            names,
        }
    }

    /// Takes in a record; returns what the machine needs of it.
    #[inline(always)]
    pub fn record<'r>(
        &mut self,
        record: &'r Record<'r>,
        time: i64,
        observer: &mut impl RecordObserver,
    ) -> Option<Step<'r>> {
        self.records += 1;
        if let Some(id) = record.hook() {
            widen(&mut self.kernel_span, time);
            if id == hook::SAMPLE
                && let Some((address, tid)) = kernel::sample(record)
            {
                observer.sample(record, tid, time);
                return Some(Step::Words(Words::Sample { address, tid }));
            }
            observer.other(record, time);
            // A session's header is looked at as well.
            (id == hook::HEADER || kernel::is_read(id)).then_some(Step::Record(record))
        } else if let Some(header) = record.event() {
            widen(&mut self.other_span, time);
            observer.event(record, &header, time);
            self.event(record, &header)
        } else {
            widen(&mut self.other_span, time);
            observer.other(record, time);
            describes_machine(record).then_some(Step::Record(record))
        }
    }

    #[inline(always)]
    fn event<'r>(&mut self, record: &'r Record<'r>, header: &EventHeader) -> Option<Step<'r>> {
        let (pid, tid) = (header.process_id, header.thread_id);
        let thread = self.threads.slot_mut(tid as usize);
        // The process of a thread counts once; to hand it on again does no harm.
        let known = thread.is_some_and(|thread| thread.replace(tid) == Some(tid));
        let Some(rundown) = clr::rundown_of(header.provider) else {
            if header.flags.has(EventFlags::EXTENDED_INFO) || header.provider == KERNEL_PROCESS {
                return Some(Step::Record(record));
            }
            return (!known).then_some(Step::Words(Words::Thread { pid, tid }));
        };
        if self.names || !header.has_manifest_layout() {
            return Some(Step::Record(record));
        }
        let payload = record.bytes().get(EventHeader::SIZE..).unwrap_or_default();
        let (id, version) = (header.descriptor.id, header.descriptor.version);
        let wide = record.pointer_size() == Some(PointerSize::P8);
        let head = ClrHead { pid, tid, known, id, version, rundown, wide };
        Some(match clr::plain_event(rundown, id) {
            None => Step::ClrEvent(head, payload),
            Some(PlainEvent { min_size, is_il_map }) => {
                let is_short = payload.len() < min_size;
                Step::Words(Words::ClrEvent { head, is_short, is_il_map })
            }
        })
    }
}

/// Whether a merge added a record to describe the machine or its images.
#[inline(never)]
fn describes_machine(record: &Record<'_>) -> bool {
    let Header::Full(header) = record.header() else { return false };
    header.class == IMAGE_ID || header.class == SYSTEM_CONFIG_EX
}
