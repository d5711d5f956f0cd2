//! The columns of rows and their values.

mod cell;

pub(crate) use cell::{Cell, write_column, write_kind};

/// Defines the columns with their names, which are the keys of JSON as well.
macro_rules! columns {
    ($($column:ident $name:literal,)*) => {
        /// A column that every event can fill.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Column { $($column,)* }

        impl Column {
            /// All columns. After `file` come the columns that CSV has by default.
            pub(crate) const ALL: &'static [Column] = &[$(Column::$column,)*];

            pub(crate) const fn name(self) -> &'static str {
                match self { $(Column::$column => $name,)* }
            }

            /// The beginning of a JSON member.
            #[inline(always)]
            pub(crate) const fn json_key(self) -> &'static str {
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
    Process "process",
    Tid "tid",
    Thread "thread",
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
    ChannelName "channel_name",
    Keywords "keywords",
}

/// The prefix of a field that has the name of a column.
pub(crate) const FIELD_PREFIX: &str = "fields.";
