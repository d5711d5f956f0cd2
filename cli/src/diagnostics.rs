//! What a command says on standard error of a trace that is damaged or incomplete: one rule for all
//! commands, one line for each trace.

use std::ops::Range;

use etl_format::FileHeader;
use etl_format::constants::LogFileMode;
use etl_format::read::{Damage, Note, OrderReport, Weight};

use crate::Outcome;

/// What a user has to know about a trace whose header event is lost.
pub(crate) const LOST_HEADER: &str =
    "the header event is lost: times count from the first record, assuming a clock of 10 MHz";

/// What could not be read of a trace, and the remarks on it.
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
        let lost_header = !header.is_known();
        Condition {
            damage,
            notes,
            mode: header.mode,
            lost_header,
            ..Condition::default()
        }
    }

    /// Says on standard error what is missing from the trace, if anything is. A trace that lost
    /// something since it was recorded is a finding; one that was recorded incompletely is not.
    pub fn report(self, name: &str) -> Outcome {
        let weight = self.weight();
        if weight > Weight::Detail || !self.order.was_in_order() {
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

    /// How much the gravest of it weighs.
    pub fn weight(self) -> Weight {
        if self.lost_header || !self.damage.is_empty() {
            return Weight::Loss;
        }
        let weights = self.notes.iter().map(|note| note.weight(self.mode));
        weights.max().unwrap_or(Weight::Detail)
    }

    fn sentences(self) -> Vec<String> {
        let mut out = Vec::new();
        if self.lost_header {
            out.push(LOST_HEADER.to_owned());
        }
        if let Some(first) = self.damage.first() {
            let Range { start, end } = first.range;
            let what = &first.error.kind;
            let more = match self.damage.len() {
                1 => String::new(),
                n => format!(", the first of {n} damaged places"),
            };
            let to = if end > start {
                format!(" (to {end:#x})")
            } else {
                String::new()
            };
            out.push(format!("at offset {start:#x}: {what}{to}{more}"));
        }
        let mut gaps = 0;
        let mut missing = 0u64;
        let mut flagged = 0;
        let mut before = 0;
        let mut counted = false;
        for note in self.notes {
            match note {
                Note::SequenceGap { count, .. } => {
                    gaps += 1;
                    missing = missing.saturating_add(*count);
                }
                Note::EventsLostInBuffer { .. } => flagged += 1,
                Note::BufferLostBefore { .. } => before += 1,
                Note::EventsLost(_) | Note::BuffersLost(_) => {
                    counted = true;
                    out.push(note.to_string());
                }
                _ if note.weight(self.mode) > Weight::Detail => out.push(note.to_string()),
                _ => {}
            }
        }
        if gaps > 0 {
            let one = "buffer is missing by its sequence number";
            out.push(plural(
                missing,
                one,
                "buffers are missing by their sequence numbers",
            ));
        }
        // The header has the numbers; without them the flags of the buffers are all there is.
        if flagged > 0 && !counted {
            out.push(format!(
                "events were lost while {} filled",
                plural(flagged, "buffer was", "buffers were")
            ));
        }
        if before > 0 && !counted {
            out.push(format!(
                "buffers were lost before {}",
                plural(before, "other", "others")
            ));
        }
        let OrderReport {
            sorted_buffers,
            overlaps,
            ..
        } = self.order;
        if !self.order.was_in_order() {
            let sorted = plural(sorted_buffers, "buffer", "buffers");
            let overlaps = plural(overlaps, "overlap", "overlaps");
            out.push(format!(
                "the file is not in time order: {sorted} sorted, {overlaps}"
            ));
        }
        out
    }
}

/// A number with what it counts.
pub(crate) fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
