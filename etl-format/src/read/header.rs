//! Decodes the header event, the first record of every trace (`TRACE_LOGFILE_HEADER`).

use crate::constants::{
    ClockType, LogFileMode, PointerSize, RecordKind, SYSTEM_TRACE_VERSION, hook,
};
use crate::cursor::{Bytes, Cursor};
use crate::error::{Error, ErrorKind, Result};
use crate::headers::{FileHeader, TimeZone};
use crate::read::SystemHeader;
use crate::{FileTime, Ticks};

impl TimeZone {
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
        let fixed = SystemHeader::SIZE
            + if pointer_size == PointerSize::P4 {
                0x110
            } else {
                0x118
            };
        let short = || Error::truncated(file_offset, "header event", fixed as u64, have);
        let hook_id = bytes.u16_at(6).ok_or_else(short)?;
        if hook_id != hook::HEADER {
            return Err(not_etl("its first record is not the trace header event"));
        }
        let (log_major, log_minor) = (
            bytes.u8_at(SystemHeader::SIZE + 6).ok_or_else(short)?,
            bytes.u8_at(SystemHeader::SIZE + 7).ok_or_else(short)?,
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
        let (thread_id, process_id, timestamp) = (c.u32()?, c.u32()?, Ticks::new(c.i64()?));
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
            end_time: FileTime::new(c.i64()?),
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
            boot_time: FileTime::new(c.i64()?),
            perf_freq: c.i64()?,
            start_time: FileTime::new(c.i64()?),
            clock_type: ClockType(c.u32()?),
            buffers_lost: c.u32()?,
            logger_name: Vec::new(),
            log_file_name: Vec::new(),
        };
        header.logger_name = name(&mut c);
        header.log_file_name = name(&mut c);
        Some(header)
    }
}

/// A NUL-terminated name, or the part of it that exists.
fn name(c: &mut Cursor<'_>) -> Vec<u16> {
    let bytes = c.utf16z().unwrap_or_else(|| {
        let rest = c.rest();
        c.take(rest.len()).unwrap_or(rest)
    });
    bytes
        .chunks_exact(2)
        .filter_map(|unit| unit.u16_at(0))
        .collect()
}
