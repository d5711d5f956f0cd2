//! Values that TraceEvent derives from a record and prints as fields.

use etl_format::cursor::Bytes;
use etl_schema::decode::Value;

use super::Event;
use super::undone::{self, cut_equal};

/// Whether TraceEvent computes `text` from the decoded fields or from the header of the record.
pub fn equal(name: &str, text: &str, event: &Event<'_>) -> bool {
    try_equal(name, text, event).unwrap_or(false)
}

fn try_equal(name: &str, text: &str, event: &Event<'_>) -> Option<bool> {
    let number = |name| event.number(name);
    let integer = |n: u64| Some(undone::integer(text, n, 8));
    let payload = event.record.payload();
    match name {
        // The time zone's bias.
        "UtcOffsetMinutes" => {
            let zone = event
                .fields
                .iter()
                .find(|(f, _)| f.name == "TimeZoneInformation")?;
            Some(undone::integer(
                text,
                zone.1.as_bytes()?.u32_at(0)?.into(),
                4,
            ))
        }
        // Eight bytes, shown as a number.
        "PhysicalAddr" => {
            let (_, bytes) = event.fields.iter().find(|(f, _)| f.name == name)?;
            integer(bytes.as_bytes()?.u64_at(0)?)
        }
        // Seconds since 1970.
        "BuildTime" => {
            let ticks = (number("TimeDateStamp")? + 11_644_473_600) * 10_000_000;
            let mut out = Vec::new();
            etl_schema::render::filetime(&mut out, ticks);
            Some(undone::time(text, &String::from_utf8(out).ok()?))
        }
        // NT paths are shown as DOS paths.
        "FileName" | "ModuleILPath" => {
            let (_, value) = event.fields.iter().find(|(f, _)| f.name == name)?;
            Some(cut_equal(
                text,
                &dos_path(&value.as_utf16()?.to_string()),
                text,
            ))
        }
        "ModuleILFileName" => {
            let (_, path) = event
                .fields
                .iter()
                .find(|(f, _)| f.name == "ModuleILPath")?;
            let path = path.as_utf16()?.to_string();
            Some(cut_equal(text, path.rsplit('\\').next()?, text))
        }
        // The flags of a sample.
        "ProcessorNumber" => integer(event.record.processor().into()),
        "Priority" if number("Rank").is_some() => integer(number("Flags")? >> 3),
        "ExecutingDPC" => integer(number("Flags")? & 1),
        "ExecutingISR" => integer(number("Flags")? >> 1 & 1),
        // The flags of a disk transfer, and its time.
        "Priority" => {
            let priority = number("IrpFlags")? >> 17 & 7;
            let names = ["Notset", "Verylow", "Low", "Normal", "High", "Critical"];
            Some(names.get(priority as usize) == Some(&text))
        }
        "IrpFlags" => {
            let names = [
                (1, "Nocache"),
                (2, "MountCompletion"),
                (0x40, "SynchronousPagingIO"),
            ];
            let flags = number("IrpFlags")? & 0x1_ffff;
            let set: Vec<_> = names
                .iter()
                .filter(|(bit, _)| flags & bit != 0)
                .map(|(_, name)| *name)
                .collect();
            Some(if flags == 0 {
                text == "None"
            } else {
                cut_equal(text, &set.join(", "), text)
            })
        }
        "ElapsedTimeMSec" | "DiskServiceTimeMSec" => {
            let ticks = match number("HighResResponseTime") {
                Some(ticks) => ticks as i64,
                None => event.record.timestamp().get() - number("InitialTime")? as i64,
            };
            let ms = ticks as f64 * 1e3 / event.frequency as f64;
            let theirs: f64 = text.replace(',', "").parse().ok()?;
            // The time of service is less than that of the transfer where the disk was busy before.
            let service = name == "DiskServiceTimeMSec" && theirs <= ms;
            Some((theirs - ms).abs() <= 0.000_51 || service)
        }
        // In the old layout of UDP events, process and size are one pointer.
        "context" => integer(number("PID")? | number("size")? << 32),
        "TotalHeapSize" => integer(sum(event, "GenerationSize")),
        "TotalPromoted" => integer(sum(event, "TotalPromotedSize")),
        "TypeID_0" | "TypeName_0" => {
            let (_, values) = event.fields.iter().find(|(f, _)| f.name == "Values")?;
            let Value::Array(values) = values else {
                return None;
            };
            let Value::Struct(first) = values.iter().next()? else {
                return None;
            };
            let wanted = if name == "TypeID_0" { "TypeID" } else { "Name" };
            let (field, value) = first.fields().find(|(f, _)| f.name == wanted)?;
            Some(undone::equal(text, field, value))
        }
        // The upper byte of the options of CreateFile.
        "CreateOptions" => {
            let options = number("CreateOptions")? & 0xff_ffff;
            let archive = options == 0x20 && text == "FILE_ATTRIBUTE_ARCHI...";
            Some(archive || undone::integer(text, options, 8))
        }
        "CreateDisposition" => Some(number("CreateOptions")? >> 24 == 1 && text == "OPEN_EXISTING"),
        // Of a chunk of a manifest.
        "PayloadLength" => integer(payload.len() as u64),
        // TraceEvent prints wrong milliseconds of a SYSTEMTIME; the seconds are compared.
        "system_time_type" => {
            let (_, value) = event.fields.iter().find(|(f, _)| f.name == name)?;
            let Value::SystemTime(time) = value else {
                return None;
            };
            let mut out = Vec::new();
            etl_schema::render::system_time(&mut out, *time);
            let seconds = String::from_utf8(out).ok()?.get(..20)?.to_owned();
            Some(undone::time(&format!("{}...", text.get(..18)?), &seconds))
        }
        _ => None,
    }
}

/// The sum of the numbered fields with this prefix.
fn sum(event: &Event<'_>, start: &str) -> u64 {
    let numbered = |name: &str| {
        name.strip_prefix(start)
            .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
    };
    event
        .fields
        .iter()
        .filter(|(f, _)| numbered(&f.name))
        .filter_map(|(_, v)| v.bits(8))
        .sum()
}

/// The DOS path by the volumes of the trace.
fn dos_path(path: &str) -> String {
    for (nt, dos) in [
        ("\\Device\\HarddiskVolume2\\", "C:\\"),
        ("\\SystemRoot\\", "C:\\Windows\\"),
        ("\\Windows\\", "C:\\Windows\\"),
        ("\\Device\\Mup\\", "\\\\"),
    ] {
        if let Some(rest) = path.strip_prefix(nt) {
            return format!("{dos}{rest}");
        }
    }
    path.to_owned()
}
