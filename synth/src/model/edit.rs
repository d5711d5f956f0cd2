//! Changes to finished files, event by event: how a scenario makes a trace that breaks one rule.

use etl_format::constants::offset::{buffer, header_event};
use etl_format::{Guid, ProcessId, ThreadId};

use super::{NamedValue, ScriptLocation};

/// The edits of a file after the simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct EditPlan {
    /// The file.
    pub file: String,
    /// The edits, in their order.
    pub edits: Vec<EditStep>,
    /// The node of the script.
    pub location: Option<ScriptLocation>,
}

/// An edit, and where the script asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct EditStep {
    /// The edit.
    pub edit: Edit,
    /// The node of the script.
    pub location: Option<ScriptLocation>,
}

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Records change.
    Records(Box<RecordEdit>),
    /// Changes a field of the header event.
    Header {
        /// The field.
        field: HeaderField,
        /// Its value.
        amount: Amount,
    },
    /// Changes a field of the header of a buffer.
    Buffer {
        /// The buffer, from 1; from -1 counted from the last.
        nth: i64,
        /// The field.
        field: HeaderField,
        /// Its value.
        amount: Amount,
    },
    /// Gives the last record of a buffer an impossible size. Buffers are counted as in
    /// [`Edit::Buffer`].
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
    /// Only records of this process.
    pub pid: Option<ProcessId>,
    /// Only records of this provider.
    pub provider: Option<Guid>,
    /// Only the n-th of them, from 1; from -1 counted from the last. All if `None`.
    pub nth: Option<i64>,
    /// Only records with this value in this field.
    pub with: Option<NamedValue<FieldValue>>,
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
    pub pid: Option<ProcessId>,
    /// Thread.
    pub tid: Option<ThreadId>,
    /// Processor.
    pub processor: Option<u16>,
    /// Provider of an event.
    pub provider: Option<Guid>,
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
    /// New values of fields. The first element of an array changes.
    pub fields: Vec<NamedValue<FieldValue>>,
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
    /// The value of a field of another record.
    Of {
        /// The record.
        record: Box<RecordSelector>,
        /// The name of its field.
        field: String,
        /// A number that is added.
        plus: u64,
    },
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
#[non_exhaustive]
pub struct HeaderField {
    /// Its name in scripts.
    pub name: &'static str,
    /// Its offset in the header.
    pub offset: usize,
    /// Its width in bytes.
    pub width: usize,
}

impl HeaderField {
    /// The fields of the header event of a trace with 8-byte pointers.
    pub const OF_FILE: [HeaderField; 9] = [
        HeaderField::new("build", header_event::BUILD, 4),
        HeaderField::new("processors", header_event::PROCESSORS, 4),
        HeaderField::new("end-time", header_event::END_TIME, 8),
        HeaderField::BUFFERS,
        HeaderField::new("pointer-size", header_event::POINTER_SIZE, 4),
        HeaderField::new("events-lost", header_event::EVENTS_LOST, 4),
        HeaderField::new("boot-time", header_event::BOOT_TIME, 8),
        HeaderField::new("start-time", header_event::START_TIME, 8),
        HeaderField::new("buffers-lost", header_event::BUFFERS_LOST, 4),
    ];

    /// The fields of the header of a buffer.
    pub const OF_BUFFER: [HeaderField; 2] = [
        HeaderField::new("sequence", buffer::SEQUENCE, 8),
        HeaderField::new("processor", buffer::PROCESSOR, 2),
    ];

    /// The number of buffers in the file.
    pub(crate) const BUFFERS: HeaderField = HeaderField::new("buffers", header_event::BUFFERS, 4);

    const fn new(name: &'static str, offset: usize, width: usize) -> Self {
        HeaderField {
            name,
            offset,
            width,
        }
    }
}
