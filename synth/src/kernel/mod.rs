//! Events of the kernel: processes, threads, images, context switches, samples, stacks, sessions
//! and the computer.

mod interrupts;
mod io;
mod providers;
mod schedule;
mod system;

use etl_control::controller::GroupMasks;
use etl_format::constants::{PointerSize, hook};
use etl_format::{EventDescriptor, Guid};
use etl_schema::Identity;
use etl_schema::encode::OwnedValue;
use etl_schema::providers::kernel_class::{IMAGE, PROCESS, THREAD};
use etl_schema::tables::Registry;

use crate::error::{Error, Result};
use crate::etw::{Etw, Event, LogTarget, Origin, values};
use crate::machine::{Image, Machine, Process, Thread};
use crate::model::{KernelEvent, group};
use crate::truth::RecordFormat;

pub(crate) use interrupts::{DriverCall, PageIn};
pub(crate) use io::{DiskRequest, FileRequest, TcpStep};
pub(crate) use schedule::{ContextSwitch, SwitchThread};
pub(crate) use system::Masks;

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

    /// The sessions that log it: all that enable its kind, or the session of a rundown.
    const fn target(self, kind: KernelEvent) -> LogTarget {
        match self {
            Lifecycle::Start | Lifecycle::End => LogTarget::Enabled(kind),
            Lifecycle::AtStart(session) | Lifecycle::AtEnd(session) => LogTarget::Session(session),
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

/// An address of a 64-bit kernel, converted for a kernel of this pointer size.
pub(crate) fn address(width: PointerSize, address: u64) -> u64 {
    match width {
        PointerSize::P8 => address,
        PointerSize::P4 => KERNEL_SPACE_32 | address & (KERNEL_SPACE_32 - 1),
    }
}

/// Identifies a classic event.
#[derive(Clone, Copy)]
struct ClassicIdentity {
    class: Guid,
    /// Its type.
    opcode: u8,
    /// The version of its layout in the tables.
    layout: u16,
    /// The version in its record.
    version: u8,
}

impl Etw<'_> {
    /// Logs a classic event.
    fn log_classic(
        &mut self,
        to: LogTarget,
        identity: ClassicIdentity,
        format: RecordFormat,
        values: &[OwnedValue],
        origin: &Origin,
    ) -> Result<()> {
        let ClassicIdentity {
            class,
            opcode,
            layout,
            version,
        } = identity;
        let identity = Identity::Classic {
            opcode,
            version: layout,
        };
        let unknown = Error::UnknownEvent {
            provider: class,
            id: opcode.into(),
            version,
        };
        let table = Registry::classic().event(class, identity).ok_or(unknown)?;
        let descriptor = EventDescriptor {
            opcode,
            version,
            ..EventDescriptor::default()
        };
        self.log(
            to,
            origin,
            &Event {
                descriptor,
                format,
                ..Event::new(&table.schema, values)
            },
        )
    }

    /// Logs an event of a process.
    pub fn log_process(&mut self, change: Lifecycle, process: &Process, at: &Origin) -> Result<()> {
        let opcode = change.opcode();
        let width = self.pointer_size();
        // A 32-bit process on a 64-bit machine (wow64).
        let flags = if process.pointer_size == width {
            0u32
        } else {
            2
        };
        let directory = match width {
            PointerSize::P8 => process.directory,
            PointerSize::P4 => process.directory & u64::from(u32::MAX),
        };
        // The exit code; STATUS_PENDING for active processes.
        let status = if change == Lifecycle::End { 0i32 } else { 259 };
        let sid = match &process.user[..] {
            _ if process.pid < 8 => OwnedValue::Auto,
            [] => OwnedValue::Sid(user_sid()),
            sid => OwnedValue::Sid(sid.to_vec()),
        };
        let key = address(width, process.key);
        let pid = process.pid;
        let parent = process.parent;
        let session = u32::from(pid >= 8);
        let name = process.name.as_str();
        let line = process.command_line.as_str();
        let values = values![
            key, pid, parent, session, status, directory, flags, sid, name, line, "", ""
        ];
        let format = change.format(hook::PROCESS_START - 1 + u16::from(opcode), false);
        let to = change.target(KernelEvent::ProcessStart);
        let identity = ClassicIdentity {
            class: PROCESS,
            opcode,
            layout: 4,
            version: 4,
        };
        self.log_classic(to, identity, format, &values, at)
    }

    /// Logs an event of a thread.
    pub fn log_thread(
        &mut self,
        change: Lifecycle,
        pid: u32,
        thread: &Thread,
        origin: &Origin,
    ) -> Result<()> {
        let opcode = change.opcode();
        let Thread {
            tid,
            stack,
            start_address: start,
            teb,
            ..
        } = *thread;
        let kernel = address(self.pointer_size(), thread.kernel_stack);
        let limit = kernel.saturating_sub(0x6000);
        let bottom = stack.saturating_sub(0x10_0000);
        let affinity = 0xffu32;
        let name = OwnedValue::Utf16(vec![0]);
        let values = values![
            pid, tid, kernel, limit, stack, bottom, affinity, start, teb, 0u32, 8u8, 5u8, 2u8, 0u8,
            name
        ];
        let format = RecordFormat::System(hook::THREAD_START - 1 + u16::from(opcode));
        let to = change.target(KernelEvent::ThreadStart);
        let identity = ClassicIdentity {
            class: THREAD,
            opcode,
            layout: 3,
            version: 3,
        };
        self.log_classic(to, identity, format, &values, origin)
    }

    /// Logs an event of an image.
    pub fn log_image(
        &mut self,
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
        let Image {
            base,
            size,
            checksum,
            timestamp,
            ..
        } = *image;
        let check = checksum;
        let time = timestamp;
        let path = image.kernel_path();
        let values = values![
            base, size, pid, check, time, 0u8, 1u8, 0u16, base, 0u32, 0u32, 0u32, 0u32, path
        ];
        let of_kernel = match self.pointer_size() {
            PointerSize::P8 => base >= KERNEL_SPACE,
            PointerSize::P4 => base >= KERNEL_SPACE_32,
        };
        let to = change.target(KernelEvent::ImageLoad);
        let format = change.format(hook, of_kernel);
        let identity = ClassicIdentity {
            class: IMAGE,
            opcode,
            layout: 3,
            version: 3,
        };
        self.log_classic(to, identity, format, &values, origin)
    }

    /// Logs what exists of some groups, for a session that starts or ends to log them.
    pub fn log_rundown(
        &mut self,
        change: Lifecycle,
        groups: GroupMasks,
        machine: &Machine,
        origin: &Origin,
    ) -> Result<()> {
        for p in machine.processes.iter().filter(|p| p.is_alive()) {
            if groups.has(group::PROCESS) {
                self.log_process(change, p, origin)?;
            }
            if groups.has(group::THREAD) {
                let threads = p.threads.iter().filter_map(|t| machine.threads.get(*t));
                for thread in threads.filter(|t| t.started && !t.ended) {
                    self.log_thread(change, p.pid, thread, origin)?;
                }
            }
            if groups.has(group::IMAGE) {
                for image in &p.images {
                    self.log_image(change, p.pid, image, origin)?;
                }
            }
        }
        match change {
            Lifecycle::AtEnd(session) if groups.has(group::FILE_NAME) => {
                self.log_file_names(session, &machine.files, origin)
            }
            _ => Ok(()),
        }
    }
}

/// S-1-5-21-...-1001: a user of the machine.
fn user_sid() -> Vec<u8> {
    let mut sid = vec![1, 5, 0, 0, 0, 0, 0, 5];
    for part in [21u32, 1_004_336_348, 1_177_238_915, 682_003_330, 1001] {
        sid.extend(part.to_le_bytes());
    }
    sid
}
