//! Offsets of fields in headers, for code that reads or changes single fields.

/// In the header of a buffer (`WMI_BUFFER_HEADER`).
pub mod buffer {
    /// Bytes of the buffer.
    pub const BUFFER_SIZE: usize = 0x00;
    /// Bytes of the buffer in use, or 0.
    pub const SAVED_OFFSET: usize = 0x04;
    /// Current offset.
    pub const CURRENT_OFFSET: usize = 0x08;
    /// Reference count.
    pub const REFERENCE_COUNT: usize = 0x0c;
    /// Time at which the buffer was flushed, in ticks.
    pub const TIMESTAMP: usize = 0x10;
    /// Sequence number of the buffer.
    pub const SEQUENCE: usize = 0x18;
    /// Clock type and frequency of debugger buffers.
    pub const CLOCK: usize = 0x20;
    /// The processor that filled the buffer.
    pub const PROCESSOR: usize = 0x28;
    /// Id of the session.
    pub const LOGGER_ID: usize = 0x2a;
    /// State of the buffer.
    pub const STATE: usize = 0x2c;
    /// Bytes in use.
    pub const OFFSET: usize = 0x30;
    /// Flags of the buffer.
    pub const FLAGS: usize = 0x34;
    /// Type of the buffer.
    pub const TYPE: usize = 0x36;
    /// Reference time of real-time buffers.
    pub const TAIL: usize = 0x38;
}

/// In the payload of the header event (`TRACE_LOGFILE_HEADER`) with pointers of 8 bytes.
pub mod header_event {
    /// Version of the log format: major and minor.
    pub const LOG_VERSION: usize = 0x06;
    /// Build of Windows.
    pub const BUILD: usize = 0x08;
    /// Number of processors.
    pub const PROCESSORS: usize = 0x0c;
    /// End time of the recording, as a `FILETIME`.
    pub const END_TIME: usize = 0x10;
    /// Mode of the file.
    pub const MODE: usize = 0x20;
    /// Number of buffers.
    pub const BUFFERS: usize = 0x24;
    /// Size of pointers, in bytes.
    pub const POINTER_SIZE: usize = 0x2c;
    /// Number of lost events.
    pub const EVENTS_LOST: usize = 0x30;
    /// The field after the two pointers. With pointers of 4 bytes, this field and the following
    /// ones are 8 bytes earlier.
    pub const AFTER_POINTERS: usize = 0x48;
    /// Time of the last start of the machine.
    pub const BOOT_TIME: usize = 0xf8;
    /// Start time of the recording, as a `FILETIME`.
    pub const START_TIME: usize = 0x108;
    /// Number of lost buffers.
    pub const BUFFERS_LOST: usize = 0x114;
}

/// In the header of an event (`EVENT_HEADER`).
pub mod event {
    /// Flags.
    pub const FLAGS: usize = 0x04;
    /// Properties.
    pub const PROPERTIES: usize = 0x06;
    /// Thread.
    pub const THREAD: usize = 0x08;
    /// Process.
    pub const PROCESS: usize = 0x0c;
    /// Timestamp.
    pub const TIMESTAMP: usize = 0x10;
    /// Provider; the descriptor follows it.
    pub const PROVIDER: usize = 0x18;
    /// Id.
    pub const ID: usize = 0x28;
    /// Version.
    pub const VERSION: usize = 0x2a;
    /// Channel.
    pub const CHANNEL: usize = 0x2b;
    /// Level.
    pub const LEVEL: usize = 0x2c;
    /// Opcode.
    pub const OPCODE: usize = 0x2d;
    /// Task.
    pub const TASK: usize = 0x2e;
    /// Keywords.
    pub const KEYWORD: usize = 0x30;
    /// Kernel time.
    pub const KERNEL_TIME: usize = 0x38;
    /// User time.
    pub const USER_TIME: usize = 0x3c;
    /// Activity.
    pub const ACTIVITY: usize = 0x40;
}

/// In the header of a classic event (`EVENT_TRACE_HEADER`), and of one with instances
/// (`EVENT_INSTANCE_GUID_HEADER`).
pub mod full {
    pub use super::event::{PROCESS, THREAD, TIMESTAMP};

    /// Opcode.
    pub const OPCODE: usize = 0x04;
    /// Level.
    pub const LEVEL: usize = 0x05;
    /// Version.
    pub const VERSION: usize = 0x06;
    /// Event class.
    pub const CLASS: usize = super::event::PROVIDER;
    /// Kernel time.
    pub const KERNEL_TIME: usize = 0x28;
    /// User time.
    pub const USER_TIME: usize = 0x2c;
    /// Instance.
    pub const INSTANCE: usize = 0x30;
    /// Instance of the parent.
    pub const PARENT_INSTANCE: usize = 0x34;
    /// Event class of the parent.
    pub const PARENT_CLASS: usize = 0x38;
}

/// In the header of a WPP message (`MESSAGE_TRACE_HEADER`).
pub mod message {
    /// Number of the message.
    pub const NUMBER: usize = 0x04;
    /// Flags: which parts of the message follow.
    pub const FLAGS: usize = 0x06;
}

/// In the header of a kernel event (`SYSTEM_TRACE_HEADER`, `PERFINFO_TRACE_HEADER`).
pub mod kernel {
    pub use super::event::{PROCESS, THREAD, TIMESTAMP};

    /// Version.
    pub const VERSION: usize = 0x00;
    /// Bytes of the record. All other kinds of records begin with it.
    pub const SIZE: usize = 0x04;
    /// Group and type.
    pub const HOOK: usize = 0x06;
    /// Timestamp of a PERFINFO record.
    pub const PERFINFO_TIMESTAMP: usize = 0x08;
    /// Kernel time.
    pub const KERNEL_TIME: usize = 0x18;
    /// User time.
    pub const USER_TIME: usize = 0x1c;
}
