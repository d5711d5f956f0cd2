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

/// What the event of a process states besides its id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessFacts<'a> {
    /// Key by which other events name the process: it is never used again.
    pub key: u64,
    /// The process that started it.
    pub parent_pid: u32,
    /// Terminal session.
    pub session_id: u32,
    /// Exit status; of use at its end.
    pub exit_status: i32,
    /// SID of its user; empty where the event has none.
    pub user: &'a [u8],
    /// Its image's file name, in an 8-bit encoding.
    pub name: &'a [u8],
    /// Command line, UTF-16.
    pub command_line: &'a [u8],
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
        /// What else the event states.
        facts: ProcessFacts<'a>,
    },
    /// A thread.
    Thread {
        /// What happened.
        change: Change,
        /// Its process.
        pid: u32,
        /// Its id.
        tid: u32,
        /// Where its own code begins; 0 where the event does not state it.
        start_address: u64,
        /// Its name, UTF-16; `None` where the event has no such field.
        name: Option<&'a [u8]>,
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
        /// The thread.
        tid: u32,
        /// The addresses as stored.
        frames: Frames<'a>,
    },
    /// A call stack told by key.
    StackKey {
        /// Raw timestamp of the event it was taken at.
        at: i64,
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// The key.
        key: u64,
        /// Whether it stands for the part of the stack in the process, and not for that in the kernel.
        user: bool,
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

/// The group of the kernel's stacks: the high byte of their hooks.
pub const STACKS: u16 = 0x18;

/// Whether the pointers of a record have eight bytes.
#[must_use]
pub fn is_wide(record: &Record<'_>) -> bool {
    record.pointer_size() == Some(PointerSize::P8)
}

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
            | 0x0548
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
            let (pid, tid) = (c.u32()?, c.u32()?);
            KernelEvent::Stack { at, pid, tid, frames: Frames::new(c.rest(), wide) }
        }
        0x1825 | 0x1826 => {
            let at = c.i64()?;
            let (pid, tid) = (c.u32()?, c.u32()?);
            let key = pointer(&mut c)?;
            KernelEvent::StackKey { at, pid, tid, key, user: hook == 0x1826 }
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
            let (pid, tid) = (c.u32()?, c.u32()?);
            let version = record.bytes().u8_at(0)?;
            let (start_address, name) = thread_fields(&mut c, version, wide);
            let start_address = start_address.unwrap_or(0);
            KernelEvent::Thread { change: change(hook), pid, tid, start_address, name }
        }
        // A name is given to a thread that is there.
        0x0548 => {
            let (pid, tid, name) = (c.u32()?, c.u32()?, c.utf16z());
            KernelEvent::Thread { change: Change::AtStart, pid, tid, start_address: 0, name }
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

/// The fields of a thread behind its ids, since version 2: four limits of stacks, start address or
/// affinity, start address of its own code, environment block, tag, and priorities; then its name.
fn thread_fields<'a>(
    c: &mut Cursor<'a>,
    version: u8,
    wide: bool,
) -> (Option<u64>, Option<&'a [u8]>) {
    let width = if wide { 8 } else { 4 };
    if version < 2 || c.take(5 * width).is_none() {
        return (None, None);
    }
    let start = if wide { c.u64() } else { c.u32().map(u64::from) };
    let name = c.take(width + 4 + 4).filter(|_| version >= 3).and_then(|_| c.utf16z());
    (start, name)
}

/// The process payload: fixed fields, the user's SID, and the texts. What is missing is left empty.
fn process<'a>(
    c: &mut Cursor<'a>,
    change: Change,
    record: &Record<'a>,
    wide: bool,
) -> Option<KernelEvent<'a>> {
    let version = record.bytes().u8_at(0)?;
    let key = if wide { c.u64()? } else { c.u32()?.into() };
    let pid = c.u32()?;
    let mut facts = ProcessFacts { key, ..ProcessFacts::default() };
    process_fields(c, &mut facts, version, if wide { 8 } else { 4 });
    Some(KernelEvent::Process { change, pid, facts })
}

fn process_fields<'a>(
    c: &mut Cursor<'a>,
    facts: &mut ProcessFacts<'a>,
    version: u8,
    width: usize,
) -> Option<()> {
    (facts.parent_pid, facts.session_id) = (c.u32()?, c.u32()?);
    facts.exit_status = c.u32()?.cast_signed();
    // The page directory since version 3; flags since version 4.
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
        facts.user = c.take(8 + 4 * count)?;
    }
    facts.name = c.ansiz()?;
    facts.command_line = c.utf16z()?;
    Some(())
}
