//! Events of the kernel: processes, threads, images, context switches, samples and stacks, and
//! those about its sessions and the computer.

mod schedule;
mod system;

use etl_control::controller::GroupMasks;
use etl_format::Guid;
use etl_format::constants::{PointerSize, hook};
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

/// What happens to a process, thread or image. A rundown is logged in its session only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    Start,
    End,
    /// It existed when the session started.
    AtStart(usize),
    /// It exists when the session ends.
    AtEnd(usize),
}

impl Lifecycle {
    /// The type ("opcode") of process and thread events.
    const fn opcode(self) -> u8 {
        match self {
            Lifecycle::Start => 1,
            Lifecycle::End => 2,
            Lifecycle::AtStart(_) => 3,
            Lifecycle::AtEnd(_) => 4,
        }
    }

    /// The record of an event of a process or an image. Starts and ends name their thread; rundowns
    /// do so only for the images of the kernel, as in a real trace of Windows 8.
    const fn format(self, hook: u16, of_kernel: bool) -> RecordFormat {
        match self {
            Lifecycle::AtStart(_) | Lifecycle::AtEnd(_) if !of_kernel => {
                RecordFormat::PerfInfo(hook)
            }
            _ => RecordFormat::System(hook),
        }
    }
}

/// First address of the kernel, for 64 and 32 bits.
const KERNEL_SPACE: u64 = 0x8000_0000_0000_0000;
const KERNEL_SPACE_32: u64 = 0x8000_0000;

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

/// Logs an event of this kind in the sessions that enable it, or in the session of a rundown.
fn emit(
    etw: &mut Etw<'_>,
    change: Lifecycle,
    origin: &Origin,
    event: &Event<'_>,
    kind: KernelEvent,
) -> Result<()> {
    match change {
        Lifecycle::Start | Lifecycle::End => {
            let own = own(etw, origin);
            etw.log(&own, event, kind)
        }
        Lifecycle::AtStart(session) | Lifecycle::AtEnd(session) => {
            log_to_session(etw, session, origin, event)
        }
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
    let hook = hook::PROCESS_START - 1 + u16::from(opcode);
    let format = change.format(hook, false);
    emit(
        etw,
        change,
        origin,
        &classic(table, format, opcode, 4, &values),
        KernelEvent::ProcessStart,
    )
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
    change: Lifecycle,
    pid: u32,
    thread: &Thread,
    origin: &Origin,
) -> Result<()> {
    let opcode = change.opcode();
    let table = layout(THREAD, opcode, 3)?;
    let kernel_stack = address(etw.pointer_size(), thread.kernel_stack);
    let p = OwnedValue::Pointer;
    let (tid, top, user) = (thread.tid, p(kernel_stack), p(thread.stack));
    let limit = p(kernel_stack.saturating_sub(0x6000));
    let bottom = p(thread.stack.saturating_sub(0x10_0000));
    let (start, teb, name) = (p(thread.start_address), p(thread.teb), OwnedValue::Utf16(vec![0]));
    let affinity = p(0xff);
    let values = values![
        pid, tid, top, limit, user, bottom, affinity, start, teb, 0u32, 8u8, 5u8, 2u8, 0u8, name
    ];
    let format = RecordFormat::System(hook::THREAD_START - 1 + u16::from(opcode));
    emit(etw, change, origin, &classic(table, format, opcode, 3, &values), KernelEvent::ThreadStart)
}

/// Logs an event of an image.
pub(crate) fn image(
    etw: &mut Etw<'_>,
    change: Lifecycle,
    pid: u32,
    image: &Image,
    origin: &Origin,
) -> Result<()> {
    let (hook, opcode) = match change {
        Lifecycle::Start => (hook::IMAGE_LOAD, 10),
        Lifecycle::End => (hook::IMAGE_UNLOAD, 2),
        Lifecycle::AtStart(_) => (hook::IMAGE_DC_START, 3),
        Lifecycle::AtEnd(_) => (hook::IMAGE_DC_END, 4),
    };
    let table = layout(IMAGE, opcode, 3)?;
    let (base, size) = (OwnedValue::Pointer(image.base), OwnedValue::Pointer(image.size));
    let (default, path) = (base.clone(), image.kernel_path());
    let (check, time) = (image.checksum, image.timestamp);
    let values = values![
        base, size, pid, check, time, 0u8, 1u8, 0u16, default, 0u32, 0u32, 0u32, 0u32, path
    ];
    let of_kernel = match etw.pointer_size() {
        PointerSize::P8 => image.base >= KERNEL_SPACE,
        PointerSize::P4 => image.base >= KERNEL_SPACE_32,
    };
    let event = classic(table, change.format(hook, of_kernel), opcode, 3, &values);
    emit(etw, change, origin, &event, KernelEvent::ImageLoad)
}

/// Logs what exists of some groups, for a session that starts or ends to log them.
pub(crate) fn rundown(
    etw: &mut Etw<'_>,
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
    for p in machine.processes.iter().filter(|p| p.is_alive()) {
        if processes {
            process(etw, change, p, origin)?;
        }
        if threads {
            let threads = p.threads.iter().filter_map(|t| machine.threads.get(*t));
            for t in threads.filter(|t| t.started && !t.ended) {
                thread(etw, change, p.pid, t, origin)?;
            }
        }
        if images {
            for i in &p.images {
                image(etw, change, p.pid, i, origin)?;
            }
        }
    }
    Ok(())
}
