//! The columns of rows, their values, and members of JSON objects.

use std::io::Write;

use etl_format::Guid;
use etl_schema::render::{decimal, escape_json, hexadecimal, signed};

/// Defines the columns with their names, which are the keys of JSON as well.
macro_rules! columns {
    ($($column:ident $name:literal,)*) => {
        /// A column that every event can fill.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Column { $($column,)* }

        impl Column {
            /// All columns; those of CSV without `--columns` come first, after `file`.
            pub(super) const ALL: &'static [Column] = &[$(Column::$column,)*];

            pub(super) const fn name(self) -> &'static str {
                match self { $(Column::$column => $name,)* }
            }

            /// The beginning of a JSON member.
            #[inline(always)]
            pub(super) const fn json_key(self) -> &'static str {
                match self { $(Column::$column => concat!(",\"", $name, "\":"),)* }
            }
        }
    };
}

columns! {
    File "file",
    Time "time",
    Timestamp "timestamp",
    Cpu "cpu",
    Kind "kind",
    Pid "pid",
    ProcessName "process_name",
    Tid "tid",
    ThreadName "thread_name",
    ProviderGuid "provider_guid",
    Provider "provider",
    Hook "hook",
    Id "id",
    Version "version",
    Opcode "opcode",
    Task "task",
    Level "level",
    Keyword "keyword",
    Activity "activity",
    Event "event",
    Fields "fields",
    Message "message",
    PayloadSize "payload_size",
    PayloadText "payload_text",
    Payload "payload",
    Channel "channel",
    RelatedActivity "related_activity",
    OpcodeName "opcode_name",
    TaskName "task_name",
    LevelName "level_name",
    Keywords "keywords",
}

/// The prefix of a field that has the name of a column.
pub(super) const FIELD_PREFIX: &str = "fields.";

/// A value of a column.
pub(super) enum Cell<'a> {
    None,
    Number(u64),
    Signed(i64),
    Hex(u64),
    /// Group and type of a kernel event, in four digits.
    Hook(u16),
    Guid(Guid),
    Text(&'a str),
}

impl<'a> Cell<'a> {
    #[inline(always)]
    pub(super) fn number<T: Into<u64>>(value: Option<T>) -> Self {
        value.map_or(Cell::None, |value| Cell::Number(value.into()))
    }

    #[inline(always)]
    pub(super) fn text(text: &'a str) -> Self {
        if text.is_empty() { Cell::None } else { Cell::Text(text) }
    }

    /// Writes the value, with `quote` around what is neither a number nor text.
    #[inline(always)]
    pub(super) fn write(
        self,
        out: &mut Vec<u8>,
        quote: &[u8],
        text: impl FnOnce(&mut Vec<u8>, &str),
    ) {
        match self {
            Cell::None => {}
            Cell::Number(n) => decimal(out, n),
            Cell::Signed(n) => signed(out, n),
            Cell::Hex(n) => {
                out.extend(quote);
                hexadecimal(out, n);
                out.extend(quote);
            }
            Cell::Hook(hook) => {
                out.extend(quote);
                // Writing to a vector does not fail.
                let _ = write!(out, "{hook:#06x}");
                out.extend(quote);
            }
            Cell::Guid(guid) => {
                out.extend(quote);
                out.extend(guid.to_ascii());
                out.extend(quote);
            }
            Cell::Text(value) => text(out, value),
        }
    }
}

/// The beginning of a member.
#[inline(always)]
pub(super) fn key(out: &mut Vec<u8>, column: Column) {
    out.extend_from_slice(column.json_key().as_bytes());
}

/// Something in quotes.
#[inline(always)]
pub(super) fn quoted(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    write(out);
    out.push(b'"');
}

/// A text as a member, unless it is empty.
pub(super) fn text_member(out: &mut Vec<u8>, column: Column, text: &str) {
    if !text.is_empty() {
        key(out, column);
        escape_json(out, text);
    }
}

/// A number as a member, if there is one.
pub(super) fn number<T: Into<u64>>(out: &mut Vec<u8>, column: Column, value: Option<T>) {
    if let Some(value) = value {
        key(out, column);
        decimal(out, value.into());
    }
}
