//! Messages on standard error about traces that are damaged or incomplete: one rule for all
//! commands, one line for each trace.

use std::ops::Range;

use etl_format::FileHeader;
use etl_format::constants::LogFileMode;
use etl_format::read::{Damage, Note, OrderReport, Weight};

use crate::Outcome;

/// The message about a trace whose header event is lost.
pub(crate) const LOST_HEADER: &str =
    "the header event is lost: times count from the first record, assuming a clock of 10 MHz";

/// The damage of a trace, and the remarks on it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Condition<'a> {
    pub damage: &'a [Damage],
    pub notes: &'a [Note],
    /// The mode of the trace, which the weight of the remarks depends on.
    pub mode: LogFileMode,
    /// Whether the header event is lost.
    pub lost_header: bool,
    /// How far its records are from time order.
    pub order: OrderReport,
}

impl<'a> Condition<'a> {
    /// The condition of the trace with this header event.
    pub fn new(header: &FileHeader, damage: &'a [Damage], notes: &'a [Note]) -> Self {
        Condition {
            damage,
            notes,
            mode: header.mode,
            lost_header: !header.is_known(),
            ..Condition::default()
        }
    }

    /// Reports missing parts of the trace on standard error. A trace that lost data after it was
    /// recorded is a finding; a trace that was recorded incompletely is not.
    pub fn report(self, name: &str) -> Outcome {
        let weight = self.weight();
        if self.is_reported() {
            let level = if weight == Weight::Loss {
                "warning"
            } else {
                "note"
            };
            stderr_line!("{level}: {name}: {}", self.sentences().join("; "));
        }
        if weight == Weight::Loss {
            Outcome::Findings
        } else {
            Outcome::Success
        }
    }

    /// What is reported of the trace.
    pub fn reported(self) -> Vec<String> {
        if self.is_reported() {
            self.sentences()
        } else {
            Vec::new()
        }
    }

    fn is_reported(self) -> bool {
        self.weight() > Weight::Detail || !self.order.was_in_order()
    }

    /// The weight of the gravest remark.
    pub fn weight(self) -> Weight {
        if self.lost_header || !self.damage.is_empty() {
            return Weight::Loss;
        }
        let weights = self.notes.iter().map(|note| note.weight(self.mode));
        weights.max().unwrap_or(Weight::Detail)
    }

    fn sentences(self) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.lost_header {
            sentences.push(LOST_HEADER.to_owned());
        }
        sentences.extend(self.describe_damage());
        self.describe_notes(&mut sentences);
        if !self.order.was_in_order() {
            let sorted = plural(self.order.sorted_buffers, "buffer", "buffers");
            let overlaps = plural(self.order.overlaps, "overlap", "overlaps");
            sentences.push(format!(
                "the file is not in time order: {sorted} sorted, {overlaps}"
            ));
        }
        sentences
    }

    /// The first damaged place, and the number of places.
    fn describe_damage(self) -> Option<String> {
        let first = self.damage.first()?;
        let Range { start, end } = first.range;
        let mut sentence = format!("at offset {start:#x}: {}", first.error.kind);
        if end > start {
            sentence += &format!(" (to {end:#x})");
        }
        let count = self.damage.len();
        if count > 1 {
            sentence += &format!(", the first of {count} damaged places");
        }
        Some(sentence)
    }

    /// The losses that notes report.
    fn describe_notes(self, sentences: &mut Vec<String>) {
        let mut gaps = 0;
        let mut missing_buffers = 0u64;
        let mut flagged_buffers = 0;
        let mut buffers_after_loss = 0;
        let mut has_counts = false;
        for note in self.notes {
            match note {
                Note::SequenceGap { count, .. } => {
                    gaps += 1;
                    missing_buffers = missing_buffers.saturating_add(*count);
                }
                Note::EventsLostInBuffer { .. } => flagged_buffers += 1,
                Note::BufferLostBefore { .. } => buffers_after_loss += 1,
                Note::EventsLost(_) | Note::BuffersLost(_) => {
                    has_counts = true;
                    sentences.push(note.to_string());
                }
                _ if note.weight(self.mode) > Weight::Detail => sentences.push(note.to_string()),
                _ => {}
            }
        }
        if gaps > 0 {
            sentences.push(plural(
                missing_buffers,
                "buffer is missing by its sequence number",
                "buffers are missing by their sequence numbers",
            ));
        }
        // The counts of the header are exact; the flags of buffers only replace them.
        if has_counts {
            return;
        }
        if flagged_buffers > 0 {
            let buffers = plural(flagged_buffers, "buffer was", "buffers were");
            sentences.push(format!("events were lost while {buffers} filled"));
        }
        if buffers_after_loss > 0 {
            let buffers = plural(buffers_after_loss, "other", "others");
            sentences.push(format!("buffers were lost before {buffers}"));
        }
    }
}

/// A number with what it counts.
pub(crate) fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
