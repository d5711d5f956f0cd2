//! The file itself: damage, losses, a session that was not closed, order.

use etl_format::constants::{ClockType, FILETIME_PER_SECOND};
use etl_format::read::Note;

use crate::facts::Facts;
use crate::facts::loss::What;
use crate::facts::source::{self, FileFacts};
use crate::report::Finding;

use super::catalogue::{
    FILE_BUFFER_COUNT, FILE_BUFFERS_LOST, FILE_CLOCK, FILE_DAMAGED, FILE_DISORDERED,
    FILE_EVENTS_LOST, FILE_OUTSIDE_SESSION, FILE_OVERWRITTEN, FILE_PROCESSORS, FILE_SEQUENCE_GAP,
    FILE_SEQUENCE_TWICE, FILE_UNCLOSED,
};
use super::plural;

/// How far records may lie outside of what the header states: the rundown of a merge comes seconds later.
const GRACE: i64 = 60 * FILETIME_PER_SECOND;

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    for (index, file) in facts.files.iter().enumerate() {
        // Which one is worth saying only where there are several.
        let of = if facts.files.len() > 1 { format!("{}: ", file.name) } else { String::new() };
        one(facts, file, &of, findings);
        overwritten(facts, index, file, &of, findings);
        clock(file, &of, findings);
    }
    outside(facts, findings);
}

/// A finding with the buffer that a note is about.
fn shown(facts: &Facts, file: &FileFacts, note: &Note, finding: Finding) -> Finding {
    let Some(offset) = source::place(note) else { return finding };
    let known = file.noted.get(&offset);
    let finding = finding.at(facts, known.map(|&(_, timestamp)| timestamp));
    finding.in_file(&file.name, offset, known.map(|&(processor, _)| processor))
}

fn one(facts: &Facts, file: &FileFacts, of: &str, findings: &mut Vec<Finding>) {
    for fault in &file.faults {
        let (offset, message) = (fault.offset, &fault.message);
        let message = format!("{of}the file is damaged at offset {offset:#x}: {message}");
        let finding = Finding::new(&FILE_DAMAGED, message);
        findings.push(finding.in_file(&file.name, offset, fault.processor));
    }
    if !file.header.is_known() {
        let message = format!(
            "{of}the header event is lost: nothing is told of session, system and clock; times count from the \
             first record, at an assumed 10 MHz"
        );
        findings.push(Finding::new(&FILE_DAMAGED, message).in_file(&file.name, 0, None));
    }
    for note in &file.notes {
        let rule = match note {
            Note::EventsLost(_) => &FILE_EVENTS_LOST,
            Note::BuffersLost(_) => &FILE_BUFFERS_LOST,
            Note::SequenceGap { .. } => &FILE_SEQUENCE_GAP,
            Note::SequenceTwice { .. } => &FILE_SEQUENCE_TWICE,
            Note::Unclosed => &FILE_UNCLOSED,
            Note::BufferCount { .. } => &FILE_BUFFER_COUNT,
            _ => continue,
        };
        let message = match note {
            Note::SequenceGap { first, count: 1, .. } => {
                format!("the buffer number {first} is missing")
            }
            Note::SequenceGap { first, count, .. } => {
                let last = first.saturating_add_unsigned(count.saturating_sub(1));
                format!("{count} buffers are missing, number {first} to {last}")
            }
            note => note.to_string(),
        };
        // Counts of the header have no place; the first buffer with a flag has.
        let first = |is: fn(&&Note) -> bool| file.notes.iter().find(is);
        let flagged = match note {
            Note::EventsLost(_) => first(|n| matches!(n, Note::EventsLostInBuffer { .. })),
            Note::BuffersLost(_) => first(|n| matches!(n, Note::BufferLostBefore { .. })),
            _ => None,
        };
        let finding = Finding::new(rule, format!("{of}{message}"));
        findings.push(shown(facts, file, flagged.unwrap_or(note), finding));
    }
    // The count may be missing from a header whose buffers tell of losses all the same.
    let counted = file.notes.iter().any(|n| matches!(n, Note::EventsLost(_)));
    let is_flag = |n: &&Note| matches!(n, Note::EventsLostInBuffer { .. });
    let flags = file.notes.iter().filter(is_flag);
    if let (Some(first), false) = (flags.clone().next(), counted) {
        let message = plural(
            flags.count() as u64,
            "buffer says that events were lost while it was filled",
            "buffers say that events were lost while they were filled",
        );
        let message = format!("{of}{message}");
        findings.push(shown(facts, file, first, Finding::new(&FILE_EVENTS_LOST, message)));
    }
    if file.disordered > 0 {
        let message = format!("{of}{} buffers are not in time order inside", file.disordered);
        findings.push(Finding::new(&FILE_DISORDERED, message));
    }
    if let Some(processor) = file.beyond_processors {
        let stated = file.header.processors;
        let message = format!(
            "{of}a buffer is of processor {processor}, the header states {stated} processors"
        );
        findings.push(Finding::new(&FILE_PROCESSORS, message));
    }
}

/// What a circular file no longer holds.
fn overwritten(
    facts: &Facts,
    index: usize,
    file: &FileFacts,
    of: &str,
    findings: &mut Vec<Finding>,
) {
    let Some(gone) = file.overwritten else { return };
    let oldest = facts.losses.iter().filter(|l| l.source == index && l.what == What::Oldest);
    // What is left begins right behind the losses, on each processor at another time.
    let since = oldest.filter_map(|l| l.to).max().map(|to| to.saturating_add(1));
    let message = format!(
        "{of}{} overwritten by newer ones; all processors are told of from this moment on",
        plural(gone, "buffer of the circular file was", "buffers of the circular file were")
    );
    findings.push(Finding::new(&FILE_OVERWRITTEN, message).at(facts, since));
}

/// What the header says of the clock.
fn clock(file: &FileFacts, of: &str, findings: &mut Vec<Finding>) {
    let header = &file.header;
    if !header.is_known() {
        return;
    }
    let mut tell = |message: String| {
        findings.push(Finding::new(&FILE_CLOCK, format!("{of}{message}")));
    };
    match header.clock_type {
        // A clock of type 0 is what some tools write; its timestamps are the performance counter's.
        ClockType::QPC | ClockType::RAW if header.perf_freq <= 0 => tell(format!(
            "the header states {} ticks a second for the performance counter",
            header.perf_freq
        )),
        ClockType::CPU_CYCLE if header.cpu_mhz == 0 => {
            tell(
                "stamps are processor cycles, and the header does not state their speed".to_owned(),
            );
        }
        ClockType::QPC | ClockType::RAW | ClockType::SYSTEM_TIME | ClockType::CPU_CYCLE => {}
        other => tell(format!("the header names a clock that is not known ({other})")),
    }
    if header.end_time != 0 && header.end_time < header.start_time {
        let time = etl_format::clock::iso_utc;
        tell(format!(
            "the header says that the session ended at {}, before it began at {}",
            time(header.end_time),
            time(header.start_time)
        ));
    }
}

fn outside(facts: &Facts, findings: &mut Vec<Finding>) {
    // Of several files it is not kept which record was whose.
    let ([file], Some((first, last))) = (facts.files.as_slice(), facts.span) else { return };
    let (first, last) = (facts.clock.filetime(first), facts.clock.filetime(last));
    let header = &file.header;
    if first < header.start_time.saturating_sub(GRACE) {
        let seconds = header.start_time.saturating_sub(first) / FILETIME_PER_SECOND;
        let message = format!("the first record lies {seconds} s before the start");
        findings.push(Finding::new(&FILE_OUTSIDE_SESSION, message));
    }
    if header.end_time > header.start_time && last > header.end_time.saturating_add(GRACE) {
        let seconds = last.saturating_sub(header.end_time) / FILETIME_PER_SECOND;
        let message = format!("the last record lies {seconds} s behind the end");
        findings.push(Finding::new(&FILE_OUTSIDE_SESSION, message));
    }
}
