//! Events of `Microsoft-Windows-Kernel-Process`, the provider that shows the kernel's processes,
//! threads and images to any session.

use etl_format::constants::PointerSize;
use etl_format::cursor::Bytes;
use etl_format::read::Record;

use crate::providers::KERNEL_PROCESS;

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

/// Decodes a record; `None` for other events and providers.
///
/// The provider's manifest is not part of the tables: in all versions, the process is the first
/// field, and of images it follows `ImageBase` and `ImageSize`, both of pointer size.
#[must_use]
pub fn decode(record: &Record<'_>) -> Option<Event> {
    if !record.is_event() || record.provider() != Some(KERNEL_PROCESS) {
        return None;
    }
    let payload = record.payload();
    let pointers = if record.pointer_size() == Some(PointerSize::P4) { 4 } else { 8 };
    match record.descriptor()?.id {
        1 | 2 | 15 => payload.u32_at(0).map(Event::Process),
        3 | 4 => payload.u32_at(0).map(Event::Thread),
        5 | 6 => payload.u32_at(2 * pointers).map(Event::Image),
        _ => None,
    }
}
