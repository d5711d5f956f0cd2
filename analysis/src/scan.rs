//! The part of a pass that needs no state of the machine: finds out what each record is, and hands
//! on what the machine needs of it.

use etl_format::constants::{EventFlags, PointerSize, hook};
use etl_format::read::{EventHeader, Record};
use etl_schema::views::{clr, kernel, merge};

use crate::address::cache::DirectMapped;
use crate::machine::{Machine, Span, is_description, widen};
use crate::observe::RecordObserver;
use crate::steps::{ClrHead, Follow, Light};

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
    pub fn new(machine: &Machine) -> Self {
        Scan {
            records: 0,
            kernel_span: None,
            other_span: None,
            threads: DirectMapped::new(THREADS),
            names: machine.names.is_some(),
        }
    }

    /// Takes in a record.
    #[inline(always)]
    pub fn record(
        &mut self,
        record: &Record<'_>,
        time: i64,
        observer: &mut impl RecordObserver,
        to: &mut impl Follow,
    ) {
        self.records += 1;
        if let Some(id) = record.hook() {
            widen(&mut self.kernel_span, time);
            observer.other(record, time);
            if id == hook::SAMPLE {
                if let Some((address, tid)) = kernel::sample(record) {
                    to.sample(address, tid, time);
                }
            } else if id == hook::HEADER || kernel::is_read(id) {
                // A session's header is looked at as well.
                to.record(record, time);
            }
        } else if let Some(header) = record.event() {
            widen(&mut self.other_span, time);
            observer.event(record, &header, time);
            self.event(record, &header, time, to);
        } else {
            widen(&mut self.other_span, time);
            observer.other(record, time);
            if merge::is_image_id(record) || is_description(record) {
                to.record(record, time);
            }
        }
    }

    #[inline(always)]
    fn event(
        &mut self,
        record: &Record<'_>,
        header: &EventHeader,
        time: i64,
        to: &mut impl Follow,
    ) {
        let (pid, tid) = (header.process_id, header.thread_id);
        let thread = self.threads.slot_mut(tid as usize);
        // The process of a thread counts once; to hand it on again does no harm.
        let known = thread.is_some_and(|thread| thread.replace(tid) == Some(tid));
        let Some(rundown) = clr::rundown_of(header.provider) else {
            if header.flags.has(EventFlags::EXTENDED_INFO) {
                to.record(record, time);
            } else if !known {
                to.thread(pid, tid, time);
            }
            return;
        };
        if self.names || !is_plain(header) {
            return to.record(record, time);
        }
        let payload = record.bytes().get(EventHeader::SIZE..).unwrap_or_default();
        let (id, version) = (header.descriptor.id, header.descriptor.version);
        let wide = record.pointer_size() == Some(PointerSize::P8);
        let head = ClrHead { pid, tid, known, id, version, rundown, wide };
        match clr::min_size_without_fields(rundown, id) {
            None => to.clr(head, payload, time),
            Some(min) => to.light(Light { head, short: payload.len() < min }, time),
        }
    }
}

/// Whether the payload of an event is laid out as the tables have it: extended data may bring a
/// schema of their own.
#[inline]
pub(crate) fn is_plain(header: &EventHeader) -> bool {
    !header.flags.has(EventFlags::EXTENDED_INFO) && !header.flags.has(EventFlags::STRING_ONLY)
}
