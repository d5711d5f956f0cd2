//! Changes to finished files, event by event: how a scenario makes a trace that breaks one rule.

use etl_format::constants::offset::{buffer, header_event};

/// The edits of a file after the simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct EditPlan {
    /// The file.
    pub file: String,
    /// The edits, in their order, and their nodes of the script.
    pub edits: Vec<(Edit, Option<super::ScriptLocation>)>,
    /// The node of the script.
    pub location: Option<super::ScriptLocation>,
}

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Records change.
    Records(Box<RecordEdit>),
    /// A field of the header event holds another value.
    Header(HeaderField, Amount),
    /// A field of a buffer's header holds another value.
    Buffer(i64, HeaderField, Amount),
    /// The last record of a buffer gets an impossible size.
    Damage(i64),
}

/// Records, and the change to them.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordEdit {
    /// The records.
    pub select: RecordSelector,
    /// The change.
    pub action: RecordAction,
}

/// Selects records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordSelector {
    /// Name of the event in the schema, without the `_V1` of a version; `*` for all.
    pub event: String,
    /// Only those of a process.
    pub pid: Option<u32>,
    /// Only those of a provider.
    pub provider: Option<etl_format::Guid>,
    /// Only the n-th one, from 1; from -1 counted from the last one. All if `None`.
    pub nth: Option<i64>,
    /// Only those with a field of this value.
    pub with: Option<(String, FieldValue)>,
}

/// A change of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordAction {
    /// It is deleted.
    Delete,
    /// It is copied this many times, with changes.
    Copy(u32, Box<Changes>),
    /// It changes.
    Alter(Box<Changes>),
    /// It is moved before the first, or after the last, of these, and gets its time.
    Move(RecordSelector, Side),
    /// It is exchanged with the next event of its thread; timestamps stay in order.
    Swap,
    /// It is moved before an earlier record of its processor; timestamps are out of order.
    Disorder,
}

/// A position relative to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before.
    Before,
    /// After.
    After,
}

/// Changes of a record; `None` keeps a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Process.
    pub pid: Option<u32>,
    /// Thread.
    pub tid: Option<u32>,
    /// Processor.
    pub processor: Option<u16>,
    /// Provider of an event.
    pub provider: Option<etl_format::Guid>,
    /// Id of an event.
    pub id: Option<u16>,
    /// Version of an event.
    pub version: Option<u8>,
    /// Level of an event.
    pub level: Option<u8>,
    /// Opcode of an event.
    pub opcode: Option<u8>,
    /// Keywords of an event.
    pub keyword: Option<u64>,
    /// Ticks that are added to its timestamp.
    pub shift: i64,
    /// New values of fields, by name; of an array its first element changes.
    pub fields: Vec<(String, FieldValue)>,
    /// Bytes that are removed from the end of the payload.
    pub cut: usize,
    /// Maximum number of bytes of the payload that are kept.
    pub keep: Option<usize>,
    /// Hook of a record of the kernel.
    pub hook: Option<u16>,
    /// Zero bytes that are added after the payload.
    pub grow: usize,
}

/// A value for a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
    /// The value of a field of another record, and a number that is added.
    Of(Box<RecordSelector>, String, u64),
}

/// A new value of a number in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// This number.
    Set(i64),
    /// The old number plus this one.
    Raise(i64),
}

/// A number in a header that can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderField {
    /// Its offset in the header.
    pub offset: usize,
    /// Its width in bytes.
    pub width: usize,
}

impl HeaderField {
    /// Those of the header event, with 8-byte pointers, and their words in scripts.
    pub const OF_FILE: [(&str, HeaderField); 9] = [
        ("build", HeaderField::at(header_event::BUILD, 4)),
        ("processors", HeaderField::at(header_event::PROCESSORS, 4)),
        ("end-time", HeaderField::at(header_event::END_TIME, 8)),
        ("buffers", HeaderField::at(header_event::BUFFERS, 4)),
        ("pointer-size", HeaderField::at(header_event::POINTER_SIZE, 4)),
        ("events-lost", HeaderField::at(header_event::EVENTS_LOST, 4)),
        ("boot-time", HeaderField::at(header_event::BOOT_TIME, 8)),
        ("start-time", HeaderField::at(header_event::START_TIME, 8)),
        ("buffers-lost", HeaderField::at(header_event::BUFFERS_LOST, 4)),
    ];

    /// Those of the header of a buffer.
    pub const OF_BUFFER: [(&str, HeaderField); 2] = [
        ("sequence", HeaderField::at(buffer::SEQUENCE, 8)),
        ("processor", HeaderField::at(buffer::PROCESSOR, 2)),
    ];

    const fn at(offset: usize, width: usize) -> Self {
        HeaderField { offset, width }
    }
}
