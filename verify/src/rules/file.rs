//! The file itself: damage, losses, a session that was not closed.

use etl_format::read::Note;

use crate::facts::Facts;
use crate::report::Finding;

use super::catalogue::{
    FILE_BUFFER_COUNT, FILE_BUFFERS_LOST, FILE_DAMAGED, FILE_EVENTS_LOST, FILE_SEQUENCE_GAP,
    FILE_UNCLOSED,
};

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    for fault in &facts.faults {
        let (offset, message) = (fault.offset, &fault.message);
        let message = format!("the file is damaged at offset {offset:#x}: {message}");
        findings.push(Finding::new(&FILE_DAMAGED, message));
    }
    for note in &facts.notes {
        let rule = match note {
            Note::EventsLost(_) => &FILE_EVENTS_LOST,
            Note::BuffersLost(_) => &FILE_BUFFERS_LOST,
            Note::SequenceGap { .. } => &FILE_SEQUENCE_GAP,
            Note::Unclosed => &FILE_UNCLOSED,
            Note::BufferCount { .. } => &FILE_BUFFER_COUNT,
            _ => continue,
        };
        findings.push(Finding::new(rule, note.to_string()));
    }
}
