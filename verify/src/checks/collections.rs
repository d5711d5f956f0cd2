//! Garbage collections: their numbers, starts and ends, and the suspensions around them.

use std::collections::BTreeMap;

use etl_format::cursor::Bytes;
use etl_format::read::EventHeader;
use etl_schema::providers::CLR_RUNTIME;
use foldhash::HashMap;

use etl_analysis::machine::Counted;

const START: u16 = 1;
const END: u16 = 2;
const RESTARTED: u16 = 3;
const SUSPEND: u16 = 9;

/// The type of a collection that runs beside the process and other collections.
const BACKGROUND: u32 = 1;

/// What is missing of the collections of a CLR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collections {
    /// Numbers that no start event has, between those that have one.
    pub skipped: Counted,
    /// Starts with another start, and no end, after them.
    pub unended: Counted,
    /// Suspensions with another one, and no restart, after them.
    pub unrestarted: Counted,
    /// Number and timestamp of the last start.
    last: Option<(u32, i64)>,
    /// The same of a start whose end has to come before the next start.
    open: Option<(u32, i64)>,
    /// Restarts so far.
    restarts: u64,
}

/// A suspension by a thread.
#[derive(Clone, Copy, Debug)]
struct Suspension {
    instance: u16,
    timestamp: i64,
    /// Restarts of its CLR before it.
    restarts: u64,
}

/// The collections of all CLRs.
#[derive(Clone, Debug, Default)]
pub struct Collectors {
    /// By process id and CLR.
    clrs: BTreeMap<(u32, u16), Collections>,
    /// The last suspension by each thread.
    threads: HashMap<(u32, u32), Suspension>,
}

impl Collectors {
    /// CLRs, and threads that suspend, that are kept.
    const MAX: usize = 1 << 16;

    /// Whether an event is about collections.
    pub fn concern(header: &EventHeader) -> bool {
        let id = header.descriptor.id;
        header.provider == CLR_RUNTIME && [START, END, RESTARTED, SUSPEND].contains(&id)
    }

    /// Adds an event that they [`concern`](Self::concern).
    #[inline(never)]
    pub fn event(&mut self, header: &EventHeader, payload: &[u8], timestamp: i64) {
        let descriptor = header.descriptor;
        let (id, is_first_version) = (descriptor.id, descriptor.version == 0);
        let at = match id {
            START => 16,
            END | SUSPEND => 8,
            _ => 0,
        };
        let instance = if is_first_version { Some(0) } else { payload.u16_at(at) };
        let Some(instance) = instance else { return };
        let clr = (header.process_id, instance);
        if self.clrs.len() >= Self::MAX && !self.clrs.contains_key(&clr) {
            return;
        }
        let known = self.clrs.entry(clr).or_default();
        match (id, payload.u32_at(0)) {
            (START, Some(number)) => {
                // The first version does not state the type.
                let is_beside = is_first_version || payload.u32_at(12) == Some(BACKGROUND);
                known.start(number, is_beside, timestamp);
            }
            (END, Some(number)) => known.end(number),
            (RESTARTED, _) => known.restarts += 1,
            (SUSPEND, _) => self.suspend(header.thread_id, clr, timestamp),
            _ => {}
        }
    }

    fn suspend(&mut self, tid: u32, (pid, instance): (u32, u16), timestamp: i64) {
        let Some(known) = self.clrs.get_mut(&(pid, instance)) else { return };
        let thread = (pid, tid);
        let now = Suspension { instance, timestamp, restarts: known.restarts };
        let before = self.threads.get(&thread).copied();
        // The thread itself waits for the restart.
        let unrestarted = before.filter(|b| b.instance == instance && b.restarts == known.restarts);
        if let Some(before) = unrestarted {
            known.unrestarted.add(before.timestamp);
        }
        if before.is_some() || self.threads.len() < Self::MAX {
            self.threads.insert(thread, now);
        }
    }

    /// The collections of each CLR, by process id and instance.
    pub fn all(&self) -> impl Iterator<Item = ((u32, u16), &Collections)> {
        self.clrs.iter().map(|(&clr, collections)| (clr, collections))
    }
}

impl Collections {
    fn start(&mut self, number: u32, is_beside: bool, timestamp: i64) {
        let last = self.last.replace((number, timestamp));
        // A number that is not larger is that of another process, or of another session's event.
        let Some((before, at)) = last.filter(|(before, _)| *before < number) else {
            if last.is_none_or(|(before, _)| before != number) {
                self.open = (!is_beside).then_some((number, timestamp));
            }
            return;
        };
        let skipped = u64::from(number - before - 1);
        if skipped > 0 {
            self.skipped.count += skipped;
            self.skipped.first.get_or_insert(at);
        }
        if let Some((_, started)) = self.open.take() {
            self.unended.add(started);
        }
        self.open = (!is_beside).then_some((number, timestamp));
    }

    fn end(&mut self, number: u32) {
        if self.open.is_some_and(|(open, _)| open == number) {
            self.open = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_counts_skipped_numbers_and_starts_without_end() {
        let mut clr = Collections::default();
        // The first one may have any number; those beside may end later.
        clr.start(7, false, 10);
        clr.end(7);
        clr.start(8, true, 20);
        clr.start(9, false, 30);
        clr.end(9);
        clr.start(10, false, 40);
        clr.end(8);
        assert_eq!((clr.skipped.count, clr.unended.count), (0, 0));
        clr.start(11, false, 50);
        assert_eq!(clr.unended, Counted { count: 1, first: Some(40) });
        clr.end(11);
        clr.start(14, false, 60);
        assert_eq!(clr.skipped, Counted { count: 2, first: Some(50) });
        assert_eq!(clr.unended.count, 1);
    }

    #[test]
    fn start_knows_doubled_events_and_new_processes() {
        let mut clr = Collections::default();
        clr.start(7, false, 10);
        clr.start(7, false, 10);
        clr.end(7);
        clr.end(7);
        clr.start(8, false, 20);
        // The process ended, and another one has its id.
        clr.start(1, false, 30);
        clr.end(1);
        clr.start(2, false, 40);
        assert_eq!((clr.skipped.count, clr.unended.count), (0, 0));
    }

    #[test]
    fn suspend_expects_a_restart_before_the_thread_suspends_again() {
        let mut all = Collectors::default();
        let restart = |all: &mut Collectors| {
            all.clrs.entry((1, 0)).or_default().restarts += 1;
        };
        all.clrs.entry((1, 0)).or_default();
        // Two threads want to suspend; the second waits for the first.
        all.suspend(10, (1, 0), 100);
        all.suspend(11, (1, 0), 101);
        restart(&mut all);
        restart(&mut all);
        all.suspend(10, (1, 0), 200);
        restart(&mut all);
        all.suspend(10, (1, 0), 300);
        assert_eq!(all.clrs[&(1, 0)].unrestarted.count, 0);
        all.suspend(10, (1, 0), 400);
        assert_eq!(all.clrs[&(1, 0)].unrestarted, Counted { count: 1, first: Some(300) });
    }
}
