//! Times at which something was enabled.

use etl_format::Ticks;

/// A span of time with both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimeSpan {
    /// The first time.
    pub from: Ticks,
    /// The last time.
    pub to: Ticks,
}

/// Spans of time in order; no two of them overlap or touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times(Vec<TimeSpan>);

impl Times {
    /// The times that any of the spans covers. Spans that end before they begin are ignored.
    pub fn of(mut spans: Vec<TimeSpan>) -> Self {
        spans.sort_unstable();
        let mut joined: Vec<TimeSpan> = Vec::new();
        for span in spans {
            if span.from > span.to {
                continue;
            }
            match joined.last_mut() {
                Some(last) if span.from <= last.to => last.to = span.to.max(last.to),
                _ => joined.push(span),
            }
        }
        Times(joined)
    }

    /// The span that covers a time.
    pub fn around(&self, time: Ticks) -> Option<TimeSpan> {
        let begun = self.0.partition_point(|span| span.from <= time);
        let span = *self.0.get(begun.checked_sub(1)?)?;
        Some(span).filter(|span| span.to >= time)
    }

    /// The first part of `from..=until` that no span covers. It begins where a span ends and ends
    /// where a span begins.
    pub fn first_gap(&self, from: Ticks, until: Ticks) -> Option<TimeSpan> {
        let begin = match self.around(from) {
            Some(span) if span.to >= until => return None,
            Some(span) => span.to,
            None => from,
        };
        let begun = self.0.partition_point(|span| span.from <= begin);
        let end = match self.0.get(begun) {
            Some(next) => next.from.min(until),
            None => until,
        };
        Some(TimeSpan {
            from: begin,
            to: end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times_of(spans: impl IntoIterator<Item = (i64, i64)>) -> Times {
        let spans = spans.into_iter().map(|(from, to)| TimeSpan {
            from: Ticks::new(from),
            to: Ticks::new(to),
        });
        Times::of(spans.collect())
    }

    fn plain(span: Option<TimeSpan>) -> Option<(i64, i64)> {
        span.map(|span| (span.from.get(), span.to.get()))
    }

    fn first_gap(times: &Times, from: i64, until: i64) -> Option<(i64, i64)> {
        plain(times.first_gap(Ticks::new(from), Ticks::new(until)))
    }

    #[test]
    fn of_joins_spans_that_touch() {
        let times = times_of([(5, 7), (1, 2), (2, 3), (9, 8), (6, 9), (20, 20)]);
        assert_eq!(times, times_of([(1, 3), (5, 9), (20, 20)]));
    }

    #[test]
    fn first_gap_ends_with_the_next_span_or_the_request() {
        let times = times_of([(i64::MIN, 10), (20, 30)]);
        assert_eq!(first_gap(&times, 0, 10), None);
        assert_eq!(first_gap(&times, 0, 25), Some((10, 20)));
        assert_eq!(first_gap(&times, 0, 15), Some((10, 15)));
        assert_eq!(first_gap(&times, 12, 25), Some((12, 20)));
        assert_eq!(first_gap(&times, 25, 40), Some((30, 40)));
        assert_eq!(first_gap(&times, 40, 40), Some((40, 40)));
        assert_eq!(first_gap(&Times::default(), 1, 5), Some((1, 5)));
    }

    /// Times of the model. Between two of them is one more cell.
    const END: i64 = 24;

    proptest! {
        #[test]
        fn times_answer_as_an_array_of_cells(
            spans in prop::collection::vec((0..END, 0..END), 0..8), from in 0..END, len in 0..END,
        ) {
            let until = (from + len).min(END - 1);
            let is_on = |cell: i64| {
                spans.iter().any(|&(from, to)| (2 * from..=2 * to).contains(&cell))
            };
            let times = times_of(spans.iter().copied());

            let (first, last) = (2 * from, 2 * until);
            let gap = (first..=last).find(|&cell| !is_on(cell)).map(|begin| {
                let end = (begin..=last).take_while(|&cell| !is_on(cell)).last().unwrap_or(begin);
                // A gap begins where a span ends, and ends where one begins.
                (begin / 2, (end + 1) / 2)
            });
            prop_assert_eq!(first_gap(&times, from, until), gap);

            let around = is_on(2 * from).then(|| {
                let begin = (0..=2 * from).rev().take_while(|&cell| is_on(cell)).last();
                let end = (2 * from..2 * END).take_while(|&cell| is_on(cell)).last();
                (begin.unwrap_or(0) / 2, end.unwrap_or(0) / 2)
            });
            prop_assert_eq!(plain(times.around(Ticks::new(from))), around);
        }
    }
}
