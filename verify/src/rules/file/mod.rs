//! The file itself: damage, losses, its header, the order of its records.

pub(super) mod content;
pub(super) mod header;
pub(super) mod losses;

use etl_format::read::Note;

use super::{Context, Rule};
use crate::facts::Facts;
use crate::facts::source::{FileFacts, buffer_of};
use crate::finding::Finding;

/// The beginning of a message: the file's name where there are several.
fn prefix(facts: &Facts, file: &FileFacts) -> String {
    if facts.files().len() > 1 { format!("{}: ", file.name) } else { String::new() }
}

/// A finding for each message that `messages` has for a file.
fn each_file<'a, I: IntoIterator<Item = String>>(
    context: &Context<'a>,
    rule: &Rule,
    messages: impl Fn(&'a FileFacts) -> I,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in context.facts.files() {
        let prefix = prefix(context.facts, file);
        let new = |message| rule.finding(format!("{prefix}{message}"));
        findings.extend(messages(file).into_iter().map(new));
    }
    findings
}

/// A finding for each note that `message` has a text for, located at the buffer that the note is
/// about, or else at the first buffer that `is_flag` selects.
fn each_note(
    context: &Context<'_>,
    rule: &Rule,
    message: impl Fn(&Note) -> Option<String>,
    is_flag: impl Fn(&Note) -> bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in context.facts.files() {
        let prefix = prefix(context.facts, file);
        for note in &file.notes {
            let Some(message) = message(note) else { continue };
            let flag = file.notes.iter().find(|note| is_flag(note));
            let finding = rule.finding(format!("{prefix}{message}"));
            findings.push(locate(context.facts, file, flag.unwrap_or(note), finding));
        }
    }
    findings
}

/// The finding with the buffer that a note is about.
fn locate(facts: &Facts, file: &FileFacts, note: &Note, finding: Finding) -> Finding {
    let Some(offset) = buffer_of(note) else { return finding };
    let known = file.noted.get(&offset);
    let finding = finding.at(facts, known.map(|&(_, timestamp)| timestamp));
    finding.in_file(&file.name, offset, known.map(|&(processor, _)| processor))
}
