//! Kernel events, as far as verification needs their fields.

use etl_format::constants::{PointerSize, RecordKind};
use etl_format::cursor::{Bytes, Cursor};
use etl_format::read::Record;

use super::frames::Frames;

/// What happened to a process, a thread or an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It began at this moment.
    Start,
    /// It ended at this moment.
    End,
    /// It was there before the session began.
    AtStart,
    /// It is there at the session's end.
    AtEnd,
}

/// What a kernel event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelEvent<'a> {
    /// A process.
    Process {
        /// What happened.
        change: Change,
        /// Its id.
        pid: u32,
        /// Its image's file name, in an 8-bit encoding.
        name: &'a [u8],
    },
    /// A thread.
    Thread {
        /// What happened.
        change: Change,
        /// Its process.
        pid: u32,
        /// Its id.
        tid: u32,
    },
    /// An image in the address space of a process.
    Image {
        /// What happened.
        change: Change,
        /// The process; 0 for the kernel.
        pid: u32,
        /// First address.
        base: u64,
        /// Bytes.
        size: u64,
        /// Path of its file, UTF-16; empty where the event is too old or too short to tell.
        path: &'a [u8],
    },
    /// A sample of what a processor was doing.
    Sample {
        /// The instruction pointer.
        address: u64,
        /// The thread that was running.
        tid: u32,
    },
    /// A call stack.
    Stack {
        /// Raw timestamp of the event it was taken at.
        at: i64,
        /// The process.
        pid: u32,
        /// The addresses as stored.
        frames: Frames<'a>,
    },
    /// A call stack told by key.
    StackKey {
        /// Raw timestamp of the event it was taken at.
        at: i64,
        /// The process.
        pid: u32,
        /// The key.
        key: u64,
    },
    /// What a key stands for.
    StackDefinition {
        /// The key.
        key: u64,
        /// Whether the key goes out of use.
        last: bool,
        /// The addresses as stored.
        frames: Frames<'a>,
    },
}

/// The hook of a sample.
pub const SAMPLE: u16 = 0x0f2e;

/// Whether [`decode`] knows events with this hook.
#[must_use]
#[inline]
pub const fn is_looked_at(hook: u16) -> bool {
    matches!(
        hook,
        SAMPLE
            | 0x1820
            | 0x1822..=0x1826
            | 0x030a
            | 0x1402..=0x1404
            | 0x0301..=0x0304
            | 0x0501..=0x0504
    )
}

/// The address and the thread of a [`SAMPLE`]: most of what a kernel session logs.
#[must_use]
#[inline(always)]
pub fn sample(record: &Record<'_>) -> Option<(u64, u32)> {
    // Nearly all of them: 64 bits, and neither counters nor an index before the payload.
    let bytes = record.bytes();
    if record.kind() == RecordKind::PERFINFO64 && bytes.u16_at(0)? & !0xff == 0 {
        let bytes: &[u8; 28] = bytes.first_chunk()?;
        return Some((bytes.u64_at(16)?, bytes.u32_at(24)?));
    }
    other_sample(record)
}

#[inline(never)]
fn other_sample(record: &Record<'_>) -> Option<(u64, u32)> {
    let payload = record.payload();
    if record.pointer_size()? == PointerSize::P8 {
        Some((payload.u64_at(0)?, payload.u32_at(8)?))
    } else {
        Some((payload.u32_at(0)?.into(), payload.u32_at(4)?))
    }
}

/// Decodes a kernel event; `None` for those that verification does not look at, and for payloads
/// too short for their event.
#[must_use]
#[inline]
pub fn decode<'a>(record: &Record<'a>) -> Option<KernelEvent<'a>> {
    let hook = record.hook().filter(|&hook| is_looked_at(hook))?;
    if hook == SAMPLE {
        let (address, tid) = sample(record)?;
        return Some(KernelEvent::Sample { address, tid });
    }
    let wide = record.pointer_size()? == PointerSize::P8;
    let pointer = |c: &mut Cursor<'a>| if wide { c.u64() } else { c.u32().map(u64::from) };
    let mut c = Cursor::new(record.payload());
    Some(match hook {
        0x1820 => {
            let at = c.i64()?;
            let pid = c.u32()?;
            c.take(4)?;
            KernelEvent::Stack { at, pid, frames: Frames::new(c.rest(), wide) }
        }
        0x1825 | 0x1826 => {
            let at = c.i64()?;
            let pid = c.u32()?;
            c.take(4)?;
            KernelEvent::StackKey { at, pid, key: pointer(&mut c)? }
        }
        0x1822..=0x1824 => KernelEvent::StackDefinition {
            key: pointer(&mut c)?,
            last: hook != 0x1822,
            frames: Frames::new(c.rest(), wide),
        },
        // Image loads of old stand in the process group.
        0x030a | 0x1402..=0x1404 => {
            let change = match hook {
                0x030a => Change::Start,
                0x1402 => Change::End,
                0x1403 => Change::AtStart,
                _ => Change::AtEnd,
            };
            let (base, size, pid) = (pointer(&mut c)?, pointer(&mut c)?, c.u32()?);
            let version = record.bytes().u8_at(0)?;
            let path = image_path(&mut c, version, wide).unwrap_or_default();
            KernelEvent::Image { change, pid, base, size, path }
        }
        0x0301..=0x0304 => process(&mut c, change(hook), record, wide)?,
        0x0501..=0x0504 => {
            KernelEvent::Thread { change: change(hook), pid: c.u32()?, tid: c.u32()? }
        }
        _ => return None,
    })
}

/// The path behind an image's place: checksum, timestamp and a reserved word, the address it prefers,
/// and four reserved words come before it since version 2.
fn image_path<'a>(c: &mut Cursor<'a>, version: u8, wide: bool) -> Option<&'a [u8]> {
    if version >= 2 {
        c.take(12 + if wide { 8 } else { 4 } + 16)?;
    }
    c.utf16z()
}

fn change(hook: u16) -> Change {
    match hook & 0xff {
        1 => Change::Start,
        2 => Change::End,
        3 => Change::AtStart,
        _ => Change::AtEnd,
    }
}

/// The process payload: fixed fields, the user's SID, and the name.
fn process<'a>(
    c: &mut Cursor<'a>,
    change: Change,
    record: &Record<'a>,
    wide: bool,
) -> Option<KernelEvent<'a>> {
    let width = if wide { 8 } else { 4 };
    let version = record.bytes().u8_at(0)?;
    c.take(width)?;
    let pid = c.u32()?;
    let name = name(c, version, width).unwrap_or_default();
    Some(KernelEvent::Process { change, pid, name })
}

fn name<'a>(c: &mut Cursor<'a>, version: u8, width: usize) -> Option<&'a [u8]> {
    // Parent, session, exit status; the page directory since version 3; flags since version 4.
    c.take(12)?;
    if version >= 3 {
        c.take(width)?;
    }
    if version >= 4 {
        c.take(4)?;
    }
    // A SID field is four zero bytes, or a TOKEN_USER of two pointers and then the SID.
    if c.rest().u32_at(0)? == 0 {
        c.take(4)?;
    } else {
        c.take(2 * width)?;
        let count = usize::from(c.rest().u8_at(1)?);
        c.take(8 + 4 * count)?;
    }
    c.ansiz()
}
