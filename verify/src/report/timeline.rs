//! Timestamps as microseconds since the report's start.

use etl_analysis::machine::Span;
use etl_format::constants::FILETIME_PER_SECOND;
use etl_format::{Clock, Ticks};

use crate::checks::Facts;

pub(super) struct Timeline<'a> {
    clock: &'a Clock,
    /// Timestamp of the start.
    pub start: Ticks,
    /// Timestamp of the end.
    pub end: Ticks,
}

impl<'a> Timeline<'a> {
    pub fn new(facts: &'a Facts) -> Self {
        let clock = facts.machine.clock();
        let empty = Span::at(clock.start_timestamp);
        let Span { first, last } = facts.machine.span().unwrap_or(empty);
        let sessions = facts.machine.files().iter().flat_map(|file| &file.sessions);
        let starts = sessions.map(|session| session.from);
        let start = starts.fold(first, Ticks::min);
        Timeline {
            clock,
            start,
            end: last.max(start),
        }
    }

    /// Microseconds since the start, cut to the timeline.
    pub fn us(&self, timestamp: Ticks) -> i64 {
        let start = self.clock.time(self.start).get();
        let time = self.clock.time(timestamp.clamp(self.start, self.end)).get();
        time.saturating_sub(start) / (FILETIME_PER_SECOND / 1_000_000)
    }

    /// A span in microseconds; without a beginning or an end it reaches to the edge.
    pub fn span(&self, from: Option<Ticks>, to: Option<Ticks>) -> [i64; 2] {
        [
            self.us(from.unwrap_or(self.start)),
            self.us(to.unwrap_or(self.end)),
        ]
    }
}
