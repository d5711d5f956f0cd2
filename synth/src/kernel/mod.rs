//! Events of the kernel: processes, threads, images, context switches, samples and stacks, and
//! those about its sessions and the computer.

mod schedule;
mod system;

use etl_control::controller::GroupMasks;
use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::write::record::EventDescriptor;
use etl_schema::Identity;
use etl_schema::encode::OwnedValue;
use etl_schema::providers::kernel_class::{IMAGE, PROCESS, THREAD};
use etl_schema::tables::{Registry, TableEvent};

use crate::error::{Error, Result};
use crate::etw::{Etw, Event, Origin, values};
use crate::machine::{Image, Machine, Process, Thread};
use crate::model::KernelEvent;
use crate::truth::RecordFormat;

pub(crate) use schedule::{
    ContextSwitch, SwitchThread, context_switch, interval, ready_thread, sample, stack,
};
pub(crate) use system::{Masks, configuration, masks, rundown_complete};

/// What happens to a process, thread or image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    Start,
    End,
    /// It existed when the session started.
    AtStart,
    /// It exists when the session ends.
    AtEnd,
}

impl Lifecycle {
    /// The type ("opcode") of process and thread events.
    const fn opcode(self) -> u8 {
        match self {
            Lifecycle::Start => 1,
            Lifecycle::End => 2,
            Lifecycle::AtStart => 3,
            Lifecycle::AtEnd => 4,
        }
    }

    /// The record of an event of a process or an image. Starts and ends name their thread; rundowns
    /// do so only for the images of the kernel, as in a real trace of Windows 8.
    const fn format(self, hook: u16, of_kernel: bool) -> RecordFormat {
        match self {
            Lifecycle::AtStart | Lifecycle::AtEnd if !of_kernel => RecordFormat::PerfInfo(hook),
            _ => RecordFormat::System(hook),
        }
    }
}

/// First address of the kernel, for 64 and 32 bits.
const KERNEL_SPACE: u64 = 0x8000_0000_0000_0000;
const KERNEL_SPACE_32: u64 = 0x8000_0000;

/// Sessions that an event is logged for: all that enable it, or the one whose rundown it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recipients {
    All,
    Session(usize),
}

/// The layout of a classic event.
fn layout(class: Guid, opcode: u8, version: u16) -> Result<&'static TableEvent> {
    Registry::classic()
        .event(class, Identity::Classic { opcode, version })
        .ok_or(Error::UnknownEvent { provider: class, id: opcode.into(), version: version as u8 })
}

/// A classic event of the kernel.
fn classic<'a>(
    table: &'a TableEvent,
    format: RecordFormat,
    opcode: u8,
    version: u8,
    values: &'a [OwnedValue],
) -> Event<'a> {
    let descriptor = EventDescriptor { opcode, version, ..EventDescriptor::default() };
    Event { descriptor, format, ..Event::new(&table.schema, values) }
}

fn emit(
    etw: &mut Etw<'_>,
    to: Recipients,
    origin: &Origin,
    event: &Event<'_>,
    kind: KernelEvent,
) -> Result<()> {
    match to {
        Recipients::All => {
            let own = own(etw, origin);
            etw.log(&own, event, kind)
        }
        Recipients::Session(session) => log_to_session(etw, session, origin, event),
    }
}

fn log_to_session(
    etw: &mut Etw<'_>,
    session: usize,
    origin: &Origin,
    event: &Event<'_>,
) -> Result<()> {
    let own = own(etw, origin);
    etw.log_to(session, &own, event)
}

/// Kernel events have the pointer size of the machine.
fn own(etw: &Etw<'_>, origin: &Origin) -> Origin {
    Origin { pointer_size: etw.pointer_size(), activity: Guid::ZERO, ..*origin }
}

/// An address of a 64-bit kernel, converted for a kernel of this pointer size.
pub(crate) fn address(width: PointerSize, address: u64) -> u64 {
    match width {
        PointerSize::P8 => address,
        PointerSize::P4 => KERNEL_SPACE_32 | address & (KERNEL_SPACE_32 - 1),
    }
}

/// Logs an event of a process.
pub(crate) fn process(
    etw: &mut Etw<'_>,
    to: Recipients,
    change: Lifecycle,
    process: &Process,
    origin: &Origin,
) -> Result<()> {
    let opcode = change.opcode();
    let table = layout(PROCESS, opcode, 4)?;
    let width = etw.pointer_size();
    // A 32-bit process on a 64-bit machine (wow64).
    let flags = if process.pointer_size == width { 0u32 } else { 2 };
    let directory = match width {
        PointerSize::P8 => process.directory,
        PointerSize::P4 => process.directory & u64::from(u32::MAX),
    };
    // The exit code; STATUS_PENDING for active processes.
    let status = if change == Lifecycle::End { 0i32 } else { 259 };
    let sid = match &process.user[..] {
        _ if process.pid < 8 => Vec::new(),
        [] => user_sid(),
        sid => sid.to_vec(),
    };
    let values = [
        OwnedValue::Pointer(address(width, process.key)),
        process.pid.into(),
        process.parent.into(),
        (if process.pid < 8 { 0u32 } else { 1 }).into(),
        status.into(),
        OwnedValue::Pointer(directory),
        flags.into(),
        if sid.is_empty() { OwnedValue::Auto } else { OwnedValue::Sid(sid) },
        OwnedValue::Text(process.name.clone()),
        process.command_line.clone().into(),
        "".into(),
        "".into(),
    ];
    let format = change.format(0x0300 | u16::from(opcode), false);
    emit(etw, to, origin, &classic(table, format, opcode, 4, &values), KernelEvent::ProcessStart)
}

/// S-1-5-21-...-1001: a user of the machine.
fn user_sid() -> Vec<u8> {
    let mut sid = vec![1, 5, 0, 0, 0, 0, 0, 5];
    for part in [21u32, 1_004_336_348, 1_177_238_915, 682_003_330, 1001] {
        sid.extend(part.to_le_bytes());
    }
    sid
}

/// Logs an event of a thread.
pub(crate) fn thread(
    etw: &mut Etw<'_>,
    to: Recipients,
    change: Lifecycle,
    pid: u32,
    thread: &Thread,
    origin: &Origin,
) -> Result<()> {
    let opcode = change.opcode();
    let table = layout(THREAD, opcode, 3)?;
    let kernel_stack = address(etw.pointer_size(), thread.kernel_stack);
    let values = [
        pid.into(),
        thread.tid.into(),
        OwnedValue::Pointer(kernel_stack),
        OwnedValue::Pointer(kernel_stack.saturating_sub(0x6000)),
        OwnedValue::Pointer(thread.stack),
        OwnedValue::Pointer(thread.stack.saturating_sub(0x10_0000)),
        OwnedValue::Pointer(0xff),
        OwnedValue::Pointer(thread.start_address),
        OwnedValue::Pointer(thread.teb),
        0u32.into(),
        8u8.into(),
        5u8.into(),
        2u8.into(),
        0u8.into(),
        OwnedValue::Utf16(vec![0]),
    ];
    let format = RecordFormat::System(0x0500 | u16::from(opcode));
    emit(etw, to, origin, &classic(table, format, opcode, 3, &values), KernelEvent::ThreadStart)
}

/// Logs an event of an image.
pub(crate) fn image(
    etw: &mut Etw<'_>,
    to: Recipients,
    change: Lifecycle,
    pid: u32,
    image: &Image,
    origin: &Origin,
) -> Result<()> {
    // Loads have a hook of the process group.
    let (hook, opcode) = match change {
        Lifecycle::Start => (0x030a, 10),
        Lifecycle::End => (0x1402, 2),
        Lifecycle::AtStart => (0x1403, 3),
        Lifecycle::AtEnd => (0x1404, 4),
    };
    let table = layout(IMAGE, opcode, 3)?;
    let values = values![
        OwnedValue::Pointer(image.base),
        OwnedValue::Pointer(image.size),
        pid,
        image.checksum,
        image.timestamp,
        0u8,
        1u8,
        0u16,
        OwnedValue::Pointer(image.base),
        0u32,
        0u32,
        0u32,
        0u32,
        image.kernel_path(),
    ];
    let of_kernel = match etw.pointer_size() {
        PointerSize::P8 => image.base >= KERNEL_SPACE,
        PointerSize::P4 => image.base >= KERNEL_SPACE_32,
    };
    let event = classic(table, change.format(hook, of_kernel), opcode, 3, &values);
    emit(etw, to, origin, &event, KernelEvent::ImageLoad)
}

/// Logs what exists of some groups, for a session that starts or ends to log them.
pub(crate) fn rundown(
    etw: &mut Etw<'_>,
    session: usize,
    change: Lifecycle,
    groups: GroupMasks,
    machine: &Machine,
    origin: &Origin,
) -> Result<()> {
    let (processes, threads, images) = (
        groups.has(KernelEvent::ProcessStart.group()),
        groups.has(KernelEvent::ThreadStart.group()),
        groups.has(KernelEvent::ImageLoad.group()),
    );
    let to = Recipients::Session(session);
    for p in machine.processes.iter().filter(|p| p.is_alive()) {
        if processes {
            process(etw, to, change, p, origin)?;
        }
        if threads {
            let threads = p.threads.iter().filter_map(|t| machine.threads.get(*t));
            for t in threads.filter(|t| t.started && !t.ended) {
                thread(etw, to, change, p.pid, t, origin)?;
            }
        }
        if images {
            for i in &p.images {
                image(etw, to, change, p.pid, i, origin)?;
            }
        }
    }
    Ok(())
}
