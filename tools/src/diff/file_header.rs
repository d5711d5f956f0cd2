//! Comparison of the header events, field by field.

use etl_format::clock::iso_utc;
use etl_format::read::FileHeader;

use super::change::Change;

/// Names of the compared fields, in the order of the report.
pub(super) const NAMES: [&str; 23] = [
    "os",
    "log_version",
    "pointer_size",
    "processors",
    "cpu_mhz",
    "timer_resolution",
    "mode",
    "buffer_size",
    "maximum_file_size",
    "buffers_written",
    "start_buffers",
    "events_lost",
    "buffers_lost",
    "clock",
    "perf_freq",
    "start_timestamp",
    "start_time",
    "end_time",
    "boot_time",
    "time_zone_bias",
    "time_zone_name",
    "logger_name",
    "log_file_name",
];

fn value(h: &FileHeader, name: &str) -> String {
    let time = |time: i64| if time == 0 { String::new() } else { iso_utc(time) };
    match name {
        "os" => format!("{}.{}.{}", h.os_major, h.os_minor, h.build),
        "log_version" => format!("{}.{}", h.log_major, h.log_minor),
        "pointer_size" => h.pointer_size.bytes().to_string(),
        "processors" => h.processors.to_string(),
        "cpu_mhz" => h.cpu_mhz.to_string(),
        "timer_resolution" => h.timer_resolution.to_string(),
        "mode" => h.mode.to_string(),
        "buffer_size" => h.buffer_size.to_string(),
        "maximum_file_size" => h.maximum_file_size.to_string(),
        "buffers_written" => h.buffers_written.to_string(),
        "start_buffers" => h.start_buffers.to_string(),
        "events_lost" => h.events_lost.to_string(),
        "buffers_lost" => h.buffers_lost.to_string(),
        "clock" => h.clock_type.to_string(),
        "perf_freq" => h.perf_freq.to_string(),
        "start_timestamp" => h.timestamp.to_string(),
        "start_time" => time(h.start_time),
        "end_time" => time(h.end_time),
        "boot_time" => time(h.boot_time),
        "time_zone_bias" => h.time_zone.bias.to_string(),
        "time_zone_name" => h.time_zone.standard_name(),
        "logger_name" => String::from_utf16_lossy(&h.logger_name),
        "log_file_name" => String::from_utf16_lossy(&h.log_file_name),
        _ => String::new(),
    }
}

/// The fields that differ; empty values are `None`.
pub(super) fn changes(a: &FileHeader, b: &FileHeader) -> Vec<Change> {
    NAMES
        .iter()
        .map(|name| (name, value(a, name), value(b, name)))
        .filter(|(_, before, after)| before != after)
        .map(|(name, before, after)| Change {
            name: (*name).to_owned(),
            before: Some(before).filter(|v| !v.is_empty()),
            after: Some(after).filter(|v| !v.is_empty()),
        })
        .collect()
}
