//! What events are, whatever the addresses in them belong to: kinds, enablements, activities, payloads.
//!
//! The other facts do not depend on it, so that with two threads the one that reads does this, and only
//! what addresses need goes over to the other one.

use etl_format::read::{EventHeader, ExtendedItem, Record};

use etl_format::constants::EventFlags;

use super::activity::Activities;
use super::enable::Admission;
use super::kinds::Kinds;
use super::payload::Payloads;
use super::{Facts, Span, clr, images, kernel, widen};

/// The facts that have nothing to do with addresses, taken out of the others for a while.
#[derive(Debug)]
pub(crate) struct Seen {
    kinds: Kinds,
    admission: Admission,
    activities: Activities,
    payloads: Payloads,
    records: u64,
    span: Span,
    kernel_span: Span,
    /// Threads of the last events, by their lowest bits: their process has been told.
    threads: Vec<Option<u32>>,
}

/// Places for threads; a power of two.
const THREADS: usize = 1 << 10;

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
            span: self.span,
            kernel_span: self.kernel_span,
            threads: vec![None; THREADS],
        }
    }

    /// Puts back what [`Facts::take_seen`] took out.
    pub(crate) fn give_back(&mut self, seen: Seen) {
        let Seen { kinds, admission, activities, payloads, records, span, kernel_span, threads: _ } =
            seen;
        self.kinds = kinds;
        (self.admission, self.activities, self.payloads) = (admission, activities, payloads);
        (self.records, self.span, self.kernel_span) = (records, span, kernel_span);
    }
}

impl Seen {
    /// Takes in a record; says whether [`Facts::owners`] has to see it as well.
    #[inline]
    pub(crate) fn record(&mut self, record: &Record<'_>, stamp: i64) -> bool {
        self.records += 1;
        widen(&mut self.span, stamp);
        if let Some(hook) = record.hook() {
            widen(&mut self.kernel_span, stamp);
            // A session's header is looked at as well.
            return hook == 0 || kernel::is_looked_at(hook);
        }
        let Some(header) = record.event() else {
            self.payloads.learn(record);
            return images::is_identity(record);
        };
        let Seen { kinds, admission, activities, payloads, .. } = self;
        look(kinds, admission, activities, payloads, record, &header, stamp);
        let clr = clr::rundown_of(header.provider).is_some();
        let thread = self.threads.get_mut(header.thread_id as usize & (THREADS - 1));
        // Whose thread it is counts only once, but it does no harm to say it again.
        let known = thread.is_some_and(|t| t.replace(header.thread_id) == Some(header.thread_id));
        clr || !known || header.flags.has(EventFlags::EXTENDED_INFO)
    }
}

/// Takes in an event.
#[inline]
pub(super) fn look(
    kinds: &mut Kinds,
    admission: &mut Admission,
    activities: &mut Activities,
    payloads: &mut Payloads,
    record: &Record<'_>,
    header: &EventHeader,
    stamp: i64,
) {
    let mut related = None;
    if header.flags.has(EventFlags::EXTENDED_INFO) {
        for item in record.extended() {
            if let ExtendedItem::RelatedActivity(parent) = item {
                related = Some(parent);
            }
        }
    }
    activities.event(header, related, stamp);
    let Some(kind) = kinds.of(record, header, admission, payloads) else { return };
    admission.count(kind.place, stamp);
    if kind.tells {
        admission.learn(record, header, stamp);
    }
    payloads.event(record, header, kind, stamp);
}
