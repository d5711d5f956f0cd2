//! Timestamps as microseconds since the report's start.

use etl_analysis::machine::Span;
use etl_format::Clock;
use etl_format::constants::FILETIME_PER_SECOND;

use crate::checks::Facts;

pub(super) struct Timeline<'a> {
    clock: &'a Clock,
    /// Timestamp of the start.
    pub start: i64,
    /// Timestamp of the end.
    pub end: i64,
}

impl<'a> Timeline<'a> {
    pub fn new(facts: &'a Facts) -> Self {
        let opened = facts.machine.files().iter().flat_map(|f| &f.sessions).map(|s| s.from).min();
        let start = facts.machine.clock().start_timestamp;
        let (first, last) = facts.machine.span().unwrap_or((start, start));
        let start = opened.map_or(first, |o| o.min(first));
        Timeline { clock: facts.machine.clock(), start, end: last.max(start) }
    }

    /// Microseconds since the start, cut to the timeline.
    pub fn us(&self, timestamp: i64) -> i64 {
        let from = self.clock.filetime(self.start);
        let at = self.clock.filetime(timestamp.clamp(self.start, self.end));
        at.saturating_sub(from) / (FILETIME_PER_SECOND / 1_000_000)
    }

    /// A span; without a beginning or an end it reaches to the edge.
    pub fn span(&self, from: Option<i64>, to: Option<i64>) -> [i64; 2] {
        [self.us(from.unwrap_or(self.start)), self.us(to.unwrap_or(self.end))]
    }

    pub fn of(&self, span: Span) -> Option<[i64; 2]> {
        span.map(|(from, to)| self.span(Some(from), Some(to)))
    }
}
