//! Kernel events, in whichever form they are recorded.

use etl_format::read::Record;
use etl_format::{ProcessId, ThreadId, Ticks};
use etl_schema::views::kernel::{Event, Fields, hook_of};

/// Groups of kernel events: the high byte of their hooks.
pub(super) mod group {
    pub const DISK: u8 = 0x01;
    pub const MEMORY: u8 = 0x02;
    pub const FILE: u8 = 0x04;
    pub const THREAD: u8 = 0x05;
    pub const REGISTRY: u8 = 0x09;
    pub const STACK: u8 = 0x18;
}

/// A kernel event.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelEvent<'a> {
    /// Group and type.
    pub hook: u16,
    /// Its fields, for events that have a view.
    pub fields: Option<Fields<'a>>,
}

/// The event that a stack belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackOwner {
    pub timestamp: Ticks,
    pub thread: ThreadId,
}

/// A thread and its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadProcess {
    pub thread: ThreadId,
    pub process: ProcessId,
}

impl<'a> KernelEvent<'a> {
    pub fn of(record: &Record<'a>) -> Option<Self> {
        let hook = hook_of(record)?;
        Some(KernelEvent {
            hook,
            fields: Fields::of(record, hook),
        })
    }

    pub fn group(&self) -> u8 {
        (self.hook >> 8) as u8
    }

    /// The decoded event, if it is one of this group.
    fn event_of(&self, group: u8) -> Option<Event<'a>> {
        if self.group() == group {
            self.fields?.event()
        } else {
            None
        }
    }

    /// The event that this stack belongs to.
    pub fn stack_owner(&self) -> Option<StackOwner> {
        match self.event_of(group::STACK)? {
            Event::Stack { at, tid, .. } | Event::StackKey { at, tid, .. } => Some(StackOwner {
                timestamp: Ticks::new(at),
                thread: ThreadId::new(tid),
            }),
            _ => None,
        }
    }

    /// The key of a stack that is recorded by key, or of the frames of a key.
    pub fn stack_key(&self) -> Option<u64> {
        match self.event_of(group::STACK)? {
            Event::StackKey { key, .. } | Event::StackDefinition { key, .. } => Some(key),
            _ => None,
        }
    }

    /// The thread of a thread event.
    pub fn thread(&self) -> Option<ThreadProcess> {
        match self.event_of(group::THREAD)? {
            Event::Thread(_, thread) | Event::ThreadName(thread) => Some(ThreadProcess {
                thread: ThreadId::new(thread.tid),
                process: ProcessId::new(thread.pid),
            }),
            _ => None,
        }
    }
}
