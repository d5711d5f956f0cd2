//! Events of the CLR's two providers, as far as verification needs their fields.
//!
//! Field places are those of the shipped manifests (see the tables of `etl-schema`). All fields
//! used here stand before the first string or behind a known number of strings, and have been at
//! the same place in every version.

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::cursor::{Bytes, Cursor};
use etl_format::read::Record;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

use super::frames::Frames;
use super::texts::whole_texts;

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

impl Method {
    /// Whether it was made at run time.
    #[must_use]
    pub const fn is_dynamic(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether it was compiled at run time.
    #[must_use]
    pub const fn is_jitted(&self) -> bool {
        self.flags & 8 != 0
    }

    /// Whether the runtime names it whatever the session's level is: dynamic, generic, or a helper.
    #[must_use]
    pub const fn is_always_named(&self) -> bool {
        self.flags & 0x17 != 0
    }
}

/// Identity of a PDB: signature and age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pdb {
    /// Signature.
    pub signature: Guid,
    /// Age.
    pub age: u32,
}

/// A module. Its texts and identities are read when they are asked for: most events are of other things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module<'a> {
    /// Identifies it within its CLR.
    pub id: ModuleId,
    /// Its assembly.
    pub assembly: AssemblyId,
    /// Flags: 1 shared by domains, 2 has a native image, 4 dynamic, 8 manifest module, 0x20 ready to run.
    pub flags: u32,
    /// Version of the event.
    version: u8,
    /// What stands behind the fixed fields.
    behind: &'a [u8],
}

/// What an event says of a module behind its fixed fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleText<'a> {
    /// Path of its IL file, UTF-16.
    pub il_path: &'a [u8],
    /// Path of its native image, UTF-16; empty where it has none.
    pub native_path: &'a [u8],
    /// PDB of its IL, unless zero.
    pub il_pdb: Option<Pdb>,
    /// PDB of its native image, unless zero.
    pub native_pdb: Option<Pdb>,
}

impl<'a> Module<'a> {
    /// From the fields of a module's event of a version; `behind` is what stands behind the fixed ones: the path of the
    /// IL and that of the native image, each with its NUL, the instance, and since version 2 both PDBs.
    #[must_use]
    pub const fn new(
        id: ModuleId,
        assembly: AssemblyId,
        flags: u32,
        version: u8,
        behind: &'a [u8],
    ) -> Self {
        Module { id, assembly, flags, version, behind }
    }

    /// Whether the event can hold the identities of PDBs at all (version 2 and later).
    #[must_use]
    pub const fn has_identity(&self) -> bool {
        self.version >= 2
    }

    /// What the event says behind its fixed fields.
    #[must_use]
    pub fn text(&self) -> ModuleText<'a> {
        let mut c = Cursor::new(self.behind);
        let (Some(il_path), Some(native_path)) = (c.utf16z(), c.utf16z()) else {
            return ModuleText::default();
        };
        let mut text = ModuleText { il_path, native_path, ..ModuleText::default() };
        if self.has_identity() {
            c.take(2);
            text.il_pdb = pdb(&mut c);
            text.native_pdb = pdb(&mut c);
        }
        text
    }
}

/// An assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// Identifies it within its CLR.
    pub id: AssemblyId,
    /// Its application domain.
    pub domain: u64,
}

/// A module as part of an application domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainModule {
    /// The module.
    pub module: ModuleId,
    /// Its assembly.
    pub assembly: AssemblyId,
    /// The domain.
    pub domain: u64,
}

/// What an event of the CLR says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClrEvent<'a> {
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
    /// A module.
    Module(Via, Module<'a>),
    /// A module in an application domain.
    DomainModule(Via, DomainModule),
    /// An assembly.
    Assembly(Via, Assembly),
    /// An application domain.
    AppDomain(Via, u64),
    /// A method is about to be compiled.
    JitStart(u64),
    /// The map from IL to the code of a method.
    IlMap(u64),
    /// An exception was thrown at this address.
    Exception(u64),
    /// The address at which precompiled code is entered.
    EntryPoint(u64),
    /// A call stack of the thread's previous event, and how many addresses it says it has.
    Stack(u32),
    /// Anything else.
    Other,
}

/// Id of a module within its CLR.
pub type ModuleId = u64;
/// Id of an assembly within its CLR.
pub type AssemblyId = u64;

/// An event of the CLR and the instance that raised it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromClr<'a> {
    /// Which CLR of the process, where the event says.
    pub instance: Option<u16>,
    /// What it says.
    pub event: ClrEvent<'a>,
    /// Whether it came from the rundown provider.
    pub rundown: bool,
    /// Whether the payload is known to end where the event's fields do, as the shipped runtimes have them. For many
    /// events that is found out by the way; for others it is `false`.
    pub whole: bool,
}

/// Decodes a record of one of the CLR's providers; `None` for others, and for payloads too short
/// for their event.
#[must_use]
pub fn decode<'a>(record: &Record<'a>) -> Option<FromClr<'a>> {
    let header = record.event()?;
    let rundown = rundown_of(header.provider)?;
    let d = header.descriptor;
    decode_event(rundown, (d.id, d.version), record.payload(), record.pointer_size())
}

/// Whether a provider is the CLR's rundown provider (`true`), its runtime provider (`false`), or neither.
#[must_use]
#[inline]
pub fn rundown_of(provider: Guid) -> Option<bool> {
    const RUNTIME_BITS: u128 = u128::from_le_bytes(CLR_RUNTIME.to_bytes());
    const RUNDOWN_BITS: u128 = u128::from_le_bytes(CLR_RUNDOWN.to_bytes());
    match u128::from_le_bytes(provider.to_bytes()) {
        RUNTIME_BITS => Some(false),
        RUNDOWN_BITS => Some(true),
        _ => None,
    }
}

/// Decodes the payload of an event of one of the CLR's providers, `rundown` saying of which; `None` for payloads
/// too short for their event.
#[must_use]
#[inline(always)]
pub fn decode_event<'a>(
    rundown: bool,
    (id, version): (u16, u8),
    payload: &'a [u8],
    pointers: Option<PointerSize>,
) -> Option<FromClr<'a>> {
    let event = if rundown { rundown_event(id) } else { runtime_event(id) };
    let mut c = Cursor::new(payload);
    let mut whole = false;
    let (event, instance) = match event {
        Shape::Marker(event) => (event, c.u16().filter(|_| version > 0)),
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
            // Behind the instance there is nothing in version 1, and the id of a rejit in version 2.
            let behind = match version {
                1 => Some(0),
                2 => Some(8),
                _ => None,
            };
            let rest = c.rest();
            let texts = behind.and_then(|behind| rest.len().checked_sub(2 + behind));
            let texts = texts.filter(|&len| {
                named && rest.get(..len).and_then(whole_texts) == Some(METHOD_TEXTS)
            });
            whole = texts.is_some();
            let instance = match texts {
                Some(len) => rest.u16_at(len),
                None => instance_behind(&mut c, if named { METHOD_TEXTS } else { 0 }, version),
            };
            (ClrEvent::Method(via, method), instance)
        }
        Shape::Module(via) => {
            let (module, instance) = module(&mut c, version)?;
            (ClrEvent::Module(via, module), instance)
        }
        Shape::DomainModule(via) => {
            let (module, assembly, domain) = (c.u64()?, c.u64()?, c.u64()?);
            c.take(8)?;
            let event = ClrEvent::DomainModule(via, DomainModule { module, assembly, domain });
            (event, instance_behind(&mut c, 2, version))
        }
        Shape::Assembly(via) => {
            let (id, domain) = (c.u64()?, c.u64()?);
            c.take(if version > 0 { 12 } else { 4 })?;
            let event = ClrEvent::Assembly(via, Assembly { id, domain });
            (event, instance_behind(&mut c, 1, version))
        }
        Shape::AppDomain(via) => {
            let domain = c.u64()?;
            c.take(4)?;
            c.utf16z()?;
            let instance = if version > 0 { c.u32().and_then(|_| c.u16()) } else { None };
            (ClrEvent::AppDomain(via, domain), instance)
        }
        Shape::Stack => {
            let instance = c.u16();
            c.take(2)?;
            let stated = c.u32()?;
            let size = if pointers == Some(PointerSize::P8) { 8 } else { 4 };
            whole = usize::try_from(stated).ok().and_then(|n| n.checked_mul(size))
                == Some(c.rest().len());
            (ClrEvent::Stack(stated), instance)
        }
        Shape::JitStart => {
            let id = c.u64()?;
            c.take(16)?;
            (ClrEvent::JitStart(id), instance_behind(&mut c, 3, version))
        }
        Shape::IlMap => {
            let method = c.u64()?;
            (ClrEvent::IlMap(method), None)
        }
        Shape::Exception if version > 0 => {
            c.utf16z()?;
            c.utf16z()?;
            let wide = pointers == Some(PointerSize::P8);
            let address = if wide { c.u64()? } else { c.u32()?.into() };
            let instance = c.take(6).and_then(|_| c.u16());
            (ClrEvent::Exception(address), instance)
        }
        Shape::EntryPoint => {
            c.take(8)?;
            for _ in 0..3 {
                c.utf16z()?;
            }
            (ClrEvent::EntryPoint(c.u64()?), c.u16())
        }
        Shape::Exception => (ClrEvent::Other, None),
        Shape::Other => (ClrEvent::Other, None),
    };
    Some(FromClr { instance, event, rundown, whole })
}

/// Texts in the event of a method that names it: namespace, name and signature.
const METHOD_TEXTS: usize = 3;

/// Whether an event is the stack of the one before it on its thread.
#[must_use]
pub fn is_stack(rundown: bool, id: u16) -> bool {
    matches!(if rundown { rundown_event(id) } else { runtime_event(id) }, Shape::Stack)
}

/// Whether an event is a map from IL to code.
#[must_use]
pub fn is_il_map(rundown: bool, id: u16) -> bool {
    matches!(if rundown { rundown_event(id) } else { runtime_event(id) }, Shape::IlMap)
}

/// The smallest payload of an event of which no field matters to the machine; `None` for the others.
#[must_use]
#[inline]
pub fn min_size_without_fields(rundown: bool, id: u16) -> Option<usize> {
    match if rundown { rundown_event(id) } else { runtime_event(id) } {
        Shape::Other => Some(0),
        Shape::IlMap => Some(8),
        _ => None,
    }
}

fn module<'a>(c: &mut Cursor<'a>, version: u8) -> Option<(Module<'a>, Option<u16>)> {
    let (id, assembly, flags) = (c.u64()?, c.u64()?, c.u32()?);
    c.take(4)?;
    let behind = c.rest();
    for _ in 0..2 {
        c.utf16z()?;
    }
    let instance = if version > 0 { c.u16() } else { None };
    Some((Module::new(id, assembly, flags, version, behind), instance))
}

fn pdb(c: &mut Cursor<'_>) -> Option<Pdb> {
    let (signature, age) = (c.take(16)?.guid_at(0)?, c.u32()?);
    c.utf16z()?;
    (signature != Guid::ZERO).then_some(Pdb { signature, age })
}

/// The addresses of a CLR stack event: all pointers behind the eight bytes of its fixed part. The
/// payload's length decides, since the manifest's count is wrong (erratum X28).
#[must_use]
pub fn stack_frames(payload: &[u8], pointers: Option<PointerSize>) -> Frames<'_> {
    Frames::new(payload.get(8..).unwrap_or_default(), pointers == Some(PointerSize::P8))
}

/// What a method's event says besides where its code is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodText<'a> {
    /// Metadata token.
    pub token: u32,
    /// Namespace and type, UTF-16; empty where the event names nothing.
    pub namespace: &'a [u8],
    /// Name, UTF-16.
    pub name: &'a [u8],
    /// Signature, UTF-16.
    pub signature: &'a [u8],
    /// ReJIT id: which version of the method's code; `None` before version 2 of the event.
    pub version: Option<u64>,
}

/// The names in the payload of a method event; `named` as [`Method::named`].
#[must_use]
pub fn method_text(version: u8, named: bool, payload: &[u8]) -> Option<MethodText<'_>> {
    let mut c = Cursor::new(payload);
    c.take(28)?;
    let mut text = MethodText { token: c.u32()?, ..MethodText::default() };
    c.take(4)?;
    if named {
        (text.namespace, text.name, text.signature) = (c.utf16z()?, c.utf16z()?, c.utf16z()?);
    }
    if version >= 2 {
        c.take(2)?;
        text.version = c.u64();
    }
    Some(text)
}

/// The full name in the payload of an assembly event, UTF-16.
#[must_use]
pub fn assembly_name(version: u8, payload: &[u8]) -> Option<&[u8]> {
    let mut c = Cursor::new(payload);
    c.take(if version > 0 { 28 } else { 20 })?;
    c.utf16z()
}

/// The name in the payload of an app domain event, UTF-16.
#[must_use]
pub fn domain_name(payload: &[u8]) -> Option<&[u8]> {
    let mut c = Cursor::new(payload);
    c.take(12)?;
    c.utf16z()
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
    Marker(ClrEvent<'static>),
    Runtime,
    Method(Via, bool),
    Module(Via),
    DomainModule(Via),
    Assembly(Via),
    AppDomain(Via),
    JitStart,
    IlMap,
    Exception,
    EntryPoint,
    Stack,
    Other,
}

fn runtime_event(id: u16) -> Shape {
    use Rundown::{End, Start};
    use Via::{Enumerated, Load, Unload};
    match id {
        80 => Shape::Exception,
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
        145 => Shape::JitStart,
        149 => Shape::Module(Enumerated(Start)),
        150 => Shape::Module(Enumerated(End)),
        151 => Shape::DomainModule(Load),
        152 => Shape::Module(Load),
        153 => Shape::Module(Unload),
        154 => Shape::Assembly(Load),
        155 => Shape::Assembly(Unload),
        156 => Shape::AppDomain(Load),
        157 => Shape::AppDomain(Unload),
        159 => Shape::EntryPoint,
        187 => Shape::Runtime,
        190 => Shape::IlMap,
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
        149 | 150 => Shape::IlMap,
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
