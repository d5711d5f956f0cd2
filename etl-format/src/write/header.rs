//! The header event: the first record of every file (`TRACE_LOGFILE_HEADER`).

use crate::constants::{ClockType, LogFileMode, PointerSize, SYSTEM_TRACE_VERSION, hook};
use crate::error::Result;

use super::put::Put;
use super::record::{Record, System};

/// The header event: every field.
///
/// Sizes are in bytes, times in FILETIME units (100 ns since 1601, UTC). [`LogFileHeader::new`] has
/// the values that real files share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFileHeader {
    /// Width of pointers: the kind of the record, and what it states.
    pub pointer_size: PointerSize,
    /// Thread that started the session.
    pub thread_id: u32,
    /// Process that started the session.
    pub process_id: u32,
    /// Raw timestamp: the session clock at `start_time`; not later than any record.
    pub timestamp: i64,
    /// Kernel time of the starting thread in timer ticks.
    pub kernel_time: u32,
    /// User time of the starting thread in timer ticks.
    pub user_time: u32,
    /// Memory of one buffer.
    pub buffer_size: u32,
    /// Windows' major version.
    pub os_major: u8,
    /// Windows' minor version.
    pub os_minor: u8,
    /// Major version of the log format: 2 when compressed or when buffers exceed 1 MiB, else 1.
    pub log_major: u8,
    /// Minor version of the log format: 4 Vista, 5 Windows 7 and later; 0 beside a major 2.
    pub log_minor: u8,
    /// Windows' build number.
    pub build: u32,
    /// Processors of the machine; 1 without per-processor buffers.
    pub processors: u32,
    /// When the session ended; 0 while it runs.
    pub end_time: i64,
    /// Timer resolution in units of 100 ns.
    pub timer_resolution: u32,
    /// Largest size of the file in MB, or KB with [`LogFileMode::USE_KBYTES_FOR_SIZE`]; 0: no
    /// limit.
    pub maximum_file_size: u32,
    /// How the file is written.
    pub mode: LogFileMode,
    /// Buffers in the file, buffer 0 included.
    pub buffers_written: u32,
    /// Buffers at the start that a circular file never overwrites.
    pub start_buffers: u32,
    /// The pointer size that the header states.
    pub stated_pointer_size: u32,
    /// Events lost.
    pub events_lost: u32,
    /// Speed of the processors.
    pub cpu_mhz: u32,
    /// The pointer-sized word of the session's name: timer source since Windows 7, 0 in merges.
    pub logger_name_word: u64,
    /// The pointer-sized word of the file's name: counter source since Windows 7, 0 in merges.
    pub log_file_name_word: u64,
    /// Time zone of the machine.
    pub time_zone: TimeZone,
    /// Four bytes of padding before the boot time; 0.
    pub padding: u32,
    /// When the machine started, roughly.
    pub boot_time: i64,
    /// Ticks of the performance counter in a second.
    pub perf_freq: i64,
    /// When the session started.
    pub start_time: i64,
    /// The clock of the session's timestamps.
    pub clock_type: ClockType,
    /// Buffers lost.
    pub buffers_lost: u32,
    /// Name of the session, as UTF-16 code units without NUL.
    pub logger_name: Vec<u16>,
    /// Name of the file, as UTF-16 code units without NUL.
    pub log_file_name: Vec<u16>,
}

/// `TIME_ZONE_INFORMATION`: biases in minutes, names NUL-padded UTF-16.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeZone {
    /// Minutes to add to local time for UTC.
    pub bias: i32,
    /// Name of standard time.
    pub standard_name: [u16; 32],
    /// When standard time begins (`SYSTEMTIME`, month 0 for never).
    pub standard_date: [u16; 8],
    /// Added to the bias in standard time.
    pub standard_bias: i32,
    /// Name of daylight saving time.
    pub daylight_name: [u16; 32],
    /// When daylight saving time begins.
    pub daylight_date: [u16; 8],
    /// Added to the bias in daylight saving time.
    pub daylight_bias: i32,
}

impl TimeZone {
    fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.bias.cast_unsigned());
        self.standard_name.iter().for_each(|u| out.put_u16(*u));
        self.standard_date.iter().for_each(|u| out.put_u16(*u));
        out.put_u32(self.standard_bias.cast_unsigned());
        self.daylight_name.iter().for_each(|u| out.put_u16(*u));
        self.daylight_date.iter().for_each(|u| out.put_u16(*u));
        out.put_u32(self.daylight_bias.cast_unsigned());
    }
}

impl LogFileHeader {
    /// A header as Windows 10 on x64 writes it: sequential, one processor, 64 KiB buffers, the
    /// performance counter at 10 MHz, no names, UTC; every time 0.
    #[must_use]
    pub fn new() -> Self {
        LogFileHeader {
            pointer_size: PointerSize::P8,
            thread_id: 0,
            process_id: 0,
            timestamp: 0,
            kernel_time: 0,
            user_time: 0,
            buffer_size: 0x1_0000,
            os_major: 10,
            os_minor: 0,
            log_major: 1,
            log_minor: 5,
            build: 19045,
            processors: 1,
            end_time: 0,
            timer_resolution: 156_250,
            maximum_file_size: 0,
            mode: LogFileMode::SEQUENTIAL,
            buffers_written: 1,
            start_buffers: 1,
            stated_pointer_size: 8,
            events_lost: 0,
            cpu_mhz: 2_400,
            logger_name_word: 0,
            log_file_name_word: 0,
            time_zone: TimeZone::default(),
            padding: 0,
            boot_time: 0,
            perf_freq: 10_000_000,
            start_time: 0,
            clock_type: ClockType::QPC,
            buffers_lost: 0,
            logger_name: Vec::new(),
            log_file_name: Vec::new(),
        }
    }

    /// Largest size of the file in bytes, or `None` for no limit.
    #[must_use]
    pub fn maximum_bytes(&self) -> Option<u64> {
        let unit = if self.mode.has(LogFileMode::USE_KBYTES_FOR_SIZE) { 1 << 10 } else { 1 << 20 };
        Some(u64::from(self.maximum_file_size) * unit).filter(|n| *n > 0)
    }

    /// Sets the version of the log format to what goes with the mode and the buffer size: 2.0 with
    /// compression or buffers beyond 1 MiB, else that of the Windows: 1.4 for Vista, 1.5 for later.
    pub fn set_log_version(&mut self) {
        let plain = !self.mode.has(LogFileMode::COMPRESSED) && self.buffer_size <= 1 << 20;
        (self.log_major, self.log_minor) = match (plain, self.os_major, self.os_minor) {
            (false, ..) => (2, 0),
            (true, 6, 0) => (1, 4),
            (true, ..) => (1, 5),
        };
    }

    /// The payload of the event: the fixed part (0x110 bytes with 32-bit pointers, 0x118 with
    /// 64-bit ones) and both names.
    fn payload(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(0x200);
        out.put_u32(self.buffer_size);
        out.bytes(&[self.os_major, self.os_minor, self.log_major, self.log_minor]);
        out.put_u32(self.build);
        out.put_u32(self.processors);
        out.put_i64(self.end_time);
        out.put_u32(self.timer_resolution);
        out.put_u32(self.maximum_file_size);
        out.put_u32(self.mode.0);
        out.put_u32(self.buffers_written);
        out.put_u32(self.start_buffers);
        out.put_u32(self.stated_pointer_size);
        out.put_u32(self.events_lost);
        out.put_u32(self.cpu_mhz);
        out.put_pointer(self.logger_name_word, self.pointer_size);
        out.put_pointer(self.log_file_name_word, self.pointer_size);
        self.time_zone.encode(&mut out);
        out.put_u32(self.padding);
        out.put_i64(self.boot_time);
        out.put_i64(self.perf_freq);
        out.put_i64(self.start_time);
        out.put_u32(self.clock_type.0);
        out.put_u32(self.buffers_lost);
        out.put_utf16z(&self.logger_name);
        out.put_utf16z(&self.log_file_name);
        out
    }
}

impl Default for LogFileHeader {
    fn default() -> Self {
        LogFileHeader::new()
    }
}

impl Record for LogFileHeader {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        System {
            pointer_size: self.pointer_size,
            version: SYSTEM_TRACE_VERSION.into(),
            hook: hook::HEADER,
            thread_id: self.thread_id,
            process_id: self.process_id,
            timestamp: self.timestamp,
            kernel_time: self.kernel_time,
            user_time: self.user_time,
            payload: &self.payload(),
        }
        .encode(out)
    }

    fn timestamp(&self) -> Option<i64> {
        Some(self.timestamp)
    }
}
