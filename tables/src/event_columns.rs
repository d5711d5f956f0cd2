//! The columns of `events`.
//!
//! The module `events` sets their values, because rows of events borrow from records.

use crate::column::{Column, Kind};

/// The indices of the columns of `events` in a data set, with `trace` as the first.
#[cfg(feature = "arrow")]
pub(crate) mod at {
    pub const TRACE: usize = 0;
    pub const SEQUENCE: usize = 1;
    pub const TIME: usize = 2;
    pub const FILETIME: usize = 3;
    pub const CPU: usize = 4;
    pub const PID: usize = 5;
    pub const PROCESS: usize = 6;
    pub const TID: usize = 7;
    pub const THREAD: usize = 8;
    pub const PROVIDER: usize = 9;
    pub const PROVIDER_GUID: usize = 10;
    pub const EVENT: usize = 11;
    pub const ID: usize = 12;
    pub const VERSION: usize = 13;
    pub const LEVEL: usize = 14;
    pub const KEYWORD: usize = 15;
    pub const OPCODE: usize = 16;
    pub const TASK: usize = 17;
    pub const KIND: usize = 18;
    pub const ACTIVITY: usize = 19;
    pub const RELATED_ACTIVITY: usize = 20;
    pub const STACK_ID: usize = 21;
    pub const PAYLOAD_SIZE: usize = 22;
    pub const FIELDS: usize = 23;
    pub const MESSAGE: usize = 24;
    pub const PAYLOAD_TEXT: usize = 25;
    pub const PAYLOAD_SHORT: usize = 26;
    pub const PAYLOAD_LEFT: usize = 27;
    pub const HOOK: usize = 28;
    pub const OPCODE_NAME: usize = 29;
    pub const TASK_NAME: usize = 30;
    pub const LEVEL_NAME: usize = 31;
    pub const CHANNEL_NAME: usize = 32;
    pub const USER: usize = 33;
    pub const SESSION_ID: usize = 34;
    pub const TIMESTAMP: usize = 35;
    pub const PAYLOAD: usize = 36;
}

/// The columns that begin `events` and every table of the events of one kind.
#[cfg(feature = "arrow")]
pub(crate) const KEYS: usize = at::PROVIDER;

/// The columns of `events`, without `trace`.
pub(crate) fn columns() -> Vec<Column> {
    vec![
        Column::new("sequence", Kind::Int64, "Number of the event in time order, from 0; with `trace` the key of the row"),
        Column::time("time", "Time of the event in UTC"),
        Column::new("filetime", Kind::Int64, "The same, exact: since 1601-01-01 UTC").unit("100 ns"),
        Column::new("cpu", Kind::Int32, "Processor that logged the event"),
        Column::new("pid", Kind::Int64, "Process; for a sample or a stack the process that ran").or_null(),
        Column::new("process", Kind::Word, "File name of the image of the process").or_null(),
        Column::new("tid", Kind::Int64, "Thread; for a sample or a stack the thread that ran").or_null(),
        Column::new("thread", Kind::Word, "Name of the thread").or_null(),
        Column::new("provider", Kind::Word, "Name of the provider or the class of the event; its GUID if no name is known").or_null(),
        Column::new("provider_guid", Kind::Word, "GUID of the provider, as lower-case text").or_null(),
        Column::new("event", Kind::Word, "Name of the event; `EventID(5)` or `Opcode(5)` if no name is known"),
        Column::new("id", Kind::Int32, "Id of the event; for WPP the number of the message").or_null(),
        Column::new("version", Kind::Int32, "Version of the event").or_null(),
        Column::new("level", Kind::Int32, "Level: 1 critical, 2 error, 3 warning, 4 information, 5 verbose, 0 always").or_null(),
        Column::new("keyword", Kind::Int64, "Keywords, as bits; the highest one makes the number negative").or_null(),
        Column::new("opcode", Kind::Int32, "Opcode; the type of a kernel or classic event").or_null(),
        Column::new("task", Kind::Int32, "Task").or_null(),
        Column::new("kind", Kind::Word, "Layout of the record: `EVENT64`, `PERFINFO64`, …"),
        Column::new("activity", Kind::Text, "Activity, a GUID").or_null(),
        Column::new("related_activity", Kind::Text, "Activity that this one was started from, a GUID").or_null(),
        Column::new("stack_id", Kind::Int64, "Stack that the event carries itself, in `stacks`; stacks that are logged after their events are in `event_stacks`").or_null(),
        Column::new("payload_size", Kind::Int32, "Size of the payload").unit("bytes"),
        Column::new("fields", Kind::Text, "Fields as a JSON object, as `dump --format jsonl` prints them, with U+FFFD for unpaired surrogates; null if the payload is not understood").or_null(),
        Column::new("message", Kind::Text, "Message of the event with its fields in place").or_null(),
        Column::new("payload_text", Kind::Text, "Readable text in a payload that is not understood").or_null(),
        Column::new("payload_short", Kind::Bool, "Whether the payload ends before its last field; null if it is not understood").or_null(),
        Column::new("payload_left", Kind::Int32, "Size of what follows the last field; null if nothing does").unit("bytes").or_null(),
        Column::new("hook", Kind::Int32, "Group and type of a kernel event").or_null(),
        Column::new("opcode_name", Kind::Word, "The provider's own name of the opcode").or_null(),
        Column::new("task_name", Kind::Word, "The provider's own name of the task").or_null(),
        Column::new("level_name", Kind::Word, "The provider's own name of the level").or_null(),
        Column::new("channel_name", Kind::Word, "Channel: the event log for which the event is meant").or_null(),
        Column::new("user", Kind::Word, "User that the event carries, a SID").or_null(),
        Column::new("session_id", Kind::Int64, "Terminal session that the event carries").or_null(),
        Column::new("timestamp", Kind::Int64, "The time as recorded, in ticks of the clock that `traces` names").unit("ticks"),
        Column::new("payload", Kind::Bytes, "The payload").on_request(),
    ]
}
