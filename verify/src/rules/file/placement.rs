//! The buffers of a file against each other: their numbers, processors and times.

use etl_analysis::files::{FileFacts, Misplaced};

use super::report_in_file;
use crate::finding::{Found, Severity};
use crate::rules::{Check, Rule, plural};

pub(in crate::rules) const MISNUMBERED: Rule = Rule {
    id: "file.misnumbered",
    statement: "The numbers of a processor's buffers are in the order of their times.",
    severity: Severity::Warning,
    source: "the file format; it holds in every real trace seen",
    protocol: &[],
    meaning: "The numbers of buffers were changed or exchanged: gaps in them do not show \
              what is missing. The records were sorted by their times before they were checked.",
    remedy: "Use the file that the session wrote.",
    commands: &[],
    check: misnumbered,
};

fn misnumbered(check: &mut Check<'_>) {
    for file in check.facts.machine.files() {
        let Some(first) = file.misnumbered.first() else {
            continue;
        };
        let count = file.misnumbered.len() as u64;
        let message = format!(
            "{} before the buffer with the previous number on the same processor",
            plural(count, "buffer begins", "buffers begin")
        );
        locate(report_in_file(check, file, message), file, first);
    }
}

pub(in crate::rules) const OVERLAPPING: Rule = Rule {
    id: "file.overlapping-buffers",
    statement: "Each buffer of a processor begins after the one before it has ended.",
    severity: Severity::Warning,
    source: "the file format; it holds in every real trace seen",
    protocol: &[],
    meaning: "A buffer is in the file twice, or has the number of another processor: events are \
              counted twice, or for the wrong processor.",
    remedy: "Use the file that the session wrote.",
    commands: &[],
    check: overlapping,
};

fn overlapping(check: &mut Check<'_>) {
    for file in check.facts.machine.files() {
        // A record that is out of order makes its buffer overlap others.
        if file.overlaps == 0 || !file.has_processors || file.disordered > 0 {
            continue;
        }
        let message = match file.doubled.len() as u64 {
            0 => format!(
                "{} before an earlier one of the same processor ends",
                plural(file.overlaps, "buffer begins", "buffers begin")
            ),
            count => format!(
                "{} at the same time as another buffer of the same processor and size",
                plural(count, "buffer begins", "buffers begin")
            ),
        };
        let found = report_in_file(check, file, message);
        if let Some(first) = file.doubled.first() {
            locate(found, file, first);
        }
    }
}

fn locate(found: Found<'_>, file: &FileFacts, buffer: &Misplaced) {
    let timestamp = found
        .facts
        .machine
        .timeline()
        .timestamp(file.index, buffer.first_timestamp);
    let found = found.at(Some(timestamp));
    found.in_file(&file.name, buffer.offset, Some(buffer.processor));
}
