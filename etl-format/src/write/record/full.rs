//! FULL and INSTANCE records: classic (MOF) events, and classic events of an instance.

use byteorder::{LE, WriteBytesExt};

use super::Record;
use crate::constants::{PointerSize, RecordKind};
use crate::error::Result;
use crate::write::put::{marker, sized};
use crate::{Guid, ProcessId, ThreadId, Ticks};

/// `EVENT_TRACE_HEADER` and a payload.
///
/// | at | | at | |
/// |---|---|---|---|
/// | 00 | u16 size | 0c | u32 process |
/// | 02 | marker | 10 | i64 timestamp |
/// | 04 | u8 opcode | 18 | class GUID |
/// | 05 | u8 level | 28 | u32 kernel time |
/// | 06 | u16 version | 2c | u32 user time |
/// | 08 | u32 thread | 30 | payload |
///
/// ```
/// use etl_format::Guid;
/// use etl_format::write::record::{Full, Record};
///
/// let event = Full::new(Guid::new(1, 2, 3, [4; 8]), 10, 2_000).version(2).process(4, 8);
/// let mut bytes = Vec::new();
/// event.encode(&mut bytes)?;
/// assert_eq!((bytes.len(), bytes[4]), (0x30, 10), "the opcode is the fifth byte");
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Full<'a> {
    /// Width of pointers in the payload.
    pointer_size: PointerSize,
    /// Opcode ("type") of the event within its class.
    opcode: u8,
    /// Level.
    level: u8,
    /// Version of the payload.
    version: u16,
    /// Thread; all bits set if it is not known.
    thread_id: ThreadId,
    /// Process.
    process_id: ProcessId,
    /// Raw timestamp.
    timestamp: Ticks,
    /// Class of the event.
    class: Guid,
    /// Kernel time in timer ticks.
    kernel_time: u32,
    /// User time in timer ticks.
    user_time: u32,
    /// The bytes after the header.
    payload: &'a [u8],
}

impl<'a> Full<'a> {
    /// An event of a class, with a raw timestamp. Pointers have 64 bits, and everything else is 0
    /// or empty.
    #[must_use]
    pub fn new(class: Guid, opcode: u8, timestamp: impl Into<Ticks>) -> Self {
        Full {
            pointer_size: PointerSize::P8,
            opcode,
            level: 0,
            version: 0,
            thread_id: ThreadId::default(),
            process_id: ProcessId::default(),
            timestamp: timestamp.into(),
            class,
            kernel_time: 0,
            user_time: 0,
            payload: &[],
        }
    }

    /// Sets the width of pointers in the payload.
    #[must_use]
    pub fn pointer_size(mut self, pointer_size: PointerSize) -> Self {
        self.pointer_size = pointer_size;
        self
    }

    /// Sets the level.
    #[must_use]
    pub fn level(mut self, level: u8) -> Self {
        self.level = level;
        self
    }

    /// Sets the version of the payload.
    #[must_use]
    pub fn version(mut self, version: u16) -> Self {
        self.version = version;
        self
    }

    /// Sets process and thread. A thread id with all bits set means that the thread is not known.
    #[must_use]
    pub fn process(
        mut self,
        process_id: impl Into<ProcessId>,
        thread_id: impl Into<ThreadId>,
    ) -> Self {
        self.process_id = process_id.into();
        self.thread_id = thread_id.into();
        self
    }

    /// Sets the CPU times of the thread, in timer ticks.
    #[must_use]
    pub fn cpu_times(mut self, kernel_time: u32, user_time: u32) -> Self {
        self.kernel_time = kernel_time;
        self.user_time = user_time;
        self
    }

    /// Sets the bytes after the header.
    #[must_use]
    pub fn payload(mut self, payload: &'a [u8]) -> Self {
        self.payload = payload;
        self
    }

    /// Appends everything before the payload. The size is filled in later.
    fn head(&self, kind: RecordKind, out: &mut Vec<u8>) -> Result<()> {
        out.write_u16::<LE>(0)?;
        out.extend(marker(kind));
        out.push(self.opcode);
        out.push(self.level);
        out.write_u16::<LE>(self.version)?;
        out.write_u32::<LE>(self.thread_id.get())?;
        out.write_u32::<LE>(self.process_id.get())?;
        out.write_i64::<LE>(self.timestamp.get())?;
        out.extend(self.class.to_bytes());
        out.write_u32::<LE>(self.kernel_time)?;
        out.write_u32::<LE>(self.user_time)?;
        Ok(())
    }
}

impl Record for Full<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let kind = self
            .pointer_size
            .choose(RecordKind::FULL32, RecordKind::FULL64);
        sized(out, 0, |out| {
            self.head(kind, out)?;
            out.extend_from_slice(self.payload);
            Ok(())
        })
    }

    fn timestamp(&self) -> Option<Ticks> {
        Some(self.timestamp)
    }
}

/// `EVENT_INSTANCE_GUID_HEADER`: the head of a FULL record, then at 0x30 the instance, at 0x34 its
/// parent, at 0x38 the parent's class, at 0x48 the payload.
///
/// ```
/// use etl_format::Guid;
/// use etl_format::write::record::{Full, Instance, Record};
///
/// let class = Guid::new(1, 2, 3, [4; 8]);
/// let event = Instance::new(Full::new(class, 1, 2_000).process(4, 8), 7).parent(class, 6);
/// let mut bytes = Vec::new();
/// event.encode(&mut bytes)?;
/// assert_eq!((bytes.len(), bytes[0x30], bytes[0x34]), (0x48, 7, 6));
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Instance<'a> {
    /// The fields of a FULL record, and the payload.
    full: Full<'a>,
    /// Instance id.
    instance_id: u32,
    /// Instance id of the parent.
    parent_instance_id: u32,
    /// Class of the parent.
    parent_class: Guid,
}

impl<'a> Instance<'a> {
    /// An event of an instance, with header and payload of `full`, without parent.
    #[must_use]
    pub fn new(full: Full<'a>, instance_id: u32) -> Self {
        Instance {
            full,
            instance_id,
            parent_instance_id: 0,
            parent_class: Guid::ZERO,
        }
    }

    /// Sets the parent: its class and its instance id.
    #[must_use]
    pub fn parent(mut self, class: Guid, instance_id: u32) -> Self {
        self.parent_class = class;
        self.parent_instance_id = instance_id;
        self
    }
}

impl Record for Instance<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let kind = self
            .full
            .pointer_size
            .choose(RecordKind::INSTANCE32, RecordKind::INSTANCE64);
        sized(out, 0, |out| {
            self.full.head(kind, out)?;
            out.write_u32::<LE>(self.instance_id)?;
            out.write_u32::<LE>(self.parent_instance_id)?;
            out.extend(self.parent_class.to_bytes());
            out.extend_from_slice(self.full.payload);
            Ok(())
        })
    }

    fn timestamp(&self) -> Option<Ticks> {
        Some(self.full.timestamp)
    }
}
