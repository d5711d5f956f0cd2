//! Kernel events, in whichever form they are recorded: their hooks, and the fields that name
//! processes, threads and stacks.
//!
//! Source: the kernel's MOF classes.

use etl_format::Guid;
use etl_format::constants::{PointerSize, group_guid};
use etl_format::cursor::{Bytes, Cursor};
use etl_format::read::{Header, Record};

/// Group and type of kernel events.
pub(super) mod hook {
    pub const DISK_READ: u16 = 0x010a;
    pub const DISK_WRITE: u16 = 0x010b;
    pub const DISK_READ_INIT: u16 = 0x010c;
    pub const DISK_WRITE_INIT: u16 = 0x010d;
    pub const DISK_FLUSH_INIT: u16 = 0x010f;
    pub const HARD_FAULT: u16 = 0x0220;
    pub const VIRTUAL_ALLOC: u16 = 0x0262;
    pub const VIRTUAL_FREE: u16 = 0x0263;
    pub const PROCESS_START: u16 = 0x0301;
    pub const PROCESS_DC_END: u16 = 0x0304;
    /// A loaded image, as older systems record it.
    pub const PROCESS_IMAGE: u16 = 0x030a;
    pub const PROCESS_DEFUNCT: u16 = 0x0327;
    pub const FILE_NAME: u16 = 0x0400;
    pub const FILE_CREATE: u16 = 0x0420;
    pub const FILE_DELETE: u16 = 0x0423;
    pub const FILE_RUNDOWN: u16 = 0x0424;
    pub const THREAD_START: u16 = 0x0501;
    pub const THREAD_END: u16 = 0x0502;
    pub const THREAD_DC_END: u16 = 0x0504;
    pub const CONTEXT_SWITCH: u16 = 0x0524;
    pub const READY_THREAD: u16 = 0x0532;
    pub const THREAD_NAME: u16 = 0x0548;
    /// Control blocks of registry keys: created, deleted, and their rundowns.
    pub const KCB_CREATE: u16 = 0x0916;
    pub const KCB_RUNDOWN_BEGIN: u16 = 0x0918;
    pub const KCB_RUNDOWN_END: u16 = 0x0919;
    pub const SAMPLE: u16 = 0x0f2e;
    pub const SAMPLE_INTERVAL_SET: u16 = 0x0f48;
    pub const SAMPLE_INTERVAL_DC_END: u16 = 0x0f4a;
    pub const IMAGE_UNLOAD: u16 = 0x1402;
    pub const IMAGE_DC_END: u16 = 0x1404;
    pub const KERNEL_IMAGE_BASE: u16 = 0x1421;
    pub const HYPERCALL_PAGE: u16 = 0x1422;
    pub const STACK_WALK: u16 = 0x1820;
    /// Frames of stack keys: created, deleted, and their rundown.
    pub const STACK_KEY_CREATE: u16 = 0x1822;
    pub const STACK_KEY_RUNDOWN: u16 = 0x1824;
    pub const STACK_WALK_KEY_KERNEL: u16 = 0x1825;
    pub const STACK_WALK_KEY_USER: u16 = 0x1826;
}

/// Groups of kernel events.
pub(super) mod group {
    pub const DISK: u8 = 0x01;
    pub const MEMORY: u8 = 0x02;
    pub const FILE: u8 = 0x04;
    pub const THREAD: u8 = 0x05;
    pub const REGISTRY: u8 = 0x09;
}

/// A kernel event.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelEvent<'a> {
    /// Group and type.
    pub hook: u16,
    payload: &'a [u8],
    pointer: usize,
}

/// The event that a stack belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackOwner {
    pub timestamp: i64,
    pub process: u32,
    pub thread: u32,
}

impl<'a> KernelEvent<'a> {
    pub fn of(record: &Record<'a>) -> Option<Self> {
        let hook = match record.hook() {
            Some(hook) => hook,
            // Some relogged traces have kernel events as classic events.
            None => match record.header() {
                Header::Full(h) => u16::from(group_of(h.class)?) << 8 | u16::from(h.opcode),
                _ => return None,
            },
        };
        let pointer = record.pointer_size().unwrap_or(PointerSize::P8).bytes();
        Some(KernelEvent { hook, payload: record.payload(), pointer })
    }

    pub fn group(&self) -> u8 {
        (self.hook >> 8) as u8
    }

    /// A 32-bit field after some pointers and bytes.
    pub fn u32_after(&self, pointers: usize, bytes: usize) -> Option<u32> {
        self.payload.u32_at(pointers * self.pointer + bytes)
    }

    /// The event that this stack belongs to.
    pub fn stack_owner(&self) -> Option<StackOwner> {
        match self.hook {
            hook::STACK_WALK | hook::STACK_WALK_KEY_KERNEL | hook::STACK_WALK_KEY_USER => {
                Some(StackOwner {
                    timestamp: self.payload.i64_at(0)?,
                    process: self.payload.u32_at(8)?,
                    thread: self.payload.u32_at(12)?,
                })
            }
            _ => None,
        }
    }

    /// The key of a stack that is recorded by key, or of the frames of a key.
    pub fn stack_key(&self) -> Option<u64> {
        let mut c = Cursor::new(self.payload);
        match self.hook {
            hook::STACK_WALK_KEY_KERNEL | hook::STACK_WALK_KEY_USER => {
                c.take(16)?;
            }
            hook::STACK_KEY_CREATE..=hook::STACK_KEY_RUNDOWN => {}
            _ => return None,
        }
        if self.pointer == 8 { c.u64() } else { c.u32().map(u64::from) }
    }

    /// The thread and process of a thread event.
    pub fn thread(&self) -> Option<(u32, u32)> {
        match self.hook {
            hook::THREAD_START..=hook::THREAD_DC_END | hook::THREAD_NAME => {
                Some((self.u32_after(0, 4)?, self.u32_after(0, 0)?))
            }
            _ => None,
        }
    }
}

/// The kernel group whose classic events have this class.
fn group_of(class: Guid) -> Option<u8> {
    (0..0x20).find(|&group| group_guid(group) == Some(class))
}
