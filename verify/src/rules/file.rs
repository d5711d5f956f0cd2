//! The file itself: damage, losses, a session that was not closed.

use etl_format::read::Note;

use crate::facts::Facts;
use crate::report::{Finding, Severity};

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    for fault in &facts.faults {
        findings.push(Finding::new(
            "file.damaged",
            Severity::Error,
            format!("the file is damaged at offset {:#x}: {}", fault.offset, fault.message),
        ));
    }
    for note in &facts.notes {
        let (rule, severity) = match note {
            Note::EventsLost(_) => ("file.events-lost", Severity::Warning),
            Note::BuffersLost(_) => ("file.buffers-lost", Severity::Warning),
            Note::SequenceGap { .. } => ("file.sequence-gap", Severity::Note),
            Note::Unclosed => ("file.unclosed", Severity::Warning),
            Note::BufferCount { .. } => ("file.buffer-count", Severity::Note),
            _ => continue,
        };
        findings.push(Finding::new(rule, severity, note.to_string()));
    }
}
