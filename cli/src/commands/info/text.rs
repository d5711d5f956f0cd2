//! The text of `etlkit info`.

use std::fmt::{self, Write};

use etl_events::survey::Survey;

use crate::diagnostics::{LOST_HEADER, plural};
use crate::escape::one_line;
use crate::output::size;

use super::Report;
use crate::commands::convert::stream_text;

/// The text of an unknown value.
const UNKNOWN: &str = "unknown";

/// The longest list that is printed in full.
const MAX_LISTED: usize = 40;

/// How many processes are printed.
const MAX_PROCESSES: usize = 15;

pub(super) fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing into a String does not fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report, out: &mut String) -> fmt::Result {
    let survey = &report.survey;
    writeln!(out, "{}", one_line(&report.file))?;
    if let Some(stream) = &report.stream {
        let mut text = stream_text(stream);
        // The header of a session that was not closed does not count them.
        if !stream.is_complete && stream.events_lost > 0 {
            text += &format!(", {} lost", plural(stream.events_lost, "event", "events"));
        }
        row(out, "stream", &text)?;
    }
    if survey.header {
        write_header(survey, out)?;
    } else {
        write_lost_header(survey, out)?;
    }
    write_sizes(report, out)?;
    write_losses(survey, out)?;
    write_records(report, out)?;
    write_providers(survey, out)?;
    write_processes(report, out)?;
    write_events(survey, out)?;
    write_gaps(survey, out)?;
    write_problems(survey, out)
}

fn row(out: &mut String, name: &str, value: &str) -> fmt::Result {
    writeln!(out, "  {name:<12}{value}")
}

fn write_header(s: &Survey, out: &mut String) -> fmt::Result {
    let bits = s.pointer_size.map(|bytes| bytes * 8);
    let processors = match s.processors {
        Some(count) => plural(count.into(), "processor", "processors"),
        None => format!("{UNKNOWN} processors"),
    };
    row(
        out,
        "system",
        &format!("{}, {processors}, {}-bit", text(&s.os), value(bits)),
    )?;
    let session = one_line(text(&s.logger_name));
    let file = one_line(text(&s.log_file_name));
    let place = match file.is_empty() {
        true => String::new(),
        false => format!(" in {file}"),
    };
    row(out, "session", &format!("\"{session}\"{place}"))?;
    let version = text(&s.log_version);
    let mode = text(&s.mode);
    let mut dialect = value(s.dialect);
    if let Some(process) = s.private_process {
        dialect = format!("{dialect} of process {process}");
    }
    row(
        out,
        "written by",
        &format!("{dialect}, log version {version}, mode {mode}"),
    )?;
    let ticks = value(s.ticks_per_second);
    row(
        out,
        "clock",
        &format!("{}, {ticks} ticks a second", text(&s.clock)),
    )?;
    row(out, "start", text(&s.start_time))?;
    if let Some(offset) = s.utc_offset_minutes
        && !is_utc(s, offset)
    {
        row(out, "local time", &local_time(s, offset))?;
    }
    row(
        out,
        "end",
        s.end_time
            .as_deref()
            .unwrap_or("unknown: the session was not closed"),
    )
}

/// Whether the local time is UTC, so that a line about it says nothing.
fn is_utc(s: &Survey, offset: i32) -> bool {
    let name = s.local_time.as_deref().unwrap_or_default();
    offset == 0 && matches!(name, "" | "UTC" | "Coordinated Universal Time")
}

/// The local time at the start, which is some minutes ahead of UTC: `UTC-07:00, Pacific Daylight
/// Time: UTC = local time + 420 minutes`.
fn local_time(s: &Survey, minutes: i32) -> String {
    let sign = if minutes < 0 { '-' } else { '+' };
    let ahead = minutes.unsigned_abs();
    let mut line = format!("UTC{sign}{:02}:{:02}", ahead / 60, ahead % 60);
    if let Some(name) = s.local_time.as_deref().filter(|name| !name.is_empty()) {
        line += &format!(", {}", one_line(name));
    }
    if minutes != 0 {
        let sign = if minutes < 0 { '+' } else { '-' };
        line += &format!(": UTC = local time {sign} {ahead} minutes");
    }
    line
}

fn write_lost_header(s: &Survey, out: &mut String) -> fmt::Result {
    row(out, "header", LOST_HEADER)?;
    for name in ["system", "session", "written by", "clock", "start", "end"] {
        row(out, name, UNKNOWN)?;
    }
    if let Some(seconds) = s.duration_seconds {
        row(
            out,
            "events",
            &format!("{seconds:.3} s, assuming a clock of 10 MHz"),
        )?;
    }
    Ok(())
}

/// The time of the events, and the size of the file.
fn write_sizes(report: &Report, out: &mut String) -> fmt::Result {
    let s = &report.survey;
    if let (Some(first), Some(last), Some(seconds)) =
        (&s.first_event_time, &s.last_event_time, s.duration_seconds)
    {
        row(out, "events", &format!("{first} to {last}, {seconds:.3} s"))?;
    }
    let packed = match &s.compression {
        Some(format) => format!(", {format}"),
        None => String::new(),
    };
    let sizes = format!(
        "{} in {} buffers of {}{packed}; {} used",
        size(report.bytes),
        s.buffers,
        size(s.buffer_size.into()),
        size(s.bytes_used)
    );
    row(out, "size", &sizes)
}

fn write_losses(s: &Survey, out: &mut String) -> fmt::Result {
    match (s.events_lost, s.buffers_lost) {
        (Some(events), Some(buffers)) => {
            row(out, "lost", &format!("{events} events, {buffers} buffers"))?;
        }
        _ => row(out, "lost", UNKNOWN)?,
    }
    let losses = s.loss_records();
    for (count, what) in [
        (losses.events, "events"),
        (losses.buffers, "buffers"),
        (losses.files, "files"),
    ] {
        if count > 0 {
            let records = plural(count, "record says", "records say");
            row(out, "", &format!("{records} that {what} were lost"))?;
        }
    }
    Ok(())
}

/// The selected processes, and the number of records.
fn write_records(report: &Report, out: &mut String) -> fmt::Result {
    let s = &report.survey;
    if !report.processes.is_empty() {
        row(out, "events of", &one_line(&report.processes.join(", ")))?;
    }
    let kinds: Vec<_> = s
        .kinds
        .iter()
        .map(|(kind, n)| format!("{kind} {n}"))
        .collect();
    row(
        out,
        "records",
        &format!("{}: {}", s.records, kinds.join(", ")),
    )?;
    if s.stale_records > 0 {
        let what = "in the first buffer and again in another";
        row(
            out,
            "stale",
            &format!("{} {what}; dump and verify leave them out", s.stale_records),
        )?;
    }
    Ok(())
}

fn write_providers(s: &Survey, out: &mut String) -> fmt::Result {
    if !s.providers.is_empty() {
        writeln!(out, "\n  {:>9}  {:>5}  provider", "count", "kinds")?;
    }
    for p in s.providers.iter().take(MAX_LISTED) {
        let name = one_line(p.provider.as_deref().unwrap_or(&p.provider_guid));
        let span = span(&p.first_event_time, &p.last_event_time);
        writeln!(out, "  {:>9}  {:>5}  {name}{span}", p.count, p.kinds)?;
    }
    cut(out, s.providers.len(), "providers")
}

fn write_processes(report: &Report, out: &mut String) -> fmt::Result {
    if !report.process_counts.is_empty() {
        writeln!(out, "\n  {:>9}  {:>7}  process", "count", "pid")?;
    }
    for p in report.process_counts.iter().take(MAX_PROCESSES) {
        let name = match &p.name {
            Some(name) => one_line(name),
            None => "(unknown name)".to_owned(),
        };
        let span = span(&p.start_time, &p.end_time);
        writeln!(out, "  {:>9}  {:>7}  {name}{span}", p.count, p.pid)?;
    }
    if report.process_counts.len() > MAX_PROCESSES {
        let more = report.process_counts.len() - MAX_PROCESSES;
        writeln!(
            out,
            "  ... and {more} more processes; --format json lists all"
        )?;
    }
    Ok(())
}

fn write_events(s: &Survey, out: &mut String) -> fmt::Result {
    if !s.events.is_empty() {
        writeln!(out, "\n  {:>9}  event", "count")?;
    }
    for e in s.events.iter().take(MAX_LISTED) {
        let provider = e.provider.as_deref().unwrap_or(&e.provider_guid);
        let event = one_line(&e.event);
        let task = match &e.task_name {
            Some(name) => format!(" {name}"),
            None => String::new(),
        };
        let what = match e.hook {
            Some(hook) => format!("hook {hook:#06x} v{}", e.version),
            None => format!(
                "id {} v{} opcode {} task {}{task} level {} keyword {}",
                e.id, e.version, e.opcode, e.task, e.level, e.keyword_hex
            ),
        };
        writeln!(
            out,
            "  {:>9}  {} {event}  {what}",
            e.count,
            one_line(provider)
        )?;
    }
    cut(out, s.events.len(), "identities")
}

fn write_gaps(s: &Survey, out: &mut String) -> fmt::Result {
    for gap in s.gaps.iter().take(MAX_LISTED) {
        writeln!(
            out,
            "\n  gap of {} buffers from number {}",
            gap.count, gap.first
        )?;
        for span in gap.spans.iter().take(MAX_LISTED) {
            let from = span.from.as_deref().unwrap_or("the start");
            let to = span.to.as_deref().unwrap_or("the end");
            writeln!(out, "    processor {}: {from} to {to}", span.processor)?;
        }
    }
    cut(out, s.gaps.len(), "gaps")
}

fn write_problems(s: &Survey, out: &mut String) -> fmt::Result {
    if !s.problems.is_empty() {
        writeln!(out, "\n  problems")?;
    }
    for p in s.problems.iter().take(MAX_LISTED) {
        writeln!(out, "    {p}")?;
    }
    cut(out, s.problems.len(), "problems")
}

/// A span of time, as far as it is known.
fn span(from: &Option<String>, to: &Option<String>) -> String {
    let mut span = String::new();
    if let Some(from) = from {
        span += &format!("  from {from}");
    }
    if let Some(to) = to {
        span += &format!("  to {to}");
    }
    span
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or(UNKNOWN)
}

fn value(value: Option<impl fmt::Display>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |value| value.to_string())
}

fn cut(out: &mut String, len: usize, what: &str) -> fmt::Result {
    if len > MAX_LISTED {
        writeln!(
            out,
            "  ... and {} more {what}; --format json lists all",
            len - MAX_LISTED
        )?;
    }
    Ok(())
}
