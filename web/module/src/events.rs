//! Counts the selected events, and returns some of them as rows.

use std::time::Duration;

use etl_events::Trace;
use etl_events::rows::{Format, RowWriter};
use etl_format::{FileTime, TimeRange};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::Result;
use crate::query::Query;

/// The time of every so many events is kept, so that rows in the middle are found again.
const STEP: u64 = 512;

/// Rows of one reply, at most.
const MAX_ROWS: u64 = 10_000;

/// Bytes of one reply, at most, unless one row has more.
const MAX_BYTES: usize = 8 << 20;

/// Some of the selected events: `count` from number `first` on.
#[derive(Debug, Deserialize)]
pub struct RowsRequest {
    pub query: Query,
    pub first: u64,
    #[serde(default)]
    pub count: u64,
}

/// An event whose time is kept.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Its number, or the number of the first event with the same time.
    number: u64,
    time: FileTime,
}

/// The selected events, counted.
#[derive(Debug)]
pub struct Counted {
    pub query: Query,
    count: u64,
    marks: Vec<Mark>,
    first: Option<FileTime>,
    last: Option<FileTime>,
    start: FileTime,
    /// Names of providers that neither the trace nor the tables have.
    unknown_providers: Vec<String>,
    bins: Vec<u64>,
}

/// Counts the selected events, also in equal parts of the time between the first and the last one.
pub fn count(trace: &mut Trace, query: Query, bins: usize) -> Result<Counted> {
    let start = trace.start_time();
    let mut events = query.events(trace, query.seconds().times(start))?;
    let mut count = 0;
    let mut marks = Vec::new();
    let mut histogram = Histogram::new(bins);
    let mut latest: Option<Mark> = None;
    let mut first = None;
    while let Some(event) = events.next()? {
        let time = event.time();
        if latest.is_none_or(|latest| latest.time < time) {
            latest = Some(Mark {
                number: count,
                time,
            });
        }
        if count % STEP == 0
            && let Some(latest) = latest
        {
            marks.push(latest);
        }
        first = first.or(Some(time));
        histogram.add(time);
        count += 1;
    }
    let unknown_providers = events.unknown_providers().to_vec();
    Ok(Counted {
        query,
        count,
        marks,
        first,
        last: latest.map(|latest| latest.time),
        start,
        unknown_providers,
        bins: histogram.bins(bins),
    })
}

impl Counted {
    /// The reply.
    pub fn json(&self) -> Value {
        let seconds = |time: Option<FileTime>| time.map(|time| seconds_since(self.start, time));
        json!({
            "count": self.count,
            "first_seconds": seconds(self.first),
            "last_seconds": seconds(self.last),
            "unknown_providers": self.unknown_providers,
            "bins": self.bins,
        })
    }

    /// Passes the selected events from number `first` on to a function, until it returns `false`.
    pub fn for_each_from(
        &self,
        trace: &mut Trace,
        first: u64,
        mut use_event: impl FnMut(&etl_events::Event<'_>) -> bool,
    ) -> Result<()> {
        let index = usize::try_from(first / STEP).unwrap_or(usize::MAX);
        let Some(mark) = self.marks.get(index) else {
            return Ok(());
        };
        // A tick of a clock may be longer or shorter than 100 ns, so times are rounded.
        let margin = Duration::from_micros(1);
        let from = mark.time.checked_sub(margin);
        let selected = self.query.seconds().times(self.start);
        let range = TimeRange::new(from.max(selected.from), selected.to);
        let mut events = self.query.events(trace, range)?;
        let mut number = mark.number;
        let mut is_found = false;
        while let Some(event) = events.next()? {
            is_found = is_found || event.time() >= mark.time;
            if !is_found {
                continue;
            }
            if number >= first && !use_event(&event) {
                break;
            }
            number += 1;
        }
        Ok(())
    }
}

/// The rows of a request: JSON lines of `etlkit dump --relative`.
pub fn rows(trace: &mut Trace, counted: &Counted, request: &RowsRequest) -> Result<Vec<u8>> {
    let mut writer = RowWriter::new(Format::JsonLines).relative_times();
    let mut left = request.count.min(MAX_ROWS);
    let mut out = Vec::new();
    if left == 0 {
        return Ok(out);
    }
    counted.for_each_from(trace, request.first, |event| {
        writer.write(&mut out, event);
        left -= 1;
        left > 0 && out.len() < MAX_BYTES
    })?;
    Ok(out)
}

/// Seconds between two times.
pub fn seconds_since(start: FileTime, time: FileTime) -> f64 {
    time.get().saturating_sub(start.get()) as f64 / 1e7
}

/// Counts in equal parts of time. Their length doubles when a later time comes.
#[derive(Debug)]
struct Histogram {
    first: Option<i64>,
    /// The length of a part, in 100 ns.
    width: i64,
    counts: Vec<u64>,
}

impl Histogram {
    /// Twice the number of parts are counted, so that their length fits the time better.
    fn new(bins: usize) -> Self {
        Histogram {
            first: None,
            width: 1,
            counts: vec![0; bins.min(1 << 16) * 8],
        }
    }

    fn add(&mut self, time: FileTime) {
        if self.counts.is_empty() {
            return;
        }
        let first = *self.first.get_or_insert(time.get());
        let offset = time.get().saturating_sub(first).max(0);
        while offset / self.width >= self.counts.len() as i64 {
            self.double();
        }
        let index = (offset / self.width) as usize;
        if let Some(count) = self.counts.get_mut(index) {
            *count += 1;
        }
    }

    fn double(&mut self) {
        let mut halves = vec![0; self.counts.len()];
        for (index, count) in self.counts.iter().enumerate() {
            if let Some(half) = halves.get_mut(index / 2) {
                *half += count;
            }
        }
        self.counts = halves;
        self.width *= 2;
    }

    /// The counts in at most so many parts of the time up to the last event.
    fn bins(&self, bins: usize) -> Vec<u64> {
        let used = self.counts.iter().rposition(|count| *count > 0);
        let used = used.map_or(0, |last| last + 1);
        let mut out = vec![0; bins.min(used)];
        let parts = out.len();
        for (index, count) in self.counts.iter().take(used).enumerate() {
            if let Some(bin) = out.get_mut(index * parts / used) {
                *bin += count;
            }
        }
        out
    }
}
