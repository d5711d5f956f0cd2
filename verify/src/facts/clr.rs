//! Events of the CLR's two providers, as far as verification needs their fields.
//!
//! Field places are those of the shipped manifests (see the tables of `etl-schema`). All fields
//! used here stand before the first string or behind a known number of strings, and have been at
//! the same place in every version.

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::cursor::{Bytes, Cursor};
use etl_format::read::Record;

/// Microsoft-Windows-DotNETRuntime.
pub const RUNTIME: Guid =
    Guid::new(0xe13c0d23, 0xccbc, 0x4e12, [0x93, 0x1b, 0xd9, 0xcc, 0x2e, 0xee, 0x27, 0xe4]);
/// Microsoft-Windows-DotNETRuntimeRundown.
pub const RUNDOWN: Guid =
    Guid::new(0xa669021c, 0xc450, 0x4609, [0xa0, 0x35, 0x5a, 0xf5, 0x9a, 0xf4, 0xdf, 0x18]);

/// Which enumeration a rundown event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rundown {
    /// The enumeration at the start: what was there before.
    Start,
    /// The enumeration at the end: what is there now.
    End,
}

impl Rundown {
    /// `start` or `end`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Rundown::Start => "start",
            Rundown::End => "end",
        }
    }
}

/// How something came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// It was loaded at this moment.
    Load,
    /// It was unloaded at this moment.
    Unload,
    /// A rundown enumerated it.
    Enumerated(Rundown),
}

/// Code of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Identifies the method within its CLR.
    pub id: u64,
    /// The module, 0 for helpers.
    pub module: u64,
    /// First byte of the code.
    pub start: u64,
    /// Bytes of the code.
    pub size: u32,
    /// Flags: 1 dynamic, 2 generic, 4 shared generic, 8 jitted, 0x10 helper.
    pub flags: u32,
    /// Whether the event names the method.
    pub named: bool,
}

/// What an event of the CLR says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClrEvent {
    /// A rundown begins.
    Init(Rundown),
    /// A rundown is complete.
    Complete(Rundown),
    /// The runtime tells its version.
    Runtime {
        /// Product version.
        version: [u16; 4],
        /// 1 for the desktop framework, 2 for Core.
        sku: u16,
    },
    /// Code of a method.
    Method(Via, Method),
    /// A module, in its assembly.
    Module(Via, ModuleId, AssemblyId),
    /// A module in an application domain.
    DomainModule(Via, ModuleId),
    /// An assembly, in its domain.
    Assembly(Via, AssemblyId),
    /// An application domain.
    AppDomain(Via, u64),
    /// A call stack of the thread's previous event.
    Stack,
    /// Anything else.
    Other,
}

/// Id of a module within its CLR.
pub type ModuleId = u64;
/// Id of an assembly within its CLR.
pub type AssemblyId = u64;

/// An event of the CLR and the instance that raised it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromClr {
    /// Which CLR of the process, where the event says.
    pub instance: Option<u16>,
    /// What it says.
    pub event: ClrEvent,
    /// Whether it came from the rundown provider.
    pub rundown: bool,
}

/// Decodes a record of one of the CLR's providers; `None` for others, and for payloads too short
/// for their event.
#[must_use]
pub fn decode(record: &Record<'_>) -> Option<FromClr> {
    let provider = record.provider()?;
    let rundown = match provider {
        RUNTIME => false,
        RUNDOWN => true,
        _ => return None,
    };
    let d = record.descriptor()?;
    let payload = record.payload();
    let event = if rundown { rundown_event(d.id) } else { runtime_event(d.id) };
    let mut c = Cursor::new(payload);
    let (event, instance) = match event {
        Shape::Marker(event) => (event, c.u16().filter(|_| d.version > 0)),
        Shape::Runtime => {
            let (instance, sku) = (c.u16()?, c.u16()?);
            c.take(8)?;
            let version = [c.u16()?, c.u16()?, c.u16()?, c.u16()?];
            (ClrEvent::Runtime { version, sku }, Some(instance))
        }
        Shape::Method(via, named) => {
            let method = Method {
                id: c.u64()?,
                module: c.u64()?,
                start: c.u64()?,
                size: c.u32()?,
                flags: {
                    c.take(4)?;
                    c.u32()?
                },
                named,
            };
            let instance = instance_behind(&mut c, if named { 3 } else { 0 }, d.version);
            (ClrEvent::Method(via, method), instance)
        }
        Shape::Module(via) => {
            let (module, assembly) = (c.u64()?, c.u64()?);
            c.take(8)?;
            (ClrEvent::Module(via, module, assembly), instance_behind(&mut c, 2, d.version))
        }
        Shape::DomainModule(via) => {
            let module = c.u64()?;
            c.take(24)?;
            (ClrEvent::DomainModule(via, module), instance_behind(&mut c, 2, d.version))
        }
        Shape::Assembly(via) => {
            let assembly = c.u64()?;
            c.take(if d.version > 0 { 20 } else { 12 })?;
            (ClrEvent::Assembly(via, assembly), instance_behind(&mut c, 1, d.version))
        }
        Shape::AppDomain(via) => {
            let domain = c.u64()?;
            c.take(4)?;
            c.utf16z()?;
            let instance = if d.version > 0 { c.u32().and_then(|_| c.u16()) } else { None };
            (ClrEvent::AppDomain(via, domain), instance)
        }
        Shape::Stack => (ClrEvent::Stack, c.u16()),
        Shape::Other => (ClrEvent::Other, None),
    };
    Some(FromClr { instance, event, rundown })
}

/// The addresses of a CLR stack event: all pointers behind the eight bytes of its fixed part. The
/// payload's length decides, since the manifest's count is wrong (erratum X28).
pub fn stack_frames<'a>(record: &Record<'a>) -> impl Iterator<Item = u64> + use<'a> {
    let wide = record.pointer_size() == Some(PointerSize::P8);
    let stack = record.payload().get(8..).unwrap_or_default();
    stack
        .chunks_exact(if wide { 8 } else { 4 })
        .filter_map(move |a| if wide { a.u64_at(0) } else { a.u32_at(0).map(u64::from) })
}

fn instance_behind(c: &mut Cursor<'_>, strings: usize, version: u8) -> Option<u16> {
    if version == 0 {
        return None;
    }
    for _ in 0..strings {
        c.utf16z()?;
    }
    c.u16()
}

/// Layouts of payloads, before they are read.
enum Shape {
    Marker(ClrEvent),
    Runtime,
    Method(Via, bool),
    Module(Via),
    DomainModule(Via),
    Assembly(Via),
    AppDomain(Via),
    Stack,
    Other,
}

fn runtime_event(id: u16) -> Shape {
    use Rundown::{End, Start};
    use Via::{Enumerated, Load, Unload};
    match id {
        82 => Shape::Stack,
        // What the first release raised under this provider.
        135 => Shape::Marker(ClrEvent::Complete(Start)),
        136 => Shape::Marker(ClrEvent::Complete(End)),
        137 => Shape::Method(Enumerated(Start), false),
        138 => Shape::Method(Enumerated(End), false),
        139 => Shape::Method(Enumerated(Start), true),
        140 => Shape::Method(Enumerated(End), true),
        141 => Shape::Method(Load, false),
        142 => Shape::Method(Unload, false),
        143 => Shape::Method(Load, true),
        144 => Shape::Method(Unload, true),
        149 => Shape::Module(Enumerated(Start)),
        150 => Shape::Module(Enumerated(End)),
        151 => Shape::DomainModule(Load),
        152 => Shape::Module(Load),
        153 => Shape::Module(Unload),
        154 => Shape::Assembly(Load),
        155 => Shape::Assembly(Unload),
        156 => Shape::AppDomain(Load),
        157 => Shape::AppDomain(Unload),
        187 => Shape::Runtime,
        _ => Shape::Other,
    }
}

fn rundown_event(id: u16) -> Shape {
    use Rundown::{End, Start};
    use Via::Enumerated;
    match id {
        0 => Shape::Stack,
        141 => Shape::Method(Enumerated(Start), false),
        142 => Shape::Method(Enumerated(End), false),
        143 => Shape::Method(Enumerated(Start), true),
        144 => Shape::Method(Enumerated(End), true),
        145 => Shape::Marker(ClrEvent::Complete(Start)),
        146 => Shape::Marker(ClrEvent::Complete(End)),
        147 => Shape::Marker(ClrEvent::Init(Start)),
        148 => Shape::Marker(ClrEvent::Init(End)),
        151 => Shape::DomainModule(Enumerated(Start)),
        152 => Shape::DomainModule(Enumerated(End)),
        153 => Shape::Module(Enumerated(Start)),
        154 => Shape::Module(Enumerated(End)),
        155 => Shape::Assembly(Enumerated(Start)),
        156 => Shape::Assembly(Enumerated(End)),
        157 => Shape::AppDomain(Enumerated(Start)),
        158 => Shape::AppDomain(Enumerated(End)),
        187 => Shape::Runtime,
        _ => Shape::Other,
    }
}
