//! Events of the CLR's runtime and rundown providers.

use std::sync::LazyLock;

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::cursor::Bytes;
use etl_format::read::Record;

use super::layout::{Layout, Position};
use super::{Frames, Pdb, count_texts};
pub use crate::clr::Enumeration;
use crate::model::Identity;
use crate::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use crate::tables::Registry;

/// What happened to a domain, an assembly, a module or a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It was loaded at the time of the event.
    Load,
    /// It was unloaded at the time of the event.
    Unload,
    /// A rundown lists it.
    Rundown(Enumeration),
}

/// Code of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Identifies the method within its CLR.
    pub id: u64,
    /// The module, 0 for helpers.
    pub module: u64,
    /// First address of the code.
    pub start: u64,
    /// Bytes of the code.
    pub size: u32,
    /// Flags: 1 dynamic, 2 generic, 4 shared generic, 8 jitted, 0x10 helper.
    pub flags: u32,
    /// Whether the event has the method's names (`MethodLoadVerbose` and the like).
    pub named: bool,
}

impl Method {
    /// Whether it was created at run time (`DynamicMethod`).
    #[must_use]
    pub const fn is_dynamic(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether it was compiled at run time.
    #[must_use]
    pub const fn is_jitted(&self) -> bool {
        self.flags & 8 != 0
    }

    /// Whether the runtime names it at every level: dynamic, generic, or a helper.
    #[must_use]
    pub const fn is_always_named(&self) -> bool {
        self.flags & 0x17 != 0
    }
}

/// Names of a method, and which version of its code an event is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodText<'a> {
    /// Metadata token.
    pub token: u32,
    /// Namespace and type, UTF-16; empty where the event has no names.
    pub namespace: &'a [u8],
    /// Name, UTF-16.
    pub name: &'a [u8],
    /// Signature, UTF-16.
    pub signature: &'a [u8],
    /// ReJIT id: the version of the method's code; `None` before version 2 of the event.
    pub version: Option<u64>,
}

/// A module. Its texts are read on demand.
#[derive(Clone, Copy, Debug)]
pub struct Module<'a> {
    /// Identifies it within its CLR.
    pub id: u64,
    /// Its assembly.
    pub assembly: u64,
    /// Flags: 1 shared by domains, 2 has a native image, 4 dynamic, 8 manifest module, 0x20 ready
    /// to run.
    pub flags: u32,
    fields: Fields<'a>,
}

/// Paths of a module and identities of its PDBs.
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
    /// Whether this version of the event has identities of PDBs (version 2 and later).
    #[must_use]
    pub fn has_identity(&self) -> bool {
        self.fields.event.at[5].is_known()
    }

    /// Paths and PDBs; empty where the payload ends before the end of a path.
    #[must_use]
    pub fn text(&self) -> ModuleText<'a> {
        let Fields { event, payload } = self.fields;
        let [_, _, _, il, native, il_signature, il_age, native_signature, native_age, _] = event.at;
        let text = |at| event.layout.variable(payload, at);
        let (Some(il_path), Some(native_path)) = (text(il), text(native)) else {
            return ModuleText::default();
        };
        let pdb = |signature, age| {
            let signature = event.layout.guid(payload, signature)?;
            let age = event.layout.u32(payload, age)?;
            (signature != Guid::ZERO).then_some(Pdb { signature, age })
        };
        let (il_pdb, native_pdb) = (pdb(il_signature, il_age), pdb(native_signature, native_age));
        ModuleText { il_path, native_path, il_pdb, native_pdb }
    }
}

/// An assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// Identifies it within its CLR.
    pub id: u64,
    /// Its application domain.
    pub domain: u64,
}

/// A module as part of an application domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainModule {
    /// The module.
    pub module: u64,
    /// Its assembly.
    pub assembly: u64,
    /// The domain.
    pub domain: u64,
}

/// An event of the CLR, by what it is about.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An enumeration begins.
    Init(Enumeration),
    /// An enumeration is complete.
    Complete(Enumeration),
    /// The version of the runtime.
    Runtime {
        /// Product version.
        version: [u16; 4],
        /// 1 for .NET Framework, 2 for .NET Core.
        sku: u16,
    },
    /// Code of a method.
    Method(Change, Method),
    /// A module.
    Module(Change, Module<'a>),
    /// A module in an application domain.
    DomainModule(Change, DomainModule),
    /// An assembly.
    Assembly(Change, Assembly),
    /// An application domain, by its id.
    AppDomain(Change, u64),
    /// The method with this id is about to be compiled.
    JitStart(u64),
    /// The map from IL to native code of the method with this id.
    IlMap(u64),
    /// An exception was thrown at this address.
    Exception(u64),
    /// The address at which precompiled code is entered.
    EntryPoint(u64),
    /// The call stack of the previous event of the thread.
    Stack {
        /// The number of addresses as the event states it.
        stated: u32,
        /// The addresses: all to the end of the payload, since the stated number is often wrong
        /// (erratum X28).
        frames: Frames<'a>,
    },
    /// Any other event of the two providers.
    Other,
}

/// An event and the CLR that raised it.
#[derive(Clone, Copy, Debug)]
pub struct Decoded<'a> {
    /// The CLR within the process, where the event has it.
    pub instance: Option<u16>,
    /// The event.
    pub event: Event<'a>,
    /// Whether it is an event of the rundown provider.
    pub rundown: bool,
    /// Whether the payload is known to end where the fields of the shipped event end. That is found
    /// out for events for which it costs nothing; `false` for others.
    pub exact: bool,
    fields: Option<Fields<'a>>,
}

impl<'a> Decoded<'a> {
    /// The names of the method of a method event; `None` for other events, and for a payload that
    /// ends before the end of a name.
    #[must_use]
    pub fn method_text(&self) -> Option<MethodText<'a>> {
        let Event::Method(_, method) = self.event else { return None };
        let Fields { event, payload } = self.fields?;
        let [.., token, namespace, name, signature, rejit] = event.at;
        let mut text = MethodText {
            token: event.layout.u32(payload, token)?,
            version: event.layout.uint(payload, rejit),
            ..MethodText::default()
        };
        if method.named {
            text.namespace = event.layout.variable(payload, namespace)?;
            text.name = event.layout.variable(payload, name)?;
            text.signature = event.layout.variable(payload, signature)?;
        }
        Some(text)
    }

    /// The full name of the assembly of an assembly event, or the name of the application domain of
    /// a domain event, UTF-16.
    #[must_use]
    pub fn name(&self) -> Option<&'a [u8]> {
        let Fields { event, payload } = self.fields?;
        matches!(self.event, Event::Assembly(..) | Event::AppDomain(..))
            .then(|| event.layout.variable(payload, event.at[2]))?
    }
}

/// Decodes a record of one of the two providers; `None` for other records, and for a payload that
/// is too short for its event.
#[must_use]
pub fn decode<'a>(record: &Record<'a>) -> Option<Decoded<'a>> {
    let header = record.event()?;
    let rundown = rundown_of(header.provider)?;
    let (id, version) = (header.descriptor.id, header.descriptor.version);
    let pointers = record.pointer_size().unwrap_or(PointerSize::P4);
    decode_event(rundown, (id, version), record.payload(), pointers)
}

/// `true` for the CLR's rundown provider, `false` for its runtime provider, `None` for others.
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

/// Decodes the payload of an event (id and version) of the rundown provider, or of the runtime
/// provider; `None` for a payload that is too short for its event.
#[must_use]
#[inline]
pub fn decode_event<'a>(
    rundown: bool,
    (id, version): (u16, u8),
    payload: &'a [u8],
    pointers: PointerSize,
) -> Option<Decoded<'a>> {
    let Some((event, known)) = Catalogue::get(rundown).event(id, version, pointers) else {
        return Some(Decoded {
            instance: None,
            event: Event::Other,
            rundown,
            exact: false,
            fields: None,
        });
    };
    let layout = &event.layout;
    let at = event.at;
    let u64 = |position| layout.uint(payload, position);
    let u32 = |position| layout.u32(payload, position);
    let u16 = |position| layout.u16(payload, position);
    let fields = Fields { event, payload };
    let mut exact = false;
    let mut instance = None;
    let has_prefix = payload.len() >= layout.prefix();
    let decoded = match event.kind {
        Kind::Init(which) => Event::Init(which),
        Kind::Complete(which) => Event::Complete(which),
        Kind::Runtime => Event::Runtime {
            version: [u16(at[1])?, u16(at[2])?, u16(at[3])?, u16(at[4])?],
            sku: u16(at[0])?,
        },
        Kind::Method(change, named) => {
            let method = Method {
                id: u64(at[0])?,
                module: u64(at[1])?,
                start: u64(at[2])?,
                size: u32(at[3])?,
                flags: u32(at[4])?,
                named,
            };
            // To count the texts is faster than to step over each of them.
            if named
                && known
                && let Some(end) = payload.len().checked_sub(layout.tail())
            {
                let texts = payload.get(layout.prefix()..end).and_then(count_texts);
                exact = texts == Some(METHOD_TEXTS);
                if exact && layout.tail() > 0 {
                    instance = payload.u16_at(end);
                }
            }
            Event::Method(change, method)
        }
        Kind::Module(change) => {
            let (id, assembly, flags) = (u64(at[0])?, u64(at[1])?, u32(at[2])?);
            // Both paths have to be there.
            layout.variable(payload, at[4])?;
            Event::Module(change, Module { id, assembly, flags, fields })
        }
        Kind::DomainModule(change) if has_prefix => {
            let (module, assembly, domain) = (u64(at[0])?, u64(at[1])?, u64(at[2])?);
            Event::DomainModule(change, DomainModule { module, assembly, domain })
        }
        Kind::Assembly(change) if has_prefix => {
            Event::Assembly(change, Assembly { id: u64(at[0])?, domain: u64(at[1])? })
        }
        Kind::AppDomain(change) => {
            layout.variable(payload, at[2])?;
            Event::AppDomain(change, u64(at[0])?)
        }
        Kind::Stack => {
            let stated = u32(at[0])?;
            let frames = Frames::new(layout.rest(payload, at[1])?, pointers);
            exact = frames.is_whole() && frames.len() == stated as usize;
            Event::Stack { stated, frames }
        }
        Kind::JitStart if has_prefix => Event::JitStart(u64(at[0])?),
        Kind::IlMap => {
            let method = u64(at[0])?;
            exact = known && is_exact_il_map(event, payload);
            return Some(Decoded {
                instance: None,
                event: Event::IlMap(method),
                rundown,
                exact,
                fields: None,
            });
        }
        Kind::Exception => Event::Exception(u64(at[0])?),
        Kind::EntryPoint => Event::EntryPoint(u64(at[0])?),
        Kind::DomainModule(_) | Kind::Assembly(_) | Kind::JitStart => return None,
    };
    let instance = instance.or_else(|| layout.u16(payload, event.instance));
    Some(Decoded { instance, event: decoded, rundown, exact, fields: Some(fields) })
}

/// Whether an event (by id) is the call stack of the previous event of its thread.
#[must_use]
pub fn is_stack(rundown: bool, id: u16) -> bool {
    Catalogue::get(rundown).newest(id).is_some_and(|event| event.kind == Kind::Stack)
}

/// Whether the payload of a map from IL to native code is known to end where its fields do; `None`
/// for other events, by provider, id and version.
#[must_use]
pub fn il_map_size(rundown: bool, (id, version): (u16, u8)) -> Option<IlMapSize> {
    let event = Catalogue::get(rundown).event(id, version, PointerSize::P8);
    let (event, known) = event?;
    (known && event.kind == Kind::IlMap).then_some(IlMapSize { event })
}

/// The size of the payloads of a map from IL to native code, which depends on their count of
/// entries.
#[derive(Clone, Copy, Debug)]
pub struct IlMapSize {
    event: &'static EventLayout,
}

impl IlMapSize {
    /// Whether a payload ends where its fields do.
    #[must_use]
    #[inline]
    pub fn is_exact(self, payload: &[u8]) -> bool {
        is_exact_il_map(self.event, payload)
    }
}

/// Two lists of as many 32-bit offsets as the count states follow the fixed fields.
#[inline]
fn is_exact_il_map(event: &EventLayout, payload: &[u8]) -> bool {
    let Some(count) = event.layout.u16(payload, event.at[1]) else { return false };
    event.layout.prefix() + 8 * usize::from(count) + event.layout.tail() == payload.len()
}

/// The number of bytes that a payload needs, for an event from which [`decode_event`] reads no
/// identity of an object; `None` for all other events.
#[must_use]
pub fn min_size_without_fields(rundown: bool, id: u16) -> Option<usize> {
    match Catalogue::get(rundown).newest(id) {
        None => Some(0),
        Some(event) if event.kind == Kind::IlMap => Some(size_of::<u64>()),
        Some(_) => None,
    }
}

/// Texts of a method event: namespace, name and signature.
const METHOD_TEXTS: usize = 3;

/// An event by its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Init(Enumeration),
    Complete(Enumeration),
    Runtime,
    /// With names or without.
    Method(Change, bool),
    Module(Change),
    DomainModule(Change),
    Assembly(Change),
    AppDomain(Change),
    JitStart,
    IlMap,
    Exception,
    EntryPoint,
    Stack,
}

impl Kind {
    /// The kind of an event, by its symbol in the tables.
    fn of(symbol: &str) -> Option<Self> {
        use Enumeration::{End, Start};
        // Later versions end in `_V1` and so on, the events of the first release in `V2`.
        let name = symbol.split_once("_V").map_or(symbol, |(name, _)| name);
        let name = name.strip_suffix("V2").unwrap_or(name);
        let change = |text| match text {
            "Load" => Some(Change::Load),
            "Unload" => Some(Change::Unload),
            "DCStart" => Some(Change::Rundown(Start)),
            "DCEnd" => Some(Change::Rundown(End)),
            _ => None,
        };
        Some(match name {
            "DCStartInit" => Kind::Init(Start),
            "DCEndInit" => Kind::Init(End),
            "DCStartComplete" => Kind::Complete(Start),
            "DCEndComplete" => Kind::Complete(End),
            "RuntimeInformationStart" | "RuntimeInformationDCStart" => Kind::Runtime,
            "MethodJittingStarted" => Kind::JitStart,
            "MethodILToNativeMap" | "MethodDCStartILToNativeMap" | "MethodDCEndILToNativeMap" => {
                Kind::IlMap
            }
            "ExceptionThrown" => Kind::Exception,
            "R2RGetEntryPoint" => Kind::EntryPoint,
            "CLRStackWalk" | "CLRStackWalkDCStart" => Kind::Stack,
            _ => {
                if let Some(rest) = name.strip_prefix("DomainModule") {
                    Kind::DomainModule(change(rest)?)
                } else if let Some(rest) = name.strip_prefix("Module") {
                    Kind::Module(change(rest)?)
                } else if let Some(rest) = name.strip_prefix("Assembly") {
                    Kind::Assembly(change(rest)?)
                } else if let Some(rest) = name.strip_prefix("AppDomain") {
                    Kind::AppDomain(change(rest)?)
                } else {
                    let rest = name.strip_prefix("Method")?;
                    let plain = rest.strip_suffix("Verbose");
                    Kind::Method(change(plain.unwrap_or(rest))?, plain.is_some())
                }
            }
        })
    }

    /// Fields that are read, by name: how many of them every version has, and all of them.
    const fn fields(self) -> (usize, &'static [&'static str]) {
        match self {
            Kind::Init(_) | Kind::Complete(_) => (0, &[]),
            Kind::Runtime => {
                const VERSION: &[&str] =
                    &["Sku", "VMMajorVersion", "VMMinorVersion", "VMBuildNumber", "VMQfeNumber"];
                (5, VERSION)
            }
            Kind::Method(..) => (
                6,
                &[
                    "MethodID",
                    "ModuleID",
                    "MethodStartAddress",
                    "MethodSize",
                    "MethodFlags",
                    "MethodToken",
                    "MethodNamespace",
                    "MethodName",
                    "MethodSignature",
                    "ReJITID",
                ],
            ),
            Kind::Module(_) => (
                5,
                &[
                    "ModuleID",
                    "AssemblyID",
                    "ModuleFlags",
                    "ModuleILPath",
                    "ModuleNativePath",
                    "ManagedPdbSignature",
                    "ManagedPdbAge",
                    "NativePdbSignature",
                    "NativePdbAge",
                ],
            ),
            Kind::DomainModule(_) => (3, &["ModuleID", "AssemblyID", "AppDomainID"]),
            Kind::Assembly(_) => (3, &["AssemblyID", "AppDomainID", "FullyQualifiedAssemblyName"]),
            Kind::AppDomain(_) => (3, &["AppDomainID", "AppDomainFlags", "AppDomainName"]),
            Kind::JitStart => (1, &["MethodID"]),
            Kind::IlMap => (2, &["MethodID", "CountOfMapEntries"]),
            Kind::Exception => (1, &["ExceptionEIP"]),
            Kind::EntryPoint => (1, &["EntryPoint"]),
            Kind::Stack => (2, &["FrameCount", "Stack"]),
        }
    }
}

/// Where the fields of an event are.
#[derive(Debug)]
struct EventLayout {
    kind: Kind,
    /// Positions of [`Kind::fields`].
    at: [Position; 10],
    /// The field `ClrInstanceID`.
    instance: Position,
    layout: Layout,
}

/// A payload and its layout.
#[derive(Clone, Copy, Debug)]
struct Fields<'a> {
    event: &'static EventLayout,
    payload: &'a [u8],
}

/// The events of a provider that have a view.
#[derive(Debug)]
struct Catalogue {
    /// The first layout of each id, and how many versions there are from version 0.
    ids: Vec<(u16, u8)>,
    /// For narrow and for wide pointers.
    layouts: Vec<Option<[EventLayout; 2]>>,
}

impl Catalogue {
    #[inline]
    fn get(rundown: bool) -> &'static Catalogue {
        static ALL: LazyLock<[Catalogue; 2]> =
            LazyLock::new(|| [CLR_RUNTIME, CLR_RUNDOWN].map(Catalogue::new));
        let [runtime, of_rundown] = &*ALL;
        if rundown { of_rundown } else { runtime }
    }

    fn new(provider: Guid) -> Self {
        let registry = Registry::builtin();
        let mut catalogue = Catalogue { ids: Vec::new(), layouts: Vec::new() };
        let Some(table) = registry.provider(provider) else { return catalogue };
        let identities = table.events.iter().map(|event| event.schema.identity);
        let newest = |of: u16| {
            let versions = identities.clone().filter_map(|identity| match identity {
                Identity::Modern { id, version } if id == of => Some(version),
                _ => None,
            });
            versions.max()
        };
        let ids = identities.clone().filter_map(|identity| match identity {
            Identity::Modern { id, .. } => Some(id),
            _ => None,
        });
        for id in 0..=ids.max().unwrap_or(0) {
            let first = u16::try_from(catalogue.layouts.len()).unwrap_or(u16::MAX);
            let versions = newest(id).map_or(0, |newest| newest + 1);
            let mut layout = None;
            for version in 0..versions {
                let identity = Identity::Modern { id, version };
                if let Some(event) = registry.event(provider, identity) {
                    let kind = Kind::of(&event.schema.name);
                    layout = kind.zip(registry.decoder(provider, identity));
                }
                let pair = layout.and_then(|(kind, decoder)| EventLayout::pair(kind, decoder));
                catalogue.layouts.push(pair);
            }
            catalogue.ids.push((first, versions));
        }
        catalogue
    }

    /// The layout of the newest version of an event.
    #[inline]
    fn newest(&'static self, id: u16) -> Option<&'static EventLayout> {
        self.event(id, u8::MAX, PointerSize::P8).map(|(event, _)| event)
    }

    /// The layout of an event; `false` beside it for a version newer than the tables know.
    #[inline]
    fn event(
        &'static self,
        id: u16,
        version: u8,
        pointers: PointerSize,
    ) -> Option<(&'static EventLayout, bool)> {
        let &(first, count) = self.ids.get(usize::from(id))?;
        let newest = count.checked_sub(1)?;
        let at = usize::from(first) + usize::from(version.min(newest));
        let [narrow, wide] = self.layouts.get(at)?.as_ref()?;
        Some((if pointers == PointerSize::P8 { wide } else { narrow }, version <= newest))
    }
}

impl EventLayout {
    /// For narrow and for wide pointers; `None` if the event lacks a field that is read.
    fn pair(kind: Kind, decoder: &crate::decode::Decoder) -> Option<[Self; 2]> {
        let of = |pointers| {
            let find = |name| Layout::find(decoder, pointers, name);
            let (required, names) = kind.fields();
            let mut at = [Position::NONE; 10];
            at.iter_mut().zip(names).for_each(|(at, name)| *at = find(name));
            let complete = at.iter().take(required).all(|at| at.is_known());
            let layout = Layout::new(decoder, pointers);
            complete.then(|| EventLayout { kind, at, instance: find("ClrInstanceID"), layout })
        };
        Some([of(PointerSize::P4)?, of(PointerSize::P8)?])
    }
}
