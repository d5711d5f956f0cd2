//! What events are, whatever the addresses in them belong to: kinds, enablements, activities, payloads.
//!
//! The other facts do not depend on it, so that with two threads the one that reads does this, and only
//! what addresses need goes over to the other one: see [`Follow`].

use etl_format::Guid;
use etl_format::constants::{EventFlags, PointerSize};
use etl_format::read::{EventHeader, ExtendedItem, Record};

use super::activity::Activities;
use super::enable::Admission;
use super::kinds::{Kinds, OfClr};
use super::payload::Payloads;
use super::steps::{ClrHead, Follow, Light};
use super::{Facts, Span, images, kernel, sizes, widen};

/// The facts that have nothing to do with addresses, taken out of the others while a trace is read.
#[derive(Debug)]
pub(crate) struct Seen {
    kinds: Kinds,
    admission: Admission,
    activities: Activities,
    payloads: Payloads,
    records: u64,
    kernel_span: Span,
    /// Of all other records.
    other_span: Span,
    /// Threads of the last events, by their lowest bits: their process has been told.
    threads: Vec<Option<u32>>,
    /// Whether the CLR's events are looked at as a whole elsewhere, for the names in them.
    whole: bool,
}

/// Places for threads; a power of two.
pub(super) const THREADS: usize = 1 << 10;

impl Facts {
    /// Takes out what has nothing to do with addresses.
    pub(crate) fn take_seen(&mut self) -> Seen {
        let none = Admission::new(&[], &self.clock);
        Seen {
            kinds: std::mem::take(&mut self.kinds),
            admission: std::mem::replace(&mut self.admission, none),
            activities: std::mem::take(&mut self.activities),
            payloads: std::mem::take(&mut self.payloads),
            records: self.records,
            other_span: self.span,
            kernel_span: self.kernel_span,
            threads: std::mem::take(&mut self.told_threads),
            whole: self.told.is_some(),
        }
    }

    /// Puts back what [`Facts::take_seen`] took out.
    pub(crate) fn give_back(&mut self, seen: Seen) {
        let Seen { kinds, admission, activities, payloads, records, threads, .. } = seen;
        self.kinds = kinds;
        (self.admission, self.activities, self.payloads) = (admission, activities, payloads);
        (self.records, self.told_threads) = (records, threads);
        (self.kernel_span, self.span) = (seen.kernel_span, seen.other_span);
        if let Some((first, last)) = self.kernel_span {
            widen(&mut self.span, first);
            widen(&mut self.span, last);
        }
    }
}

impl Seen {
    /// Takes in a record, and gives what is to be done for it besides to who does it.
    #[inline(always)]
    pub(crate) fn record(&mut self, record: &Record<'_>, timestamp: i64, to: &mut impl Follow) {
        self.records += 1;
        if let Some(hook) = record.hook() {
            widen(&mut self.kernel_span, timestamp);
            if hook == kernel::SAMPLE {
                if let Some((address, tid)) = kernel::sample(record) {
                    to.sample(address, tid, timestamp);
                }
            } else if hook == 0 || kernel::is_looked_at(hook) {
                // A session's header is looked at as well.
                to.record(record, timestamp);
            }
        } else if let Some(header) = record.event() {
            widen(&mut self.other_span, timestamp);
            self.event(record, &header, timestamp, to);
        } else {
            widen(&mut self.other_span, timestamp);
            if images::is_identity(record) {
                // Nothing is learnt from it.
                to.record(record, timestamp);
            } else {
                self.payloads.learn(record);
            }
        }
    }

    #[inline(always)]
    fn event(
        &mut self,
        record: &Record<'_>,
        header: &EventHeader,
        timestamp: i64,
        to: &mut impl Follow,
    ) {
        let Seen { kinds, admission, activities, payloads, threads, .. } = self;
        let plain = sizes::is_plain(header);
        activities.event(header, if plain { None } else { related(record) }, timestamp);
        let (pid, tid) = (header.process_id, header.thread_id);
        let thread = threads.get_mut(tid as usize & (THREADS - 1));
        // Whose thread it is counts only once, but it does no harm to say it again.
        let known = thread.is_some_and(|thread| thread.replace(tid) == Some(tid));
        let Some(kind) = kinds.of(record, header, admission, payloads) else {
            return to.record(record, timestamp);
        };
        admission.count(kind.place, timestamp);
        if kind.tells {
            admission.learn(record, header, timestamp);
        }
        let wide = record.pointer_size() == Some(PointerSize::P8);
        let payload = if plain { record.bytes().get(EventHeader::SIZE..) } else { None };
        let payload = payload.unwrap_or_default();
        if plain && kind.fits(payload, wide) {
            payloads.checked += 1;
        } else {
            payloads.event(record, header, kind, timestamp);
        }
        let Some(OfClr { rundown, stacked, least }) = kind.clr.filter(|_| plain && !self.whole)
        else {
            if kind.clr.is_some() || header.flags.has(EventFlags::EXTENDED_INFO) {
                to.record(record, timestamp);
            } else if !known {
                to.thread(pid, tid, timestamp);
            }
            return;
        };
        let (id, version) = (header.descriptor.id, header.descriptor.version);
        let head = ClrHead { pid, tid, known, id, version, rundown, stacked, wide };
        match least {
            None => to.clr(head, payload, timestamp),
            Some(least) => to.light(Light { head, short: payload.len() < least }, timestamp),
        }
    }
}

/// The activity that an event's comes from.
#[inline(never)]
fn related(record: &Record<'_>) -> Option<Guid> {
    let items = record.extended().filter_map(|item| match item {
        ExtendedItem::RelatedActivity(parent) => Some(parent),
        _ => None,
    });
    items.last()
}
