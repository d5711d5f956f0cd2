//! What the machine needs of records, taken out of them.
//!
//! Looking at a record and following from it are two pieces of work: [`Scan`](crate::scan::Scan)
//! does the first and [`Machine`] the second, one after the other or on two threads. Of most
//! records the machine needs a few words, and only they go from one thread to the other; the other
//! records go as they are.

use etl_format::constants::PointerSize;
use etl_format::read::{Record, RecordBatch};

use crate::machine::Machine;
use crate::observe::{ClrSeen, StateObserver};

/// Who does what is to be done for a record: at once, or later and elsewhere.
pub(crate) trait Follow {
    /// A sample of what a processor was doing: the instruction pointer, and the thread that was
    /// running.
    fn sample(&mut self, address: u64, tid: u32, timestamp: i64);
    /// A thread is of a process.
    fn thread(&mut self, pid: u32, tid: u32, timestamp: i64);
    /// An event of the CLR of which no field matters.
    fn light(&mut self, light: Light, timestamp: i64);
    /// An event of the CLR whose payload has to be taken apart.
    fn clr(&mut self, head: ClrHead, payload: &[u8], timestamp: i64);
    /// Anything else.
    fn record(&mut self, record: &Record<'_>, timestamp: i64);
}

/// An event of the CLR of which no field matters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Light {
    pub head: ClrHead,
    /// Whether its payload is too short for its event.
    pub short: bool,
}

/// What matters of the header of an event of the CLR.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClrHead {
    pub pid: u32,
    pub tid: u32,
    /// Whether the process of the thread is known already.
    pub known: bool,
    pub id: u16,
    pub version: u8,
    /// Whether it is the rundown provider's.
    pub rundown: bool,
    /// Whether pointers have eight bytes.
    pub wide: bool,
}

impl ClrHead {
    /// The event as an observer sees it, as long as nothing else is known of it.
    #[inline]
    pub fn seen(self, time: i64) -> ClrSeen<'static> {
        let ClrHead { tid, rundown, id, version, .. } = self;
        ClrSeen {
            process: None,
            tid,
            rundown,
            id,
            version,
            time,
            stack: None,
            begun: false,
            payload: None,
            pointers: self.pointers(),
            exact: false,
        }
    }

    /// Width of pointers.
    pub fn pointers(self) -> PointerSize {
        if self.wide { PointerSize::P8 } else { PointerSize::P4 }
    }
}

/// A step, without what it borrows.
#[derive(Clone, Copy, Debug)]
enum Kept {
    Sample { address: u64, tid: u32 },
    Thread { pid: u32, tid: u32 },
    Light(Light),
    Clr(ClrHead, u32),
    Record,
}

/// Steps that are handed to another thread.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    kept: Vec<(i64, Kept)>,
    /// Payloads, one after the other.
    payloads: Vec<u8>,
    records: RecordBatch,
}

impl Follow for Steps {
    #[inline]
    fn sample(&mut self, address: u64, tid: u32, timestamp: i64) {
        self.kept.push((timestamp, Kept::Sample { address, tid }));
    }

    #[inline]
    fn thread(&mut self, pid: u32, tid: u32, timestamp: i64) {
        self.kept.push((timestamp, Kept::Thread { pid, tid }));
    }

    #[inline]
    fn light(&mut self, light: Light, timestamp: i64) {
        self.kept.push((timestamp, Kept::Light(light)));
    }

    #[inline]
    fn clr(&mut self, head: ClrHead, payload: &[u8], timestamp: i64) {
        self.payloads.extend_from_slice(payload);
        // It is a part of a record, of which none is longer.
        self.kept.push((timestamp, Kept::Clr(head, payload.len() as u32)));
    }

    #[inline]
    fn record(&mut self, record: &Record<'_>, timestamp: i64) {
        self.records.push(record);
        self.kept.push((timestamp, Kept::Record));
    }
}

impl Steps {
    /// How much memory the steps take, about.
    #[inline]
    pub fn bytes(&self) -> usize {
        size_of::<(i64, Kept)>() * self.kept.len() + self.payloads.len() + self.records.bytes()
    }

    /// Gives all steps to who does them.
    #[inline]
    pub fn follow(&self, to: &mut impl Follow) {
        let mut payloads = self.payloads.as_slice();
        let mut records = self.records.records();
        for &(timestamp, kept) in &self.kept {
            match kept {
                Kept::Sample { address, tid } => to.sample(address, tid, timestamp),
                Kept::Thread { pid, tid } => to.thread(pid, tid, timestamp),
                Kept::Light(light) => to.light(light, timestamp),
                Kept::Clr(head, len) => {
                    let parts = payloads.split_at_checked(len as usize);
                    let (payload, rest) = parts.unwrap_or_default();
                    payloads = rest;
                    to.clr(head, payload, timestamp);
                }
                Kept::Record => match records.next() {
                    Some(record) => to.record(&record, timestamp),
                    None => return,
                },
            }
        }
    }

    /// Forgets the steps and keeps the memory.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.payloads.clear();
        self.records.clear();
    }
}

/// Does at once what is to be done for the records of a file.
pub(crate) struct AtOnce<'m, O> {
    pub machine: &'m mut Machine,
    pub observer: &'m mut O,
    /// The file.
    pub source: usize,
}

impl<O: StateObserver> Follow for AtOnce<'_, O> {
    #[inline]
    fn sample(&mut self, address: u64, tid: u32, timestamp: i64) {
        self.machine.sample(address, tid, timestamp);
    }

    #[inline]
    fn thread(&mut self, pid: u32, tid: u32, _: i64) {
        self.machine.threads.seen(tid, pid);
    }

    #[inline]
    fn light(&mut self, light: Light, timestamp: i64) {
        self.machine.light(light, timestamp, self.observer);
    }

    #[inline]
    fn clr(&mut self, head: ClrHead, payload: &[u8], timestamp: i64) {
        if !head.known {
            self.machine.threads.seen(head.tid, head.pid);
        }
        self.machine.clr_event(&head, payload, None, timestamp, self.observer);
    }

    #[inline]
    fn record(&mut self, record: &Record<'_>, timestamp: i64) {
        self.machine.owners(record, timestamp, self.source, self.observer);
    }
}
