//! The context switches of `dotnet-trace collect-linux`, as the kernel of Windows records them.
//!
//! An event `cswitch` is about a thread that did not run for some time: its timestamp is when the
//! thread left its processor, its value how many ticks later it ran again, and its stack where it
//! was. The kernel of Windows has a record at both times, and the stack of the second.

use std::collections::BTreeMap;

use etl_format::constants::{PointerSize, hook};
use etl_format::write::record::PerfInfo;
use etl_format::write::{Output, Session};
use etl_format::{Result, Ticks};
use foldhash::{HashMap, HashMapExt as _};

/// Threads that are away at one time. Others have no context switches.
const MAX_AWAY: usize = 1 << 16;
/// Addresses of the stacks of these threads. Other stacks are only in their events.
const MAX_ADDRESSES: usize = 1 << 20;
/// The longest stack of a record.
const MAX_STACK: usize = 4096;
/// The thread of idle processors.
const IDLE: u32 = 0;
/// The state of a thread that waits.
const WAITING: u8 = 5;
/// The reason of a wait. The stream has none, and no reason of Windows has this number.
const UNKNOWN_REASON: u8 = 0xff;

/// A thread that does not run for some time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Absence<'a> {
    pub process: u32,
    pub thread: u32,
    pub processor: u16,
    /// When it left its processor.
    pub from: Ticks,
    /// When it ran again.
    pub until: Ticks,
    /// Where it was, innermost first.
    pub stack: &'a [u64],
}

/// When a thread runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReturnKey {
    time: Ticks,
    thread: u32,
}

/// A thread that runs again later.
#[derive(Debug)]
struct Return {
    process: u32,
    processor: u16,
    stack: Vec<u64>,
}

/// Writes context switches. The returns of threads wait until the events before them are written.
#[derive(Debug)]
pub(super) struct Switches {
    pointer_size: PointerSize,
    returns: BTreeMap<ReturnKey, Return>,
    /// When each thread that is away returns.
    away: HashMap<u32, Ticks>,
    /// Addresses of the stacks of `returns`.
    addresses: usize,
    /// The time of the latest record.
    latest: Ticks,
    payload: Vec<u8>,
}

impl Switches {
    /// No context switches yet.
    pub fn new(pointer_size: PointerSize) -> Self {
        Switches {
            pointer_size,
            returns: BTreeMap::new(),
            away: HashMap::new(),
            addresses: 0,
            latest: Ticks::MIN,
            payload: Vec::new(),
        }
    }

    /// The time of the latest context switch.
    pub fn latest(&self) -> Ticks {
        self.latest
    }

    /// A thread leaves its processor, after all records before this time.
    pub fn leave<O: Output>(
        &mut self,
        session: &mut Session<O>,
        absence: &Absence<'_>,
    ) -> Result<()> {
        let &Absence {
            thread,
            processor,
            from,
            until,
            ..
        } = absence;
        if thread == IDLE || until < from {
            return Ok(());
        }
        match self.away.get(&thread) {
            // It ran for less than a tick.
            Some(&time) if time <= from => {
                self.return_thread(session, ReturnKey { time, thread })?
            }
            // A thread cannot leave twice.
            Some(_) => return Ok(()),
            None if self.away.len() >= MAX_AWAY => return Ok(()),
            None => {}
        }
        self.switch(session, processor, from, thread, IDLE)?;
        let mut stack = Vec::new();
        let addresses = self.addresses + absence.stack.len();
        if absence.stack.len() <= MAX_STACK && addresses <= MAX_ADDRESSES {
            stack.extend_from_slice(absence.stack);
            self.addresses = addresses;
        }
        let key = ReturnKey {
            time: until,
            thread,
        };
        let returning = Return {
            process: absence.process,
            processor,
            stack,
        };
        self.away.insert(thread, until);
        self.returns.insert(key, returning);
        Ok(())
    }

    /// Threads that return before a time run again.
    pub fn return_before<O: Output>(
        &mut self,
        session: &mut Session<O>,
        time: Ticks,
    ) -> Result<()> {
        while let Some((&key, _)) = self.returns.first_key_value()
            && key.time < time
        {
            self.return_thread(session, key)?;
        }
        Ok(())
    }

    /// All threads run again.
    pub fn return_all<O: Output>(&mut self, session: &mut Session<O>) -> Result<()> {
        while let Some((&key, _)) = self.returns.first_key_value() {
            self.return_thread(session, key)?;
        }
        Ok(())
    }

    /// A thread runs again.
    fn return_thread<O: Output>(&mut self, session: &mut Session<O>, key: ReturnKey) -> Result<()> {
        self.away.remove(&key.thread);
        let Some(returning) = self.returns.remove(&key) else {
            return Ok(());
        };
        self.addresses -= returning.stack.len();
        let ReturnKey { time, thread } = key;
        self.switch(session, returning.processor, time, IDLE, thread)?;
        if returning.stack.is_empty() {
            return Ok(());
        }
        self.stack(session, key, &returning)
    }

    /// Writes a context switch from one thread to another.
    fn switch<O: Output>(
        &mut self,
        session: &mut Session<O>,
        processor: u16,
        time: Ticks,
        old: u32,
        new: u32,
    ) -> Result<()> {
        self.payload.clear();
        self.payload.extend(new.to_le_bytes());
        self.payload.extend(old.to_le_bytes());
        // Priorities of both threads, state of the processor, spare.
        self.payload.extend([0; 4]);
        // Reason and mode of the wait, state, ideal processor.
        self.payload.extend([UNKNOWN_REASON, 0, WAITING, 0]);
        // Wait time of the new thread, reserved.
        self.payload.extend([0; 8]);
        self.write(session, processor, hook::CSWITCH, time)
    }

    /// Writes the stack of a thread that runs again.
    fn stack<O: Output>(
        &mut self,
        session: &mut Session<O>,
        key: ReturnKey,
        returning: &Return,
    ) -> Result<()> {
        self.payload.clear();
        self.payload.extend(key.time.get().to_le_bytes());
        self.payload.extend(returning.process.to_le_bytes());
        self.payload.extend(key.thread.to_le_bytes());
        for address in &returning.stack {
            match self.pointer_size {
                PointerSize::P4 => self.payload.extend((*address as u32).to_le_bytes()),
                PointerSize::P8 => self.payload.extend(address.to_le_bytes()),
            }
        }
        self.write(session, returning.processor, hook::STACK, key.time)
    }

    fn write<O: Output>(
        &mut self,
        session: &mut Session<O>,
        processor: u16,
        hook: u16,
        time: Ticks,
    ) -> Result<()> {
        self.latest = self.latest.max(time);
        let record = PerfInfo::new(hook, time)
            .pointer_size(self.pointer_size)
            .payload(&self.payload);
        session.write(processor, &record)
    }
}

#[cfg(test)]
mod tests {
    use etl_format::FileHeader;
    use etl_format::read::{Options, Order, Trace};

    use super::*;

    fn absence(thread: u32, from: i64, until: i64) -> Absence<'static> {
        Absence {
            process: 7,
            thread,
            processor: 0,
            from: Ticks::new(from),
            until: Ticks::new(until),
            stack: &[0x40_1000],
        }
    }

    /// Time, old and new thread of the context switches of these absences.
    fn switches(absences: &[Absence<'_>]) -> Vec<[i64; 3]> {
        let header = FileHeader::starting_at(etl_format::FileTime::default());
        let mut session = Session::in_memory(header).unwrap();
        let mut switches = Switches::new(PointerSize::P8);
        for absence in absences {
            switches.return_before(&mut session, absence.from).unwrap();
            switches.leave(&mut session, absence).unwrap();
        }
        switches.return_all(&mut session).unwrap();
        assert_eq!(switches.addresses, 0);
        assert!(switches.away.is_empty());
        let trace = session.finish().unwrap();
        let mut trace = Trace::open(trace.as_slice(), &Options::default()).unwrap();
        let mut records = trace.records(Order::Time).unwrap();
        let mut out = Vec::new();
        while let Some(record) = records.next_record().unwrap() {
            if record.hook() == Some(hook::CSWITCH) {
                let payload = record.payload();
                let new = u32::from_le_bytes(*payload.first_chunk().unwrap());
                let old = u32::from_le_bytes(*payload[4..].first_chunk().unwrap());
                out.push([record.timestamp().get(), old.into(), new.into()]);
            }
        }
        out
    }

    #[test]
    fn leave_returns_a_thread_that_leaves_again_at_once() {
        let found = switches(&[absence(5, 10, 20), absence(5, 20, 30)]);
        assert_eq!(found, [[10, 5, 0], [20, 0, 5], [20, 5, 0], [30, 0, 5]]);
    }

    #[test]
    fn leave_ignores_what_cannot_be() {
        // A thread that is away already, the idle thread, and an absence that ends before it began.
        let absences = [absence(5, 10, 20), absence(5, 12, 14), absence(0, 13, 14)];
        assert_eq!(switches(&absences), [[10, 5, 0], [20, 0, 5]]);
        assert!(switches(&[absence(6, 10, 9)]).is_empty());
    }
}
