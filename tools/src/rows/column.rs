//! The columns of rows: their names.

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
