//! Tables about the machine: processes, code, stacks, samples, input and output, losses.

use super::{TRACE, Table};
use crate::column::{Column, Kind};

/// Columns that many tables have.
pub const PROCESS_ID: Column = Column::new("process_id", Kind::Int64, "Process").or_null();
pub const PROCESS: Column =
    Column::new("process", Kind::Word, "File name of the image of the process").or_null();
const THREAD_ID: Column = Column::new("thread_id", Kind::Int64, "Thread").or_null();
const STACK_ID: Column =
    Column::new("stack_id", Kind::Int64, "Its stack, in `stacks`; null where none was recorded")
        .or_null();
const TIME: Column = Column::new("time", Kind::Time, "Time in UTC").unit("µs");
const FILETIME: Column =
    Column::new("filetime", Kind::Int64, "The same, exact: since 1601-01-01 UTC").unit("100 ns");

const fn bytes(name: &'static str, meaning: &'static str) -> Column {
    Column::new(name, Kind::Int64, meaning).unit("bytes")
}

const fn micros(name: &'static str, meaning: &'static str) -> Column {
    Column::new(name, Kind::Float64, meaning).unit("µs")
}

const STARTED: Column =
    Column::new("started", Kind::Time, "When it started; null for before the trace")
        .unit("µs")
        .or_null();
const ENDED: Column = Column::new("ended", Kind::Time, "When it ended; null for after the trace")
    .unit("µs")
    .or_null();

/// The traces themselves.
pub const TRACES: Table = Table {
    name: "traces",
    row: "One trace",
    about: "What the header of the file says, and when its events are.",
    columns: &[
        TRACE,
        Column::new("session", Kind::Word, "Name of the session that recorded it").or_null(),
        Column::new("events", Kind::Int64, "Events, as `info` counts them"),
        Column::new("first", Kind::Time, "Time of the first event").unit("µs").or_null(),
        Column::new("last", Kind::Time, "Time of the last event").unit("µs").or_null(),
        Column::new("started", Kind::Time, "When the session started").unit("µs"),
        Column::new("os", Kind::Word, "Version of Windows: `10.0`"),
        Column::new("build", Kind::Int32, "Build of Windows"),
        Column::new("processors", Kind::Int32, "Processors of the computer"),
        Column::new("pointer_size", Kind::Int32, "Width of its pointers").unit("bytes"),
        Column::new("booted", Kind::Time, "When the computer was started").unit("µs").or_null(),
        Column::new("clock", Kind::Word, "Clock of the timestamps"),
        Column::new("frequency", Kind::Int64, "Its ticks in a second").unit("1/s"),
        Column::new("buffers", Kind::Int64, "Buffers that the header counts"),
        Column::new("events_lost", Kind::Int64, "Events that the header counts as lost"),
        Column::new("buffers_lost", Kind::Int64, "Buffers that the header counts as lost"),
    ],
};

/// Processes.
pub const PROCESSES: Table = Table {
    name: "processes",
    row: "One process, in the order in which they appear",
    about: "An id may come more than once: a new process may have the id of an ended one.",
    columns: &[
        TRACE,
        Column::new("process_id", Kind::Int64, "Its id"),
        Column::new("process", Kind::Word, "File name of its image").or_null(),
        Column::new("parent_id", Kind::Int64, "Id of the process that started it").or_null(),
        STARTED,
        ENDED,
        Column::new("exit_status", Kind::Int32, "Exit status, where it ended in the trace")
            .or_null(),
        Column::new("session_id", Kind::Int64, "Terminal session").or_null(),
        Column::new("user", Kind::Word, "Its user as a SID").or_null(),
        Column::new("command_line", Kind::Text, "Command line").or_null(),
    ],
};

/// Threads.
pub const THREADS: Table = Table {
    name: "threads",
    row: "One thread, in the order in which they appear",
    about: "",
    columns: &[
        TRACE,
        Column::new("thread_id", Kind::Int64, "Its id"),
        Column::new("process_id", Kind::Int64, "Its process"),
        Column::new("thread", Kind::Text, "Its name").or_null(),
        STARTED,
        ENDED,
        Column::new("start_address", Kind::Int64, "Where its own code begins, as bits").or_null(),
    ],
};

/// Images.
pub const IMAGES: Table = Table {
    name: "images",
    row: "One image in the address space of a process, from its load to its unload",
    about: "Those of the kernel are images of the processes 0 and 4.",
    columns: &[
        TRACE,
        PROCESS_ID,
        PROCESS,
        Column::new("path", Kind::Text, "Path of its file, with the drive where it is known")
            .or_null(),
        Column::new("image", Kind::Word, "File name").or_null(),
        Column::new("address", Kind::Int64, "First address, as bits"),
        bytes("size", "Size in memory"),
        Column::new("loaded", Kind::Time, "When it was loaded; null for before the trace")
            .unit("µs")
            .or_null(),
        Column::new("unloaded", Kind::Time, "When it was unloaded; null for after the trace")
            .unit("µs")
            .or_null(),
        Column::new("pdb_guid", Kind::Text, "GUID of its PDB, where a merge recorded it").or_null(),
        Column::new("pdb_age", Kind::Int64, "Age of that PDB").or_null(),
    ],
};

/// Stacks.
pub const STACKS: Table = Table {
    name: "stacks",
    row: "One distinct stack of a process",
    about: "`stack_id` is computed from the process id and the addresses, so it is the same in \
            every run and not the same in two traces: join by `trace` and `stack_id`.",
    columns: &[
        TRACE,
        Column::new("stack_id", Kind::Int64, "Its id"),
        PROCESS_ID,
        PROCESS,
        Column::new("depth", Kind::Int32, "Number of its addresses, which are in `frames`"),
        Column::new("kernel", Kind::Int32, "How many of them are in the kernel"),
        Column::new("partial", Kind::Bool, "Whether a part is missing"),
        Column::new(
            "text",
            Kind::Text,
            "The names of its frames, outermost first, with `;` between them",
        ),
    ],
};

/// Frames.
pub const FRAMES: Table = Table {
    name: "frames",
    row: "One address of a stack, innermost first",
    about: "What is at an address is that of the time at which the trace has the stack first.",
    columns: &[
        TRACE,
        Column::new("stack_id", Kind::Int64, "The stack, in `stacks`"),
        Column::new("depth", Kind::Int32, "Place in the stack, 0 for the innermost"),
        Column::new("address", Kind::Int64, "Address, as bits"),
        Column::new("module", Kind::Word, "File name of the module or the image").or_null(),
        Column::new(
            "method",
            Kind::Word,
            "Type and method; null for code that only an image is known of",
        )
        .or_null(),
        Column::new("offset", Kind::Int64, "Offset in the method or the image")
            .unit("bytes")
            .or_null(),
        Column::new("is_kernel", Kind::Bool, "Whether it is in the kernel"),
    ],
};

/// Samples.
pub const SAMPLES: Table = Table {
    name: "samples",
    row: "One CPU sample, in time order",
    about: "As `analyze cpu` counts them; samples of idle processors are of process 0.",
    columns: &[
        TRACE,
        Column::new("sequence", Kind::Int64, "The event, as in `events`"),
        TIME,
        FILETIME,
        Column::new("processor", Kind::Int32, "Processor"),
        PROCESS_ID,
        PROCESS,
        THREAD_ID,
        Column::new("address", Kind::Int64, "Instruction pointer, as bits"),
        Column::new("module", Kind::Word, "File name of the module or the image at the address")
            .or_null(),
        Column::new("method", Kind::Word, "Type and method at the address").or_null(),
        STACK_ID,
        micros("weight", "Time that the sample stands for; 0 where the trace states no interval"),
    ],
};

/// Context switches.
pub const CONTEXT_SWITCHES: Table = Table {
    name: "context_switches",
    row: "One context switch, in time order",
    about: "The stack is that of the thread that begins to run, in `event_stacks`.",
    columns: &[
        TRACE,
        Column::new("sequence", Kind::Int64, "The event, as in `events`"),
        TIME,
        FILETIME,
        Column::new("processor", Kind::Int32, "Processor"),
        Column::new("old_thread_id", Kind::Int64, "Thread that stops running; 0 for idle"),
        Column::new("old_process_id", Kind::Int64, "Its process").or_null(),
        Column::new("old_process", Kind::Word, "File name of its image").or_null(),
        Column::new("old_state", Kind::Int32, "Its state: 5 for waiting").or_null(),
        Column::new("wait_reason", Kind::Word, "Why it waits, by its name or its number").or_null(),
        Column::new("new_thread_id", Kind::Int64, "Thread that begins to run; 0 for idle"),
        Column::new("new_process_id", Kind::Int64, "Its process").or_null(),
        Column::new("new_process", Kind::Word, "File name of its image").or_null(),
    ],
};

/// Input and output.
pub const IO: Table = Table {
    name: "io",
    row: "The operations of one kind by a process on a file",
    about: "As `analyze io` counts them. Single operations are events (`DiskIo.Read`, `FileIo.Read`).",
    columns: &[
        TRACE,
        PROCESS_ID,
        PROCESS,
        Column::new("path", Kind::Text, "Path of the file").or_null(),
        Column::new(
            "operation",
            Kind::Word,
            "`disk read`, `disk write`, `disk flush`, `file read` or `file write`",
        ),
        Column::new("operations", Kind::Int64, "How many"),
        bytes("bytes", "Bytes that were read or written"),
        Column::new("timed", Kind::Int64, "How many of them have a duration"),
        micros("duration", "Sum of the durations"),
        micros("p50", "Half of them took no longer; at most 1/32 above").or_null(),
        micros("p99", "99 of 100 took no longer; at most 1/32 above").or_null(),
        micros("longest", "The longest one").or_null(),
    ],
};

/// Packets.
pub const PACKETS: Table = Table {
    name: "packets",
    row: "One packet at one place of capture",
    about: "As `export pcapng --all-layers` writes them: Windows logs a packet at each layer that \
            it passes.",
    columns: &[
        TRACE,
        TIME,
        FILETIME,
        PROCESS_ID,
        THREAD_ID,
        Column::new("provider", Kind::Word, "Provider that logged it"),
        Column::new("place", Kind::Word, "Where it was captured, as pcapng names the interface"),
        Column::new("link", Kind::Word, "`ethernet`, `wifi` or `ip`"),
        Column::new(
            "is_sent",
            Kind::Bool,
            "Whether the machine sent it; null where the event does not say",
        )
        .or_null(),
        bytes("length", "Length on the network"),
        Column::new("drop_reason", Kind::Int64, "Why it was dropped; null where it was not")
            .or_null(),
        Column::new("bytes", Kind::Bytes, "What was captured of it"),
    ],
};

/// Losses.
pub const LOSSES: Table = Table {
    name: "losses",
    row: "One loss",
    about: "As `verify` reports them: what may be missing, and where. How many events and buffers the \
            header counts as lost is in `traces`.",
    columns: &[
        TRACE,
        Column::new(
            "kind",
            Kind::Word,
            "`events_lost`, `buffers_lost`, `file_damaged`, `end_missing` or `overwritten`",
        ),
        Column::new("from", Kind::Time, "Since when; null for the beginning").unit("µs").or_null(),
        Column::new("to", Kind::Time, "Until when; null for the end").unit("µs").or_null(),
        Column::new("processor", Kind::Int32, "Processor; null where it is not known").or_null(),
    ],
};

/// Findings of the verifier.
pub const FINDINGS: Table = Table {
    name: "findings",
    row: "One finding of `verify`",
    about: "With the policy that `verify` has without a configuration.",
    columns: &[
        TRACE,
        Column::new("rule", Kind::Word, "Id of the rule"),
        Column::new("severity", Kind::Word, "`error`, `warning` or `note`"),
        Column::new("outcome", Kind::Word, "`broken` or `undecided`"),
        PROCESS_ID,
        TIME.or_null(),
        Column::new("processor", Kind::Int32, "The processor whose buffer shows it").or_null(),
        Column::new("offset", Kind::Int64, "Where in the file the record is that shows it")
            .unit("bytes")
            .or_null(),
        Column::new("message", Kind::Text, "What was found"),
        Column::new("because", Kind::Text, "Why it is undecided").or_null(),
    ],
};
