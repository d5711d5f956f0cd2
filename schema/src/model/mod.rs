//! Schemas of events: identity, names and fields, from any source.
//!
//! Spec tables, TraceLogging metadata, EventSource manifests, `TRACE_EVENT_INFO` blobs, XML
//! manifests and TMF files all end in one [`EventSchema`]. [`crate::decode`] walks a payload by it,
//! [`crate::encode`] is the inverse. The words are from TDH: in-types say how bytes are laid out,
//! out-types how a value is shown.

use etl_format::{EventDescriptor, Guid};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

mod map;
mod shown;
mod types;

pub use map::{MapEntry, MapKind, Pattern, ValueMap};
pub use shown::Meaning;
pub(crate) use shown::{Shown, ends_with, is_time};
pub use types::{InType, OutType};

/// A piece of text that is either part of the program (tables) or learned at run time.
pub type Text = Cow<'static, str>;

/// One kind of event: its provider, its identity, its names and its fields.
///
/// Build one with [`EventSchema::new`] and set the known fields; an empty field means "unknown".
#[derive(Debug, Clone, PartialEq)]
pub struct EventSchema {
    /// The provider, the event class (classic), or the message GUID (WPP).
    pub provider: Guid,
    /// The provider's or class's name; empty when it is unknown.
    pub provider_name: Text,
    /// What distinguishes this event from the provider's others.
    pub identity: Identity,
    /// Symbol (tables, manifests) or event name (TraceLogging, EventSource); may be empty.
    pub name: Text,
    /// Task number, with its name if there is one.
    pub task: Named<u16>,
    /// Opcode, with its name if there is one.
    pub opcode: Named<u8>,
    /// Level, with its name if there is one.
    pub level: Named<u8>,
    /// Channel, with its name if there is one.
    pub channel: Named<u8>,
    /// Keyword mask.
    pub keywords: u64,
    /// Names of the bits of `keywords` as they are shown to people (see [`Named::name`]), in the
    /// order in which the source names them.
    pub keyword_names: Vec<Text>,
    /// Message text with inserts: `%1` (manifests) or `%10!s!` (WPP).
    pub message: Option<Text>,
    /// The fields, in payload order.
    pub fields: Vec<Field>,
    /// TraceLogging tags (28 bits); 0 = none.
    pub tags: u32,
    /// Where this came from.
    pub source: SchemaSource,
}

impl EventSchema {
    /// A schema with a provider, an identity and a source; everything else empty.
    #[must_use]
    pub fn new(provider: Guid, identity: Identity, source: SchemaSource) -> Self {
        EventSchema {
            provider,
            provider_name: Text::Borrowed(""),
            identity,
            name: Text::Borrowed(""),
            task: Named::default(),
            opcode: Named::default(),
            level: Named::default(),
            channel: Named::default(),
            keywords: 0,
            keyword_names: Vec::new(),
            message: None,
            fields: Vec::new(),
            tags: 0,
            source,
        }
    }

    /// The header of such an event (`EVENT_DESCRIPTOR`).
    ///
    /// Manifest-based and EventSource events have their id and version. Other events have id 0; a
    /// classic one has the low byte of its class's version, the others version 0.
    ///
    /// ```
    /// use etl_schema::{Identity, tables::Registry};
    ///
    /// let runtime = Registry::builtin().find("runtime").ok_or("the provider is built in")?;
    /// let start = Identity::Modern { id: 187, version: 0 };
    /// let start = Registry::builtin().event(runtime.guid, start).ok_or("so is event 187")?;
    /// let descriptor = start.schema.descriptor();
    /// assert_eq!((descriptor.id, descriptor.level, descriptor.opcode), (187, 4, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn descriptor(&self) -> EventDescriptor {
        let (id, version) = match self.identity {
            Identity::Modern { id, version } => (id, version),
            Identity::Classic { version, .. } => (0, version as u8),
            Identity::SelfDescribing | Identity::Message { .. } => (0, 0),
        };
        EventDescriptor {
            id,
            version,
            channel: self.channel.value,
            level: self.level.value,
            opcode: self.opcode.value,
            task: self.task.value,
            keyword: self.keywords,
        }
    }

    /// Names an event without a name by its task and opcode, or by its number:
    /// `Method/LoadVerbose`, `EventID(160)`. Names that every provider has (`win:Start`) are used
    /// without their prefix; names without meaning (`win:Info`, `win:None`) are not used.
    pub fn complete_name(&mut self) {
        if !self.name.is_empty() {
            return;
        }
        let mut task = own_name(&self.task.name);
        let opcode = own_name(&self.opcode.name);
        if self.task.value == 0 && task == "None" {
            task = "";
        }
        self.name = match (task, opcode) {
            ("", "") => number_name(self.identity, self.opcode.value).into(),
            (task, "") => task.to_owned().into(),
            // `ProcessStart` and `Start`.
            (task, opcode) if ends_with_word(task, opcode) => task.to_owned().into(),
            ("", opcode) => opcode.to_owned().into(),
            (task, opcode) => format!("{task}/{opcode}").into(),
        };
    }

    /// The position of the top-level field with this name (exact case).
    #[must_use]
    pub fn field_index(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.name == name)
    }
}

/// Whether the name of a task ends with the name of an opcode; case does not matter.
fn ends_with_word(task: &str, opcode: &str) -> bool {
    let start = task.len().checked_sub(opcode.len());
    let end = start.and_then(|start| task.get(start..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(opcode))
}

/// A name of a task or opcode without its prefix; empty if it has no meaning.
fn own_name(name: &str) -> &str {
    match name.trim().strip_prefix("win:") {
        Some("Info" | "None") => "",
        Some(name) => name,
        None => name.trim(),
    }
}

/// The name of an event of which only the number is known: `EventID(160)`, `Opcode(33)`.
#[must_use]
pub fn number_name(identity: Identity, opcode: u8) -> String {
    match identity {
        Identity::Modern { id, .. } => format!("EventID({id})"),
        Identity::Classic { opcode, .. } => format!("Opcode({opcode})"),
        Identity::SelfDescribing => format!("Opcode({opcode})"),
        Identity::Message { number } => format!("Message({number})"),
    }
}

/// A number and its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Named<T> {
    /// The number.
    pub value: T,
    /// Its name as it is shown to people: the display message if a manifest has one, else the
    /// name that the source has. Empty when it is unknown.
    pub name: Text,
}

impl<T> Named<T> {
    /// A number with a name.
    pub fn new(value: T, name: impl Into<Text>) -> Self {
        Named {
            value,
            name: name.into(),
        }
    }
}

/// What distinguishes an event from the others of its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Identity {
    /// Manifest-based and EventSource events: id and version.
    Modern {
        /// Event id.
        id: u16,
        /// Event version.
        version: u8,
    },
    /// Classic (MOF, kernel) events: opcode ("type") and version; the class GUID is the provider.
    Classic {
        /// Event type.
        opcode: u8,
        /// Version of the layout.
        version: u16,
    },
    /// TraceLogging: the schema travels with the event, its name is its identity.
    SelfDescribing,
    /// WPP: the number of the message below its message GUID.
    Message {
        /// Message number.
        number: u16,
    },
}

/// Where a schema came from. `Display` writes it in words.
///
/// ```
/// use etl_schema::SchemaSource;
///
/// assert_eq!(SchemaSource::Table.to_string(), "built-in table");
/// assert_eq!(SchemaSource::TraceEventInfo.name(), "event metadata of a merged trace");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SchemaSource {
    /// A spec table of this crate.
    Table,
    /// The tables of the providers that Windows ships. A task or opcode with a name and the number
    /// 0 may have any number: the source of the tables did not have it.
    Windows,
    /// Metadata in the event itself.
    TraceLogging,
    /// A manifest that an EventSource wrote into the trace.
    EventSource,
    /// A `TRACE_EVENT_INFO` record that a merge added.
    TraceEventInfo,
    /// A manifest that a merge added (PerfTrack).
    TraceManifest,
    /// An XML instrumentation manifest from a file.
    Manifest,
    /// A WPP trace message format file.
    Tmf,
}

impl SchemaSource {
    /// The source in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SchemaSource::Table => "built-in table",
            SchemaSource::Windows => "built-in table of Windows' providers",
            SchemaSource::TraceLogging => "TraceLogging metadata in the event",
            SchemaSource::EventSource => "EventSource manifest in the trace",
            SchemaSource::TraceEventInfo => "event metadata of a merged trace",
            SchemaSource::TraceManifest => "manifest in a merged trace",
            SchemaSource::Manifest => "manifest file",
            SchemaSource::Tmf => "trace message format file",
        }
    }
}

impl std::fmt::Display for SchemaSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// One field of a payload, or one member of a struct.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Name; may be empty.
    pub name: Text,
    /// Layout of one value.
    pub kind: FieldKind,
    /// How many values there are.
    pub count: Count,
    /// How long one value is, if the in-type alone does not determine it.
    pub length: Length,
    /// How values are shown.
    pub out: OutType,
    /// Names of values or bits.
    pub map: Option<Arc<ValueMap>>,
    /// TraceLogging tags (28 bits); 0 = none.
    pub tags: u32,
    /// Whether the members of a struct are aligned as in C: at multiples of their sizes, with
    /// padding between and after them.
    pub aligned: bool,
}

impl Field {
    /// One value of an in-type, with the length and out-type that go with it.
    #[must_use]
    pub fn new(name: impl Into<Text>, ty: InType) -> Self {
        Field {
            name: name.into(),
            kind: FieldKind::Value(ty),
            count: Count::One,
            length: ty.default_length(),
            out: OutType::Default,
            map: None,
            tags: 0,
            aligned: false,
        }
    }

    /// A field that states nothing about its value.
    pub(crate) fn unnamed() -> &'static Field {
        static UNNAMED: LazyLock<Field> = LazyLock::new(|| Field::new("", InType::Null));
        &UNNAMED
    }

    /// One struct with these members.
    #[must_use]
    pub fn structure(name: impl Into<Text>, members: Vec<Field>) -> Self {
        Field {
            kind: FieldKind::Struct(members),
            ..Field::new(name, InType::Null)
        }
    }

    /// The same field with another count.
    #[must_use]
    pub fn with_count(mut self, count: Count) -> Self {
        self.count = count;
        self
    }

    /// The same field with another length.
    #[must_use]
    pub fn with_length(mut self, length: Length) -> Self {
        self.length = length;
        self
    }

    /// The same field with another out-type.
    #[must_use]
    pub fn with_out(mut self, out: OutType) -> Self {
        self.out = out;
        self
    }

    /// The same field with a map.
    #[must_use]
    pub fn with_map(mut self, map: Arc<ValueMap>) -> Self {
        self.map = Some(map);
        self
    }

    /// The in-type, unless the field is a struct.
    #[must_use]
    pub fn in_type(&self) -> Option<InType> {
        match self.kind {
            FieldKind::Value(ty) => Some(ty),
            FieldKind::Struct(_) => None,
        }
    }
}

/// The layout of one value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// One typed value.
    Value(InType),
    /// Members, one after the other, without padding unless [`Field::aligned`] is set.
    Struct(Vec<Field>),
}

/// How many values a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Count {
    /// Exactly one, and not an array.
    #[default]
    One,
    /// An array of this many.
    Const(u16),
    /// An array; an earlier integer field holds the count.
    Field(FieldRef),
    /// An array; a `u16` count is in the payload right before it.
    Prefixed,
    /// An array that takes the rest of the payload.
    Rest,
}

/// How long one value of a field is, for the in-types that do not determine it: strings and
/// binaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Length {
    /// As the in-type determines it (integers, GUIDs, SIDs ...).
    #[default]
    Natural,
    /// Up to a NUL, which is not part of the value, or to the end of the payload.
    NulTerminated,
    /// This many units: UTF-16 code units for [`InType::Utf16`], else bytes.
    Fixed(u16),
    /// An earlier integer field holds the number of units.
    Field(FieldRef),
    /// A little-endian `u16` number of BYTES precedes the value.
    U16,
    /// A big-endian `u16` number of BYTES precedes the value.
    U16BigEndian,
    /// A little-endian `u32` number of BYTES precedes the value.
    U32,
    /// The rest of the payload.
    Rest,
}

/// A reference to an earlier integer field that holds a count or a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldRef {
    /// The field with this index in the same list of fields.
    Here(u16),
    /// The top-level field with this index, seen from the members of a struct.
    Top(u16),
}
