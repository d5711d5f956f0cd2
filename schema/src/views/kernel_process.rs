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
    if !record.is_event() || record.provider() != Some(KERNEL_PROCESS) {
        return None;
    }
    Some(record.descriptor()?.id)
}

/// Decodes a record; `None` for other events and providers.
///
/// In all versions, the process is the first field. In events of images it follows `ImageBase` and
/// `ImageSize`, both of pointer size.
#[must_use]
pub fn decode(record: &Record<'_>) -> Option<Event> {
    let payload = record.payload();
    match id(record)? {
        PROCESS_START | PROCESS_STOP | PROCESS_RUNDOWN => payload.u32_at(0).map(Event::Process),
        3 | 4 => payload.u32_at(0).map(Event::Thread),
        5 | 6 => payload
            .u32_at(2 * pointers(record).bytes())
            .map(Event::Image),
        _ => None,
    }
}

/// A process in the events of the provider.
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
        /// empty if the event does not have it.
        image: &'a [u8],
    },
}

/// The process of an event; `None` for other events and providers. The tables of Windows' providers
/// have the fields.
#[must_use]
pub fn process<'a>(record: &Record<'a>) -> Option<Process<'a>> {
    let id = id(record)?;
    match id {
        PROCESS_STOP => {
            let image = field(record, "ImageName").and_then(|name| name.as_bytes());
            let pid = record.payload().u32_at(0)?;
            Some(Process::Stopped {
                pid,
                image: image.unwrap_or_default(),
            })
        }
        PROCESS_START | PROCESS_RUNDOWN => {
            let pid = process_id(record, "ProcessID")?;
            let parent = process_id(record, "ParentProcessID")?;
            let Some(Value::Utf16(image)) = field(record, "ImageName") else {
                return None;
            };
            Some(Process::Described {
                is_start: id == PROCESS_START,
                pid,
                parent,
                image,
            })
        }
        _ => None,
    }
}

/// The value of a field.
fn field<'a>(record: &Record<'a>, name: &str) -> Option<Value<'a>> {
    let descriptor = record.descriptor()?;
    let payload = record.payload();
    let pointers = pointers(record);
    let decoder = windows::decoder(
        KERNEL_PROCESS,
        descriptor.id,
        descriptor.version,
        payload,
        pointers,
    )?;
    decoder.get(name, payload, pointers)
}

fn process_id(record: &Record<'_>, name: &str) -> Option<u32> {
    let id = field(record, name)?.as_u64()?;
    u32::try_from(id).ok()
}
