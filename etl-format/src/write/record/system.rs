//! SYSTEM and COMPACT records: kernel events with thread, process and timestamp.

use byteorder::{LE, WriteBytesExt};

use super::Record;
use crate::constants::offset::kernel;
use crate::constants::{PointerSize, RecordKind, SYSTEM_TRACE_VERSION};
use crate::error::Result;
use crate::write::put::{marker, sized};
use crate::{ProcessId, ThreadId, Ticks};

/// `SYSTEM_TRACE_HEADER` and a payload, or the same without CPU times: a COMPACT record.
///
/// | at | | at | |
/// |---|---|---|---|
/// | 00 | u16 version | 0c | u32 process |
/// | 02 | marker | 10 | i64 timestamp |
/// | 04 | u16 size | 18 | u32 kernel time |
/// | 06 | u16 hook | 1c | u32 user time |
/// | 08 | u32 thread | 20 | payload |
///
/// ```
/// use etl_format::write::record::{Record, System};
///
/// let event = System::new(0x0301, 2_000).process(4, 8);
/// let mut bytes = Vec::new();
/// event.encode(&mut bytes)?;
/// assert_eq!(bytes.len(), 0x20);
/// event.compact().encode(&mut bytes)?;
/// assert_eq!(bytes.len(), 0x20 + 0x18, "a COMPACT record has no CPU times");
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct System<'a> {
    /// Width of pointers in the payload.
    pointer_size: PointerSize,
    /// Version of the payload in the low byte; the high byte is 0 in all known traces.
    version: u16,
    /// Group in the high byte, type (opcode) in the low byte.
    hook: u16,
    thread_id: ThreadId,
    process_id: ProcessId,
    timestamp: Ticks,
    /// `None` makes this a COMPACT record.
    cpu_times: Option<CpuTimes>,
    /// The bytes after the header.
    payload: &'a [u8],
}

/// CPU times of a thread, in timer ticks.
#[derive(Clone, Copy, Debug, Default)]
struct CpuTimes {
    kernel: u32,
    user: u32,
}

impl<'a> System<'a> {
    /// A kernel event with a hook (group in the high byte, type in the low one) and a raw
    /// timestamp. Pointers have 64 bits, the version is 2, and everything else is 0 or empty.
    #[must_use]
    pub fn new(hook: u16, timestamp: impl Into<Ticks>) -> Self {
        System {
            pointer_size: PointerSize::P8,
            version: SYSTEM_TRACE_VERSION.into(),
            hook,
            thread_id: ThreadId::default(),
            process_id: ProcessId::default(),
            timestamp: timestamp.into(),
            cpu_times: Some(CpuTimes::default()),
            payload: &[],
        }
    }

    /// Sets the width of pointers in the payload.
    #[must_use]
    pub fn pointer_size(mut self, pointer_size: PointerSize) -> Self {
        self.pointer_size = pointer_size;
        self
    }

    /// Sets the version of the payload: the low byte. The high byte is 0 in all known traces.
    #[must_use]
    pub fn version(mut self, version: u16) -> Self {
        self.version = version;
        self
    }

    /// Sets process and thread.
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
        self.cpu_times = Some(CpuTimes {
            kernel: kernel_time,
            user: user_time,
        });
        self
    }

    /// Removes the CPU times: writes a COMPACT record.
    #[must_use]
    pub fn compact(mut self) -> Self {
        self.cpu_times = None;
        self
    }

    /// Sets the bytes after the header.
    #[must_use]
    pub fn payload(mut self, payload: &'a [u8]) -> Self {
        self.payload = payload;
        self
    }
}

impl Record for System<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let pointer_size = self.pointer_size;
        let kind = match self.cpu_times {
            Some(_) => pointer_size.choose(RecordKind::SYSTEM32, RecordKind::SYSTEM64),
            None => pointer_size.choose(RecordKind::COMPACT32, RecordKind::COMPACT64),
        };
        sized(out, kernel::SIZE, |out| {
            out.write_u16::<LE>(self.version)?;
            out.extend(marker(kind));
            out.write_u16::<LE>(0)?;
            out.write_u16::<LE>(self.hook)?;
            out.write_u32::<LE>(self.thread_id.get())?;
            out.write_u32::<LE>(self.process_id.get())?;
            out.write_i64::<LE>(self.timestamp.get())?;
            if let Some(CpuTimes { kernel, user }) = self.cpu_times {
                out.write_u32::<LE>(kernel)?;
                out.write_u32::<LE>(user)?;
            }
            out.extend_from_slice(self.payload);
            Ok(())
        })
    }

    fn timestamp(&self) -> Option<Ticks> {
        Some(self.timestamp)
    }
}
