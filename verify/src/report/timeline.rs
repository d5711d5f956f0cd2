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
        let opened = facts
            .machine
            .files()
            .iter()
            .flat_map(|f| &f.sessions)
            .map(|s| s.from)
            .min();
        let start = facts.machine.clock().start_timestamp;
        let Span { first, last } = facts.machine.span().unwrap_or(Span::at(start));
        let start = opened.map_or(first, |o| o.min(first));
        Timeline {
            clock: facts.machine.clock(),
            start,
            end: last.max(start),
        }
    }

    /// Microseconds since the start, cut to the timeline.
    pub fn us(&self, timestamp: Ticks) -> i64 {
        let from = self.clock.time(self.start).get();
        let at = self.clock.time(timestamp.clamp(self.start, self.end)).get();
        at.saturating_sub(from) / (FILETIME_PER_SECOND / 1_000_000)
    }

    /// A span; without a beginning or an end it reaches to the edge.
    pub fn span(&self, from: Option<Ticks>, to: Option<Ticks>) -> [i64; 2] {
        [
            self.us(from.unwrap_or(self.start)),
            self.us(to.unwrap_or(self.end)),
        ]
    }

    pub fn of(&self, span: Option<Span>) -> Option<[i64; 2]> {
        span.map(|span| self.span(Some(span.first), Some(span.last)))
    }
}
