//! Changes to finished files, event by event: how a scenario makes a trace that breaks one rule.

/// What is done to a file when everything has happened.
#[derive(Clone, Debug, PartialEq)]
pub struct EditPlan {
    /// The file.
    pub file: String,
    /// The changes, one after the other.
    pub edits: Vec<Edit>,
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
    Buffer(i64, BufferField, Amount),
    /// The last record of a buffer states a size that cannot be.
    Damage(i64),
}

/// Records, and what is done to them.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordEdit {
    /// Which.
    pub select: RecordSelector,
    /// What.
    pub action: RecordAction,
}

/// Which records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordSelector {
    /// Name of the event as the schema has it, without the `_V1` of a version; `*` for all.
    pub event: String,
    /// Only those of a process.
    pub pid: Option<u32>,
    /// Only those of a provider.
    pub provider: Option<etl_format::Guid>,
    /// Only the one at this place, from 1 on; from -1 on counted from the last one. Without it all.
    pub nth: Option<i64>,
    /// Only those with a field of this value.
    pub with: Option<(String, FieldValue)>,
}

/// What is done to a record.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordAction {
    /// It goes.
    Delete,
    /// It comes again, so often, with changes.
    Copy(u32, Box<Changes>),
    /// It changes.
    Alter(Box<Changes>),
    /// It is put before the first, or behind the last, of these; it takes over its moment.
    Move(RecordSelector, Side),
    /// It changes places with the next event of its thread, timestamps in order.
    Swap,
    /// It changes places with the record before it in its buffer, timestamps out of order.
    Disorder,
}

/// Where something is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before.
    Before,
    /// After.
    After,
}

/// What changes of a record. What is not given stays.
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
    /// Keywords of an event.
    pub keyword: Option<u64>,
    /// Ticks that its timestamp is moved by.
    pub shift: i64,
    /// Fields by name, with the values they get; of an array its first element.
    pub fields: Vec<(String, FieldValue)>,
    /// Bytes that the payload loses at its end.
    pub cut: usize,
    /// Bytes of the payload that are kept, if it has more.
    pub keep: Option<usize>,
    /// Hook of a record of the kernel.
    pub hook: Option<u16>,
    /// Zero bytes that are put behind the payload.
    pub grow: usize,
}

/// A value for a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    /// A number, or the number by which another field's value is raised.
    Number(u64),
    /// A text.
    Text(String),
    /// What a field of another record holds, and what is added to it.
    Of(Box<RecordSelector>, String, u64),
}

/// A number in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// The number.
    Set(i64),
    /// By how much it is raised.
    Raise(i64),
}

/// Fields of the header event that can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderField {
    /// Windows' build.
    Build,
    /// Processors.
    Processors,
    /// The end, FILETIME.
    EndTime,
    /// Buffers in the file.
    Buffers,
    /// Events lost.
    EventsLost,
    /// When the machine started, FILETIME.
    BootTime,
    /// The start, FILETIME.
    StartTime,
    /// Buffers lost.
    BuffersLost,
}

/// Fields of a buffer's header that can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferField {
    /// Its number.
    Sequence,
    /// Its processor.
    Processor,
}
