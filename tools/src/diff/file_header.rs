//! Comparison of the header events, field by field.

use etl_format::{FileHeader, FileTime};

use super::change::Change;

/// The text of a field; empty if the header does not have it.
type Value = fn(&FileHeader) -> String;

/// The compared fields, in the order of the report.
const FIELDS: [(&str, Value); 32] = [
    ("os", |h| {
        format!("{}.{}.{}", h.os_major, h.os_minor, h.build)
    }),
    ("log_version", |h| {
        format!("{}.{}", h.log_major, h.log_minor)
    }),
    ("pointer_size", |h| h.pointer_size.bytes().to_string()),
    ("processors", |h| h.processors.to_string()),
    ("cpu_mhz", |h| h.cpu_mhz.to_string()),
    ("timer_resolution", |h| h.timer_resolution.to_string()),
    ("mode", |h| h.mode.to_string()),
    ("buffer_size", |h| h.buffer_size.to_string()),
    ("maximum_file_size", |h| h.maximum_file_size.to_string()),
    ("buffers_written", |h| h.buffers_written.to_string()),
    ("start_buffers", |h| h.start_buffers.to_string()),
    ("events_lost", |h| h.events_lost.to_string()),
    ("buffers_lost", |h| h.buffers_lost.to_string()),
    ("clock", |h| h.clock_type.to_string()),
    ("perf_freq", |h| h.perf_freq.to_string()),
    ("start_timestamp", |h| h.timestamp.to_string()),
    ("start_time", |h| time(h.start_time)),
    ("end_time", |h| time(h.end_time)),
    ("boot_time", |h| time(h.boot_time)),
    ("time_zone_bias", |h| h.time_zone.bias.to_string()),
    ("time_zone_name", |h| h.time_zone.standard_name()),
    ("standard_date", |h| date(&h.time_zone.standard_date)),
    ("standard_bias", |h| h.time_zone.standard_bias.to_string()),
    ("daylight_name", |h| h.time_zone.daylight_name()),
    ("daylight_date", |h| date(&h.time_zone.daylight_date)),
    ("daylight_bias", |h| h.time_zone.daylight_bias.to_string()),
    ("process_id", |h| h.process_id.to_string()),
    ("thread_id", |h| h.thread_id.to_string()),
    ("kernel_time", |h| h.kernel_time.to_string()),
    ("user_time", |h| h.user_time.to_string()),
    ("logger_name", |h| String::from_utf16_lossy(&h.logger_name)),
    ("log_file_name", |h| {
        String::from_utf16_lossy(&h.log_file_name)
    }),
];

fn time(time: FileTime) -> String {
    if time == FileTime::default() {
        String::new()
    } else {
        time.to_string()
    }
}

/// The parts of a `SYSTEMTIME`: year, month, day of the week, day, hour, minute, second,
/// millisecond. In a time zone it is a rule, not a date.
fn date(parts: &[u16; 8]) -> String {
    if *parts == [0; 8] {
        return String::new();
    }
    parts.map(|part| part.to_string()).join(" ")
}

/// Whether a field of this name is compared.
pub(super) fn is_field(name: &str) -> bool {
    FIELDS.iter().any(|(field, _)| *field == name)
}

/// The fields that differ; empty values are `None`.
pub(super) fn changes(a: &FileHeader, b: &FileHeader) -> Vec<Change> {
    let mut changes = Vec::new();
    for (name, value) in FIELDS {
        let before = value(a);
        let after = value(b);
        if before != after {
            changes.push(Change {
                name: name.to_owned(),
                before: not_empty(before),
                after: not_empty(after),
            });
        }
    }
    changes
}

fn not_empty(text: String) -> Option<String> {
    if text.is_empty() { None } else { Some(text) }
}
