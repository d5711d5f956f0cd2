//! `etlkit info` for people.

use std::fmt::{self, Write};

use crate::escape::Printable;
use crate::output::size;

use super::survey::Survey;

/// Lists longer than this are cut, and say so.
const MOST: usize = 40;

pub(super) fn render(survey: &Survey) -> String {
    let mut out = String::new();
    // Writing into a String does not fail.
    let _ = write(survey, &mut out);
    out
}

fn write(s: &Survey, out: &mut String) -> fmt::Result {
    writeln!(out, "{}", Printable(&s.file))?;
    let mut row = |name: &str, value: &str| writeln!(out, "  {name:<12}{}", Printable(value));
    row("system", &format!("{}, {} processors, {}-bit", s.os, s.processors, s.pointer_size * 8))?;
    row("session", &format!("\"{}\" in {}", one_line(&s.logger_name), one_line(&s.log_file_name)))?;
    row("written by", &format!("{}, log version {}, mode {}", s.dialect, s.log_version, s.mode))?;
    row("clock", &format!("{}, {} ticks a second", s.clock, s.perf_freq))?;
    row("start", &s.start_time)?;
    row("end", s.end_time.as_deref().unwrap_or("not told: the session was not closed"))?;
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
            size(s.bytes),
            s.buffers,
            size(s.buffer_size.into()),
            size(s.bytes_used)
        ),
    )?;
    row("lost", &format!("{} events, {} buffers", s.events_lost, s.buffers_lost))?;
    let kinds: Vec<_> = s.kinds.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
    row("records", &format!("{}: {}", s.records, kinds.join(", ")))?;

    if !s.events.is_empty() {
        writeln!(out, "\n  {:>9}  event", "count")?;
    }
    for e in s.events.iter().take(MOST) {
        let provider = e.name.as_deref().unwrap_or(&e.provider);
        let event = e.event.as_deref().map_or_else(String::new, |name| format!("{name} "));
        let task = e.task_name.as_deref().map_or_else(String::new, |name| format!(" {name}"));
        let what = match e.hook {
            Some(hook) => format!("{event}hook {hook:#06x} v{}", e.version),
            None => format!(
                "{event}id {} v{} opcode {} task {}{task} level {} keyword {}",
                e.id, e.version, e.opcode, e.task, e.level, e.keyword_hex
            ),
        };
        writeln!(out, "  {:>9}  {} {what}", e.count, Printable(&one_line(provider)))?;
    }
    cut(out, s.events.len(), "identities")?;

    for gap in s.gaps.iter().take(MOST) {
        writeln!(out, "\n  gap of {} buffers from number {}", gap.count, gap.first)?;
        for span in gap.spans.iter().take(MOST) {
            let from = span.from.as_deref().unwrap_or("the start");
            let to = span.to.as_deref().unwrap_or("the end");
            writeln!(out, "    processor {}: {from} to {to}", span.processor)?;
        }
    }
    cut(out, s.gaps.len(), "gaps")?;

    if !s.problems.is_empty() {
        writeln!(out, "\n  problems")?;
    }
    for p in s.problems.iter().take(MOST) {
        writeln!(out, "    {p}")?;
    }
    cut(out, s.problems.len(), "problems")
}

fn cut(out: &mut String, len: usize, what: &str) -> fmt::Result {
    if len > MOST {
        writeln!(out, "  ... and {} more {what}; --format json lists all", len - MOST)?;
    }
    Ok(())
}

/// A name with its line feeds escaped, so that it cannot pretend to be another row.
fn one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}
