//! Events of the kernel.

use std::sync::LazyLock;

use etl_format::constants::{PointerSize, RecordKind, group_guid, hook};
use etl_format::cursor::Bytes;
use etl_format::read::{Header, Record};

use super::Frames;
use super::layout::{Layout, Position};
use crate::decode::Decoder;
use crate::model::Identity;
use crate::providers::kernel_class;
use crate::tables::Registry;

/// What happened to a process, a thread or an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It started, or was loaded, at the time of the event.
    Start,
    /// It ended, or was unloaded, at the time of the event.
    End,
    /// It existed when the session started (`DCStart`).
    RundownStart,
    /// It exists when the session stops (`DCEnd`).
    RundownEnd,
}

impl Change {
    /// By the order of the hooks: start, end, and both rundowns.
    const fn of(hook: u16, first: u16) -> Self {
        match hook - first {
            0 => Change::Start,
            1 => Change::End,
            2 => Change::RundownStart,
            _ => Change::RundownEnd,
        }
    }
}

/// A process.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    /// Its id.
    pub pid: u32,
    fields: Fields<'a>,
}

impl<'a> Process<'a> {
    /// Key by which other events name the process; it is not used again.
    #[must_use]
    pub fn key(&self) -> Option<u64> {
        self.fields.uint(self.fields.event.at[6])
    }

    /// Its exit status; meaningful when it ends.
    #[must_use]
    pub fn exit_status(&self) -> Option<i32> {
        self.fields.u32(self.fields.event.at[7]).map(u32::cast_signed)
    }

    /// The process that created it.
    #[must_use]
    pub fn parent(&self) -> Option<u32> {
        self.fields.u32(self.fields.event.at[1])
    }

    /// The session that it runs in.
    #[must_use]
    pub fn session(&self) -> Option<u32> {
        self.fields.u32(self.fields.event.at[2])
    }

    /// The SID of its user, as stored; empty where the event has none.
    #[must_use]
    pub fn user(&self) -> Option<&'a [u8]> {
        self.fields.variable(self.fields.event.at[3])
    }

    /// File name of its executable, in an 8-bit encoding.
    #[must_use]
    pub fn name(&self) -> Option<&'a [u8]> {
        self.fields.variable(self.fields.event.at[4])
    }

    /// Its command line, UTF-16.
    #[must_use]
    pub fn command_line(&self) -> Option<&'a [u8]> {
        self.fields.variable(self.fields.event.at[5])
    }
}

/// A thread.
#[derive(Clone, Copy, Debug)]
pub struct Thread<'a> {
    /// Its process.
    pub pid: u32,
    /// Its id.
    pub tid: u32,
    fields: Fields<'a>,
}

impl<'a> Thread<'a> {
    /// Address of the function that it was created with; `None` where the event does not have it.
    #[must_use]
    pub fn start_address(&self) -> Option<u64> {
        self.fields.uint(self.fields.event.at[3])
    }

    /// Its name, UTF-16; empty where it has none, `None` where the event cannot hold one.
    #[must_use]
    pub fn name(&self) -> Option<&'a [u8]> {
        let fields = self.fields;
        let name = fields.event.layout.rest(fields.payload, fields.event.at[2])?;
        // It goes on to the end of the payload, or to a NUL.
        name.get(..etl_format::cursor::utf16_nul(name).unwrap_or(name.len()))
    }
}

/// An image in the address space of a process.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    /// The process; 0 for the kernel.
    pub pid: u32,
    /// First address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    fields: Fields<'a>,
}

impl<'a> Image<'a> {
    /// Path of its file, UTF-16.
    #[must_use]
    pub fn path(&self) -> Option<&'a [u8]> {
        self.fields.variable(self.fields.event.at[3])
    }

    /// When it was linked, as its header states it.
    #[must_use]
    pub fn link_time(&self) -> Option<u32> {
        self.fields.u32(self.fields.event.at[4])
    }
}

/// An event of the kernel, by what it is about.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A process.
    Process(Change, Process<'a>),
    /// A thread.
    Thread(Change, Thread<'a>),
    /// A thread was given a name.
    ThreadName(Thread<'a>),
    /// An image.
    Image(Change, Image<'a>),
    /// A sample of what a processor executes.
    Sample {
        /// The instruction pointer.
        address: u64,
        /// The thread that was running.
        tid: u32,
    },
    /// A call stack.
    Stack {
        /// Raw timestamp of the event that it belongs to.
        at: i64,
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// The addresses.
        frames: Frames<'a>,
    },
    /// A call stack as a key.
    StackKey {
        /// Raw timestamp of the event that it belongs to.
        at: i64,
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// The key.
        key: u64,
        /// Whether it is that of the user part of the stack, not of the kernel part.
        user: bool,
    },
    /// The addresses that a key stands for.
    StackDefinition {
        /// The key.
        key: u64,
        /// Whether the key goes out of use, or the session stops.
        last: bool,
        /// The addresses.
        frames: Frames<'a>,
    },
}

/// Whether [`decode`] reads events with this hook.
#[must_use]
#[inline]
pub const fn is_read(hook: u16) -> bool {
    matches!(
        hook,
        hook::SAMPLE
            | hook::STACK
            | hook::STACK_KEY_CREATE..=hook::STACK_KEY_USER
            | hook::IMAGE_LOAD
            | hook::IMAGE_UNLOAD..=hook::IMAGE_DC_END
            | hook::PROCESS_START..=hook::PROCESS_DC_END
            | hook::THREAD_START..=hook::THREAD_DC_END
            | hook::THREAD_SET_NAME
    )
}

/// The address and the thread of a record with the hook [`SAMPLE`](hook::SAMPLE): most of the
/// records of a kernel session.
#[must_use]
#[inline(always)]
pub fn sample(record: &Record<'_>) -> Option<(u64, u32)> {
    // Nearly all of them have pointers of 64 bits and no extended header: the payload follows the
    // 16 bytes of the header.
    let bytes = record.bytes();
    if record.kind() == RecordKind::PERFINFO64 && bytes.u16_at(0)? & !0xff == 0 {
        let bytes: &[u8; 28] = bytes.first_chunk()?;
        return Some((bytes.u64_at(16)?, bytes.u32_at(24)?));
    }
    other_sample(record)
}

#[inline(never)]
fn other_sample(record: &Record<'_>) -> Option<(u64, u32)> {
    match decode(record)? {
        Event::Sample { address, tid } => Some((address, tid)),
        _ => None,
    }
}

/// Decodes a record in one of the kernel's own formats; `None` for events that are not read
/// ([`is_read`]), and for a payload that is too short for its event.
#[must_use]
#[inline]
pub fn decode<'a>(record: &Record<'a>) -> Option<Event<'a>> {
    let hook = record.hook().filter(|&hook| is_read(hook))?;
    let version = record.bytes().u8_at(0)?;
    Fields::new(hook, version, record.payload(), record.pointer_size()?)?.event()
}

/// The fields of a kernel event, in whichever form it was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    event: &'static EventLayout,
    payload: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of a record with this hook, which [`hook_of`] returns; `None` for kernel events
    /// without a view.
    #[must_use]
    pub fn of(record: &Record<'a>, hook: u16) -> Option<Self> {
        let version = match record.header() {
            _ if record.is_kernel() => record.bytes().u8_at(0)?,
            Header::Full(header) => header.version as u8,
            _ => return None,
        };
        let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
        Fields::new(hook, version, record.payload(), pointers)
    }

    #[inline]
    pub(super) fn new(
        hook: u16,
        version: u8,
        payload: &'a [u8],
        pointers: PointerSize,
    ) -> Option<Self> {
        let event = Catalogue::get().event(hook, version, pointers)?;
        Some(Fields { event, payload })
    }

    #[inline]
    fn uint(&self, at: Position) -> Option<u64> {
        self.event.layout.uint(self.payload, at)
    }

    #[inline]
    fn u32(&self, at: Position) -> Option<u32> {
        self.event.layout.u32(self.payload, at)
    }

    fn variable(&self, at: Position) -> Option<&'a [u8]> {
        self.event.layout.variable(self.payload, at)
    }

    fn frames(&self, at: Position) -> Option<Frames<'a>> {
        let layout = &self.event.layout;
        Some(Frames::new(layout.rest(self.payload, at)?, layout.pointers))
    }

    /// The process that the event is about, as its payload has it.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.u32(self.event.process)
    }

    /// The threads that the event is about, as its payload has them: of a context switch the new
    /// one and the old one.
    #[must_use]
    pub fn thread_ids(&self) -> [Option<u32>; 2] {
        self.event.threads.map(|at| self.u32(at))
    }

    /// The event; `None` if it is not one that [`decode`] reads, and for a payload that is too
    /// short.
    #[must_use]
    #[inline]
    pub fn event(self) -> Option<Event<'a>> {
        let at = self.event.at;
        let fields = self;
        Some(match self.event.kind {
            Kind::Process(change) => {
                Event::Process(change, Process { pid: self.u32(at[0])?, fields })
            }
            Kind::Thread(change) => {
                let (pid, tid) = (self.u32(at[0])?, self.u32(at[1])?);
                Event::Thread(change, Thread { pid, tid, fields })
            }
            Kind::ThreadName => {
                let (pid, tid) = (self.u32(at[0])?, self.u32(at[1])?);
                Event::ThreadName(Thread { pid, tid, fields })
            }
            Kind::Image(change) => {
                let (base, size) = (self.uint(at[0])?, self.uint(at[1])?);
                // Version 0 has no process: it is about the kernel's images.
                let pid = if at[2].is_known() { self.u32(at[2])? } else { 0 };
                Event::Image(change, Image { pid, base, size, fields })
            }
            Kind::Sample => Event::Sample { address: self.uint(at[0])?, tid: self.u32(at[1])? },
            Kind::Stack => Event::Stack {
                at: self.uint(at[0])?.cast_signed(),
                pid: self.u32(at[1])?,
                tid: self.u32(at[2])?,
                frames: self.frames(at[3])?,
            },
            Kind::StackKey { user } => Event::StackKey {
                user,
                at: self.uint(at[0])?.cast_signed(),
                pid: self.u32(at[1])?,
                tid: self.u32(at[2])?,
                key: self.uint(at[3])?,
            },
            Kind::StackDefinition { last } => {
                Event::StackDefinition { key: self.uint(at[0])?, last, frames: self.frames(at[1])? }
            }
            Kind::Ids => return None,
        })
    }
}

/// Group and type of a kernel event, in whichever form it was recorded: some relogged traces have
/// the kernel's events as classic ones.
#[must_use]
#[inline]
pub fn hook_of(record: &Record<'_>) -> Option<u16> {
    // Headers are not decoded where the kind of the record decides: most records are asked.
    if record.is_kernel() || record.is_event() {
        return record.hook();
    }
    let Header::Full(header) = record.header() else { return None };
    let group = (0..0x20).find(|&group| group_guid(group) == Some(header.class))?;
    Some(u16::from(group) << 8 | u16::from(header.opcode))
}

/// An event by its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Process(Change),
    Thread(Change),
    ThreadName,
    Image(Change),
    Sample,
    Stack,
    StackKey {
        user: bool,
    },
    StackDefinition {
        last: bool,
    },
    /// Only process and threads are read.
    Ids,
}

impl Kind {
    fn of(hook: u16) -> Option<Self> {
        Some(match hook {
            hook::PROCESS_START..=hook::PROCESS_DC_END => {
                Kind::Process(Change::of(hook, hook::PROCESS_START))
            }
            hook::THREAD_START..=hook::THREAD_DC_END => {
                Kind::Thread(Change::of(hook, hook::THREAD_START))
            }
            hook::THREAD_SET_NAME => Kind::ThreadName,
            hook::IMAGE_LOAD => Kind::Image(Change::Start),
            hook::IMAGE_UNLOAD..=hook::IMAGE_DC_END => {
                Kind::Image(Change::of(hook, hook::IMAGE_UNLOAD - 1))
            }
            hook::SAMPLE => Kind::Sample,
            hook::STACK => Kind::Stack,
            hook::STACK_KEY_KERNEL => Kind::StackKey { user: false },
            hook::STACK_KEY_USER => Kind::StackKey { user: true },
            hook::STACK_KEY_CREATE => Kind::StackDefinition { last: false },
            hook::STACK_KEY_DELETE | hook::STACK_KEY_RUNDOWN => {
                Kind::StackDefinition { last: true }
            }
            hook::PROCESS_DEFUNCT
            | hook::CSWITCH
            | hook::READY_THREAD
            | hook::DISK_READ
            | hook::DISK_WRITE
            | hook::DISK_READ_INIT
            | hook::DISK_WRITE_INIT
            | hook::DISK_FLUSH_INIT
            | hook::HARD_FAULT
            | hook::VIRTUAL_ALLOC
            | hook::VIRTUAL_FREE => Kind::Ids,
            _ => return None,
        })
    }

    /// Fields that are read, by name.
    const fn fields(self) -> &'static [&'static str] {
        match self {
            Kind::Process(_) => {
                const NAMES: &[&str] = &[
                    "ProcessId",
                    "ParentId",
                    "SessionId",
                    "UserSID",
                    "ImageFileName",
                    "CommandLine",
                    "UniqueProcessKey",
                    "ExitStatus",
                ];
                NAMES
            }
            Kind::Thread(_) => &["ProcessId", "TThreadId", "ThreadName", "Win32StartAddr"],
            Kind::ThreadName => &["ProcessId", "ThreadId", "ThreadName"],
            Kind::Image(_) => &["ImageBase", "ImageSize", "ProcessId", "FileName", "TimeDateStamp"],
            Kind::Sample => &["InstructionPointer", "ThreadId"],
            Kind::Stack => &["EventTimeStamp", "StackProcess", "StackThread", "Stack"],
            Kind::StackKey { .. } => &["EventTimeStamp", "StackProcess", "StackThread", "StackKey"],
            Kind::StackDefinition { .. } => &["StackKey", "Stack"],
            Kind::Ids => &[],
        }
    }
}

/// Names of the field that holds the process, and of those that hold threads.
const PROCESS: &[&str] = &["ProcessId", "StackProcess"];
const THREADS: [&[&str]; 2] =
    [&["TThreadId", "ThreadId", "StackThread", "IssuingThreadId", "NewThreadId"], &["OldThreadId"]];

/// Where the fields of an event are.
#[derive(Debug)]
struct EventLayout {
    kind: Kind,
    /// Positions of [`Kind::fields`].
    at: [Position; 8],
    process: Position,
    threads: [Position; 2],
    layout: Layout,
}

impl EventLayout {
    fn new(kind: Kind, decoder: &Decoder, pointers: PointerSize) -> Self {
        let find = |name: &&str| Layout::find(decoder, pointers, name);
        let first = |names: &[&str]| {
            names.iter().map(find).find(|at| at.is_known()).unwrap_or(Position::NONE)
        };
        let mut at = [Position::NONE; 8];
        at.iter_mut().zip(kind.fields()).for_each(|(at, name)| *at = find(name));
        let layout = Layout::new(decoder, pointers);
        EventLayout { kind, at, process: first(PROCESS), threads: THREADS.map(first), layout }
    }
}

/// The kernel events that have a view.
#[derive(Debug)]
struct Catalogue {
    /// By hook: the first layout plus one (0 for none), and how many versions there are from
    /// version 0.
    hooks: Vec<(u8, u8)>,
    /// For narrow and for wide pointers.
    layouts: Vec<[EventLayout; 2]>,
}

/// Hooks end here: there are 32 groups.
const HOOKS: u16 = 0x2000;

impl Catalogue {
    #[inline]
    fn get() -> &'static Catalogue {
        static ALL: LazyLock<Catalogue> = LazyLock::new(Catalogue::new);
        &ALL
    }

    fn new() -> Self {
        let registry = Registry::classic();
        let mut catalogue = Catalogue { hooks: Vec::new(), layouts: Vec::new() };
        for hook in 0..HOOKS {
            let Some(kind) = Kind::of(hook) else {
                catalogue.hooks.push((0, 0));
                continue;
            };
            let [opcode, group] = hook.to_le_bytes();
            let class = group_guid(group);
            let known = |version: u16| {
                let identity = Identity::Classic { opcode, version };
                // Older versions of image loads are described with the other image events.
                let other = (hook == hook::IMAGE_LOAD).then_some(kernel_class::IMAGE);
                [class, other].into_iter().flatten().find_map(|c| registry.decoder(c, identity))
            };
            let newest = (0..=u16::from(u8::MAX)).rev().find(|&version| known(version).is_some());
            let Some(newest) = newest else {
                catalogue.hooks.push((0, 0));
                continue;
            };
            let first = catalogue.layouts.len() + 1;
            // A version that the tables lack is read as the one before it, else as the first one.
            let mut decoder = (0..=newest).find_map(known);
            for version in 0..=newest {
                decoder = known(version).or(decoder);
                catalogue.layouts.extend(decoder.map(|decoder| {
                    [PointerSize::P4, PointerSize::P8]
                        .map(|pointers| EventLayout::new(kind, decoder, pointers))
                }));
            }
            let count = catalogue.layouts.len() + 1 - first;
            let entry = (u8::try_from(first), u8::try_from(count));
            catalogue.hooks.push((entry.0.unwrap_or(0), entry.1.unwrap_or(0)));
        }
        catalogue
    }

    #[inline]
    fn event(
        &'static self,
        hook: u16,
        version: u8,
        pointers: PointerSize,
    ) -> Option<&'static EventLayout> {
        let &(first, count) = self.hooks.get(usize::from(hook))?;
        let first = usize::from(first).checked_sub(1)?;
        let version = usize::from(version.min(count.saturating_sub(1)));
        let [narrow, wide] = self.layouts.get(first + version)?;
        Some(if pointers == PointerSize::P8 { wide } else { narrow })
    }
}
