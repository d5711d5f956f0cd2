//! The file itself: damage, losses, its header, the order of its records.

pub(super) mod content;
pub(super) mod header;
pub(super) mod losses;
pub(super) mod placement;

use etl_analysis::files::{FileFacts, buffer_of};
use etl_format::read::Note;

use super::Check;
use crate::finding::Found;

/// Adds a finding about a file, whose name comes first where there are several.
fn find<'c>(check: &'c mut Check<'_>, file: &FileFacts, message: String) -> Found<'c> {
    let several = check.facts.machine.files().len() > 1;
    check.find(if several {
        format!("{}: {message}", file.name)
    } else {
        message
    })
}

/// Adds a finding for each message that `messages` has for a file.
fn each_file<I: IntoIterator<Item = String>>(
    check: &mut Check<'_>,
    messages: impl Fn(&FileFacts) -> I,
) {
    for file in check.facts.machine.files() {
        for message in messages(file) {
            find(check, file, message);
        }
    }
}

/// Adds a finding for each note that is one of those, located at the buffer that the note is about,
/// or else at the first buffer that `is_flag` selects.
fn each_note(
    check: &mut Check<'_>,
    is_one: impl Fn(&Note) -> bool,
    is_flag: impl Fn(&Note) -> bool,
    message: impl Fn(&Note) -> String,
) {
    for file in check.facts.machine.files() {
        let flag = file.notes.iter().find(|note| is_flag(note));
        for note in file.notes.iter().filter(|note| is_one(note)) {
            locate(find(check, file, message(note)), file, flag.unwrap_or(note));
        }
    }
}

/// Locates a finding at the buffer that a note is about.
fn locate(found: Found<'_>, file: &FileFacts, note: &Note) {
    if let Some(offset) = buffer_of(note) {
        let known = file.noted.get(&offset);
        let found = found.at(known.map(|buffer| buffer.first_timestamp));
        found.in_file(&file.name, offset, known.map(|buffer| buffer.processor));
    }
}
