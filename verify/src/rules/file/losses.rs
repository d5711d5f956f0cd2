//! Events and buffers that were lost or overwritten.

use etl_analysis::files::{LossRecords, gaps_between};
use etl_analysis::loss::LossKind;
use etl_analysis::machine::Counted;
use etl_format::Ticks;
use etl_format::read::{Note, Weight};

use super::{each_note, find, locate};
use crate::finding::Severity;
use crate::rules::commands::{RECORDING, RUNTIME_DISK, RUNTIME_LARGE};
use crate::rules::{Check, Rule, plural};

pub(in crate::rules) const EVENTS_LOST: Rule = Rule {
    id: "file.events-lost",
    statement: "No event was lost.",
    severity: Severity::Warning,
    source: "the count in the header event, the flags of the buffers, and records about losses",
    protocol: &[],
    meaning: "Events were dropped because no buffer was free. Whatever is missing from the trace \
              may be among them.",
    remedy: "Record again with more and larger buffers:",
    commands: &[RUNTIME_LARGE],
    check: events_lost,
};

fn events_lost(check: &mut Check<'_>) {
    let is_flag = |note: &Note| matches!(note, Note::EventsLostInBuffer { .. });
    let is_count = |note: &Note| matches!(note, Note::EventsLost(_));
    each_note(check, is_count, is_flag, Note::to_string);
    flagged(
        check,
        is_count,
        is_flag,
        "that events were lost while filling",
    );
    recorded(check, |records| records.events, "events");
}

/// Adds a finding for records that say that something was lost.
fn recorded(check: &mut Check<'_>, of: fn(&LossRecords) -> Counted, what: &str) {
    for file in check.facts.machine.files() {
        let Counted { count, first } = of(&file.loss_records);
        if count > 0 {
            let message = format!(
                "{} that {what} were lost",
                plural(count, "record says", "records say")
            );
            find(check, file, message).at(first);
        }
    }
}

/// Adds a finding for buffers that are flagged although their file's header has no count.
fn flagged(
    check: &mut Check<'_>,
    is_count: fn(&Note) -> bool,
    is_flag: fn(&Note) -> bool,
    what: &str,
) {
    for file in check.facts.machine.files() {
        let count = file.notes.iter().filter(|note| is_flag(note)).count() as u64;
        let first = file.notes.iter().find(|note| is_flag(note));
        let (Some(first), false) = (first, file.notes.iter().any(is_count)) else {
            continue;
        };
        let flagged = plural(count, "buffer is flagged", "buffers are flagged");
        locate(find(check, file, format!("{flagged} {what}")), file, first);
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
    let is_count = |note: &Note| matches!(note, Note::BuffersLost(_));
    let is_flag = |note: &Note| matches!(note, Note::BufferLostBefore { .. });
    each_note(check, is_count, is_flag, Note::to_string);
    flagged(check, is_count, is_flag, "that a buffer was lost before");
    recorded(check, |records| records.buffers, "buffers");
    recorded(check, |records| records.files, "files of the session");
}

pub(in crate::rules) const SEQUENCE_GAP: Rule = Rule {
    id: "file.sequence-gap",
    statement: "The sequence numbers of the buffers have no gaps.",
    severity: Severity::Note,
    source: "the file format; buffers that stay empty are numbered but not written",
    protocol: &[],
    meaning: "A number is missing. In a file that the kernel wrote, this alone is no loss: a \
              buffer that stayed empty is not written. Reloggers and merges number only what they \
              write: a buffer of their file is gone. The numbers of a session with several files \
              go on from file to file: if more are missing between two files than the machine has \
              processors, a file is missing.",
    remedy: "Copy a relogged file again, and name all files of a session. Otherwise nothing, unless lost events or buffers are \
             reported too.",
    commands: &[],
    check: sequence_gap,
};

fn sequence_gap(check: &mut Check<'_>) {
    let is_one = |note: &Note| matches!(note, Note::SequenceGap { .. });
    let message = |note: &Note| match *note {
        Note::SequenceGap { first, count, .. } if count > 1 => {
            let last = first.saturating_add_unsigned(count.saturating_sub(1));
            format!("{count} buffers are missing: numbers {first} to {last}")
        }
        Note::SequenceGap { first, .. } => format!("buffer number {first} is missing"),
        _ => note.to_string(),
    };
    for file in check.facts.machine.files() {
        for note in file.notes.iter().filter(|note| is_one(note)) {
            let found = find(check, file, message(note));
            let found = match note.weight(file.header.mode) {
                Weight::Loss => found.severity(Severity::Warning),
                _ => found,
            };
            locate(found, file, note);
        }
    }
    let files = check.facts.machine.files();
    for gap in gaps_between(files) {
        let [Some(before), Some(after)] = [gap.before, gap.after].map(|index| files.get(index))
        else {
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
        let from = check
            .facts
            .machine
            .timeline()
            .timestamp(gap.before, Ticks::new(gap.from));
        let found = check.find(message).at(Some(from));
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
        let Some(count) = file.overwritten else {
            continue;
        };
        let oldest = facts
            .machine
            .losses()
            .iter()
            .filter(|l| l.source == index && l.what == LossKind::Overwritten);
        // What is left begins at a different time on each processor.
        let since = oldest
            .filter_map(|l| l.to)
            .max()
            .map(|to| to.saturating_add(1));
        let message = format!(
            "{} overwritten; the file holds events of all processors from this time on",
            plural(
                count,
                "buffer of the circular file was",
                "buffers of the circular file were"
            )
        );
        find(check, file, message).at(since);
    }
}
