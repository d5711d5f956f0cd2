//! The values of a file header, which readers and writers share.

use crate::clock::Clock;
use crate::constants::{ClockType, LogFileMode, PointerSize};
use crate::{FileTime, Ticks};

/// The name of the file in a merge of several files.
pub(crate) const SEVERAL_FILES: &str = "[multiple files]";

/// The header event: what a session states about itself.
///
/// Sizes are in bytes. [`FileHeader::new`] has the values that real files share.
///
/// ```
/// use etl_format::{FileHeader, FileTime, Ticks};
///
/// let header = FileHeader::starting_at(FileTime::new(132_000_000_000_000_000))
///     .with_clock(3_000_000, 1_000)
///     .with_processors(2)
///     .with_logger_name("mine");
/// assert_eq!(header.logger_name(), "mine");
/// assert_eq!((header.perf_freq, header.timestamp), (3_000_000, Ticks::new(1_000)));
/// assert_eq!(header.windows(), "Windows 10 or Server, 10.0.19045");
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileHeader {
    /// Width of pointers: the kind of the record.
    pub pointer_size: PointerSize,
    /// Thread that started the session.
    pub thread_id: u32,
    /// Process that started the session; 0 on Vista.
    pub process_id: u32,
    /// Raw timestamp of the header event: the session clock at [`FileHeader::start_time`], not
    /// later than any record.
    pub timestamp: Ticks,
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
    /// Major version of the log format: 2 when compressed or when buffers exceed 1 MiB, else 1.
    pub log_major: u8,
    /// Minor version of the log format: 4 on Vista, 5 on Windows 7 and later; 0 if the major
    /// version is 2.
    pub log_minor: u8,
    /// Windows' build number.
    pub build: u32,
    /// Processors of the machine; 1 without per-processor buffers.
    pub processors: u32,
    /// When the session ended; 0 in a trace that was not closed.
    pub end_time: FileTime,
    /// Timer resolution in units of 100 ns.
    pub timer_resolution: u32,
    /// Largest size of the file in MB, or in KB with [`LogFileMode::USE_KBYTES_FOR_SIZE`]; 0 for no
    /// limit.
    pub maximum_file_size: u32,
    /// How the file was written.
    pub mode: LogFileMode,
    /// Buffers in the file, buffer 0 included; in a circular file all buffers that were ever
    /// written. The file can have fewer or more.
    pub buffers_written: u32,
    /// Buffers at the start of a circular file that are never overwritten.
    pub start_buffers: u32,
    /// The pointer size that the header states, in bytes.
    pub stated_pointer_size: u32,
    /// Number of lost events.
    pub events_lost: u32,
    /// Speed of the processors in MHz.
    pub cpu_mhz: u32,
    /// The pointer-sized word of the session's name: a pointer (old) or the timer source.
    pub logger_name_word: u64,
    /// The pointer-sized word of the file's name: a pointer (old) or the counter source.
    pub log_file_name_word: u64,
    /// Time zone of the machine.
    pub time_zone: TimeZone,
    /// Four bytes of padding before the boot time; 0.
    pub padding: u32,
    /// When the machine started, accurate to some minutes.
    pub boot_time: FileTime,
    /// Ticks of the performance counter in a second.
    pub perf_freq: i64,
    /// When the session started.
    pub start_time: FileTime,
    /// The clock of the session's timestamps.
    pub clock_type: ClockType,
    /// Number of lost buffers.
    pub buffers_lost: u32,
    /// Name of the session, as UTF-16 code units without NUL.
    pub logger_name: Vec<u16>,
    /// Name of the file, as UTF-16 code units without NUL.
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
    /// The name of standard time up to its NUL; unpaired surrogates are replaced.
    #[must_use]
    pub fn standard_name(&self) -> String {
        until_nul(&self.standard_name)
    }

    /// The name of daylight saving time up to its NUL; unpaired surrogates are replaced.
    #[must_use]
    pub fn daylight_name(&self) -> String {
        until_nul(&self.daylight_name)
    }
}

fn until_nul(units: &[u16]) -> String {
    let len = units.iter().position(|&u| u == 0).unwrap_or(units.len());
    String::from_utf16_lossy(units.get(..len).unwrap_or(units))
}

impl FileHeader {
    /// A header as Windows 10 on x64 writes it: sequential, one processor, 64 KiB buffers, the
    /// performance counter at 10 MHz, no names, UTC. All times are 0.
    #[must_use]
    pub fn new() -> Self {
        FileHeader {
            buffer_size: 0x1_0000,
            os_major: 10,
            log_major: 1,
            log_minor: 5,
            build: 19045,
            processors: 1,
            timer_resolution: 156_250,
            mode: LogFileMode::SEQUENTIAL,
            buffers_written: 1,
            start_buffers: 1,
            stated_pointer_size: 8,
            cpu_mhz: 2_400,
            perf_freq: 10_000_000,
            clock_type: ClockType::QPC,
            ..FileHeader::default()
        }
    }

    /// [`FileHeader::new`] for a session that starts at a time, when its clock is at 0.
    #[must_use]
    pub fn starting_at(start_time: FileTime) -> Self {
        FileHeader {
            start_time,
            ..FileHeader::new()
        }
    }

    /// Sets the clock of the timestamps: a performance counter that runs at `frequency` ticks per
    /// second and is at `timestamp` when the session starts.
    #[must_use]
    pub fn with_clock(mut self, frequency: i64, timestamp: impl Into<Ticks>) -> Self {
        self.clock_type = ClockType::QPC;
        self.perf_freq = frequency;
        self.timestamp = timestamp.into();
        self
    }

    /// Sets the number of processors.
    #[must_use]
    pub fn with_processors(mut self, processors: u32) -> Self {
        self.processors = processors;
        self
    }

    /// Sets the name of the session.
    #[must_use]
    pub fn with_logger_name(mut self, name: &str) -> Self {
        self.logger_name = name.encode_utf16().collect();
        self
    }

    /// Sets the name of the file.
    #[must_use]
    pub fn with_log_file_name(mut self, name: &str) -> Self {
        self.log_file_name = name.encode_utf16().collect();
        self
    }

    /// The substitute for a header event that cannot be read: all fields but the buffer size are 0
    /// or empty.
    #[must_use]
    pub fn unknown(buffer_size: u32) -> Self {
        FileHeader {
            buffer_size,
            ..FileHeader::default()
        }
    }

    /// Whether the header event was read. `false` for [`FileHeader::unknown`].
    #[must_use]
    pub fn is_known(&self) -> bool {
        *self
            != FileHeader {
                mode: self.mode,
                ..FileHeader::unknown(self.buffer_size)
            }
    }

    /// The clock of the trace's timestamps.
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock::new(
            self.clock_type,
            self.start_time,
            self.timestamp,
            self.perf_freq,
            self.cpu_mhz,
        )
    }

    /// Name of the session; unpaired surrogates are replaced.
    #[must_use]
    pub fn logger_name(&self) -> String {
        String::from_utf16_lossy(&self.logger_name)
    }

    /// Name of the file; unpaired surrogates are replaced.
    #[must_use]
    pub fn log_file_name(&self) -> String {
        String::from_utf16_lossy(&self.log_file_name)
    }

    /// Whether a merge of several files wrote the file.
    #[must_use]
    pub fn is_of_several_files(&self) -> bool {
        self.log_file_name().trim_end_matches('\0') == SEVERAL_FILES
    }

    /// Name and version of the machine's Windows, or "unknown" without a version: the machine may
    /// have another system. A server has the same numbers as the desktop version.
    #[must_use]
    pub fn windows(&self) -> String {
        let name = match (self.os_major, self.os_minor, self.build) {
            (0, 0, 0) => return "unknown".to_owned(),
            (6, 0, _) => "Vista or Server 2008",
            (6, 1, _) => "7 or Server 2008 R2",
            (6, 2, _) => "8 or Server 2012",
            (6, 3, _) => "8.1 or Server 2012 R2",
            (10, _, build) if build >= 22_000 => "11 or Server",
            (10, _, _) => "10 or Server",
            _ => "of an unknown version",
        };
        format!(
            "Windows {name}, {}.{}.{}",
            self.os_major, self.os_minor, self.build
        )
    }

    /// Whether the session was closed: the header has an end time and a buffer count. Every session
    /// starts with a count of 1, and one without events ends with it; then the end must be later
    /// than the start.
    ///
    /// ```
    /// use etl_format::read::{Options, Trace};
    /// use etl_format::FileHeader;
    /// use etl_format::write::Session;
    ///
    /// let closed = Session::in_memory(FileHeader::new())?.finish()?;
    /// assert!(Trace::open(closed.as_slice(), &Options::default())?.header().is_closed());
    /// let crashed = Session::in_memory(FileHeader::new())?.abandon()?.output;
    /// assert!(!Trace::open(crashed.as_slice(), &Options::default())?.header().is_closed());
    /// # Ok::<(), etl_format::Error>(())
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self.buffers_written {
            0 => false,
            1 => self.end_time > self.start_time,
            _ => self.end_time != FileTime::default(),
        }
    }

    /// Whether a program wrote selected events of another trace (`ITraceRelogger`).
    #[must_use]
    pub fn is_selection(&self) -> bool {
        self.mode.has(LogFileMode::RELOG) && self.mode.has(LogFileMode::ADD_HEADER)
    }

    /// Whether a process recorded its own events and wrote the file itself: a private session of
    /// the process [`FileHeader::process_id`].
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.mode.has(LogFileMode::PRIVATE) && !self.mode.has(LogFileMode::RELOG)
    }

    /// The session name of a trace with the events of an EventPipe session of .NET: a converted
    /// `.nettrace` stream, or the simulation of such a session.
    pub const EVENT_PIPE_NAME: &str = "EventPipe";

    /// Whether the events are those that an EventPipe session of .NET recorded, by the name of the
    /// session.
    ///
    /// ```
    /// use etl_format::{FileHeader, FileTime};
    ///
    /// let header = FileHeader::starting_at(FileTime::new(0));
    /// assert!(!header.is_event_pipe());
    /// assert!(header.with_logger_name(FileHeader::EVENT_PIPE_NAME).is_event_pipe());
    /// ```
    #[must_use]
    pub fn is_event_pipe(&self) -> bool {
        let name = self.logger_name.iter().copied();
        name.take_while(|unit| *unit != 0)
            .eq(Self::EVENT_PIPE_NAME.encode_utf16())
    }

    /// Whether a session of the kernel, a private session or a relogger wrote the file, and whether
    /// it is compressed.
    #[must_use]
    pub fn dialect(&self) -> &'static str {
        let is_compressed = self.mode.has(LogFileMode::COMPRESSED);
        if self.mode.has(LogFileMode::RELOG) {
            return if is_compressed {
                "relogged, compressed"
            } else {
                "relogged"
            };
        }
        match (self.is_private(), is_compressed) {
            (false, false) => "kernel",
            (false, true) => "kernel, compressed",
            (true, false) => "private session",
            (true, true) => "private session, compressed",
        }
    }

    /// Largest size of the file in bytes, or `None` for no limit.
    #[must_use]
    pub fn maximum_bytes(&self) -> Option<u64> {
        let unit = if self.mode.has(LogFileMode::USE_KBYTES_FOR_SIZE) {
            1 << 10
        } else {
            1 << 20
        };
        Some(u64::from(self.maximum_file_size) * unit).filter(|n| *n > 0)
    }

    /// When newer buffers of a circular file may have been written over older ones; `None` for
    /// other files. Before that, its header counts only buffers that are in the file.
    ///
    /// It is unknown where exactly Windows goes back to the start, so a file is full if two more
    /// buffers would exceed its maximum size.
    pub(crate) fn overwriting(&self) -> Option<Overwriting> {
        if !self.mode.has(LogFileMode::CIRCULAR) {
            return None;
        }
        let two_buffers = 2 * u64::from(self.buffer_size);
        // Without a largest size there is no place at which to go back to the start: a session
        // cannot be started like that, so the flag is wrong.
        let maximum = self.maximum_bytes()?;
        let is_compressed = self.mode.has(LogFileMode::COMPRESSED);
        Some(Overwriting {
            full_length: maximum.saturating_sub(two_buffers),
            buffer_size: is_compressed.then_some(self.buffer_size),
        })
    }

    /// Whether newer buffers may have been written over older ones in a file of `count` buffers and
    /// `len` bytes.
    pub(crate) fn may_have_overwritten(&self, count: u64, len: u64) -> bool {
        match self.overwriting() {
            Some(overwriting) => overwriting.is_possible(count, len),
            None => false,
        }
    }

    /// How many buffers that the header counts are missing from a file of `count` buffers and `len`
    /// bytes. Buffers that a circular file has overwritten are not missing.
    pub(crate) fn missing_buffers(&self, count: u64, len: u64) -> u64 {
        let stated = u64::from(self.buffers_written);
        // The header of a session that was not closed states 1.
        if stated <= 1 {
            return 0;
        }
        match (self.overwriting(), self.maximum_bytes()) {
            (None, _) => stated.saturating_sub(count),
            (Some(overwriting), Some(maximum)) if !overwriting.is_possible(count, len) => {
                let max = maximum / u64::from(self.buffer_size).max(1);
                stated.min(max).saturating_sub(count)
            }
            _ => 0,
        }
    }

    /// Sets the version of the log format by the mode and the buffer size: 2.0 with compression or
    /// buffers beyond 1 MiB; otherwise 1.4 for Vista and 1.5 for later versions of Windows.
    pub fn set_log_version(&mut self) {
        let is_vista = self.os_major == 6 && self.os_minor == 0;
        if self.mode.has(LogFileMode::COMPRESSED) || self.buffer_size > 1 << 20 {
            self.log_major = 2;
            self.log_minor = 0;
        } else {
            self.log_major = 1;
            self.log_minor = if is_vista { 4 } else { 5 };
        }
    }
}

/// When newer buffers of a circular file may have been written over older ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overwriting {
    /// The file is full if it has this many uncompressed bytes.
    full_length: u64,
    /// The size of the buffers of a compressed file. Files are compressed after they are recorded,
    /// so the length of the file says nothing.
    buffer_size: Option<u32>,
}

impl Overwriting {
    /// Whether a file of `count` buffers and `len` bytes is full.
    pub fn is_possible(self, count: u64, len: u64) -> bool {
        let length = match self.buffer_size {
            Some(buffer_size) => count.saturating_mul(buffer_size.into()),
            None => len,
        };
        length >= self.full_length
    }
}
