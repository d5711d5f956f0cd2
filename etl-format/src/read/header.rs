//! The header event: the first record of every trace (`TRACE_LOGFILE_HEADER`).

use crate::clock::Clock;
use crate::constants::{
    ClockType, LogFileMode, PointerSize, RecordKind, SYSTEM_TRACE_VERSION, hook,
};
use crate::cursor::{Bytes, Cursor};
use crate::error::{Error, ErrorKind, Result};

/// Bytes of the SYSTEM header before the payload.
const RECORD_HEADER: usize = 0x20;

/// What a session says about itself.
///
/// Sizes are in bytes, times in FILETIME units (100 ns since 1601, UTC).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Width of pointers in this record, from its kind.
    pub pointer_size: PointerSize,
    /// Thread that started the session.
    pub thread_id: u32,
    /// Process that started the session; 0 on Vista.
    pub process_id: u32,
    /// Raw timestamp of the header event: the session clock at [`FileHeader::start_time`].
    pub timestamp: i64,
    /// Kernel time of the starting thread, in timer ticks.
    pub kernel_time: u32,
    /// User time of the starting thread, in timer ticks.
    pub user_time: u32,
    /// Memory of one buffer, in bytes.
    pub buffer_size: u32,
    /// Windows' major version.
    pub os_major: u8,
    /// Windows' minor version.
    pub os_minor: u8,
    /// Major version of the log format: 1 or 2.
    pub log_major: u8,
    /// Minor version of the log format: 1.4 is Vista, 1.5 Windows 7 and later.
    pub log_minor: u8,
    /// Windows' build number.
    pub build: u32,
    /// Processors of the machine; 1 without per-processor buffers.
    pub processors: u32,
    /// When the session ended; 0 in a trace that was not closed.
    pub end_time: i64,
    /// Timer resolution in units of 100 ns.
    pub timer_resolution: u32,
    /// Largest size of the file, in the unit that the mode says (MB or KB); 0 for no limit.
    pub maximum_file_size: u32,
    /// How the file was written.
    pub mode: LogFileMode,
    /// Buffers in the file, buffer 0 included. A check, not a bound.
    pub buffers_written: u32,
    /// Buffers at the start of a circular file that are never overwritten.
    pub start_buffers: u32,
    /// The pointer size that the header states.
    pub stated_pointer_size: u32,
    /// Events lost.
    pub events_lost: u32,
    /// Speed of the processors.
    pub cpu_mhz: u32,
    /// The pointer-sized word of the session's name: a pointer (old) or the timer source.
    pub logger_name_word: u64,
    /// The pointer-sized word of the file's name: a pointer (old) or the counter source.
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
    /// Name of the session, as UTF-16 code units.
    pub logger_name: Vec<u16>,
    /// Name of the file, as UTF-16 code units.
    pub log_file_name: Vec<u16>,
}

/// `TIME_ZONE_INFORMATION`: biases in minutes, names often `@tzres.dll,-NNN`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeZone {
    /// Minutes to add to local time for UTC.
    pub bias: i32,
    /// Name of standard time, up to 32 UTF-16 code units, NUL-padded.
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
    /// The name of standard time up to its NUL, unpaired surrogates replaced.
    #[must_use]
    pub fn standard_name(&self) -> String {
        until_nul(&self.standard_name)
    }

    /// The name of daylight saving time up to its NUL, unpaired surrogates replaced.
    #[must_use]
    pub fn daylight_name(&self) -> String {
        until_nul(&self.daylight_name)
    }

    fn parse(c: &mut Cursor<'_>) -> Option<Self> {
        Some(TimeZone {
            bias: c.u32()?.cast_signed(),
            standard_name: units(c)?,
            standard_date: units(c)?,
            standard_bias: c.u32()?.cast_signed(),
            daylight_name: units(c)?,
            daylight_date: units(c)?,
            daylight_bias: c.u32()?.cast_signed(),
        })
    }
}

fn units<const N: usize>(c: &mut Cursor<'_>) -> Option<[u16; N]> {
    let mut out = [0; N];
    for unit in &mut out {
        *unit = c.u16()?;
    }
    Some(out)
}

fn until_nul(units: &[u16]) -> String {
    let len = units.iter().position(|&u| u == 0).unwrap_or(units.len());
    String::from_utf16_lossy(units.get(..len).unwrap_or(units))
}

impl FileHeader {
    /// Decodes the header event, the record at the start of `bytes`; `file_offset` is its position,
    /// for errors.
    ///
    /// Names may be missing or incomplete: a header event that is cut off after its fixed part is
    /// still useful.
    ///
    /// # Errors
    /// [`ErrorKind::NotEtl`] when this is no header event, or one of Windows XP or 2003, whose
    /// buffers are laid out differently; [`ErrorKind::Truncated`] when the fixed part is not whole.
    pub fn parse(bytes: &[u8], file_offset: u64) -> Result<Self> {
        let not_etl = |why| Error::new(file_offset, ErrorKind::NotEtl(why));
        let have = bytes.len() as u64;
        let marker = bytes
            .u32_at(0)
            .ok_or_else(|| Error::truncated(file_offset, "header event", 4, have))?;
        let [version, kind_low, ..] = [marker as u8, (marker >> 16) as u8, 0];
        let pointer_size = match (marker >> 24, RecordKind(kind_low)) {
            (0xc0, RecordKind::SYSTEM32) => PointerSize::P4,
            (0xc0, RecordKind::SYSTEM64) => PointerSize::P8,
            _ => return Err(not_etl("it does not begin with a trace header event")),
        };
        let fixed = RECORD_HEADER + if pointer_size == PointerSize::P4 { 0x110 } else { 0x118 };
        let short = || Error::truncated(file_offset, "header event", fixed as u64, have);
        let hook_id = bytes.u16_at(6).ok_or_else(short)?;
        if hook_id != hook::HEADER {
            return Err(not_etl("its first record is not the trace header event"));
        }
        let (log_major, log_minor) = (
            bytes.u8_at(RECORD_HEADER + 6).ok_or_else(short)?,
            bytes.u8_at(RECORD_HEADER + 7).ok_or_else(short)?,
        );
        if version < SYSTEM_TRACE_VERSION || (log_major == 1 && log_minor < 4) {
            return Err(not_etl(
                "a trace of Windows XP or Server 2003 (log version 1.0 to 1.3), whose buffers are \
                 laid out differently; traces of Vista and later are read",
            ));
        }
        let size = usize::from(bytes.u16_at(4).ok_or_else(short)?);
        if size < fixed {
            return Err(Error::invalid(
                file_offset + 4,
                "size of the header event",
                size as u64,
                "at least 0x130 (32-bit) or 0x138 (64-bit)",
            ));
        }
        let record = bytes.get(..size.min(bytes.len())).unwrap_or(bytes);
        Self::fields(record, pointer_size).ok_or_else(short)
    }

    fn fields(record: &[u8], pointer_size: PointerSize) -> Option<Self> {
        let mut c = Cursor::new(record);
        c.take(8)?;
        let (thread_id, process_id, timestamp) = (c.u32()?, c.u32()?, c.i64()?);
        let (kernel_time, user_time) = (c.u32()?, c.u32()?);
        let pointer = |c: &mut Cursor<'_>| match pointer_size {
            PointerSize::P4 => c.u32().map(u64::from),
            PointerSize::P8 => c.u64(),
        };
        let mut header = FileHeader {
            pointer_size,
            thread_id,
            process_id,
            timestamp,
            kernel_time,
            user_time,
            buffer_size: c.u32()?,
            os_major: c.u8()?,
            os_minor: c.u8()?,
            log_major: c.u8()?,
            log_minor: c.u8()?,
            build: c.u32()?,
            processors: c.u32()?,
            end_time: c.i64()?,
            timer_resolution: c.u32()?,
            maximum_file_size: c.u32()?,
            mode: LogFileMode(c.u32()?),
            buffers_written: c.u32()?,
            start_buffers: c.u32()?,
            stated_pointer_size: c.u32()?,
            events_lost: c.u32()?,
            cpu_mhz: c.u32()?,
            logger_name_word: pointer(&mut c)?,
            log_file_name_word: pointer(&mut c)?,
            time_zone: TimeZone::parse(&mut c)?,
            padding: c.u32()?,
            boot_time: c.i64()?,
            perf_freq: c.i64()?,
            start_time: c.i64()?,
            clock_type: ClockType(c.u32()?),
            buffers_lost: c.u32()?,
            logger_name: Vec::new(),
            log_file_name: Vec::new(),
        };
        header.logger_name = name(&mut c);
        header.log_file_name = name(&mut c);
        Some(header)
    }

    /// The substitute for a header event that cannot be read: nothing is known, and timestamps stay
    /// raw.
    #[must_use]
    pub fn unknown(buffer_size: u32) -> Self {
        FileHeader {
            pointer_size: PointerSize::P8,
            thread_id: 0,
            process_id: 0,
            timestamp: 0,
            kernel_time: 0,
            user_time: 0,
            buffer_size,
            os_major: 0,
            os_minor: 0,
            log_major: 0,
            log_minor: 0,
            build: 0,
            processors: 0,
            end_time: 0,
            timer_resolution: 0,
            maximum_file_size: 0,
            mode: LogFileMode(0),
            buffers_written: 0,
            start_buffers: 0,
            stated_pointer_size: 0,
            events_lost: 0,
            cpu_mhz: 0,
            logger_name_word: 0,
            log_file_name_word: 0,
            time_zone: TimeZone::default(),
            padding: 0,
            boot_time: 0,
            perf_freq: 0,
            start_time: 0,
            clock_type: ClockType::RAW,
            buffers_lost: 0,
            logger_name: Vec::new(),
            log_file_name: Vec::new(),
        }
    }

    /// Whether the header event was read. `false` for [`FileHeader::unknown`].
    #[must_use]
    pub fn is_known(&self) -> bool {
        *self != FileHeader { mode: self.mode, ..FileHeader::unknown(self.buffer_size) }
    }

    /// The clock of the trace's timestamps.
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock::new(self.clock_type, self.start_time, self.timestamp, self.perf_freq, self.cpu_mhz)
    }

    /// Name of the session, unpaired surrogates replaced.
    #[must_use]
    pub fn logger_name(&self) -> String {
        String::from_utf16_lossy(&self.logger_name)
    }

    /// Name of the file, unpaired surrogates replaced.
    #[must_use]
    pub fn log_file_name(&self) -> String {
        String::from_utf16_lossy(&self.log_file_name)
    }

    /// Whether the session was closed: the header has an end time and a buffer count. A count of 1
    /// is that of a session without events, or the value at the start of every session; then the
    /// end must be later than the start.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self.buffers_written {
            0 => false,
            1 => self.end_time > self.start_time,
            _ => self.end_time != 0,
        }
    }

    /// Who wrote the file, and how.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        let relogged = self.mode.has(LogFileMode::RELOG);
        match (relogged, self.mode.has(LogFileMode::COMPRESSED)) {
            (false, false) => Dialect::Kernel,
            (false, true) => Dialect::KernelCompressed,
            (true, false) => Dialect::Relogged,
            (true, true) => Dialect::ReloggedCompressed,
        }
    }
}

/// A NUL-terminated name, or the part of it that exists.
fn name(c: &mut Cursor<'_>) -> Vec<u16> {
    let bytes = c.utf16z().unwrap_or_else(|| {
        let rest = c.rest();
        c.take(rest.len()).unwrap_or(rest)
    });
    bytes.chunks_exact(2).filter_map(|unit| unit.u16_at(0)).collect()
}

/// Who wrote a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// A session, written by the kernel (or a private session by its process).
    Kernel,
    /// A session whose buffers the kernel compressed.
    KernelCompressed,
    /// A relogger or a merge.
    Relogged,
    /// A relogger or a merge, compressed.
    ReloggedCompressed,
}

impl Dialect {
    /// A name for people: `kernel`, `relogged`, and so on.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Dialect::Kernel => "kernel",
            Dialect::KernelCompressed => "kernel, compressed",
            Dialect::Relogged => "relogged",
            Dialect::ReloggedCompressed => "relogged, compressed",
        }
    }
}
