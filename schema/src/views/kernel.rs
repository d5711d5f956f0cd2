//! Typed views of the kernel's events.

use std::sync::LazyLock;

use etl_format::constants::{PointerSize, RecordKind, group_guid, hook, hook_class};
use etl_format::cursor::Bytes;
use etl_format::read::{Header, Record};

use super::Frames;
use super::layout::{Catalogue, Layout, OpenText, Position, Value, view};
use crate::decode::Decoder;
use crate::model::Identity;
use crate::tables::{Entry, Registry};

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

view! {
    /// A process.
    Process, ProcessLayout {
        /// Its id.
        pid: u32 = "ProcessId",
    }
    /// The process that created it.
    pub fn parent: u32 = "ParentId";
    /// The session that it runs in.
    pub fn session: u32 = "SessionId";
    /// The SID of its user, as stored; empty if the event has none.
    pub fn user: &'a [u8] = "UserSID";
    /// File name of its executable, in an 8-bit encoding.
    pub fn name: &'a [u8] = "ImageFileName";
    /// Its command line, UTF-16.
    pub fn command_line: &'a [u8] = "CommandLine";
    /// Key by which other events name the process; it is not used again.
    pub fn key: u64 = "UniqueProcessKey";
    /// Its exit status; meaningful when it ends.
    pub fn exit_status: i32 = "ExitStatus";
}

view! {
    /// A thread.
    Thread, ThreadLayout {
        /// Its process.
        pid: u32 = "ProcessId",
        /// Its id.
        tid: u32 = "TThreadId" | "ThreadId",
    }
    /// Address of the function that it was created with; `None` if the event does not have it.
    pub fn start_address: u64 = "Win32StartAddr";
    fn open_name: OpenText<'a> = "ThreadName";
}

impl<'a> Thread<'a> {
    /// Its name, UTF-16; empty if it has none, `None` if the event has no such field.
    #[must_use]
    pub fn name(&self) -> Option<&'a [u8]> {
        self.open_name().map(|name| name.0)
    }
}

view! {
    /// An image in the address space of a process.
    Image, ImageLayout {
        /// First address.
        base: u64 = "ImageBase",
        /// Bytes.
        size: u64 = "ImageSize",
        /// The process; 0 for the kernel. Version 0 of the event is about the kernel's images.
        pid: u32 = "ProcessId" or 0,
    }
    /// Path of its file, UTF-16.
    pub fn path: &'a [u8] = "FileName";
    /// When it was linked, as its header states it.
    pub fn link_time: u32 = "TimeDateStamp";
}

/// An event of the kernel, by its subject.
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
        /// What interrupted the thread.
        interrupt: Option<Interrupt>,
    },
    /// A call stack.
    Stack {
        /// Raw timestamp of the event of the stack.
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
        /// Raw timestamp of the event of the stack.
        at: i64,
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// The key.
        key: u64,
        /// Whether it is the key of the user part of the stack, not of the kernel part.
        user: bool,
    },
    /// The addresses of the stack with a key.
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

/// What interrupts a thread without being part of it: it runs on the stack of the processor, also
/// on idle processors.
///
/// ```
/// use etl_schema::views::kernel::Interrupt;
///
/// assert_eq!(Interrupt::from_flags(0x81), Some(Interrupt::Dpc));
/// assert_eq!(Interrupt::from_flags(0x80), None);
/// assert_eq!(Interrupt::Isr.name(), "ISR");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interrupt {
    /// A deferred procedure call.
    Dpc,
    /// An interrupt service routine.
    Isr,
}

impl Interrupt {
    /// The interrupt by the flags of a sample. A service routine may interrupt a deferred call.
    #[must_use]
    #[inline]
    pub const fn from_flags(flags: u8) -> Option<Self> {
        match flags & 3 {
            0 => None,
            1 => Some(Interrupt::Dpc),
            _ => Some(Interrupt::Isr),
        }
    }

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Interrupt::Dpc => "DPC",
            Interrupt::Isr => "ISR",
        }
    }
}

/// A sample of what a processor was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The instruction pointer.
    pub address: u64,
    /// The thread that was running.
    pub tid: u32,
    /// What interrupted the thread; version 2 of the event states it.
    pub interrupt: Option<Interrupt>,
}

/// The first version of samples that has flags; they were the upper half of a count before.
const FIRST_WITH_FLAGS: u8 = 2;

/// The sample in a record with the hook [`SAMPLE`](hook::SAMPLE). Most of the records of a kernel
/// session are samples.
#[must_use]
#[inline(always)]
pub fn sample(record: &Record<'_>) -> Option<Sample> {
    // Nearly all of them have pointers of 64 bits and no extended header: the payload follows the
    // 16 bytes of the header.
    let bytes = record.bytes();
    if record.kind() == RecordKind::PERFINFO64 && bytes.u16_at(0)? & !0xff == 0 {
        let bytes: &[u8; 28] = bytes.first_chunk()?;
        let has_flags = bytes.u8_at(0)? >= FIRST_WITH_FLAGS;
        let flags = record.bytes().u8_at(30).filter(|_| has_flags);
        return Some(Sample {
            address: bytes.u64_at(16)?,
            tid: bytes.u32_at(24)?,
            interrupt: flags.and_then(Interrupt::from_flags),
        });
    }
    other_sample(record)
}

#[inline(never)]
fn other_sample(record: &Record<'_>) -> Option<Sample> {
    match decode(record)? {
        Event::Sample {
            address,
            tid,
            interrupt,
        } => Some(Sample {
            address,
            tid,
            interrupt,
        }),
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
        let relogged = if record.is_kernel() {
            None
        } else {
            EVENTS.decoder(hook, version)
        };
        let pointers = match relogged {
            Some(decoder) => decoder.pointers_of(record),
            None => record.pointer_size().unwrap_or(PointerSize::P8),
        };
        Fields::new(hook, version, record.payload(), pointers)
    }

    #[inline]
    pub(super) fn new(
        hook: u16,
        version: u8,
        payload: &'a [u8],
        pointers: PointerSize,
    ) -> Option<Self> {
        let (event, _) = EVENTS.event(hook, version, pointers)?;
        Some(Fields { event, payload })
    }

    #[inline]
    fn read<T: Value<'a>>(&self, at: Position) -> Option<T> {
        self.event.layout.read(self.payload, at)
    }

    /// The process that the event is about, as its payload has it.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.read(self.event.process)
    }

    /// The threads that the event is about, as its payload has them: of a context switch the new
    /// one and the old one.
    #[must_use]
    pub fn thread_ids(&self) -> [Option<u32>; 2] {
        self.event.threads.map(|at| self.read(at))
    }

    /// The event; `None` if it is not one that [`decode`] reads, and for a payload that is too
    /// short.
    #[must_use]
    #[inline]
    pub fn event(self) -> Option<Event<'a>> {
        let payload = self.payload;
        Some(match &self.event.kind {
            Kind::Process(change, layout) => Event::Process(*change, layout.read(payload)?),
            Kind::Thread(change, layout) => Event::Thread(*change, layout.read(payload)?),
            Kind::ThreadName(layout) => Event::ThreadName(layout.read(payload)?),
            Kind::Image(change, layout) => Event::Image(*change, layout.read(payload)?),
            Kind::Sample([address, tid, flags]) => Event::Sample {
                address: self.read(*address)?,
                tid: self.read(*tid)?,
                interrupt: self
                    .read::<u32>(*flags)
                    .and_then(|flags| Interrupt::from_flags(flags as u8)),
            },
            Kind::Stack([at, pid, tid, frames]) => Event::Stack {
                at: self.read(*at)?,
                pid: self.read(*pid)?,
                tid: self.read(*tid)?,
                frames: self.read(*frames)?,
            },
            Kind::StackKey {
                user,
                at: [at, pid, tid, key],
            } => Event::StackKey {
                user: *user,
                at: self.read(*at)?,
                pid: self.read(*pid)?,
                tid: self.read(*tid)?,
                key: self.read(*key)?,
            },
            Kind::StackDefinition {
                last,
                at: [key, frames],
            } => Event::StackDefinition {
                last: *last,
                key: self.read(*key)?,
                frames: self.read(*frames)?,
            },
            Kind::Ids => return None,
        })
    }
}

/// Group and type of a kernel event, in whichever form it was recorded: some relogged traces have
/// the kernel's events as classic ones.
#[must_use]
#[inline]
pub fn hook_of(record: &Record<'_>) -> Option<u16> {
    // This runs for most records, so the header is decoded only if the kind does not decide.
    if record.is_kernel() || record.is_event() {
        return record.hook();
    }
    let Header::Full(header) = record.header() else {
        return None;
    };
    let group = (0..0x20).find(|&group| group_guid(group) == Some(header.class))?;
    let hook = u16::from(group) << 8 | u16::from(header.opcode);
    // A load has the class of images, and the hook of a process.
    Some(if hook == IMAGE_CLASS_LOAD {
        hook::IMAGE_LOAD
    } else {
        hook
    })
}

/// The class and the type of a load of an image, as a hook would have them.
const IMAGE_CLASS_LOAD: u16 = 0x140a;

/// An event, with the positions of its fields.
#[derive(Debug)]
enum Kind {
    Process(Change, ProcessLayout),
    Thread(Change, ThreadLayout),
    ThreadName(ThreadLayout),
    Image(Change, ImageLayout),
    Sample([Position; 3]),
    Stack([Position; 4]),
    StackKey {
        user: bool,
        at: [Position; 4],
    },
    StackDefinition {
        last: bool,
        at: [Position; 2],
    },
    /// Only process and threads are read.
    Ids,
}

impl Kind {
    fn new(hook: u16, decoder: &Decoder, p: PointerSize) -> Self {
        match hook {
            hook::PROCESS_START..=hook::PROCESS_DC_END => {
                let change = Change::of(hook, hook::PROCESS_START);
                Kind::Process(change, ProcessLayout::new(decoder, p))
            }
            hook::THREAD_START..=hook::THREAD_DC_END => {
                let change = Change::of(hook, hook::THREAD_START);
                Kind::Thread(change, ThreadLayout::new(decoder, p))
            }
            hook::THREAD_SET_NAME => Kind::ThreadName(ThreadLayout::new(decoder, p)),
            hook::IMAGE_LOAD => Kind::Image(Change::Start, ImageLayout::new(decoder, p)),
            hook::IMAGE_UNLOAD..=hook::IMAGE_DC_END => {
                let change = Change::of(hook, hook::IMAGE_UNLOAD - 1);
                Kind::Image(change, ImageLayout::new(decoder, p))
            }
            hook::SAMPLE => Kind::Sample(Layout::positions(
                decoder,
                p,
                ["InstructionPointer", "ThreadId", "Flags"],
            )),
            hook::STACK => Kind::Stack(stack_positions(decoder, p, "Stack")),
            hook::STACK_KEY_KERNEL | hook::STACK_KEY_USER => Kind::StackKey {
                user: hook == hook::STACK_KEY_USER,
                at: stack_positions(decoder, p, "StackKey"),
            },
            hook::STACK_KEY_CREATE | hook::STACK_KEY_DELETE | hook::STACK_KEY_RUNDOWN => {
                Kind::StackDefinition {
                    last: hook != hook::STACK_KEY_CREATE,
                    at: Layout::positions(decoder, p, ["StackKey", "Stack"]),
                }
            }
            _ => Kind::Ids,
        }
    }
}

/// The fields of a stack, or of the key of a stack, of which `last` is the name.
fn stack_positions(decoder: &Decoder, pointers: PointerSize, last: &str) -> [Position; 4] {
    let names = ["EventTimeStamp", "StackProcess", "StackThread", last];
    Layout::positions(decoder, pointers, names)
}

/// Whether process and threads of events with this hook are read, and nothing else.
const fn has_ids_only(hook: u16) -> bool {
    let is_of_network = matches!((hook >> 8) as u8, hook::GROUP_TCP | hook::GROUP_UDP);
    is_of_network
        || matches!(
            hook,
            hook::PROCESS_DEFUNCT
                | hook::CSWITCH
                | hook::READY_THREAD
                | hook::DISK_READ
                | hook::DISK_WRITE
                | hook::DISK_READ_INIT
                | hook::DISK_WRITE_INIT
                | hook::DISK_FLUSH_INIT
                | hook::DISK_FLUSH
                | hook::HARD_FAULT
                | hook::VIRTUAL_ALLOC
                | hook::VIRTUAL_FREE
        )
}

/// Names of the field that holds the process, and of those that hold threads.
const PROCESS: &[&str] = &["ProcessId", "StackProcess", "PID"];
const THREADS: [&[&str]; 2] = [
    &[
        "TThreadId",
        "ThreadId",
        "StackThread",
        "IssuingThreadId",
        "NewThreadId",
    ],
    &["OldThreadId"],
];

/// Where the fields of an event are.
#[derive(Debug)]
struct EventLayout {
    kind: Kind,
    process: Position,
    threads: [Position; 2],
    layout: Layout,
}

impl EventLayout {
    fn new(hook: u16, decoder: &Decoder, pointers: PointerSize) -> Option<Self> {
        Some(EventLayout {
            kind: Kind::new(hook, decoder, pointers),
            process: Layout::find(decoder, pointers, PROCESS),
            threads: THREADS.map(|names| Layout::find(decoder, pointers, names)),
            layout: Layout::new(decoder, pointers),
        })
    }
}

/// Hooks end here: there are 32 groups.
const HOOKS: u16 = 0x2000;

/// The kernel events that have a view, by hook.
static EVENTS: LazyLock<Catalogue<EventLayout>> = LazyLock::new(|| {
    let hooks = (0..HOOKS).filter(|&hook| is_read(hook) || has_ids_only(hook));
    Catalogue::new(hooks, entry, EventLayout::new)
});

/// The table entry of a version of a kernel event.
fn entry(hook: u16, version: u8) -> Option<Entry<'static>> {
    let identity = Identity::Classic {
        opcode: hook as u8,
        version: version.into(),
    };
    Registry::classic().entry(hook_class(hook)?, identity)
}
