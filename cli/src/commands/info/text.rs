//! The text of `etlkit info`.

use std::fmt::{self, Write};

use etl_schema::providers::{LOST_EVENT, lost};

use crate::diagnostics::{LOST_HEADER, plural};
use crate::escape::one_line;
use crate::output::size;

use super::Report;

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
    let s = &report.survey;
    writeln!(out, "{}", one_line(&report.file))?;
    let mut row = |name: &str, value: &str| writeln!(out, "  {name:<12}{value}");
    if s.header {
        let bits = s.pointer_size.map(|bytes| bytes * 8);
        let processors = match s.processors {
            Some(count) => plural(count.into(), "processor", "processors"),
            None => format!("{UNKNOWN} processors"),
        };
        row("system", &format!("{}, {processors}, {}-bit", text(&s.os), value(bits)))?;
        let (session, file) = (one_line(text(&s.logger_name)), one_line(text(&s.log_file_name)));
        row("session", &format!("\"{session}\" in {file}"))?;
        let (version, mode) = (text(&s.log_version), text(&s.mode));
        let dialect = value(s.dialect);
        row("written by", &format!("{dialect}, log version {version}, mode {mode}"))?;
        row("clock", &format!("{}, {} ticks a second", text(&s.clock), value(s.ticks_per_second)))?;
        row("start", text(&s.start_time))?;
        row("end", s.end_time.as_deref().unwrap_or("unknown: the session was not closed"))?;
    } else {
        row("header", LOST_HEADER)?;
        for name in ["system", "session", "written by", "clock", "start", "end"] {
            row(name, UNKNOWN)?;
        }
        if let Some(seconds) = s.duration_seconds {
            row("events", &format!("{seconds:.3} s, assuming a clock of 10 MHz"))?;
        }
    }
    if let (Some(first), Some(last), Some(seconds)) =
        (&s.first_event_time, &s.last_event_time, s.duration_seconds)
    {
        row("events", &format!("{first} to {last}, {seconds:.3} s"))?;
    }
    let packed = s.compression.as_deref().map_or(String::new(), |c| format!(", {c}"));
    row(
        "size",
        &format!(
            "{} in {} buffers of {}{packed}; {} used",
            size(report.bytes),
            s.buffers,
            size(s.buffer_size.into()),
            size(s.bytes_used)
        ),
    )?;
    match (s.events_lost, s.buffers_lost) {
        (Some(events), Some(buffers)) => {
            row("lost", &format!("{events} events, {buffers} buffers"))?;
        }
        _ => row("lost", UNKNOWN)?,
    }
    let class = LOST_EVENT.to_string();
    for (opcode, what) in
        [(lost::EVENT, "events"), (lost::BUFFER, "buffers"), (lost::FILE, "files")]
    {
        let own = s.events.iter().filter(|e| e.opcode == opcode && e.provider_guid == class);
        let count: u64 = own.map(|e| e.count).sum();
        if count > 0 {
            let records = plural(count, "record says", "records say");
            row("", &format!("{records} that {what} were lost"))?;
        }
    }
    if !report.processes.is_empty() {
        row("events of", &one_line(&report.processes.join(", ")))?;
    }
    let kinds: Vec<_> = s.kinds.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
    row("records", &format!("{}: {}", s.records, kinds.join(", ")))?;
    if s.stale_records > 0 {
        let what = "in the first buffer and once more in another one";
        row("stale", &format!("{} {what}; dump and verify leave them out", s.stale_records))?;
    }

    if !s.providers.is_empty() {
        writeln!(out, "\n  {:>9}  {:>5}  provider", "count", "kinds")?;
    }
    for p in s.providers.iter().take(MAX_LISTED) {
        let name = p.provider.as_deref().unwrap_or(&p.provider_guid);
        let (from, to) = span(&p.first_event_time, &p.last_event_time);
        writeln!(out, "  {:>9}  {:>5}  {}{from}{to}", p.count, p.kinds, one_line(name))?;
    }
    cut(out, s.providers.len(), "providers")?;

    if !report.process_counts.is_empty() {
        writeln!(out, "\n  {:>9}  {:>7}  process", "count", "pid")?;
    }
    for p in report.process_counts.iter().take(MAX_PROCESSES) {
        let name = p.name.as_deref().map_or_else(|| "(unknown name)".into(), one_line);
        let (from, to) = span(&p.start_time, &p.end_time);
        writeln!(out, "  {:>9}  {:>7}  {name}{from}{to}", p.count, p.pid)?;
    }
    if report.process_counts.len() > MAX_PROCESSES {
        let more = report.process_counts.len() - MAX_PROCESSES;
        writeln!(out, "  ... and {more} more processes; --format json lists all")?;
    }

    if !s.events.is_empty() {
        writeln!(out, "\n  {:>9}  event", "count")?;
    }
    for e in s.events.iter().take(MAX_LISTED) {
        let provider = e.provider.as_deref().unwrap_or(&e.provider_guid);
        let event = one_line(&e.event);
        let task = e.task_name.as_deref().map_or_else(String::new, |name| format!(" {name}"));
        let what = match e.hook {
            Some(hook) => format!("hook {hook:#06x} v{}", e.version),
            None => format!(
                "id {} v{} opcode {} task {}{task} level {} keyword {}",
                e.id, e.version, e.opcode, e.task, e.level, e.keyword_hex
            ),
        };
        writeln!(out, "  {:>9}  {} {event}  {what}", e.count, one_line(provider))?;
    }
    cut(out, s.events.len(), "identities")?;

    for gap in s.gaps.iter().take(MAX_LISTED) {
        writeln!(out, "\n  gap of {} buffers from number {}", gap.count, gap.first)?;
        for span in gap.spans.iter().take(MAX_LISTED) {
            let from = span.from.as_deref().unwrap_or("the start");
            let to = span.to.as_deref().unwrap_or("the end");
            writeln!(out, "    processor {}: {from} to {to}", span.processor)?;
        }
    }
    cut(out, s.gaps.len(), "gaps")?;

    if !s.problems.is_empty() {
        writeln!(out, "\n  problems")?;
    }
    for p in s.problems.iter().take(MAX_LISTED) {
        writeln!(out, "    {p}")?;
    }
    cut(out, s.problems.len(), "problems")
}

/// A span of time, as far as it is known.
fn span(from: &Option<String>, to: &Option<String>) -> (String, String) {
    let after = |word: &str, time: &Option<String>| {
        time.as_ref().map_or_else(String::new, |time| format!("  {word} {time}"))
    };
    (after("from", from), after("to", to))
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or(UNKNOWN)
}

fn value(value: Option<impl fmt::Display>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |value| value.to_string())
}

fn cut(out: &mut String, len: usize, what: &str) -> fmt::Result {
    if len > MAX_LISTED {
        writeln!(out, "  ... and {} more {what}; --format json lists all", len - MAX_LISTED)?;
    }
    Ok(())
}
