//! Bytes that cannot be read, doubled buffers, records out of order.

use etl_format::read::Note;

use super::{each_file, each_note, report_in_file};
use crate::finding::Severity;
use crate::rules::commands::{MERGE, REPAIR};
use crate::rules::{Check, Rule};

pub(in crate::rules) const DAMAGED: Rule = Rule {
    id: "file.damaged",
    statement: "Every buffer and every record of the file can be read.",
    severity: Severity::Error,
    source: "the file format",
    protocol: &[],
    meaning: "Events are missing at the reported offsets. The intact records around them were read \
              and checked.",
    remedy: "Copy the file from the machine again: the usual cause is a copy that was cut short. \
             The intact records can be saved as a valid file:",
    commands: &[REPAIR],
    check: damaged,
};

fn damaged(check: &mut Check<'_>) {
    for file in check.facts.machine.files() {
        for range in &file.damage {
            let offset = range.damage.range.start;
            let fault = &range.damage.error.kind;
            let message = format!("the file is damaged at offset {offset:#x}: {fault}");
            let found = report_in_file(check, file, message);
            found.in_file(&file.name, offset, range.processor);
        }
        if !file.header.is_known() {
            let message = "the header event is lost: session, system and clock are unknown; times \
                           count from the first record, at an assumed 10 MHz";
            report_in_file(check, file, message.to_owned()).in_file(&file.name, 0, None);
        }
    }
}

pub(in crate::rules) const DUPLICATE_SEQUENCE: Rule = Rule {
    id: "file.duplicate-sequence",
    statement: "Every buffer has a sequence number of its own.",
    severity: Severity::Warning,
    source: "the file format",
    protocol: &[],
    meaning: "Two buffers have the same number: the file was put together from pieces, or two \
              programs wrote to it.",
    remedy: "Copy the file again. Merge files with a tool that knows the format instead of \
             appending one to the other:",
    commands: &[MERGE],
    check: |check| {
        each_note(check, |note| {
            matches!(
                note,
                Note::SequenceTwice { .. } | Note::SequenceWrong { .. }
            )
        })
    },
};

pub(in crate::rules) const OUT_OF_ORDER: Rule = Rule {
    id: "file.out-of-order",
    statement: "The records of a buffer are in time order.",
    severity: Severity::Warning,
    source: "the file format; it holds in every real trace seen",
    protocol: &[],
    meaning: "The file was written by a tool that does not keep the order, or its bytes were \
              changed. The records were sorted before they were checked.",
    remedy: "Use the file that the session wrote, or sort the records:",
    commands: &["etlkit merge trace.etl -o ordered.etl"],
    check: out_of_order,
};

fn out_of_order(check: &mut Check<'_>) {
    each_file(check, |file| match file.disordered {
        0 => None,
        count => Some(format!(
            "{count} buffers hold records that are not in time order"
        )),
    })
}
