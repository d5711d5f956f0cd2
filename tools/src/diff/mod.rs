//! The differences between two traces, event by event, in bounded memory.
//!
//! # How events are aligned
//! Both traces are read in time order. The header events are compared field by field, and are not
//! among the compared events. Then:
//!
//! 1. Events that are **the same** (in identity, time, process, thread, processor, activity,
//!    extended items and payload, except for what is ignored) are matched in order.
//! 2. From the first difference on, up to [`Differ::window`] events of each trace are aligned: the
//!    longest common sequence of same events is matched. The events between two matches are a gap.
//! 3. In a gap, events are paired as **changed** when they have the same identity and, tried in
//!    this order, the same time, process and thread; or the same time; or the same payload (an
//!    event that moved). When time is ignored, the last resort is the identity alone, in order.
//! 4. The rest of a gap is **missing** (only in the first trace) or **extra** (only in the second).
//!
//! The identity is provider, id, opcode, kernel hook and, for TraceLogging, the name of the event.
//! Times are compared as raw timestamps if both traces have the same clock, else in units of
//! 100 ns. An event whose time changed so much that others lie between is missing at the old time
//! and extra at the new one.
//!
//! Memory is bounded by the windows, and the counts by [`MAX_IDENTITIES`].
//!
//! ```
//! use etl_format::read::{Options, Order, Trace};
//! use etl_tools::diff::{Differ, Ignore};
//!
//! fn is_same_but_for_time(first: &[u8], second: &[u8]) -> etl_tools::Result<bool> {
//!     let mut first = Trace::open(first, &Options::salvage())?;
//!     let mut second = Trace::open(second, &Options::salvage())?;
//!     let ignore = Ignore { time: true, ..Ignore::default() };
//!     let differ = Differ::new().ignore(ignore);
//!     let summary = differ.run(&mut first, &mut second, |difference| println!("{difference:?}"))?;
//!     Ok(!summary.differs())
//! }
//! ```

mod align;
mod change;
mod event;
mod file_header;
mod identity;
mod ignore;
mod reader;
mod report;

pub use change::Change;
pub use event::{Event, Part};
pub use identity::{EventIdentity, ProviderIdentity};
pub use ignore::{Ignore, UnknownIgnore};
pub use reader::MAX_IDENTITIES;
pub use report::{CountDifference, Difference, Summary};

use std::collections::BTreeMap;

use etl_events::filter::Filter;
use etl_format::Guid;
use etl_format::read::{Order, Record, Source, Trace};
use etl_schema::store::SchemaStore;

use crate::{Error, OnRecord, Result};
use align::Op;
use event::{Current, Key};
use reader::TraceReader;

/// Compares two traces.
#[derive(Debug)]
pub struct Differ<'f> {
    ignore: Ignore,
    filters: [Filter; 2],
    window: usize,
    threads: usize,
    schemas: SchemaStore,
    on_record: OnRecord<'f>,
}

impl Default for Differ<'_> {
    fn default() -> Self {
        Differ {
            ignore: Ignore::default(),
            filters: <[Filter; 2]>::default(),
            window: Differ::DEFAULT_WINDOW,
            threads: 1,
            schemas: SchemaStore::default(),
            on_record: OnRecord::default(),
        }
    }
}

impl<'f> Differ<'f> {
    /// Events of each trace that are aligned at a time by default.
    pub const DEFAULT_WINDOW: usize = 2048;

    /// A differ that ignores nothing.
    #[must_use]
    pub fn new() -> Self {
        Differ::default()
    }

    /// Sets the parts of traces that are not compared.
    #[must_use]
    pub fn ignore(mut self, ignore: Ignore) -> Self {
        self.ignore = ignore;
        self
    }

    /// Compares only the events that these filters admit, one for each trace.
    #[must_use]
    pub fn select(mut self, filters: [Filter; 2]) -> Self {
        self.filters = filters;
        self
    }

    /// Sets how many events of each trace are aligned at a time; at least 2.
    #[must_use]
    pub fn window(mut self, events: usize) -> Self {
        self.window = events.max(2);
        self
    }

    /// Sets the number of threads that decompress buffers, the caller's included. The result does
    /// not depend on it.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Decodes events with these schemas in addition to the schemas of the traces.
    #[must_use]
    pub fn schemas(mut self, schemas: SchemaStore) -> Self {
        self.schemas = schemas;
        self
    }

    /// Calls `f` for every record of the first trace.
    #[must_use]
    pub fn on_record(mut self, f: impl FnMut(&Record<'_>) + 'f) -> Self {
        self.on_record = OnRecord::new(f);
        self
    }

    /// Compares two traces. `sink` gets every difference between their events, in time order.
    ///
    /// # Errors
    /// Errors of reading, with the side.
    pub fn run<A: Source, B: Source>(
        self,
        first: &mut Trace<A>,
        second: &mut Trace<B>,
        mut sink: impl FnMut(Difference<'_>),
    ) -> Result<Summary> {
        let Differ {
            ignore,
            filters: [first_filter, second_filter],
            window,
            threads,
            schemas,
            on_record,
        } = self;
        let mut header = Vec::new();
        if !ignore.header {
            header = file_header::changes(first.header(), second.header());
            header.retain(|change| !ignore.header_fields.contains(&change.name));
        }
        let first_clock = first.clock();
        let second_clock = second.clock();
        let same_clock = first_clock == second_clock;
        let first = first.records(Order::Time)?;
        let second = second.records(Order::Time).map_err(Error::second_input)?;
        // An odd number of further threads gives the first trace one more.
        let further_threads = threads.saturating_sub(1);
        let mut first = first.with_threads(1 + further_threads.div_ceil(2));
        let mut second = second.with_threads(1 + further_threads / 2);
        first.parallel(|first| {
            second.parallel(|second| {
                let mut walk = Walk {
                    a: TraceReader::new(first, first_clock, &ignore, same_clock)
                        .schemas(schemas.clone())
                        .select(&first_filter)
                        .on_record(on_record),
                    b: TraceReader::new(second, second_clock, &ignore, same_clock)
                        .schemas(schemas)
                        .select(&second_filter),
                    window,
                    ignore: &ignore,
                    summary: Summary {
                        header,
                        ..Summary::default()
                    },
                    sink: &mut sink,
                };
                walk.run()?;
                Ok(walk.finish())
            })
        })
    }
}

struct Walk<'w, A: Source, B: Source> {
    a: TraceReader<'w, A>,
    b: TraceReader<'w, B>,
    window: usize,
    ignore: &'w Ignore,
    summary: Summary,
    sink: &'w mut dyn FnMut(Difference<'_>),
}

impl<A: Source, B: Source> Walk<'_, A, B> {
    fn run(&mut self) -> Result<()> {
        loop {
            self.skip_same_records()?;
            self.match_fronts()?;
            if self.a.is_done() && self.b.is_done() {
                return Ok(());
            }
            if self.a.waiting.is_empty() && self.b.waiting.is_empty() {
                continue;
            }
            self.a.fill(self.window)?;
            self.b.fill(self.window).map_err(Error::second_input)?;
            self.align_windows();
        }
    }

    /// The summary, after all events were compared.
    fn finish(self) -> Summary {
        let mut summary = self.summary;
        let counts = EventCounts::new(&self.a, &self.b);
        summary.providers = counts.provider_differences();
        summary.counts = counts.event_differences();
        summary.damage = [self.a.damage().to_vec(), self.b.damage().to_vec()];
        summary
    }

    /// Counts records while they are the same and no events wait. These records are not copied.
    fn skip_same_records(&mut self) -> Result<()> {
        if !self.a.waiting.is_empty() || !self.b.waiting.is_empty() {
            return Ok(());
        }
        loop {
            let second = &mut self.b;
            let different = self
                .a
                .advance(|a| second.advance(|b| different_events(a, b)))?
                .map_err(Error::second_input)?;
            let Some([a, b]) = different else {
                self.summary.same += 1;
                continue;
            };
            self.a.waiting.extend(a);
            self.b.waiting.extend(b);
            return Ok(());
        }
    }

    /// Matches waiting events from the front while they are the same.
    fn match_fronts(&mut self) -> Result<()> {
        while !self.a.waiting.is_empty() || !self.b.waiting.is_empty() {
            self.a.fill(1)?;
            self.b.fill(1).map_err(Error::second_input)?;
            match (self.a.waiting.front(), self.b.waiting.front()) {
                (Some(a), Some(b)) if a.is_same(b) => {
                    self.a.waiting.pop_front();
                    self.b.waiting.pop_front();
                    self.summary.same += 1;
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Aligns the windows and removes the events whose match is certain.
    fn align_windows(&mut self) {
        let a = self.a.waiting.make_contiguous();
        let b = self.b.waiting.make_contiguous();
        let whole = self.a.ended && self.b.ended;
        let aligned = align::windows(a, b, whole, self.ignore.time);
        for op in &aligned.ops {
            match *op {
                Op::Same => self.summary.same += 1,
                Op::Missing(index) => {
                    if let Some(event) = a.get(index) {
                        self.summary.missing += 1;
                        (self.sink)(Difference::Missing(event));
                    }
                }
                Op::Extra(index) => {
                    if let Some(event) = b.get(index) {
                        self.summary.extra += 1;
                        (self.sink)(Difference::Extra(event));
                    }
                }
                Op::Changed { before, after } => {
                    if let Some(before) = a.get(before)
                        && let Some(after) = b.get(after)
                    {
                        self.summary.changed += 1;
                        let changes = before.changes(after);
                        (self.sink)(Difference::Changed {
                            before,
                            after,
                            changes: &changes,
                        });
                    }
                }
            }
        }
        let end_of_a = aligned.end.a.min(a.len());
        let end_of_b = aligned.end.b.min(b.len());
        self.a.waiting.drain(..end_of_a);
        self.b.waiting.drain(..end_of_b);
    }
}

/// Copies of two current events, unless they are the same.
fn different_events(a: Option<Current<'_>>, b: Option<Current<'_>>) -> Option<[Option<Event>; 2]> {
    if let Some(a) = &a
        && let Some(b) = &b
        && a.is_same(b)
    {
        return None;
    }
    Some([a.map(|a| a.to_event()), b.map(|b| b.to_event())])
}

/// How often each event occurs in both traces.
struct EventCounts<'r, A: Source, B: Source> {
    a: &'r TraceReader<'r, A>,
    b: &'r TraceReader<'r, B>,
    events: BTreeMap<&'r Key, Counts>,
}

/// How often an event, or the events of a provider, occur in both traces.
#[derive(Clone, Copy, Default)]
struct Counts {
    before: u64,
    after: u64,
}

impl<'r, A: Source, B: Source> EventCounts<'r, A, B> {
    fn new(a: &'r TraceReader<'_, A>, b: &'r TraceReader<'_, B>) -> Self {
        let mut events: BTreeMap<&Key, Counts> = BTreeMap::new();
        for (key, tally) in &a.counts {
            events.entry(key).or_default().before = tally.count;
        }
        for (key, tally) in &b.counts {
            events.entry(key).or_default().after = tally.count;
        }
        EventCounts { a, b, events }
    }

    /// The providers whose number of events differs.
    fn provider_differences(&self) -> Vec<CountDifference> {
        let mut providers: BTreeMap<Guid, Counts> = BTreeMap::new();
        for (key, counts) in &self.events {
            let sum = providers.entry(key.provider).or_default();
            sum.before += counts.before;
            sum.after += counts.after;
        }
        let mut differences = Vec::new();
        for (guid, counts) in providers {
            differences.extend(self.difference(guid, None, counts));
        }
        differences
    }

    /// The events whose number differs.
    fn event_differences(&self) -> Vec<CountDifference> {
        let mut differences = Vec::new();
        for (key, counts) in &self.events {
            let name = self.a.name(key).or_else(|| self.b.name(key));
            let event = key.identity(name);
            differences.extend(self.difference(key.provider, Some(event), *counts));
        }
        differences
    }

    fn difference(
        &self,
        guid: Guid,
        event: Option<EventIdentity>,
        counts: Counts,
    ) -> Option<CountDifference> {
        let Counts { before, after } = counts;
        if before == after {
            return None;
        }
        let name = self.a.provider_name(guid);
        let name = name.or_else(|| self.b.provider_name(guid));
        Some(CountDifference {
            provider: ProviderIdentity { guid, name },
            event,
            before,
            after,
        })
    }
}
