//! Conversions of headers that were read into headers to write.
//!
//! x

use crate::constants::BufferFlags;
use crate::read;

use super::buffer::{BufferHeader, Processor};
use super::header::{LogFileHeader, TimeZone};
use super::record::Descriptor;

impl From<&read::TimeZone> for TimeZone {
    fn from(zone: &read::TimeZone) -> Self {
        TimeZone {
            bias: zone.bias,
            standard_name: zone.standard_name,
            standard_date: zone.standard_date,
            standard_bias: zone.standard_bias,
            daylight_name: zone.daylight_name,
            daylight_date: zone.daylight_date,
            daylight_bias: zone.daylight_bias,
        }
    }
}

impl From<&read::FileHeader> for LogFileHeader {
    fn from(h: &read::FileHeader) -> Self {
        LogFileHeader {
            pointer_size: h.pointer_size,
            thread_id: h.thread_id,
            process_id: h.process_id,
            timestamp: h.timestamp,
            kernel_time: h.kernel_time,
            user_time: h.user_time,
            buffer_size: h.buffer_size,
            os_major: h.os_major,
            os_minor: h.os_minor,
            log_major: h.log_major,
            log_minor: h.log_minor,
            build: h.build,
            processors: h.processors,
            end_time: h.end_time,
            timer_resolution: h.timer_resolution,
            maximum_file_size: h.maximum_file_size,
            mode: h.mode,
            buffers_written: h.buffers_written,
            start_buffers: h.start_buffers,
            stated_pointer_size: h.stated_pointer_size,
            events_lost: h.events_lost,
            cpu_mhz: h.cpu_mhz,
            logger_name_word: h.logger_name_word,
            log_file_name_word: h.log_file_name_word,
            time_zone: TimeZone::from(&h.time_zone),
            padding: h.padding,
            boot_time: h.boot_time,
            perf_freq: h.perf_freq,
            start_time: h.start_time,
            clock_type: h.clock_type,
            buffers_lost: h.buffers_lost,
            logger_name: h.logger_name.clone(),
            log_file_name: h.log_file_name.clone(),
        }
    }
}

impl From<&read::BufferHeader> for BufferHeader {
    fn from(h: &read::BufferHeader) -> Self {
        let [number, alignment] = h.processor_field.to_le_bytes();
        BufferHeader {
            buffer_size: h.buffer_size,
            saved_offset: h.saved_offset,
            current_offset: h.current_offset,
            reference_count: h.reference_count,
            timestamp: h.timestamp,
            sequence_number: h.sequence_number,
            clock: h.clock,
            processor: if h.flags.has(BufferFlags::PROC_INDEX) {
                Processor::Index(h.processor_field)
            } else {
                Processor::Number { number, alignment }
            },
            logger_id: h.logger_id,
            state: h.state,
            offset: h.offset,
            flags: h.flags,
            buffer_type: h.buffer_type,
            tail: h.tail,
        }
    }
}

impl From<read::EventDescriptor> for Descriptor {
    fn from(d: read::EventDescriptor) -> Self {
        Descriptor {
            id: d.id,
            version: d.version,
            channel: d.channel,
            level: d.level,
            opcode: d.opcode,
            task: d.task,
            keyword: d.keyword,
        }
    }
}
