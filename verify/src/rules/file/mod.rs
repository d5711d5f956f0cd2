//! The file itself: damage, losses, its header, the order of its records.

pub(super) mod content;
pub(super) mod header;
pub(super) mod losses;
pub(super) mod placement;

use etl_analysis::files::{FileFacts, buffer_of};
use etl_format::read::Note;

use super::Check;
use crate::finding::Found;

/// Adds a finding about a file. If there are several files, the message begins with its name.
fn report_in_file<'c>(check: &'c mut Check<'_>, file: &FileFacts, message: String) -> Found<'c> {
    if check.facts.machine.files().len() > 1 {
        check.report(format!("{}: {message}", file.name))
    } else {
        check.report(message)
    }
}

/// Adds a finding for each message that `messages` returns for a file.
fn each_file<I: IntoIterator<Item = String>>(
    check: &mut Check<'_>,
    messages: impl Fn(&FileFacts) -> I,
) {
    for file in check.facts.machine.files() {
        for message in messages(file) {
            report_in_file(check, file, message);
        }
    }
}

/// Adds a finding for each note that `is_wanted` selects, located at the buffer of the note.
fn each_note(check: &mut Check<'_>, is_wanted: fn(&Note) -> bool) {
    for file in check.facts.machine.files() {
        for note in file.notes.iter().filter(|note| is_wanted(note)) {
            locate(report_in_file(check, file, note.to_string()), file, note);
        }
    }
}

/// Locates a finding at the buffer that a note is about.
fn locate(found: Found<'_>, file: &FileFacts, note: &Note) {
    let Some(offset) = buffer_of(note) else {
        return;
    };
    match file.noted.get(&offset) {
        Some(buffer) => {
            let found = found.at(Some(buffer.first_timestamp));
            found.in_file(&file.name, offset, Some(buffer.processor));
        }
        None => {
            found.at(None).in_file(&file.name, offset, None);
        }
    }
}
