//! Encodes the header event, the first record of every file (`TRACE_LOGFILE_HEADER`).

use std::io;

use byteorder::{LE, WriteBytesExt};

use crate::Ticks;
use crate::constants::{PRIVATE_TRACE_VERSION, PointerSize, SYSTEM_TRACE_VERSION, hook};
use crate::error::Result;
use crate::headers::{FileHeader, TimeZone};

use super::record::{Record, System};

fn write_utf16(out: &mut Vec<u8>, units: &[u16]) -> io::Result<()> {
    units.iter().try_for_each(|unit| out.write_u16::<LE>(*unit))
}

impl TimeZone {
    fn encode(&self, out: &mut Vec<u8>) -> io::Result<()> {
        out.write_i32::<LE>(self.bias)?;
        write_utf16(out, &self.standard_name)?;
        write_utf16(out, &self.standard_date)?;
        out.write_i32::<LE>(self.standard_bias)?;
        write_utf16(out, &self.daylight_name)?;
        write_utf16(out, &self.daylight_date)?;
        out.write_i32::<LE>(self.daylight_bias)
    }
}

impl FileHeader {
    /// The payload of the event: the fixed part (0x110 bytes with 32-bit pointers, 0x118 with
    /// 64-bit pointers) and both names.
    fn payload(&self) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(0x200);
        out.write_u32::<LE>(self.buffer_size)?;
        out.extend_from_slice(&[self.os_major, self.os_minor, self.log_major, self.log_minor]);
        out.write_u32::<LE>(self.build)?;
        out.write_u32::<LE>(self.processors)?;
        out.write_i64::<LE>(self.end_time.get())?;
        out.write_u32::<LE>(self.timer_resolution)?;
        out.write_u32::<LE>(self.maximum_file_size)?;
        out.write_u32::<LE>(self.mode.0)?;
        out.write_u32::<LE>(self.buffers_written)?;
        out.write_u32::<LE>(self.start_buffers)?;
        out.write_u32::<LE>(self.stated_pointer_size)?;
        out.write_u32::<LE>(self.events_lost)?;
        out.write_u32::<LE>(self.cpu_mhz)?;
        for word in [self.logger_name_word, self.log_file_name_word] {
            // With 32-bit pointers, only the low half is written.
            match self.pointer_size {
                PointerSize::P4 => out.write_u32::<LE>(word as u32)?,
                PointerSize::P8 => out.write_u64::<LE>(word)?,
            }
        }
        self.time_zone.encode(&mut out)?;
        out.write_u32::<LE>(self.padding)?;
        out.write_i64::<LE>(self.boot_time.get())?;
        out.write_i64::<LE>(self.perf_freq)?;
        out.write_i64::<LE>(self.start_time.get())?;
        out.write_u32::<LE>(self.clock_type.0)?;
        out.write_u32::<LE>(self.buffers_lost)?;
        for name in [&self.logger_name, &self.log_file_name] {
            write_utf16(&mut out, name)?;
            out.write_u16::<LE>(0)?;
        }
        Ok(out)
    }
}

impl Record for FileHeader {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let version = if self.is_private() {
            PRIVATE_TRACE_VERSION
        } else {
            SYSTEM_TRACE_VERSION
        };
        System::new(hook::HEADER, self.timestamp)
            .pointer_size(self.pointer_size)
            .version(version.into())
            .process(self.process_id, self.thread_id)
            .cpu_times(self.kernel_time, self.user_time)
            .payload(&self.payload()?)
            .encode(out)
    }

    fn timestamp(&self) -> Option<Ticks> {
        Some(self.timestamp)
    }
}
