//! Threads: their processes over time, and their names.

use etl_format::{ProcessId, ThreadId, Ticks};
use foldhash::HashMap;

/// Threads that are listed; of later ones only the current process is known.
const MAX_THREADS: usize = 1 << 20;

/// A thread of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thread {
    /// Its id. A new thread may have the id of an ended one.
    pub tid: ThreadId,
    /// Id of its process.
    pub pid: ProcessId,
    /// Time of its start; `None` if it was there when the recording began, or the recording has no
    /// thread events.
    pub started: Option<Ticks>,
    /// Time of its end; `None` if the recording does not show it.
    pub ended: Option<Ticks>,
    /// Address at which its own code begins; 0 if no event states it.
    pub start_address: u64,
    /// Its name; empty if no event states it, or names are not kept.
    pub name: Box<str>,
}

/// The process of a thread, and its index in the list.
#[derive(Clone, Copy, Debug)]
struct Current {
    pid: ProcessId,
    index: u32,
    /// Whether the kernel listed it, or showed its start.
    listed: bool,
}

/// All threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Threads {
    now: HashMap<ThreadId, Current>,
    list: Vec<Thread>,
}

impl Threads {
    /// Id of the process that a thread belongs to now.
    #[inline]
    pub fn pid_of(&self, tid: ThreadId) -> Option<ProcessId> {
        self.now.get(&tid).map(|current| current.pid)
    }

    /// An event names a thread and its process: adds the thread if it is not known.
    pub fn seen(&mut self, tid: ThreadId, pid: ProcessId) {
        if !self.now.contains_key(&tid) {
            self.begin(tid, pid, None);
        }
    }

    /// A list of the kernel names a thread and its process. Returns whether an event named another
    /// process before, of an earlier thread with this id.
    pub fn listed(&mut self, tid: ThreadId, pid: ProcessId) -> bool {
        let is_other = self.pid_of(tid).is_some_and(|known| known != pid);
        if is_other {
            self.begin(tid, pid, None);
        }
        self.seen(tid, pid);
        if let Some(now) = self.now.get_mut(&tid) {
            now.listed = true;
        }
        is_other
    }

    /// A thread starts.
    pub fn start(&mut self, tid: ThreadId, pid: ProcessId, time: Ticks) {
        self.begin(tid, pid, Some(time));
    }

    /// A thread ends. Its process stays known, for events that are logged after the end. Returns
    /// whether the kernel had listed the thread, or shown its start.
    pub fn end(&mut self, tid: ThreadId, pid: ProcessId, time: Ticks) -> bool {
        let mut is_listed = false;
        match self.now.get(&tid) {
            Some(now) if now.pid == pid => is_listed = now.listed,
            _ => self.begin(tid, pid, None),
        }
        if let Some(thread) = self.current(tid) {
            thread.ended = Some(time);
        }
        is_listed
    }

    /// Keeps what an event states of a thread in addition to its process.
    pub fn describe(&mut self, tid: ThreadId, start_address: u64, name: Option<Box<str>>) {
        let Some(thread) = self.current(tid) else {
            return;
        };
        if start_address != 0 {
            thread.start_address = start_address;
        }
        if let Some(name) = name {
            thread.name = name;
        }
    }

    fn begin(&mut self, tid: ThreadId, pid: ProcessId, started: Option<Ticks>) {
        let mut index = u32::MAX;
        if self.list.len() < MAX_THREADS {
            index = self.list.len() as u32;
            self.list.push(Thread {
                tid,
                pid,
                started,
                ended: None,
                start_address: 0,
                name: Box::default(),
            });
        }
        self.now.insert(
            tid,
            Current {
                pid,
                index,
                listed: started.is_some(),
            },
        );
    }

    fn current(&mut self, tid: ThreadId) -> Option<&mut Thread> {
        self.list.get_mut(self.now.get(&tid)?.index as usize)
    }

    /// All threads, in the order in which they appeared.
    pub fn list(&self) -> &[Thread] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(id: u32) -> ThreadId {
        ThreadId::new(id)
    }

    fn process(id: u32) -> ProcessId {
        ProcessId::new(id)
    }

    fn at(ticks: i64) -> Ticks {
        Ticks::new(ticks)
    }

    #[test]
    fn an_id_passes_from_one_thread_to_the_next() {
        let mut threads = Threads::default();
        threads.seen(thread(8), process(100));
        threads.seen(thread(8), process(200));
        assert_eq!(
            threads.pid_of(thread(8)),
            Some(process(100)),
            "the first event counts"
        );
        threads.end(thread(8), process(100), at(50));
        threads.start(thread(8), process(300), at(60));
        threads.describe(thread(8), 0x1000, Some("worker".into()));
        assert_eq!(
            (threads.pid_of(thread(8)), threads.pid_of(thread(9))),
            (Some(process(300)), None)
        );
        let spans: Vec<_> = threads
            .list()
            .iter()
            .map(|t| (t.pid, t.started, t.ended))
            .collect();
        assert_eq!(
            spans,
            [
                (process(100), None, Some(at(50))),
                (process(300), Some(at(60)), None)
            ]
        );
        assert_eq!(&*threads.list()[1].name, "worker");
    }

    #[test]
    fn a_list_knows_better_than_an_earlier_event() {
        let mut threads = Threads::default();
        threads.seen(thread(8), process(100));
        assert!(
            threads.listed(thread(8), process(200))
                && !threads.listed(thread(8), process(200))
                && !threads.listed(thread(9), process(200))
        );
        assert_eq!(threads.pid_of(thread(8)), Some(process(200)));
        assert!(
            threads.end(thread(8), process(200), at(50))
                && !threads.end(thread(10), process(200), at(50))
        );
    }

    #[test]
    fn an_end_names_the_process_of_an_unknown_thread() {
        let mut threads = Threads::default();
        threads.end(thread(8), process(100), at(50));
        assert_eq!(
            (threads.pid_of(thread(8)), threads.list()[0].ended),
            (Some(process(100)), Some(at(50)))
        );
    }
}
