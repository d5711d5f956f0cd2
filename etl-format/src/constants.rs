//! Every constant of the format: values, names, and a `Display` that prints unknown values as
//! numbers.
//!
//! Sources: the published `ntwmi.h` and `evntrace.h` headers, checked against real files where such
//! files exist.

pub mod offset;

use crate::Guid;
use core::fmt;

/// A newtype over an integer with named values.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident: $int:ty { $($(#[$vdoc:meta])* $const:ident = $value:expr, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $int);

        impl $name {
            $($(#[$vdoc])* pub const $const: $name = $name($value);)*

            /// Every named value with its name, in the order of declaration.
            pub const NAMED: &'static [($name, &'static str)] = &[$(($name::$const, $text)),*];
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

/// A newtype over an integer with named values. Unknown values are kept and print as `NAME(0x…)`.
macro_rules! tags {
    ($(#[$doc:meta])* $name:ident: $int:ty { $($(#[$vdoc:meta])* $const:ident = $value:expr, $text:literal;)* }) => {
        named! { $(#[$doc])* $name: $int { $($(#[$vdoc])* $const = $value, $text;)* } }

        impl $name {
            /// The name, for a known value.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $(v if v == $value => Some($text),)*
                    _ => None,
                }
            }

            /// The value with this name (case does not matter).
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::NAMED.iter().find(|(_, n)| n.eq_ignore_ascii_case(name)).map(|(v, _)| *v)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => write!(f, concat!(stringify!($name), "({:#x})"), self.0),
                }
            }
        }
    };
}

/// A newtype over an integer whose bits have names. Prints as `A|B|0x…`, or `0`.
macro_rules! bits {
    ($(#[$doc:meta])* $name:ident: $int:ty { $($(#[$vdoc:meta])* $const:ident = $value:expr, $text:literal;)* }) => {
        named! { $(#[$doc])* $name: $int { $($(#[$vdoc])* $const = $value, $text;)* } }

        impl $name {
            /// Whether all bits of `other` are set.
            #[must_use]
            pub const fn has(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }

            /// The bits that have no name.
            #[must_use]
            pub const fn unnamed(self) -> $int {
                self.0 & !(0 $(| $value)*)
            }

            /// These bits without the bits of `other`.
            #[must_use]
            pub const fn without(self, other: $name) -> $name {
                $name(self.0 & !other.0)
            }
        }

        impl core::ops::BitOr for $name {
            type Output = $name;
            fn bitor(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if self.0 == 0 {
                    return f.write_str("0");
                }
                let mut separator = "";
                for (_, name) in Self::NAMED.iter().filter(|(bit, _)| self.has(*bit)) {
                    write!(f, "{separator}{name}")?;
                    separator = "|";
                }
                match self.unnamed() {
                    0 => Ok(()),
                    rest => write!(f, "{separator}{rest:#x}"),
                }
            }
        }
    };
}

/// Bytes of a buffer header (`WMI_BUFFER_HEADER`), the same for both pointer sizes since Vista.
pub const BUFFER_HEADER_SIZE: usize = 0x48;

/// The largest number of bytes that one stored byte of a compressed buffer decompresses to.
///
/// A record takes at most 64 KiB, and each different record takes about ten stored bytes: a factor
/// of 6,500. Readers take more for damage: without this bound a few bytes of XPRESS could
/// decompress to gigabytes. Writers leave such a buffer uncompressed.
pub(crate) const MAX_EXPANSION: usize = 8192;

/// A buffer 0 that is shorter than the others takes a multiple of this.
pub(crate) const SHORT_BUFFER_UNIT: usize = 0x200;

/// Records start at multiples of this, counted from the start of their buffer.
pub const RECORD_ALIGNMENT: usize = 8;

/// The byte that fills an uncompressed buffer after its last record.
pub const FILLER: u8 = 0xff;

/// A 32-bit word that ends the records of a buffer.
pub const FILLER_WORD: u32 = 0xffff_ffff;

/// Bits of a buffer's processor index that are the index, when [`BufferFlags::PROC_INDEX`] is set.
pub const PROCESSOR_INDEX_MASK: u16 = 0x7ff;

/// The buffer alignment that Vista and Windows 7 store above the processor number.
pub const LEGACY_BUFFER_ALIGNMENT: u8 = 8;

/// Offset between FILETIME's epoch (1601) and the Unix epoch, in units of 100 ns.
pub const FILETIME_UNIX_EPOCH: i64 = 116_444_736_000_000_000;

/// FILETIME units in a second.
pub const FILETIME_PER_SECOND: i64 = 10_000_000;

/// The process or thread of a record for which Windows knows none: all bits are set.
pub const UNKNOWN_ID: u32 = u32::MAX;

/// The first half of a kernel-format record's marker word: `SYSTEM_TRACE_VERSION`.
pub const SYSTEM_TRACE_VERSION: u8 = 2;

/// The same half in the header record of a private session: the process writes the file itself and
/// sets no version.
pub const PRIVATE_TRACE_VERSION: u8 = 0;

/// Set in the top byte of the first word of every record.
pub const MARKER_TRACE: u8 = 0x80;

/// Set, together with [`MARKER_TRACE`], for records whose kind is the third marker byte.
pub const MARKER_EVENT_TRACE: u8 = 0x40;

/// Set, with [`MARKER_EVENT_TRACE`] clear, for WPP messages.
pub const MARKER_MESSAGE: u8 = 0x10;

tags! {
    /// The kind of a record: the third byte of its first word.
    ///
    /// The JSON contract of `etlkit info` has these names.
    RecordKind: u8 {
        /// Kernel event with thread, process, timestamp and CPU times, 32-bit payload.
        SYSTEM32 = 0x01, "SYSTEM32";
        /// The same, 64-bit payload.
        SYSTEM64 = 0x02, "SYSTEM64";
        /// Kernel event without CPU times, 32-bit payload.
        COMPACT32 = 0x03, "COMPACT32";
        /// The same, 64-bit payload.
        COMPACT64 = 0x04, "COMPACT64";
        /// Classic (MOF) event, 32-bit payload.
        FULL32 = 0x0a, "FULL32";
        /// Classic event of an instance, 32-bit payload.
        INSTANCE32 = 0x0b, "INSTANCE32";
        /// Reserved for timed events; never seen.
        TIMED = 0x0c, "TIMED";
        /// Reserved for errors; never seen.
        ERROR = 0x0d, "ERROR";
        /// A WNODE header; never seen.
        WNODE = 0x0e, "WNODE";
        /// A WPP message. On disk its marker is usually `0x90` in the fourth byte instead.
        MESSAGE = 0x0f, "MESSAGE";
        /// Kernel event with a timestamp only, 32-bit payload.
        PERFINFO32 = 0x10, "PERFINFO32";
        /// The same, 64-bit payload.
        PERFINFO64 = 0x11, "PERFINFO64";
        /// Manifest, TraceLogging or EventSource event, 32-bit payload.
        EVENT32 = 0x12, "EVENT32";
        /// The same, 64-bit payload.
        EVENT64 = 0x13, "EVENT64";
        /// Classic (MOF) event, 64-bit payload.
        FULL64 = 0x14, "FULL64";
        /// Classic event of an instance, 64-bit payload.
        INSTANCE64 = 0x15, "INSTANCE64";
        /// A record with a 32-bit marker word of its own (`0xA…`); never seen. The value is ours.
        ULONG32 = 0xa0, "ULONG32";
        /// The same with a time (`0xB…`); never seen. The value is ours.
        ULONG32_TIME = 0xb0, "ULONG32_TIME";
    }
}

bits! {
    /// `BufferFlag` of a buffer header.
    BufferFlags: u16 {
        /// Ends a batch of flushed buffers: buffer 0 and the last buffer of a clean file.
        FLUSH_MARKER = 0x1, "FLUSH_MARKER";
        /// Events were lost while this buffer was the current one.
        EVENTS_LOST = 0x2, "EVENTS_LOST";
        /// A whole buffer was lost before this one.
        BUFFER_LOST = 0x4, "BUFFER_LOST";
        /// The backup file of a real-time session is corrupt.
        RTBACKUP_CORRUPT = 0x8, "RTBACKUP_CORRUPT";
        /// The buffer comes from the backup file of a real-time session.
        RTBACKUP = 0x10, "RTBACKUP";
        /// The processor field is a 16-bit index (Windows 8 and later).
        PROC_INDEX = 0x20, "PROC_INDEX";
        /// The records are compressed.
        COMPRESSED = 0x40, "COMPRESSED";
    }
}

tags! {
    /// `BufferType` of a buffer header.
    BufferType: u16 {
        /// Records.
        GENERIC = 0, "GENERIC";
        /// Records of a rundown.
        RUNDOWN = 1, "RUNDOWN";
        /// Context swaps.
        CTX_SWAP = 2, "CTX_SWAP";
        /// A reference time, no records.
        REFTIME = 3, "REFTIME";
        /// The file header.
        HEADER = 4, "HEADER";
        /// Batched records.
        BATCHED = 5, "BATCHED";
        /// Marks an empty buffer, no records.
        EMPTY_MARKER = 6, "EMPTY_MARKER";
        /// Debugger information.
        DBG_INFO = 7, "DBG_INFO";
    }
}

tags! {
    /// `State` of a buffer header.
    BufferState: u32 {
        /// Not in use.
        FREE = 0, "FREE";
        /// Being written.
        GENERAL_LOGGING = 1, "GENERAL_LOGGING";
        /// Being written with context swaps.
        CSWITCH = 2, "CSWITCH";
        /// Written to the file.
        FLUSH = 3, "FLUSH";
        /// Waits for compression (since 1607).
        PENDING_COMPRESSION = 4, "PENDING_COMPRESSION";
        /// Compressed (since 1607).
        COMPRESSED = 5, "COMPRESSED";
        /// Holds a place (since 1607).
        PLACEHOLDER = 6, "PLACEHOLDER";
    }
}

tags! {
    /// How the buffers of a compressed file are packed: the `State` word of its buffer 0.
    ///
    /// `RtlCompressBuffer` uses the same values. Every known real file has XPRESS.
    CompressionFormat: u16 {
        /// Not compressed.
        NONE = 0, "NONE";
        /// The default format, which is none.
        DEFAULT = 1, "DEFAULT";
        /// LZNT1.
        LZNT1 = 2, "LZNT1";
        /// XPRESS: plain LZ77 in MS-XCA.
        XPRESS = 3, "XPRESS";
        /// XPRESS with Huffman coding: LZ77+Huffman in MS-XCA.
        XPRESS_HUFF = 4, "XPRESS_HUFF";
    }
}

bits! {
    /// `LogFileMode` of the header event.
    LogFileMode: u32 {
        /// Buffers are appended until the file is full.
        SEQUENTIAL = 0x1, "SEQUENTIAL";
        /// The file wraps around at its maximum size.
        CIRCULAR = 0x2, "CIRCULAR";
        /// Buffers are added to a file that was there.
        APPEND = 0x4, "APPEND";
        /// A new file is begun at the maximum size.
        NEWFILE = 0x8, "NEWFILE";
        /// The flush timer counts milliseconds.
        USE_MS_FLUSH_TIMER = 0x10, "USE_MS_FLUSH_TIMER";
        /// The file is extended to its maximum size at the start.
        PREALLOCATE = 0x20, "PREALLOCATE";
        /// Stopped only by the system going down.
        NONSTOPPABLE = 0x40, "NONSTOPPABLE";
        /// Only privileged processes may log.
        SECURE = 0x80, "SECURE";
        /// Delivered in real time as well.
        REAL_TIME = 0x100, "REAL_TIME";
        /// The file is opened late.
        DELAY_OPEN = 0x200, "DELAY_OPEN";
        /// Kept in memory until flushed on demand.
        BUFFERING = 0x400, "BUFFERING";
        /// A session of one process.
        PRIVATE = 0x800, "PRIVATE";
        /// A header is added to the events.
        ADD_HEADER = 0x1000, "ADD_HEADER";
        /// `MaximumFileSize` counts kilobytes.
        USE_KBYTES_FOR_SIZE = 0x2000, "USE_KBYTES_FOR_SIZE";
        /// Events are numbered across sessions.
        GLOBAL_SEQUENCE = 0x4000, "GLOBAL_SEQUENCE";
        /// Events are numbered within the session.
        LOCAL_SEQUENCE = 0x8000, "LOCAL_SEQUENCE";
        /// Written by a relogger.
        RELOG = 0x1_0000, "RELOG";
        /// A private session that writes in its process.
        PRIVATE_IN_PROC = 0x2_0000, "PRIVATE_IN_PROC";
        /// Buffers are handed to a callback.
        BUFFER_INTERFACE = 0x4_0000, "BUFFER_INTERFACE";
        /// Passed on to the kernel debugger.
        KD_FILTER = 0x8_0000, "KD_FILTER";
        /// A real-time relogger.
        REALTIME_RELOG = 0x10_0000, "REALTIME_RELOG";
        /// Debugging of lost events.
        LOST_EVENTS_DEBUG = 0x20_0000, "LOST_EVENTS_DEBUG";
        /// Stops on a hybrid shutdown.
        STOP_ON_HYBRID_SHUTDOWN = 0x40_0000, "STOP_ON_HYBRID_SHUTDOWN";
        /// Survives a hybrid shutdown.
        PERSIST_ON_HYBRID_SHUTDOWN = 0x80_0000, "PERSIST_ON_HYBRID_SHUTDOWN";
        /// Buffers are in paged memory.
        USE_PAGED_MEMORY = 0x100_0000, "USE_PAGED_MEMORY";
        /// A kernel session.
        SYSTEM_LOGGER = 0x200_0000, "SYSTEM_LOGGER";
        /// Buffers are compressed in the file.
        COMPRESSED = 0x400_0000, "COMPRESSED";
        /// Its losses do not make others lose.
        INDEPENDENT_SESSION = 0x800_0000, "INDEPENDENT_SESSION";
        /// One set of buffers for all processors.
        NO_PER_PROCESSOR_BUFFERING = 0x1000_0000, "NO_PER_PROCESSOR_BUFFERING";
        /// Writers wait for buffers.
        BLOCKING = 0x2000_0000, "BLOCKING";
        /// Part of small dumps.
        ADDTO_TRIAGE_DUMP = 0x8000_0000, "ADDTO_TRIAGE_DUMP";
    }
}

tags! {
    /// The clock that timestamps a session's records: `ReservedFlags` of the header event.
    ClockType: u32 {
        /// Not stated.
        RAW = 0, "raw";
        /// The performance counter, `PerfFreq` ticks a second.
        QPC = 1, "QPC";
        /// System time: FILETIME units.
        SYSTEM_TIME = 2, "system time";
        /// The processor's cycle counter, `CpuSpeedInMHz` million ticks a second.
        CPU_CYCLE = 3, "CPU cycles";
    }
}

bits! {
    /// `Flags` of an EVENT record's header. On disk only the first three have been seen.
    EventFlags: u16 {
        /// Extended data items precede the payload.
        EXTENDED_INFO = 0x1, "EXTENDED_INFO";
        /// From a private session.
        PRIVATE_SESSION = 0x2, "PRIVATE_SESSION";
        /// The payload is one UTF-16 string.
        STRING_ONLY = 0x4, "STRING_ONLY";
        /// A WPP message.
        TRACE_MESSAGE = 0x8, "TRACE_MESSAGE";
        /// The CPU times are not to be used.
        NO_CPUTIME = 0x10, "NO_CPUTIME";
        /// From a 32-bit process.
        HEADER_32_BIT = 0x20, "32_BIT_HEADER";
        /// From a 64-bit process.
        HEADER_64_BIT = 0x40, "64_BIT_HEADER";
        /// The provider id is a decode GUID.
        DECODE_GUID = 0x80, "DECODE_GUID";
        /// A classic event.
        CLASSIC_HEADER = 0x100, "CLASSIC_HEADER";
        /// The processor index is 16 bits wide.
        PROCESSOR_INDEX = 0x200, "PROCESSOR_INDEX";
    }
}

bits! {
    /// `EventProperty` of an EVENT record's header; always 0 on disk so far.
    EventProperties: u16 {
        /// The payload is XML.
        XML = 0x1, "XML";
        /// The payload was forwarded as XML.
        FORWARDED_XML = 0x2, "FORWARDED_XML";
        /// From the event log service of old.
        LEGACY_EVENTLOG = 0x4, "LEGACY_EVENTLOG";
        /// May be relogged.
        RELOGGABLE = 0x8, "RELOGGABLE";
    }
}

tags! {
    /// The type of an extended data item of an EVENT record.
    ExtendedType: u16 {
        /// GUID of the related activity.
        RELATED_ACTIVITYID = 0x1, "RELATED_ACTIVITYID";
        /// Security identifier of the user.
        SID = 0x2, "SID";
        /// Terminal session, 32 bits.
        TS_ID = 0x3, "TS_ID";
        /// Instance id, parent instance id, parent GUID.
        INSTANCE_INFO = 0x4, "INSTANCE_INFO";
        /// Call stack of 32-bit addresses.
        STACK_TRACE32 = 0x5, "STACK_TRACE32";
        /// Call stack of 64-bit addresses.
        STACK_TRACE64 = 0x6, "STACK_TRACE64";
        /// Index of a precise-sampling record.
        PEBS_INDEX = 0x7, "PEBS_INDEX";
        /// Counters of the processor.
        PMC_COUNTERS = 0x8, "PMC_COUNTERS";
        /// Process-state-manager key.
        PSM_KEY = 0x9, "PSM_KEY";
        /// Key of the event.
        EVENT_KEY = 0xa, "EVENT_KEY";
        /// TraceLogging metadata of the event.
        EVENT_SCHEMA_TL = 0xb, "EVENT_SCHEMA_TL";
        /// Name and traits of the provider.
        PROV_TRAITS = 0xc, "PROV_TRAITS";
        /// Start key of the process.
        PROCESS_START_KEY = 0xd, "PROCESS_START_KEY";
        /// GUID by which the provider is controlled.
        CONTROL_GUID = 0xe, "CONTROL_GUID";
        /// Difference of the clock to the root partition's.
        QPC_DELTA = 0xf, "QPC_DELTA";
        /// Container that the event comes from.
        CONTAINER_ID = 0x10, "CONTAINER_ID";
        /// Key of a call stack of 32-bit addresses.
        STACK_KEY32 = 0x11, "STACK_KEY32";
        /// Key of a call stack of 64-bit addresses.
        STACK_KEY64 = 0x12, "STACK_KEY64";
    }
}

bits! {
    /// `Flags` of a WPP message: which fields the header has.
    MessageFlags: u16 {
        /// A 32-bit sequence number.
        SEQUENCE = 0x1, "SEQUENCE";
        /// The message's GUID.
        GUID = 0x2, "GUID";
        /// A 32-bit component id (then no GUID).
        COMPONENT_ID = 0x4, "COMPONENT_ID";
        /// A timestamp of the session's clock.
        TIMESTAMP = 0x8, "TIMESTAMP";
        /// The timestamp is of the performance counter.
        PERFORMANCE_TIMESTAMP = 0x10, "PERFORMANCE_TIMESTAMP";
        /// Thread and process id.
        SYSTEMINFO = 0x20, "SYSTEMINFO";
        /// The producer was 32-bit.
        POINTER32 = 0x40, "POINTER32";
        /// The producer was 64-bit.
        POINTER64 = 0x80, "POINTER64";
    }
}

/// `HookId` of kernel-format records: group in the high byte, type (opcode) in the low one.
///
/// Only the hooks that the container itself deals in are named here; the rest belong to providers.
pub mod hook {
    /// The header event: first record of every file.
    pub const HEADER: u16 = 0x0000;
    /// The kernel session's group masks.
    pub const EXTENSION: u16 = 0x0005;
    /// The kernel's rundown is complete.
    pub const RUNDOWN_COMPLETE: u16 = 0x0008;
    /// The group masks at the end of a session.
    pub const GROUP_MASKS_END: u16 = 0x0020;
    /// A rundown begins.
    pub const RUNDOWN_BEGIN: u16 = 0x0030;
    /// A rundown ends.
    pub const RUNDOWN_END: u16 = 0x0031;
    /// PDB identity (GUID and age) of a provider's binary.
    pub const DBGID_RSDS: u16 = 0x0040;
    /// Build string of the system.
    pub const BUILD_LAB: u16 = 0x0042;
    /// Path of a provider's binary.
    pub const BINARY_PATH: u16 = 0x0043;
    /// Partition type and its clock offset.
    pub const PARTITION_INFO: u16 = 0x0050;
    /// One 64-bit word per processor; their meaning is not known.
    pub const PROCESSOR_WORDS: u16 = 0x0052;

    /// A read from a disk ended.
    pub const DISK_READ: u16 = 0x010a;
    /// A write to a disk ended.
    pub const DISK_WRITE: u16 = 0x010b;
    /// A read from a disk begins.
    pub const DISK_READ_INIT: u16 = 0x010c;
    /// A write to a disk begins.
    pub const DISK_WRITE_INIT: u16 = 0x010d;
    /// A flush of a disk ended.
    pub const DISK_FLUSH: u16 = 0x010e;
    /// A flush of a disk begins.
    pub const DISK_FLUSH_INIT: u16 = 0x010f;
    /// A page was read from disk.
    pub const HARD_FAULT: u16 = 0x0220;
    /// Virtual memory was allocated.
    pub const VIRTUAL_ALLOC: u16 = 0x0262;
    /// Virtual memory was freed.
    pub const VIRTUAL_FREE: u16 = 0x0263;
    /// A process started.
    pub const PROCESS_START: u16 = 0x0301;
    /// A process ended.
    pub const PROCESS_END: u16 = 0x0302;
    /// A process that ran when the session stopped.
    pub const PROCESS_DC_END: u16 = 0x0304;
    /// An image was loaded; the other image events are in a group of their own.
    pub const IMAGE_LOAD: u16 = 0x030a;
    /// A process that ended and still has handles open to it.
    pub const PROCESS_DEFUNCT: u16 = 0x0327;
    /// Name of a file object.
    pub const FILE_NAME: u16 = 0x0400;
    /// A file got a name.
    pub const FILE_CREATE: u16 = 0x0420;
    /// A file lost its name.
    pub const FILE_DELETE: u16 = 0x0423;
    /// Names of open files, at the end of a session.
    pub const FILE_RUNDOWN: u16 = 0x0424;
    /// A process opens or creates a file.
    pub const FILE_OPEN: u16 = 0x0440;
    /// The last handle of a file is closed.
    pub const FILE_CLEANUP: u16 = 0x0441;
    /// A file object is closed.
    pub const FILE_CLOSE: u16 = 0x0442;
    /// A process reads from a file.
    pub const FILE_READ: u16 = 0x0443;
    /// A process writes to a file.
    pub const FILE_WRITE: u16 = 0x0444;
    /// A process changes information about a file.
    pub const FILE_SET_INFO: u16 = 0x0445;
    /// A process marks a file to be deleted.
    pub const FILE_SET_DELETE: u16 = 0x0446;
    /// A process renames a file.
    pub const FILE_RENAME: u16 = 0x0447;
    /// A process lists a directory.
    pub const FILE_DIR_ENUM: u16 = 0x0448;
    /// A process flushes a file.
    pub const FILE_FLUSH: u16 = 0x0449;
    /// A process queries information about a file.
    pub const FILE_QUERY_INFO: u16 = 0x044a;
    /// A process sends a control code to a file system.
    pub const FILE_FS_CONTROL: u16 = 0x044b;
    /// An operation on a file ended.
    pub const FILE_OPERATION_END: u16 = 0x044c;
    /// A process asks to be notified of changes in a directory.
    pub const FILE_DIR_NOTIFY: u16 = 0x044d;
    /// A process deletes a file, with its path.
    pub const FILE_DELETE_PATH: u16 = 0x044f;
    /// A process renames a file, with its path.
    pub const FILE_RENAME_PATH: u16 = 0x0450;
    /// A process makes a link to a file, with its path.
    pub const FILE_LINK_PATH: u16 = 0x0451;
    /// Group of the events of TCP: the high byte of their hooks.
    pub const GROUP_TCP: u8 = 0x06;
    /// Group of the events of UDP.
    pub const GROUP_UDP: u8 = 0x08;
    /// A thread started.
    pub const THREAD_START: u16 = 0x0501;
    /// A thread ended.
    pub const THREAD_END: u16 = 0x0502;
    /// A thread that ran when the session stopped.
    pub const THREAD_DC_END: u16 = 0x0504;
    /// A processor switched to another thread.
    pub const CSWITCH: u16 = 0x0524;
    /// A thread became ready to run.
    pub const READY_THREAD: u16 = 0x0532;
    /// A thread was given a name.
    pub const THREAD_SET_NAME: u16 = 0x0548;
    /// A registry key control block was created.
    pub const KCB_CREATE: u16 = 0x0916;
    /// Registry key control blocks that existed when the session started.
    pub const KCB_RUNDOWN_BEGIN: u16 = 0x0918;
    /// Registry key control blocks that existed when the session stopped.
    pub const KCB_RUNDOWN_END: u16 = 0x0919;
    /// The machine: name, processors, memory.
    pub const CPU_CONFIG: u16 = 0x0b0a;
    /// A sample of what a processor executes.
    pub const SAMPLE: u16 = 0x0f2e;
    /// An interrupt by a message was served.
    pub const ISR_MSI: u16 = 0x0f32;
    /// A deferred call ran in a thread.
    pub const THREADED_DPC: u16 = 0x0f42;
    /// An interrupt was served.
    pub const ISR: u16 = 0x0f43;
    /// A deferred call ran.
    pub const DPC: u16 = 0x0f44;
    /// A deferred call of a timer ran.
    pub const TIMER_DPC: u16 = 0x0f45;
    /// The interval between samples was set.
    pub const SET_INTERVAL: u16 = 0x0f48;
    /// The interval between samples when the session started.
    pub const COLLECTION_START: u16 = 0x0f49;
    /// The interval between samples when the session stopped.
    pub const COLLECTION_END: u16 = 0x0f4a;
    /// An image was unloaded.
    pub const IMAGE_UNLOAD: u16 = 0x1402;
    /// An image that was loaded when the session started.
    pub const IMAGE_DC_START: u16 = 0x1403;
    /// An image that was loaded when the session stopped.
    pub const IMAGE_DC_END: u16 = 0x1404;
    /// Address of the kernel.
    pub const KERNEL_BASE: u16 = 0x1421;
    /// Address of the hypercall page.
    pub const HYPERCALL_PAGE: u16 = 0x1422;
    /// A call stack.
    pub const STACK: u16 = 0x1820;
    /// A stack key came into use.
    pub const STACK_KEY_CREATE: u16 = 0x1822;
    /// A stack key goes out of use.
    pub const STACK_KEY_DELETE: u16 = 0x1823;
    /// A stack key that is in use when the session stops.
    pub const STACK_KEY_RUNDOWN: u16 = 0x1824;
    /// The key of the kernel part of a call stack.
    pub const STACK_KEY_KERNEL: u16 = 0x1825;
    /// The key of the user part of a call stack.
    pub const STACK_KEY_USER: u16 = 0x1826;

    /// Whether all records with this hook have the same few fields, of less than 128 bytes: no
    /// texts, stacks or lists. A longer one hides other records. Nothing in it comes from a program
    /// that is traced.
    #[must_use]
    pub const fn has_fixed_layout(hook: u16) -> bool {
        matches!(
            hook,
            DISK_READ
                | DISK_WRITE
                | DISK_READ_INIT
                | DISK_WRITE_INIT
                | DISK_FLUSH
                | DISK_FLUSH_INIT
                | HARD_FAULT
                | VIRTUAL_ALLOC
                | VIRTUAL_FREE
                | FILE_CLEANUP
                | FILE_CLOSE
                | FILE_READ
                | FILE_WRITE
                | FILE_OPERATION_END
                | CSWITCH
                | READY_THREAD
                | SAMPLE
                | ISR_MSI
                | THREADED_DPC
                | ISR
                | DPC
                | TIMER_DPC
        )
    }
}

/// Name and GUID of each kernel group, by group byte. The classic presentation uses the GUIDs.
///
/// Source: `ntwmi.h` and the kernel's MOF classes.
const GROUPS: &[(&str, Guid)] = &[
    named_group("EventTrace", "68fdd900-4a3e-11d1-84f4-0000f80464e3"),
    named_group("DiskIo", "3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c"),
    named_group("PageFault", "3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c"),
    named_group("Process", "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c"),
    named_group("FileIo", "90cbdc39-4a3e-11d1-84f4-0000f80464e3"),
    named_group("Thread", "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c"),
    named_group("TcpIp", "9a280ac0-c8e0-11d1-84e2-00c04fb998a2"),
    named_group("Job", "3282fc76-feed-498e-8aa7-e70f459d430e"),
    named_group("UdpIp", "bf3a50c5-a9c9-4988-a005-2df0b7c80f80"),
    named_group("Registry", "ae53722e-c863-11d2-8659-00c04fa321a1"),
    named_group("DbgPrint", "13976d09-a327-438c-950b-7f03192815c7"),
    named_group("Config", "01853a65-418f-4f36-aefc-dc0f1d2fd235"),
    named_group("Spare1", "99134383-5248-43fc-834b-529454e75df3"),
    named_group("WNF", "42695762-ea50-497a-9068-5cbbb35e0b95"),
    named_group("Pool", "0268a8b6-74fd-4302-9dd0-6e8f1795c0cf"),
    named_group("PerfInfo", "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc"),
    named_group("Heap", "222962ab-6180-4b88-a825-346b75f2a24a"),
    named_group("Object", "89497f50-effe-4440-8cf2-ce6b1cdcaca7"),
    named_group("Power", "e43445e0-0903-48c3-b878-ff0fccebdd04"),
    named_group("ModBound", "a9152f00-3f58-4bee-92a1-70c7d079d5dd"),
    named_group("Image", "2cb15d1d-5fc1-11d2-abe1-00a0c911f518"),
    named_group("Dpc", "b2d14872-7c5b-463d-8419-ee9bf7d23e04"),
    named_group("Cc", "7687a439-f752-45b8-b741-321aec0f8df9"),
    named_group("CritSec", "3ac66736-cc59-4cff-8115-8df50e39816b"),
    named_group("StackWalk", "def2fe46-7bd6-4b80-bd94-f57fe20d0ce3"),
    named_group("UMS", "9aec974b-5b8e-4118-9b92-3186d8002ce5"),
    named_group("ALPC", "45d8cccd-539f-4b72-a8b7-5c683142609a"),
    named_group("SplitIo", "d837ca92-12b9-44a5-ad6a-3a65b3578aa8"),
    named_group("ThreadPool", "c861d0e2-a2c1-4d36-9f9c-970bab943a12"),
    named_group("Hypervisor", "7f2a405c-69b5-4bf9-a1f5-30e8f1afab5e"),
    named_group("HypervisorX", "2ce9a149-effe-42f0-a635-a1d39e26c8f2"),
];

const fn named_group(name: &'static str, guid: &str) -> (&'static str, Guid) {
    match Guid::parse(guid) {
        Ok(guid) => (name, guid),
        Err(_) => (name, Guid::ZERO),
    }
}

const fn group(group: u8) -> Option<&'static (&'static str, Guid)> {
    match GROUPS.split_at_checked(group as usize) {
        Some((_, [entry, ..])) => Some(entry),
        _ => None,
    }
}

/// The GUID under which the classic presentation shows a kernel group.
#[must_use]
pub const fn group_guid(group_byte: u8) -> Option<Guid> {
    match group(group_byte) {
        Some((_, guid)) => Some(*guid),
        None => None,
    }
}

/// The name of a kernel group.
#[must_use]
pub fn group_name(group_byte: u8) -> Option<&'static str> {
    group(group_byte).map(|(name, _)| *name)
}

/// The group whose class a kernel event has: its own, but a load of an image, which the kernel logs
/// in the group of processes, has the class of images.
#[must_use]
pub const fn hook_group(hook: u16) -> u8 {
    match hook {
        hook::IMAGE_LOAD => (hook::IMAGE_UNLOAD >> 8) as u8,
        hook => (hook >> 8) as u8,
    }
}

/// The GUID of the class to which a kernel event belongs.
///
/// ```
/// use etl_format::constants::{hook, hook_class, hook_class_name};
///
/// assert_eq!(hook_class_name(hook::IMAGE_LOAD), Some("Image"));
/// assert_eq!(hook_class(hook::IMAGE_LOAD), hook_class(hook::IMAGE_UNLOAD));
/// assert_eq!(hook_class_name(hook::PROCESS_START), Some("Process"));
/// ```
#[must_use]
pub const fn hook_class(hook: u16) -> Option<Guid> {
    group_guid(hook_group(hook))
}

/// The name of the class to which a kernel event belongs.
#[must_use]
pub fn hook_class_name(hook: u16) -> Option<&'static str> {
    group_name(hook_group(hook))
}

/// The width of pointers in a record's payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PointerSize {
    /// Four bytes.
    P4,
    /// Eight bytes.
    #[default]
    P8,
}

impl PointerSize {
    /// The width in bytes: 4 or 8.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            PointerSize::P4 => 4,
            PointerSize::P8 => 8,
        }
    }

    /// `narrow` for four bytes, `wide` for eight.
    pub(crate) const fn choose(self, narrow: RecordKind, wide: RecordKind) -> RecordKind {
        match self {
            PointerSize::P4 => narrow,
            PointerSize::P8 => wide,
        }
    }
}

impl RecordKind {
    /// Width of pointers in the payload, for the kinds that come in both.
    #[must_use]
    pub const fn pointer_size(self) -> Option<PointerSize> {
        match self {
            Self::SYSTEM32
            | Self::COMPACT32
            | Self::FULL32
            | Self::INSTANCE32
            | Self::PERFINFO32
            | Self::EVENT32 => Some(PointerSize::P4),
            Self::SYSTEM64
            | Self::COMPACT64
            | Self::FULL64
            | Self::INSTANCE64
            | Self::PERFINFO64
            | Self::EVENT64 => Some(PointerSize::P8),
            _ => None,
        }
    }

    /// Whether records of this kind are in the kernel's own format, with a hook.
    #[must_use]
    #[inline]
    pub const fn is_kernel(self) -> bool {
        matches!(
            self,
            Self::SYSTEM32
                | Self::SYSTEM64
                | Self::COMPACT32
                | Self::COMPACT64
                | Self::PERFINFO32
                | Self::PERFINFO64
        )
    }
}

impl MessageFlags {
    /// Whether a WPP message has a timestamp.
    #[must_use]
    pub const fn has_timestamp(self) -> bool {
        self.has(Self::TIMESTAMP) || self.has(Self::PERFORMANCE_TIMESTAMP)
    }

    /// Offset of the timestamp in a WPP message: after the fixed 8 bytes, the sequence number, and
    /// a component id or else a GUID.
    #[must_use]
    pub const fn timestamp_offset(self) -> usize {
        let guid = self.has(Self::GUID) && !self.has(Self::COMPONENT_ID);
        8 + 4 * self.has(Self::SEQUENCE) as usize
            + 4 * self.has(Self::COMPONENT_ID) as usize
            + 16 * guid as usize
    }

    /// Bytes of the header of a WPP message.
    #[must_use]
    pub const fn header_len(self) -> usize {
        self.timestamp_offset()
            + 8 * self.has_timestamp() as usize
            + 8 * self.has(Self::SYSTEMINFO) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_prints_unknown_values() {
        assert_eq!(RecordKind(0x7f).to_string(), "RecordKind(0x7f)");
        assert_eq!(RecordKind::EVENT64.to_string(), "EVENT64");
        assert_eq!(
            RecordKind::from_name("perfinfo64"),
            Some(RecordKind::PERFINFO64)
        );
        assert_eq!(
            (BufferFlags::FLUSH_MARKER | BufferFlags(0x8020)).to_string(),
            "FLUSH_MARKER|PROC_INDEX|0x8000"
        );
        assert_eq!(LogFileMode(0).to_string(), "0");
    }

    #[test]
    fn group_guid_matches_published_guids() {
        let text = |g: u8| group_guid(g).map(|g| g.to_string()).unwrap_or_default();
        assert_eq!(text(0x00), "68fdd900-4a3e-11d1-84f4-0000f80464e3");
        assert_eq!(text(0x03), "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c");
        assert_eq!(text(0x14), "2cb15d1d-5fc1-11d2-abe1-00a0c911f518");
        assert_eq!(text(0x18), "def2fe46-7bd6-4b80-bd94-f57fe20d0ce3");
        assert_eq!(text(0x1f), "");
    }
}
