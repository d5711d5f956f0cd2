//! Typed views of the events of the CLR's runtime and rundown providers.

mod items;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::cursor::Bytes;
use etl_format::read::Record;

use super::layout::{Catalogue, Layout, Position};
use super::{Frames, count_texts};
pub use crate::clr::Enumeration;
use crate::decode::Decoder;
use crate::model::Identity;
use crate::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use crate::tables::Registry;
pub use items::{
    AppDomain, Assembly, Change, DomainModule, Method, MethodText, Module, ModuleText,
};
use items::{AppDomainLayout, AssemblyLayout, MethodLayout, ModuleLayout};

/// One of the CLR's two providers whose events have views.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClrProvider {
    /// `Microsoft-Windows-DotNETRuntime`.
    Runtime,
    /// `Microsoft-Windows-DotNETRuntimeRundown`.
    Rundown,
}

impl ClrProvider {
    /// The provider with this GUID; `None` for other providers.
    ///
    /// ```
    /// use etl_schema::providers;
    /// use etl_schema::views::clr::ClrProvider;
    ///
    /// let rundown = ClrProvider::from_guid(providers::CLR_RUNDOWN);
    /// assert_eq!(rundown, Some(ClrProvider::Rundown));
    /// assert_eq!(ClrProvider::from_guid(providers::KERNEL_TRACE), None);
    /// ```
    #[must_use]
    #[inline]
    pub fn from_guid(provider: Guid) -> Option<Self> {
        const RUNTIME_BITS: u128 = u128::from_le_bytes(CLR_RUNTIME.to_bytes());
        const RUNDOWN_BITS: u128 = u128::from_le_bytes(CLR_RUNDOWN.to_bytes());
        match u128::from_le_bytes(provider.to_bytes()) {
            RUNTIME_BITS => Some(ClrProvider::Runtime),
            RUNDOWN_BITS => Some(ClrProvider::Rundown),
            _ => None,
        }
    }

    /// The GUID of the provider.
    #[must_use]
    pub const fn guid(self) -> Guid {
        match self {
            ClrProvider::Runtime => CLR_RUNTIME,
            ClrProvider::Rundown => CLR_RUNDOWN,
        }
    }

    /// Whether it is the rundown provider.
    #[must_use]
    #[inline]
    pub fn is_rundown(self) -> bool {
        self == ClrProvider::Rundown
    }
}

/// An event of the CLR, by its subject.
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
    Method(Change, Method<'a>),
    /// A module.
    Module(Change, Module<'a>),
    /// A module in an application domain.
    DomainModule(Change, DomainModule),
    /// An assembly.
    Assembly(Change, Assembly<'a>),
    /// An application domain.
    AppDomain(Change, AppDomain<'a>),
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
    /// The CLR within the process, if the event has it.
    pub instance: Option<u16>,
    /// The event.
    pub event: Event<'a>,
    /// The provider of the event.
    pub provider: ClrProvider,
    /// Whether the payload surely ends with the fields of the event in the tables. This is checked
    /// only for events for which the check is free; `false` for others.
    pub exact: bool,
}

/// Decodes a record of one of the two providers; `None` for other records, and for a payload that
/// is too short for its event.
#[must_use]
pub fn decode<'a>(record: &Record<'a>) -> Option<Decoded<'a>> {
    let header = record.event()?;
    let provider = ClrProvider::from_guid(header.provider)?;
    let descriptor = header.descriptor;
    let pointers = record.pointer_size().unwrap_or(PointerSize::P4);
    decode_event(
        provider,
        descriptor.id,
        descriptor.version,
        record.payload(),
        pointers,
    )
}

/// Decodes the payload of an event; `None` for a payload that is too short for its event.
///
/// ```
/// use etl_format::constants::PointerSize;
/// use etl_schema::views::clr::{self, ClrProvider, Event};
///
/// // MethodJittingStarted begins with the id of the method.
/// let payload = [&0x7ff0u64.to_le_bytes()[..], &[0; 24]].concat();
/// let decoded = clr::decode_event(ClrProvider::Runtime, 145, 1, &payload, PointerSize::P8);
/// let event = decoded.map(|decoded| decoded.event);
/// assert!(matches!(event, Some(Event::JitStart(0x7ff0))));
/// ```
#[must_use]
#[inline]
pub fn decode_event<'a>(
    provider: ClrProvider,
    id: u16,
    version: u8,
    payload: &'a [u8],
    pointers: PointerSize,
) -> Option<Decoded<'a>> {
    let Some((event, known)) = events(provider).event(id, version, pointers) else {
        return Some(Decoded {
            instance: None,
            event: Event::Other,
            provider,
            exact: false,
        });
    };
    let read = event.read(payload, known)?;
    let instance = match read.instance {
        None => event.layout.read(payload, event.instance),
        instance => instance,
    };
    Some(Decoded {
        instance,
        event: read.event,
        provider,
        exact: read.exact,
    })
}

/// The result of reading a payload.
struct ReadEvent<'a> {
    event: Event<'a>,
    exact: bool,
    /// The id of the runtime, if reading the event found it.
    instance: Option<u16>,
}

impl EventLayout {
    /// Reads a payload; `known` tells whether the tables have this version of the event.
    #[inline]
    fn read<'a>(&'static self, payload: &'a [u8], known: bool) -> Option<ReadEvent<'a>> {
        let layout = &self.layout;
        let mut exact = false;
        let event = match &self.kind {
            Kind::Method(change, method) => {
                return read_method(layout, *change, method, payload, known);
            }
            Kind::Stack([count, frames]) => {
                let stated = layout.read(payload, *count)?;
                let frames: Frames<'_> = layout.read(payload, *frames)?;
                exact = frames.is_whole() && frames.len() == stated as usize;
                Event::Stack { stated, frames }
            }
            Kind::IlMap([method, count]) => {
                exact = known && is_exact_il_map(layout, *count, payload);
                Event::IlMap(layout.read(payload, *method)?)
            }
            kind => read_other(layout, kind, payload)?,
        };
        Some(ReadEvent {
            event,
            exact,
            instance: None,
        })
    }
}

#[inline]
fn read_method<'a>(
    layout: &Layout,
    change: Change,
    method: &'static MethodLayout,
    payload: &'a [u8],
    known: bool,
) -> Option<ReadEvent<'a>> {
    let method = method.read(payload)?;
    let mut exact = false;
    let mut instance = None;
    // Counting the texts is faster than stepping over each of them.
    if known
        && method.is_named()
        && let Some(end) = payload.len().checked_sub(layout.tail())
    {
        let texts = payload.get(layout.prefix()..end).and_then(count_texts);
        exact = texts == Some(METHOD_TEXTS);
        if exact && layout.tail() > 0 {
            instance = payload.u16_at(end);
        }
    }
    Some(ReadEvent {
        event: Event::Method(change, method),
        exact,
        instance,
    })
}

/// Reads an event whose payload is not checked to be exact.
#[inline]
fn read_other<'a>(layout: &Layout, kind: &'static Kind, payload: &'a [u8]) -> Option<Event<'a>> {
    let has_prefix = payload.len() >= layout.prefix();
    Some(match kind {
        Kind::Init(which) => Event::Init(*which),
        Kind::Complete(which) => Event::Complete(*which),
        Kind::Runtime(positions) => read_runtime(layout, payload, *positions)?,
        Kind::Module(change, module) => {
            let module = module.read(payload)?;
            // Both paths have to be there.
            module.native_path()?;
            Event::Module(*change, module)
        }
        Kind::DomainModule(change, [module, assembly, domain]) if has_prefix => {
            let part = DomainModule {
                module: layout.read(payload, *module)?,
                assembly: layout.read(payload, *assembly)?,
                domain: layout.read(payload, *domain)?,
            };
            Event::DomainModule(*change, part)
        }
        Kind::Assembly(change, assembly) if has_prefix => {
            Event::Assembly(*change, assembly.read(payload)?)
        }
        Kind::AppDomain(change, domain) => {
            let domain = domain.read(payload)?;
            domain.name()?;
            Event::AppDomain(*change, domain)
        }
        Kind::JitStart(method) if has_prefix => Event::JitStart(layout.read(payload, *method)?),
        Kind::Exception(address) => Event::Exception(layout.read(payload, *address)?),
        Kind::EntryPoint(address) => Event::EntryPoint(layout.read(payload, *address)?),
        // The payload is too short, or another function reads the event.
        _ => return None,
    })
}

fn read_runtime<'a>(
    layout: &Layout,
    payload: &'a [u8],
    positions: [Position; 5],
) -> Option<Event<'a>> {
    let [sku, major, minor, build, revision] = positions;
    Some(Event::Runtime {
        version: [
            layout.read(payload, major)?,
            layout.read(payload, minor)?,
            layout.read(payload, build)?,
            layout.read(payload, revision)?,
        ],
        sku: layout.read(payload, sku)?,
    })
}

/// Whether an event (by id) is the call stack of the previous event of its thread.
#[must_use]
pub fn is_stack(provider: ClrProvider, id: u16) -> bool {
    newest(provider, id).is_some_and(|event| matches!(event.kind, Kind::Stack(_)))
}

/// The size of a map from IL to native code, which tells whether a payload ends with its fields;
/// `None` for other events.
#[must_use]
pub fn il_map_size(provider: ClrProvider, id: u16, version: u8) -> Option<IlMapSize> {
    let (event, known) = events(provider).event(id, version, PointerSize::P8)?;
    let Kind::IlMap([_, count]) = event.kind else {
        return None;
    };
    known.then_some(IlMapSize {
        layout: &event.layout,
        count,
    })
}

/// The size of the payloads of a map from IL to native code, which depends on their count of
/// entries.
#[derive(Clone, Copy, Debug)]
pub struct IlMapSize {
    layout: &'static Layout,
    count: Position,
}

impl IlMapSize {
    /// Whether a payload ends where its fields do.
    #[must_use]
    #[inline]
    pub fn is_exact(self, payload: &[u8]) -> bool {
        is_exact_il_map(self.layout, self.count, payload)
    }
}

/// Two lists of as many 32-bit offsets as the count states follow the fixed fields.
#[inline]
fn is_exact_il_map(layout: &Layout, count: Position, payload: &[u8]) -> bool {
    let Some(count) = layout.read::<u16>(payload, count) else {
        return false;
    };
    layout.prefix() + 8 * usize::from(count) + layout.tail() == payload.len()
}

/// An event from which [`decode_event`] reads no identity of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainEvent {
    /// Bytes that its payload needs.
    pub min_size: usize,
    /// Whether it is a map from IL to native code.
    pub is_il_map: bool,
}

/// Whether an event (by id) is one from which [`decode_event`] reads no identity of an object.
#[must_use]
#[inline]
pub fn plain_event(provider: ClrProvider, id: u16) -> Option<PlainEvent> {
    match newest(provider, id).map(|event| &event.kind) {
        None => Some(PlainEvent {
            min_size: 0,
            is_il_map: false,
        }),
        Some(Kind::IlMap(_)) => Some(PlainEvent {
            min_size: size_of::<u64>(),
            is_il_map: true,
        }),
        Some(_) => None,
    }
}

/// Texts of a method event: namespace, name and signature.
const METHOD_TEXTS: usize = 3;

/// An event, with the positions of its fields.
#[derive(Debug)]
enum Kind {
    Init(Enumeration),
    Complete(Enumeration),
    Runtime([Position; 5]),
    Method(Change, MethodLayout),
    Module(Change, ModuleLayout),
    DomainModule(Change, [Position; 3]),
    Assembly(Change, AssemblyLayout),
    AppDomain(Change, AppDomainLayout),
    JitStart(Position),
    IlMap([Position; 2]),
    Exception(Position),
    EntryPoint(Position),
    Stack([Position; 2]),
}

impl Kind {
    /// The kind of an event, by its symbol in the tables.
    fn new(decoder: &Decoder, p: PointerSize) -> Option<Self> {
        use Enumeration::{End, Start};
        let symbol = &*decoder.schema().name;
        // Later versions end in `_V1` and so on, the events of the first release in `V2`.
        let name = symbol.split_once("_V").map_or(symbol, |(name, _)| name);
        let name = name.strip_suffix("V2").unwrap_or(name);
        Some(match name {
            "DCStartInit" => Kind::Init(Start),
            "DCEndInit" => Kind::Init(End),
            "DCStartComplete" => Kind::Complete(Start),
            "DCEndComplete" => Kind::Complete(End),
            "RuntimeInformationStart" | "RuntimeInformationDCStart" => {
                let names = [
                    "Sku",
                    "VMMajorVersion",
                    "VMMinorVersion",
                    "VMBuildNumber",
                    "VMQfeNumber",
                ];
                Kind::Runtime(Layout::positions(decoder, p, names))
            }
            "MethodJittingStarted" => Kind::JitStart(Layout::position(decoder, p, "MethodID")),
            "MethodILToNativeMap" | "MethodDCStartILToNativeMap" | "MethodDCEndILToNativeMap" => {
                Kind::IlMap(Layout::positions(
                    decoder,
                    p,
                    ["MethodID", "CountOfMapEntries"],
                ))
            }
            "ExceptionThrown" => {
                let address = Layout::position(decoder, p, "ExceptionEIP");
                // Version 0 has no fields.
                if !address.is_known() {
                    return None;
                }
                Kind::Exception(address)
            }
            "R2RGetEntryPoint" => Kind::EntryPoint(Layout::position(decoder, p, "EntryPoint")),
            "CLRStackWalk" | "CLRStackWalkDCStart" => {
                Kind::Stack(Layout::positions(decoder, p, ["FrameCount", "Stack"]))
            }
            _ => {
                if let Some(rest) = name.strip_prefix("DomainModule") {
                    let names = ["ModuleID", "AssemblyID", "AppDomainID"];
                    Kind::DomainModule(change(rest)?, Layout::positions(decoder, p, names))
                } else if let Some(rest) = name.strip_prefix("Module") {
                    Kind::Module(change(rest)?, ModuleLayout::new(decoder, p))
                } else if let Some(rest) = name.strip_prefix("Assembly") {
                    Kind::Assembly(change(rest)?, AssemblyLayout::new(decoder, p))
                } else if let Some(rest) = name.strip_prefix("AppDomain") {
                    Kind::AppDomain(change(rest)?, AppDomainLayout::new(decoder, p))
                } else {
                    let rest = name.strip_prefix("Method")?;
                    let change = change(rest.strip_suffix("Verbose").unwrap_or(rest))?;
                    Kind::Method(change, MethodLayout::new(decoder, p))
                }
            }
        })
    }
}

/// The change that the end of an event's symbol names.
fn change(symbol_end: &str) -> Option<Change> {
    match symbol_end {
        "Load" => Some(Change::Load),
        "Unload" => Some(Change::Unload),
        "DCStart" => Some(Change::Rundown(Enumeration::Start)),
        "DCEnd" => Some(Change::Rundown(Enumeration::End)),
        _ => None,
    }
}

/// Where the fields of an event are.
#[derive(Debug)]
struct EventLayout {
    kind: Kind,
    /// The field `ClrInstanceID`.
    instance: Position,
    layout: Layout,
}

impl EventLayout {
    /// `None` for an event without a view.
    fn new(_: u16, decoder: &Decoder, pointers: PointerSize) -> Option<Self> {
        Some(EventLayout {
            kind: Kind::new(decoder, pointers)?,
            instance: Layout::find(decoder, pointers, &["ClrInstanceID"]),
            layout: Layout::new(decoder, pointers),
        })
    }
}

/// The events of one of the two providers that have a view, by id.
#[inline]
fn events(provider: ClrProvider) -> &'static Catalogue<EventLayout> {
    static RUNTIME: LazyLock<Catalogue<EventLayout>> = LazyLock::new(|| catalogue(CLR_RUNTIME));
    static RUNDOWN: LazyLock<Catalogue<EventLayout>> = LazyLock::new(|| catalogue(CLR_RUNDOWN));
    match provider {
        ClrProvider::Runtime => &RUNTIME,
        ClrProvider::Rundown => &RUNDOWN,
    }
}

fn catalogue(provider: Guid) -> Catalogue<EventLayout> {
    let registry = Registry::builtin();
    let mut ids = BTreeSet::new();
    if let Some(table) = registry.provider(provider) {
        for event in &table.events {
            if let Identity::Modern { id, .. } = event.schema.identity {
                ids.insert(id);
            }
        }
    }
    Catalogue::new(
        ids,
        |id, version| registry.entry(provider, Identity::Modern { id, version }),
        EventLayout::new,
    )
}

/// The layout of the newest version of an event.
#[inline]
fn newest(provider: ClrProvider, id: u16) -> Option<&'static EventLayout> {
    events(provider)
        .event(id, u8::MAX, PointerSize::P8)
        .map(|(event, _)| event)
}
