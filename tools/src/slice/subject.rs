//! Whom a record is about: its process and thread, from its header or its payload.
//!
//! Kernel events name them in their payloads: the header of a thread's end names the thread that
//! ended it, a sample has none at all. Layouts are those of the kernel's MOF classes.

use std::collections::HashMap;

use etl_format::Guid;
use etl_format::constants::{PointerSize, group_guid};
use etl_format::cursor::{Bytes, Cursor};
use etl_format::read::{Header, Record};

/// "Not known" in some headers.
const NONE: u32 = u32::MAX;

/// Threads whose process is kept in mind.
const MOST_THREADS: usize = 1 << 20;

/// Up to two processes and threads: a context switch is about two threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    processes: [Option<u32>; 2],
    threads: [Option<u32>; 2],
}

impl Subject {
    /// The processes.
    pub fn processes(&self) -> impl Iterator<Item = u32> + use<> {
        self.processes.into_iter().flatten()
    }

    /// The threads.
    pub fn threads(&self) -> impl Iterator<Item = u32> + use<> {
        self.threads.into_iter().flatten()
    }
}

/// A kernel event, in whichever form it was recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel<'a> {
    /// Group and type.
    pub hook: u16,
    payload: &'a [u8],
    wide: bool,
}

impl<'a> Kernel<'a> {
    pub fn of(record: &Record<'a>) -> Option<Self> {
        let hook = match record.hook() {
            Some(hook) => hook,
            // The same events as classic ones, as some relogged traces have them.
            None => match record.header() {
                Header::Full(h) => u16::from(group_of(h.class)?) << 8 | u16::from(h.opcode),
                _ => return None,
            },
        };
        let wide = record.pointer_size() != Some(PointerSize::P4);
        Some(Kernel { hook, payload: record.payload(), wide })
    }

    pub fn group(&self) -> u8 {
        (self.hook >> 8) as u8
    }

    /// A 32-bit field behind some pointers and bytes.
    fn u32_at(&self, pointers: usize, bytes: usize) -> Option<u32> {
        self.payload.u32_at(pointers * if self.wide { 8 } else { 4 } + bytes)
    }

    /// The event, process and thread that a stack belongs to.
    pub fn stack_of(&self) -> Option<(i64, u32, u32)> {
        match self.hook {
            0x1820 | 0x1825 | 0x1826 => {
                Some((self.payload.i64_at(0)?, self.payload.u32_at(8)?, self.payload.u32_at(12)?))
            }
            _ => None,
        }
    }

    /// The key by which a stack is told.
    pub fn stack_key(&self) -> Option<u64> {
        let mut c = Cursor::new(self.payload);
        if matches!(self.hook, 0x1825 | 0x1826) {
            c.take(16)?;
        }
        if self.wide { c.u64() } else { c.u32().map(u64::from) }
    }

    /// The thread and process that a thread event tells of.
    fn thread(&self) -> Option<(u32, u32)> {
        match self.hook {
            0x0501..=0x0504 | 0x0548 => Some((self.u32_at(0, 4)?, self.u32_at(0, 0)?)),
            _ => None,
        }
    }
}

/// The kernel group that is shown under a class.
fn group_of(class: Guid) -> Option<u8> {
    (0..0x20).find(|&group| group_guid(group) == Some(class))
}

/// Which thread is whose, as far as the trace has told.
#[derive(Debug, Default)]
pub(super) struct Threads {
    now: HashMap<u32, u32>,
}

impl Threads {
    /// Takes in what a record tells of its thread. Returns the thread and process if an event's
    /// header told of a thread that nothing had told of before.
    pub fn learn(
        &mut self,
        record: &Record<'_>,
        kernel: Option<&Kernel<'_>>,
    ) -> Option<(u32, u32)> {
        if let Some((thread, process)) = kernel.and_then(Kernel::thread) {
            let starts = kernel.is_some_and(|k| matches!(k.hook, 0x0501 | 0x0502));
            let room = self.now.len() < MOST_THREADS;
            match self.now.get_mut(&thread) {
                Some(known) if starts => *known = process,
                None if room => {
                    self.now.insert(thread, process);
                }
                _ => {}
            }
            return None;
        }
        if !record.is_event() {
            return None;
        }
        let (thread, process) = (record.thread_id()?, record.process_id()?);
        if self.now.len() >= MOST_THREADS || self.now.contains_key(&thread) {
            return None;
        }
        self.now.insert(thread, process);
        Some((thread, process))
    }

    pub fn subject(&self, record: &Record<'_>, kernel: Option<&Kernel<'_>>) -> Subject {
        let mut subject = Subject::default();
        let Some(kernel) = kernel else {
            subject.processes = [told(record.process_id()), None];
            subject.threads = [told(record.thread_id()), None];
            if subject.processes == [None; 2] {
                self.add_processes(&mut subject);
            }
            return subject;
        };
        let own = [told(record.thread_id()), None];
        match kernel.hook {
            0x0301..=0x0304 | 0x0327 => subject.processes = [kernel.u32_at(1, 0), None],
            0x030a | 0x1402..=0x1404 => subject.processes = [kernel.u32_at(2, 0), None],
            0x0501..=0x0504 | 0x0548 => {
                if let Some((thread, process)) = kernel.thread() {
                    (subject.processes, subject.threads) =
                        ([Some(process), None], [Some(thread), None]);
                }
            }
            0x0524 => subject.threads = [kernel.u32_at(0, 0), kernel.u32_at(0, 4)],
            0x0532 => subject.threads = [kernel.u32_at(0, 0), None],
            0x0f2e => subject.threads = [kernel.u32_at(1, 0), None],
            0x1820 | 0x1825 | 0x1826 => {
                if let Some((_, process, thread)) = kernel.stack_of() {
                    (subject.processes, subject.threads) =
                        ([Some(process), None], [Some(thread), None]);
                }
            }
            // Who caused the access, and not in whose time it ended.
            0x010a | 0x010b => {
                let issuer = kernel.u32_at(2, 32);
                subject.threads = if issuer.is_some() { [issuer, None] } else { own };
            }
            0x010c | 0x010d | 0x010f => {
                let issuer = kernel.u32_at(1, 0);
                subject.threads = if issuer.is_some() { [issuer, None] } else { own };
            }
            // Told in the name of whoever asked for the rundown.
            0x1822..=0x1824 | 0x0424 | 0x0918 | 0x0919 => return subject,
            0x0220 => subject.threads = [kernel.u32_at(2, 16), None],
            0x0262 | 0x0263 => subject.processes = [kernel.u32_at(2, 0), None],
            _ => {
                subject.processes = [told(record.process_id()), None];
                subject.threads = own;
            }
        }
        if subject.processes == [None; 2] {
            self.add_processes(&mut subject);
        }
        subject
    }

    /// The processes of the threads.
    fn add_processes(&self, subject: &mut Subject) {
        for (process, thread) in subject.processes.iter_mut().zip(subject.threads) {
            // Thread 0 is the idle one of every processor.
            *process =
                thread.and_then(|t| if t == 0 { Some(0) } else { self.now.get(&t).copied() });
        }
    }
}

fn told(id: Option<u32>) -> Option<u32> {
    id.filter(|id| *id != NONE)
}
