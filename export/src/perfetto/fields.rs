//! Numbers of the fields of Perfetto's messages, by message, and values of them.

pub(super) mod trace {
    pub const PACKET: u32 = 1;
}
pub(super) mod packet {
    pub const PROCESS_TREE: u32 = 2;
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const PERF_SAMPLE: u32 = 66;
    pub const ETW_EVENTS: u32 = 95;
}
/// Values of [`packet::SEQUENCE_FLAGS`].
pub(super) mod sequence_flags {
    pub const CLEARED: u64 = 1;
    pub const NEEDS_STATE: u64 = 2;
}
pub(super) mod clock_snapshot {
    pub const CLOCKS: u32 = 1;
    pub const PRIMARY: u32 = 2;
}
pub(super) mod clock {
    pub const ID: u32 = 1;
    pub const TIMESTAMP: u32 = 2;
}
/// Values of [`clock::ID`].
pub(super) mod clock_id {
    pub const REALTIME: u64 = 1;
    pub const BOOTTIME: u64 = 6;
}
pub(super) mod process_tree {
    pub const PROCESSES: u32 = 1;
    pub const THREADS: u32 = 2;
}
pub(super) mod process {
    pub const PID: u32 = 1;
    pub const PPID: u32 = 2;
    pub const COMMAND_LINE: u32 = 3;
    pub const START: u32 = 7;
}
pub(super) mod thread {
    pub const TID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PID: u32 = 3;
}
pub(super) mod track {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const THREAD: u32 = 4;
    pub const PARENT: u32 = 5;
    pub const COUNTER: u32 = 8;
}
pub(super) mod process_descriptor {
    pub const PID: u32 = 1;
}
pub(super) mod thread_descriptor {
    pub const PID: u32 = 1;
    pub const TID: u32 = 2;
}
pub(super) mod counter {
    pub const UNIT: u32 = 3;
    pub const UNIT_NAME: u32 = 6;
    /// A value of [`UNIT`].
    pub const SIZE_BYTES: u64 = 3;
}
pub(super) mod track_event {
    pub const ANNOTATION: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const TRACK: u32 = 11;
    pub const CATEGORY: u32 = 22;
    pub const NAME: u32 = 23;
    pub const COUNTER: u32 = 30;
    pub const DOUBLE_COUNTER: u32 = 44;
}
/// Values of [`track_event::TYPE`].
pub(super) mod event_type {
    pub const BEGIN: u64 = 1;
    pub const END: u64 = 2;
    pub const INSTANT: u64 = 3;
    pub const COUNTER: u64 = 4;
}
pub(super) mod annotation {
    pub const UINT: u32 = 3;
    pub const TEXT: u32 = 6;
    pub const POINTER: u32 = 7;
    pub const NAME: u32 = 10;
}
pub(super) mod sample {
    pub const CPU: u32 = 1;
    pub const PID: u32 = 2;
    pub const TID: u32 = 3;
    pub const CALLSTACK: u32 = 4;
    pub const MODE: u32 = 5;
    /// Values of [`MODE`].
    pub const KERNEL: u64 = 1;
    pub const USER: u64 = 2;
}
pub(super) mod interned {
    pub const FUNCTION_NAMES: u32 = 5;
    pub const FRAMES: u32 = 6;
    pub const CALLSTACKS: u32 = 7;
    pub const BUILD_IDS: u32 = 16;
    pub const MAPPING_PATHS: u32 = 17;
    pub const SOURCE_PATHS: u32 = 18;
    pub const MAPPINGS: u32 = 19;
}
pub(super) mod string {
    pub const ID: u32 = 1;
    pub const TEXT: u32 = 2;
}
pub(super) mod mapping {
    pub const ID: u32 = 1;
    pub const BUILD_ID: u32 = 2;
    pub const START: u32 = 4;
    pub const END: u32 = 5;
    pub const PATH: u32 = 7;
}
pub(super) mod frame {
    pub const ID: u32 = 1;
    pub const FUNCTION: u32 = 2;
    pub const MAPPING: u32 = 3;
    pub const REL_PC: u32 = 4;
    pub const SOURCE_PATH: u32 = 5;
    pub const LINE: u32 = 6;
    pub const KIND: u32 = 7;
    /// Values of [`KIND`].
    pub const NATIVE: u64 = 1;
    pub const KERNEL: u64 = 2;
    pub const JITTED: u64 = 4;
}
pub(super) mod callstack {
    pub const ID: u32 = 1;
    pub const FRAMES: u32 = 2;
}
pub(super) mod etw_bundle {
    pub const EVENT: u32 = 2;
}
pub(super) mod etw_event {
    pub const TIMESTAMP: u32 = 1;
    pub const CPU: u32 = 4;
    pub const THREAD: u32 = 5;
    pub const C_SWITCH: u32 = 2;
    pub const READY_THREAD: u32 = 3;
    pub const FILE_CREATE: u32 = 7;
    pub const FILE_ENUMERATE: u32 = 8;
    pub const FILE_INFO: u32 = 9;
    pub const FILE_READ_WRITE: u32 = 10;
    pub const FILE_SIMPLE: u32 = 11;
    pub const FILE_END: u32 = 12;
    pub const FILE_PATH: u32 = 14;
    pub const DISK_IO: u32 = 15;
}
