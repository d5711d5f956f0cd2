//! Events of `Microsoft-Windows-Kernel-Process`, the provider that shows the kernel's processes,
//! threads and images to any session.

use etl_format::constants::PointerSize;
use etl_format::cursor::Bytes;
use etl_format::read::Record;

use crate::decode::{Utf16, Value};
use crate::providers::KERNEL_PROCESS;
use crate::tables::windows;

const PROCESS_START: u16 = 1;
const PROCESS_STOP: u16 = 2;
const PROCESS_RUNDOWN: u16 = 15;

/// An event that starts or ends something in a process. Each variant holds the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// `ProcessStart`, `ProcessStop`, `ProcessRundown`.
    Process(u32),
    /// `ThreadStart`, `ThreadStop`.
    Thread(u32),
    /// `ImageLoad`, `ImageUnload`.
    Image(u32),
}

fn pointers(record: &Record<'_>) -> PointerSize {
    record.pointer_size().unwrap_or(PointerSize::P8)
}

/// The id of an event of the provider.
fn id(record: &Record<'_>) -> Option<u16> {
    let is_own = record.is_event() && record.provider() == Some(KERNEL_PROCESS);
    is_own.then(|| record.descriptor().map(|d| d.id))?
}

/// Decodes a record; `None` for other events and providers.
///
/// In all versions, the process is the first field, and of images it follows `ImageBase` and
/// `ImageSize`, both of pointer size.
#[must_use]
pub fn decode(record: &Record<'_>) -> Option<Event> {
    let payload = record.payload();
    match id(record)? {
        PROCESS_START | PROCESS_STOP | PROCESS_RUNDOWN => payload.u32_at(0).map(Event::Process),
        3 | 4 => payload.u32_at(0).map(Event::Thread),
        5 | 6 => payload.u32_at(2 * pointers(record).bytes()).map(Event::Image),
        _ => None,
    }
}

/// What the provider says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Process<'a> {
    /// It started now, or a rundown lists it.
    Described {
        /// Whether it started now.
        is_start: bool,
        /// Its id.
        pid: u32,
        /// Id of the process that started it.
        parent: u32,
        /// Path of its image.
        image: Utf16<'a>,
    },
    /// It ended.
    Stopped {
        /// Its id.
        pid: u32,
        /// File name of its image in an 8-bit encoding; the kernel keeps 14 characters of it;
        /// empty where the event does not have it.
        image: &'a [u8],
    },
}

/// The process that an event is about; `None` for other events and providers. The fields are those
/// of the tables of Windows' providers.
#[must_use]
pub fn process<'a>(record: &Record<'a>) -> Option<Process<'a>> {
    let id = id(record)?;
    let payload = record.payload();
    let value = |name: &str| {
        let (version, pointers) = (record.descriptor()?.version, pointers(record));
        let decoder = windows::decoder(KERNEL_PROCESS, id, version, payload, pointers)?;
        decoder.get(name, payload, pointers)
    };
    match id {
        PROCESS_STOP => {
            let image = value("ImageName").and_then(|name| name.as_bytes()).unwrap_or_default();
            Some(Process::Stopped { pid: payload.u32_at(0)?, image })
        }
        PROCESS_START | PROCESS_RUNDOWN => {
            let number = |name: &str| u32::try_from(value(name)?.as_u64()?).ok();
            let (pid, parent) = (number("ProcessID")?, number("ParentProcessID")?);
            let Some(Value::Utf16(image)) = value("ImageName") else { return None };
            Some(Process::Described { is_start: id == PROCESS_START, pid, parent, image })
        }
        _ => None,
    }
}
