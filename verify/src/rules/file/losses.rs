//! Events and buffers that were lost or overwritten.

use etl_analysis::files::{LossRecords, gaps_between};
use etl_analysis::loss::LossKind;
use etl_analysis::machine::Counted;
use etl_format::Ticks;
use etl_format::constants::LogFileMode;
use etl_format::read::{Note, Weight};

use super::{locate, report_in_file};
use crate::finding::Severity;
use crate::rules::commands::{RECORDING, RUNTIME_DISK, RUNTIME_LARGE};
use crate::rules::{Check, Rule, plural};

pub(in crate::rules) const EVENTS_LOST: Rule = Rule {
    id: "file.events-lost",
    statement: "No event was lost.",
    severity: Severity::Warning,
    source: "the count in the header event, the flags of the buffers, and records about losses",
    protocol: &[],
    meaning: "Events were dropped because no buffer was free. Any event that is missing from the \
              trace may be among them.",
    remedy: "Record again with more and larger buffers:",
    commands: &[RUNTIME_LARGE],
    check: events_lost,
};

/// How notes of the reader show a loss.
struct LossNotes {
    /// Whether a note has the count of a file's header.
    is_count: fn(&Note) -> bool,
    /// Whether a note is about a buffer with a flag.
    is_flag: fn(&Note) -> bool,
    /// What the flag means.
    flag_meaning: &'static str,
}

fn events_lost(check: &mut Check<'_>) {
    let notes = LossNotes {
        is_count: |note| matches!(note, Note::EventsLost(_)),
        is_flag: |note| matches!(note, Note::EventsLostInBuffer { .. }),
        flag_meaning: "that events were lost while filling",
    };
    counted(check, &notes);
    flagged(check, &notes);
    recorded(check, |records| records.events, "events");
}

/// Adds a finding for records that say that something was lost.
fn recorded(check: &mut Check<'_>, counted: fn(&LossRecords) -> Counted, what: &str) {
    for file in check.facts.machine.files() {
        let Counted { count, first } = counted(&file.loss_records);
        if count > 0 {
            let message = format!(
                "{} that {what} were lost",
                plural(count, "record says", "records say")
            );
            report_in_file(check, file, message).at(first).amount(count);
        }
    }
}

/// Adds a finding for each count in a file's header, located at the first flagged buffer.
fn counted(check: &mut Check<'_>, notes: &LossNotes) {
    for file in check.facts.machine.files() {
        let flag = file.notes.iter().find(|note| (notes.is_flag)(note));
        for count in file.notes.iter().filter(|note| (notes.is_count)(note)) {
            let found = report_in_file(check, file, count.to_string());
            let found = found.amount(amount_of(count));
            locate(found, file, flag.unwrap_or(count));
        }
    }
}

/// Adds a finding for buffers that are flagged although their file's header has no count.
fn flagged(check: &mut Check<'_>, notes: &LossNotes) {
    for file in check.facts.machine.files() {
        if file.notes.iter().any(notes.is_count) {
            continue;
        }
        let flags: Vec<_> = file
            .notes
            .iter()
            .filter(|note| (notes.is_flag)(note))
            .collect();
        let Some(first) = flags.first() else { continue };
        let message = format!(
            "{} {}",
            plural(
                flags.len() as u64,
                "buffer is flagged",
                "buffers are flagged"
            ),
            notes.flag_meaning
        );
        let found = report_in_file(check, file, message);
        locate(found.amount(flags.len() as u64), file, first);
    }
}

/// The number of lost events or buffers that a note states; 0 for other notes.
fn amount_of(note: &Note) -> u64 {
    match note {
        Note::EventsLost(count) | Note::BuffersLost(count) => u64::from(*count),
        _ => 0,
    }
}

pub(in crate::rules) const BUFFERS_LOST: Rule = Rule {
    id: "file.buffers-lost",
    statement: "No buffer was lost.",
    severity: Severity::Warning,
    source: "the count in the header event, the flags of the buffers, and records about losses",
    protocol: &[],
    meaning: "Whole buffers could not be written: the disk was too slow, or full.",
    remedy: "Record less, or write with more and larger buffers to a disk that the recorded \
             programs do not use:",
    commands: &[RUNTIME_DISK],
    check: buffers_lost,
};

fn buffers_lost(check: &mut Check<'_>) {
    let notes = LossNotes {
        is_count: |note| matches!(note, Note::BuffersLost(_)),
        is_flag: |note| matches!(note, Note::BufferLostBefore { .. }),
        flag_meaning: "that a buffer was lost before",
    };
    if check.facts.is_event_pipe() {
        return damaged_parts(check, &notes);
    }
    counted(check, &notes);
    flagged(check, &notes);
    recorded(check, |records| records.buffers, "buffers");
    recorded(check, |records| records.files, "files of the session");
}

/// Adds a finding for the damaged parts of a stream: each is a lost buffer of its trace.
fn damaged_parts(check: &mut Check<'_>, notes: &LossNotes) {
    for file in check.facts.machine.files() {
        let flag = file.notes.iter().find(|note| (notes.is_flag)(note));
        for note in &file.notes {
            let Note::BuffersLost(count) = *note else {
                continue;
            };
            let parts = plural(
                count.into(),
                "part of the stream is",
                "parts of the stream are",
            );
            let message = format!("{parts} damaged; the events in damaged parts are missing");
            locate(
                report_in_file(check, file, message),
                file,
                flag.unwrap_or(note),
            );
        }
    }
}

pub(in crate::rules) const SEQUENCE_GAP: Rule = Rule {
    id: "file.sequence-gap",
    statement: "The sequence numbers of the buffers have no gaps.",
    severity: Severity::Note,
    source: "the file format; buffers that stay empty are numbered but not written",
    protocol: &[],
    meaning: "A number is missing. In a file that the kernel wrote, this alone is not a loss: a \
              buffer that stayed empty is not written. Reloggers and merges number only what they \
              write: a buffer of their file is gone. The numbers of a session with several files \
              continue from file to file: if more are missing between two files than the machine \
              has processors, a file is missing.",
    remedy: "Copy a relogged file again, and name all files of a session. Otherwise nothing, unless \
             lost events or buffers are also reported.",
    commands: &[],
    check: sequence_gap,
};

fn sequence_gap(check: &mut Check<'_>) {
    gaps_within_files(check);
    gaps_between_files(check);
}

fn gaps_within_files(check: &mut Check<'_>) {
    for file in check.facts.machine.files() {
        for note in &file.notes {
            let Note::SequenceGap { first, count, .. } = *note else {
                continue;
            };
            let message = if count > 1 {
                let last = first.saturating_add_unsigned(count.saturating_sub(1));
                format!("{count} buffers are missing: numbers {first} to {last}")
            } else {
                format!("buffer number {first} is missing")
            };
            let mut found = report_in_file(check, file, message);
            if note.weight(file.header.mode) == Weight::Loss {
                found = found.severity(Severity::Warning);
            }
            locate(found, file, note);
        }
    }
}

/// Gaps between the files of a session.
fn gaps_between_files(check: &mut Check<'_>) {
    let files = check.facts.machine.files();
    for gap in gaps_between(files) {
        let (Some(before), Some(after)) = (files.get(gap.before), files.get(gap.after)) else {
            continue;
        };
        let last = gap
            .first
            .saturating_add_unsigned(gap.count.saturating_sub(1));
        let message = format!(
            "{} missing between {} and {}: numbers {} to {last}",
            plural(gap.count, "buffer is", "buffers are"),
            before.name,
            after.name,
            gap.first,
        );
        let timeline = check.facts.machine.timeline();
        let from = timeline.timestamp(gap.before, Ticks::new(gap.from));
        let found = check.report(message).at(Some(from));
        if gap.is_loss {
            found.severity(Severity::Warning);
        }
    }
}

pub(in crate::rules) const OVERWRITTEN: Rule = Rule {
    id: "file.overwritten",
    statement: "A circular file still holds the beginning of the recording.",
    severity: Severity::Note,
    source: "the file format; the header counts the buffers that were written, the file holds \
             those that are left",
    protocol: &[],
    meaning: "The file was full, and new buffers replaced the oldest ones, as the mode requests: \
              loads, starts and rundowns of the overwritten time are missing.",
    remedy: "Request the end rundown last, since it lists everything that is loaded, however old; \
             or record with a larger -MaxFile, or without -FileMode Circular:",
    commands: RECORDING,
    check: overwritten,
};

fn overwritten(check: &mut Check<'_>) {
    let facts = check.facts;
    for (index, file) in facts.machine.files().iter().enumerate() {
        let header = &file.header;
        if header.mode.has(LogFileMode::CIRCULAR) && header.maximum_bytes().is_none() {
            let message = "the header has the mode of a circular file and no largest size, which \
                           such a file needs: the header was changed";
            report_in_file(check, file, message.to_owned()).severity(Severity::Warning);
        }
        let Some(count) = file.overwritten else {
            continue;
        };
        let overwritten = facts
            .machine
            .losses()
            .iter()
            .filter(|loss| loss.source == index && loss.what == LossKind::Overwritten);
        // The remaining events begin at another time on each processor.
        let last = overwritten.filter_map(|loss| loss.to).max();
        let since = last.map(|last| last.saturating_add(1));
        let message = format!(
            "{} overwritten; the file holds events of all processors from this time on",
            plural(
                count,
                "buffer of the circular file was",
                "buffers of the circular file were"
            )
        );
        report_in_file(check, file, message).at(since);
    }
}
