//! The file's header against its content, and a session that was not closed.

use etl_analysis::files::FileFacts;
use etl_format::FileTime;
use etl_format::constants::{ClockType, FILETIME_PER_SECOND};
use etl_format::read::Note;

use super::{each_file, each_note};
use crate::finding::Severity;
use crate::rules::commands::{REPAIR, STOP_RUNTIME};
use crate::rules::{Check, Rule};

pub(in crate::rules) const UNCLOSED: Rule = Rule {
    id: "file.unclosed",
    statement: "The session was stopped, so that its header states when it ended.",
    severity: Severity::Warning,
    source: "the file format",
    protocol: &[],
    meaning: "The machine or the session crashed, or the file was copied while the session ran: \
              the last events are missing.",
    remedy: "Stop the session by its name before you copy the file (logman stop NAME -ets also \
             does it). If the machine is gone, close the file:",
    commands: &[STOP_RUNTIME, REPAIR],
    check: unclosed,
};

fn unclosed(check: &mut Check<'_>) {
    if !check.facts.is_event_pipe() {
        return each_note(check, |note| matches!(note, Note::Unclosed));
    }
    each_file(check, |file| {
        if !file.notes.contains(&Note::Unclosed) {
            return None;
        }
        Some(
            "the stream has no end: the process was killed, or the file was copied before the \
             session stopped"
                .to_owned(),
        )
    });
}

pub(in crate::rules) const BUFFER_COUNT: Rule = Rule {
    id: "file.buffer-count",
    statement: "The header counts the buffers that the file holds.",
    severity: Severity::Note,
    source: "the file format",
    protocol: &[],
    meaning: "The file was cut, or grew after its header was written.",
    remedy: "Read the other findings about the file first. If it was cut, the intact records can \
             be saved as a valid file:",
    commands: &[REPAIR],
    check: |check| each_note(check, |note| matches!(note, Note::BufferCount { .. })),
};

pub(in crate::rules) const OUTSIDE_SESSION: Rule = Rule {
    id: "file.outside-session",
    statement: "All records are between the start and the end that the header states, give or take \
                a minute; samples, give or take five seconds.",
    severity: Severity::Note,
    source: "the file format; records that a merge adds may be a few seconds after the end",
    protocol: &["M1"],
    meaning: "Header and records are of different recordings, or the machine's clock was set \
              during the recording.",
    remedy: "Rely on the times of the records. The header's times:",
    commands: &["etlkit info trace.etl"],
    check: outside_session,
};

/// A day, in 100 ns.
const DAY: i64 = 86_400 * FILETIME_PER_SECOND;

/// How far records may be outside of the session's time: the rundown of a merge takes seconds.
const GRACE: i64 = 60 * FILETIME_PER_SECOND;

/// How long after the session's end a sample may be: the session that states the end may have ended
/// before the kernel's.
const SAMPLE_GRACE: i64 = 5 * FILETIME_PER_SECOND;

fn outside_session(check: &mut Check<'_>) {
    let facts = check.facts;
    // With several files the span of each is not known.
    let [file] = facts.machine.files() else {
        return;
    };
    let Some(span) = facts.machine.span() else {
        return;
    };
    let clock = facts.machine.clock();
    let start = file.header.start_time.get();
    let end = file.header.end_time.get();
    let before_start = start.saturating_sub(clock.time(span.first).get());
    if before_start > GRACE {
        let seconds = before_start / FILETIME_PER_SECOND;
        let message = format!("the first record is {seconds} s before the session's start");
        check.report(message);
    }
    if end <= start {
        return;
    }
    let after_end = clock.time(span.last).get().saturating_sub(end);
    if after_end > GRACE {
        let seconds = after_end / FILETIME_PER_SECOND;
        let message = format!("the last record is {seconds} s after the session's end");
        check.report(message);
        return;
    }
    // Later records may come from a merge, but a merge adds no samples.
    let Some(sample) = facts.sampling.last() else {
        return;
    };
    let after_end = clock.time(sample).get().saturating_sub(end);
    if after_end > SAMPLE_GRACE {
        let seconds = after_end / FILETIME_PER_SECOND;
        let message = format!("the last sample is {seconds} s after the session's end");
        check.report(message).at(Some(sample));
    }
}

pub(in crate::rules) const PROCESSOR_COUNT: Rule = Rule {
    id: "file.processor-count",
    statement: "Every buffer belongs to one of the processors that the header counts.",
    severity: Severity::Note,
    source: "the file format",
    protocol: &[],
    meaning: "The header was made on another machine than the records, or by a tool that does not \
              count processors.",
    remedy: "Nothing if the file was relogged; otherwise use the file that the session wrote.",
    commands: &[],
    check: processor_count,
};

fn processor_count(check: &mut Check<'_>) {
    each_file(check, |file| {
        let processor = file.beyond_processors?;
        let stated = file.header.processors;
        Some(format!(
            "a buffer belongs to processor {processor}, the header counts {stated} processors"
        ))
    })
}

pub(in crate::rules) const POINTER_SIZE: Rule = Rule {
    id: "file.pointer-size",
    statement: "The header states pointers of the size that its own record has.",
    severity: Severity::Note,
    source: "the file format",
    protocol: &[],
    meaning: "The header was changed, or made by a tool of the other size: programs that rely on it \
              read addresses of records that do not state their size as too short or too long.",
    remedy: "Nothing for the records of Windows' providers, which state their size. Otherwise use the \
             file that the session wrote.",
    commands: &[],
    check: |check| each_note(check, |note| matches!(note, Note::PointerSize { .. })),
};

pub(in crate::rules) const CLOCK: Rule = Rule {
    id: "file.clock",
    statement: "The header states how timestamps become times: a known clock, its frequency, times \
                of day that are near the start, an end that is not before the start, and a start of \
                the machine before both.",
    severity: Severity::Warning,
    source: "the file format",
    protocol: &[],
    meaning: "The times of events, and every check that uses them, are guesses: timestamps were \
              taken for ticks of the performance counter.",
    remedy: "Use the file that the session wrote. If the machine's time was set during the \
             recording, rely on differences between timestamps. What the header states:",
    commands: &["etlkit info trace.etl"],
    check: |check| each_file(check, clock_problems),
};

fn clock_problems(file: &FileFacts) -> Vec<String> {
    let header = &file.header;
    let mut problems = Vec::new();
    if !header.is_known() {
        return problems;
    }
    match header.clock_type {
        // Some tools write clock type 0; its timestamps are the performance counter's.
        ClockType::QPC | ClockType::RAW if header.perf_freq <= 0 => problems.push(format!(
            "the header states {} ticks per second for the performance counter",
            header.perf_freq
        )),
        ClockType::CPU_CYCLE if header.cpu_mhz == 0 => problems.push(
            "timestamps are processor cycles, and the header does not state the processor's speed"
                .to_owned(),
        ),
        ClockType::QPC | ClockType::RAW | ClockType::SYSTEM_TIME | ClockType::CPU_CYCLE => {}
        other => problems.push(format!("the header names an unknown clock ({other})")),
    }
    let apart = header
        .timestamp
        .get()
        .saturating_sub(header.start_time.get())
        .saturating_abs();
    if header.clock_type == ClockType::SYSTEM_TIME
        && header.start_time != FileTime::default()
        && apart > DAY
    {
        problems.push(format!(
            "the header states that timestamps are times of day, and that the session began at {}; \
             as a time of day its first timestamp is {}",
            header.start_time,
            FileTime::new(header.timestamp.get())
        ));
    }
    if header.end_time != FileTime::default() && header.end_time < header.start_time {
        problems.push(format!(
            "the header states that the session ended at {}, before it started at {}",
            header.end_time, header.start_time
        ));
    }
    if header.start_time != FileTime::default()
        && header.boot_time.get() > header.start_time.get().saturating_add(GRACE)
    {
        problems.push(format!(
            "the header states that the machine was started at {}, after the session started at {}",
            header.boot_time, header.start_time
        ));
    }
    problems
}
