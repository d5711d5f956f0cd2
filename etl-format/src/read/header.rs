//! Decodes the header event, the first record of every trace (`TRACE_LOGFILE_HEADER`).

use crate::constants::offset::{header_event, kernel};
use crate::constants::{ClockType, LogFileMode, PointerSize, RecordKind, hook};
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
    /// [`ErrorKind::NotEtl`] if this is not a header event, or a header event of Windows XP or
    /// Server 2003, whose buffers have another layout; [`ErrorKind::Truncated`] if the fixed part
    /// is not whole.
    pub fn parse(bytes: &[u8], file_offset: u64) -> Result<Self> {
        let have = bytes.len() as u64;
        let Some([_, _, kind, mark]) = bytes.array(0) else {
            return Err(Error::truncated(file_offset, "header event", 4, have));
        };
        let pointer_size = match (mark, RecordKind(kind)) {
            (0xc0, RecordKind::SYSTEM32) => PointerSize::P4,
            (0xc0, RecordKind::SYSTEM64) => PointerSize::P8,
            _ => {
                let why = "it does not begin with a trace header event";
                return Err(Error::new(file_offset, ErrorKind::NotEtl(why)));
            }
        };
        let fixed = match pointer_size {
            PointerSize::P4 => SystemHeader::SIZE + FIXED_PAYLOAD_32,
            PointerSize::P8 => SystemHeader::SIZE + FIXED_PAYLOAD_64,
        };
        let truncated = Error::truncated(file_offset, "header event", fixed as u64, have);
        let Some(hook_id) = bytes.u16_at(kernel::HOOK) else {
            return Err(truncated);
        };
        if hook_id != hook::HEADER {
            let why = "its first record is not the trace header event";
            return Err(Error::new(file_offset, ErrorKind::NotEtl(why)));
        }
        let Some([major, minor]) = bytes.array(SystemHeader::SIZE + header_event::LOG_VERSION)
        else {
            return Err(truncated);
        };
        // The record's own version tells nothing: a private session states 0 on any Windows.
        if major == 1 && minor < 4 {
            let why = "a trace of Windows XP or Server 2003 (log version 1.0 to 1.3), whose buffers \
                       are laid out differently; traces of Vista and later are read";
            return Err(Error::new(file_offset, ErrorKind::NotEtl(why)));
        }
        let Some(size) = bytes.u16_at(kernel::SIZE).map(usize::from) else {
            return Err(truncated);
        };
        if size < fixed {
            return Err(Error::invalid(
                file_offset + kernel::SIZE as u64,
                "size of the header event",
                size as u64,
                "at least 0x130 (32-bit) or 0x138 (64-bit)",
            ));
        }
        let record = bytes.get(..size.min(bytes.len())).unwrap_or(bytes);
        Self::decode(record, pointer_size).ok_or(truncated)
    }

    /// Decodes all fields, from the thread on.
    fn decode(record: &[u8], pointer_size: PointerSize) -> Option<Self> {
        let mut c = Cursor::new(record);
        c.take(kernel::THREAD)?;
        let mut header = FileHeader {
            pointer_size,
            thread_id: c.u32()?,
            process_id: c.u32()?,
            timestamp: Ticks::new(c.i64()?),
            kernel_time: c.u32()?,
            user_time: c.u32()?,
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
            logger_name_word: pointer(&mut c, pointer_size)?,
            log_file_name_word: pointer(&mut c, pointer_size)?,
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

/// Bytes of the fixed part of the payload, before the names, with pointers of 4 bytes.
const FIXED_PAYLOAD_32: usize = 0x110;
/// The same with pointers of 8 bytes.
const FIXED_PAYLOAD_64: usize = 0x118;

fn pointer(c: &mut Cursor<'_>, pointer_size: PointerSize) -> Option<u64> {
    match pointer_size {
        PointerSize::P4 => c.u32().map(u64::from),
        PointerSize::P8 => c.u64(),
    }
}

/// A name up to its NUL, or up to the end of the record.
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
