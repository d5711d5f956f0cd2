//! How buffers and sessions ended, what ETW refused, and what exists at the end.

use core::fmt;
use std::sync::Arc;

use etl_format::constants::ClockType;
use etl_format::{Guid, ProcessId, ThreadId};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::model::{FileVersion, PdbIdentity, SessionPlan, as_text};
use crate::time::Nanos;

/// What happened to a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BufferOutcome {
    /// It is in the file.
    Written,
    /// It was lost before it reached the disk.
    Lost,
    /// The file had reached its maximum size.
    FileFull,
    /// A newer buffer replaced it in a circular file.
    Overwritten,
    /// The session was not closed, or ended while the buffer was in memory.
    Unwritten,
    /// A newer buffer replaced it in memory.
    Discarded,
    /// The consumer of a real-time session received it.
    Delivered,
    /// A fault changed some of its bytes, or removed its end.
    Damaged,
    /// The file was truncated before it.
    CutOff,
}

impl fmt::Display for BufferOutcome {
    /// Formats the outcome as its code in `truth.jsonl`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A buffer and what happened to it. A later report replaces an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BufferReport {
    /// Sequence number in the session.
    pub sequence: i64,
    /// The processor whose events it contains.
    pub processor: u16,
    /// Number of its first event ([`super::RaisedEvent::number`]).
    pub first_event: u64,
    /// Number of its last event.
    pub last_event: u64,
    /// Number of events of the session in it.
    pub events: u64,
    /// What happened to it.
    pub outcome: BufferOutcome,
    /// The file and the byte range that contain or contained it.
    #[serde(flatten)]
    pub location: Option<FileRange>,
}

impl BufferReport {
    /// The file that contains or contained it.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.location.as_ref().map(|location| &*location.file)
    }
}

/// A byte range of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileRange {
    /// The file.
    #[serde(serialize_with = "as_text")]
    pub file: Arc<str>,
    /// Offset of the first byte.
    #[serde(rename = "start_offset")]
    pub start: u64,
    /// Offset after the last byte.
    #[serde(rename = "end_offset")]
    pub end: u64,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionReport {
    /// Its index, as in [`super::RaisedEvent::outcomes`].
    #[serde(skip)]
    pub index: usize,
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// Its settings, including faults that the script defines outside of the session.
    #[serde(skip)]
    pub plan: SessionPlan,
    /// Its file; the first one if it wrote several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// All files that it wrote, including files of flushes from memory.
    #[serde(skip_serializing_if = "is_single")]
    pub all_files: Vec<String>,
    /// The process of a private session.
    #[serde(rename = "pid", skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessId>,
    /// Simulated time of the start.
    #[serde(rename = "started_ns")]
    pub started: Nanos,
    /// Simulated time of the stop; `None` if it was never stopped.
    #[serde(rename = "stopped_ns", skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Nanos>,
    /// The clock of its timestamps.
    #[serde(serialize_with = "clock")]
    pub clock: ClockType,
    /// Ticks by which its timestamps are ahead of that clock.
    pub skew_ticks: i64,
    /// Events in its buffers.
    pub events_recorded: u64,
    /// Events lost because no buffer was free.
    pub events_lost: u64,
    /// Events in lost buffers.
    pub events_in_lost_buffers: u64,
    /// Lost buffers.
    pub buffers_lost: u64,
    /// Events in written buffers, including buffers that were overwritten later. Of a session with
    /// a file, without the copies that consumers keep.
    pub events_written: u64,
    /// Events that the consumer of a real-time session received.
    #[serde(skip_serializing_if = "is_zero")]
    pub events_delivered: u64,
    /// Written buffers, including the header buffer of each file that was created, and those in the
    /// files that consumers keep.
    pub buffers_written: u64,
    /// Written files.
    pub files_written: u32,
}

/// The Win32 error code with which ETW refuses a request, as the tools print it.
///
/// ```
/// use etl_synth::truth::RefusalCode;
///
/// let code = RefusalCode::AlreadyExists;
/// assert_eq!((code.number(), code.name()), (183, "ERROR_ALREADY_EXISTS"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalCode {
    /// The settings contradict each other.
    InvalidParameter,
    /// The file name is not valid for the mode.
    InvalidName,
    /// The name or the file is in use.
    AlreadyExists,
    /// The maximum number is reached.
    NoSystemResources,
    /// The session does not exist.
    NotFound,
    /// The file does not exist.
    FileNotFound,
    /// Another session writes the file.
    SharingViolation,
}

impl RefusalCode {
    /// Number, name, and the text of the system.
    const fn entry(self) -> (u32, &'static str, &'static str) {
        match self {
            RefusalCode::FileNotFound => (
                2,
                "ERROR_FILE_NOT_FOUND",
                "The system cannot find the file specified.",
            ),
            RefusalCode::SharingViolation => (
                32,
                "ERROR_SHARING_VIOLATION",
                "The process cannot access the file because it is being used by another process.",
            ),
            RefusalCode::InvalidParameter => {
                (87, "ERROR_INVALID_PARAMETER", "The parameter is incorrect.")
            }
            RefusalCode::InvalidName => (
                123,
                "ERROR_INVALID_NAME",
                "The filename, directory name, or volume label syntax is incorrect.",
            ),
            RefusalCode::AlreadyExists => (
                183,
                "ERROR_ALREADY_EXISTS",
                "Cannot create a file when that file already exists.",
            ),
            RefusalCode::NoSystemResources => (
                1450,
                "ERROR_NO_SYSTEM_RESOURCES",
                "Insufficient system resources exist to complete the requested service.",
            ),
            RefusalCode::NotFound => (
                4201,
                "ERROR_WMI_INSTANCE_NOT_FOUND",
                "The instance name passed was not recognized as valid by a WMI data provider.",
            ),
        }
    }

    /// The number of the error.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.entry().0
    }

    /// The name of the error.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.entry().1
    }

    /// The text that Windows has for it, as tools print it.
    #[must_use]
    pub const fn message(self) -> &'static str {
        self.entry().2
    }
}

/// A request of a controller that ETW refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Refusal {
    /// Simulated time.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// The session; of a merge, its output.
    pub session: String,
    /// The request: `start`, `enable`, `stop`, `flush`.
    pub request: &'static str,
    /// The error code.
    #[serde(flatten, serialize_with = "error_code")]
    pub code: RefusalCode,
    /// The reason in words.
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal {
            session,
            request,
            code,
            message,
            ..
        } = self;
        let name = code.name();
        let number = code.number();
        write!(
            f,
            "session \"{session}\": {request} is refused, {name} ({number}): {message}"
        )
    }
}

/// A command line that a tool has performed, or has not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CommandReport {
    /// Simulated time.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// The line.
    pub line: String,
    /// The exit code of the tool; 0 if all requests of the line were performed.
    pub exit_code: i32,
    /// The error that it prints.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
}

impl fmt::Display for CommandReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: exit code {}", self.line, self.exit_code)?;
        let mut lines = self.output.lines();
        lines.try_for_each(|line| write!(f, ", {line}"))
    }
}

/// An image whose identity a merge wrote into its output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImageIdentity {
    /// The process id.
    pub pid: ProcessId,
    /// First address.
    pub base: u64,
    /// Size in bytes.
    pub size: u64,
    /// Link time in the header of the image.
    pub link_time: u32,
    /// Path as the kernel reports it.
    pub path: String,
    /// The identity of its PDB, if it has one.
    #[serde(flatten)]
    pub pdb: Option<PdbIdentity>,
    /// The version information of its file, if it has any.
    #[serde(flatten)]
    pub version: Option<FileVersion>,
}

/// An item that exists when the simulation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum InventoryItem<'a> {
    /// A process.
    Process {
        /// Its id.
        pid: ProcessId,
        /// Its name.
        name: &'a str,
        /// Simulated time of its exit.
        #[serde(rename = "exited_ns", skip_serializing_if = "Option::is_none")]
        exited: Option<Nanos>,
    },
    /// A running thread.
    Thread {
        /// The process id.
        pid: ProcessId,
        /// Its id.
        tid: ThreadId,
    },
    /// A native image.
    Image {
        /// The process id.
        pid: ProcessId,
        /// First address.
        base: u64,
        /// Size in bytes.
        size: u64,
        /// Its path.
        path: &'a str,
        /// The identity of its PDB, if it has one.
        #[serde(flatten)]
        pdb: Option<PdbIdentity>,
    },
    /// An app domain.
    AppDomain {
        /// The process id.
        pid: ProcessId,
        /// The instance id of the CLR.
        clr_instance: u16,
        /// Its id.
        id: u64,
        /// Its name.
        name: &'a str,
    },
    /// An assembly.
    Assembly {
        /// The process id.
        pid: ProcessId,
        /// The instance id of the CLR.
        clr_instance: u16,
        /// Its id.
        id: u64,
        /// The id of its app domain.
        app_domain_id: u64,
        /// Its full name.
        name: &'a str,
    },
    /// A module.
    Module {
        /// The process id.
        pid: ProcessId,
        /// The instance id of the CLR.
        clr_instance: u16,
        /// Its id.
        id: u64,
        /// The id of its assembly.
        assembly_id: u64,
        /// The signature of its PDB.
        #[serde(serialize_with = "as_text")]
        pdb_signature: Guid,
        /// The path of its IL.
        path: &'a str,
    },
    /// Code of a method.
    Code {
        /// The process id.
        pid: ProcessId,
        /// The instance id of the CLR.
        clr_instance: u16,
        /// The id of the method.
        method_id: u64,
        /// The id of its module.
        module_id: u64,
        /// First address.
        start: u64,
        /// Size in bytes.
        size: u32,
        /// Namespace and type.
        namespace: &'a str,
        /// Name.
        name: &'a str,
    },
}

fn clock<S: Serializer>(clock: &ClockType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match *clock {
        ClockType::SYSTEM_TIME => "system",
        ClockType::CPU_CYCLE => "cycle",
        _ => "qpc",
    })
}

fn error_code<S: Serializer>(code: &RefusalCode, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(2))?;
    map.serialize_entry("error_code", &code.number())?;
    map.serialize_entry("error", code.name())?;
    map.end()
}

fn is_single(files: &[String]) -> bool {
    files.len() < 2
}

fn is_zero(events: &u64) -> bool {
    *events == 0
}
