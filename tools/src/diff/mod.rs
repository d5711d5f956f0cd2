//! What differs between two traces.
//!
//! # How events are aligned
//! Both traces are read in time order. The header events are compared field by field and are no
//! events here. Then:
//!
//! 1. Events that are **the same** (in identity, time, process, thread, processor, activity,
//!    extended items and payload, less what is ignored) are matched in order.
//! 2. Where the traces part, up to [`Options::window`] events of each are laid side by side, and the
//!    longest sequence of same events in both is matched. What lies between two matches is a gap.
//! 3. In a gap, events are paired as **changed** when they have the same identity and, tried in this
//!    order, the same time, process and thread; or the same time; or the same payload (an event that
//!    moved). When time is ignored, the last resort is the identity alone, in order.
//! 4. What is left of a gap is **missing** (only in the first trace) or **extra** (only in the
//!    second).
//!
//! The identity is provider, id, opcode, kernel hook and, for TraceLogging, the name of the event.
//! Times are compared as raw timestamps where both traces have the same clock, and in units of 100 ns
//! otherwise. An event whose time changed so much that others lie between is missing at one place
//! and extra at the other.
//!
//! Memory is bounded by the windows, and the counts by [`MOST_IDENTITIES`].

mod align;
mod event;
mod header;
mod ignore;
mod side;

pub use event::{Event, Part};
pub use ignore::{Ignore, UnknownIgnore};

use std::collections::BTreeMap;

use etl_format::read::{Damage, Record, Source, Trace};
use etl_format::{Guid, Result};

use align::Op;
use event::Key;
use side::Side;

/// Identities that are counted one by one; beyond, only known ones are.
pub const MOST_IDENTITIES: usize = 1 << 18;

/// How two traces are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What makes no difference.
    pub ignore: Ignore,
    /// Events of each trace that are laid side by side where the traces part; at least 2.
    pub window: usize,
    /// Threads that decompress buffers, the caller's own among them; 0 is 1. What is told is the same
    /// for any number.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { ignore: Ignore::default(), window: 2048, threads: 1 }
    }
}

/// A part of a header or an event that differs; `None` for a part that one side does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its name: of a header field, a property of the event, or a payload field.
    pub name: String,
    /// In the first trace.
    pub before: Option<String>,
    /// In the second trace.
    pub after: Option<String>,
}

/// One difference between the events of two traces.
#[derive(Debug)]
#[non_exhaustive]
pub enum Difference<'a> {
    /// Only in the first trace.
    Missing(&'a Event),
    /// Only in the second trace.
    Extra(&'a Event),
    /// In both, and not the same.
    Changed {
        /// As it is in the first trace.
        before: &'a Event,
        /// As it is in the second.
        after: &'a Event,
        /// What differs; not empty.
        changes: &'a [Change],
    },
}

/// How often an event or the events of a provider occur in each trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The provider.
    pub provider: Guid,
    /// Its name, where a trace or a table tells it.
    pub provider_name: Option<String>,
    /// Name of the event, likewise; `None` in counts of providers.
    pub name: Option<String>,
    /// Group and type of a kernel event.
    pub hook: Option<u16>,
    /// Event id.
    pub id: u16,
    /// Opcode, or type.
    pub opcode: u8,
    /// In the first trace.
    pub before: u64,
    /// In the second.
    pub after: u64,
}

/// What a comparison came to.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Events that are the same.
    pub same: u64,
    /// Events that are in both and differ.
    pub changed: u64,
    /// Events only in the first trace.
    pub missing: u64,
    /// Events only in the second trace.
    pub extra: u64,
    /// Header fields that differ.
    pub header: Vec<Change>,
    /// Providers whose number of events differs, in the order of their GUIDs.
    pub providers: Vec<Counted>,
    /// Events whose number differs, in the order of their identities.
    pub counts: Vec<Counted>,
    /// Damage of the first and of the second trace, around which they were read.
    pub damage: [Vec<Damage>; 2],
}

impl Summary {
    /// Whether there is any difference.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.changed != 0 || self.missing != 0 || self.extra != 0 || !self.header.is_empty()
    }
}

/// Compares two traces. `sink` gets every difference between events, in time order; `watch` every
/// record of the first trace, for showing progress.
///
/// # Errors
/// Whatever reading reports, with the side it comes from.
pub fn diff<A: Source, B: Source>(
    first: &mut Trace<A>,
    second: &mut Trace<B>,
    options: &Options,
    mut sink: impl FnMut(Difference<'_>),
    watch: impl FnMut(&Record<'_>),
) -> Result<Summary, (Which, etl_format::Error)> {
    let header = if options.ignore.header {
        Vec::new()
    } else {
        header::changes(first.header(), second.header(), &options.ignore)
    };
    let same_clock = first.clock() == second.clock();
    let clocks = (first.clock(), second.clock());
    let mut first = first.ordered().map_err(|e| (Which::First, e))?;
    let mut second = second.ordered().map_err(|e| (Which::Second, e))?;
    // The first one gets what cannot be divided.
    let others = options.threads.saturating_sub(1);
    first.with_threads(1 + others.div_ceil(2), |first| {
        second.with_threads(1 + others / 2, |second| {
            let mut walk = Walk {
                a: Side::new(first, clocks.0, &options.ignore, same_clock),
                b: Side::new(second, clocks.1, &options.ignore, same_clock),
                window: options.window.max(2),
                ignore: &options.ignore,
                summary: Summary { header, ..Summary::default() },
                sink: &mut sink,
                watch,
            };
            walk.run()?;
            let Walk { a, b, mut summary, .. } = walk;
            (summary.providers, summary.counts) = count(&a, &b);
            summary.damage = [a.damage().to_vec(), b.damage().to_vec()];
            Ok(summary)
        })
    })
}

/// One of the two traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The first.
    First,
    /// The second.
    Second,
}

struct Walk<'w, A: Source, B: Source, W> {
    a: Side<'w, A>,
    b: Side<'w, B>,
    window: usize,
    ignore: &'w Ignore,
    summary: Summary,
    sink: &'w mut dyn FnMut(Difference<'_>),
    watch: W,
}

impl<A: Source, B: Source, W: FnMut(&Record<'_>)> Walk<'_, A, B, W> {
    fn run(&mut self) -> Result<(), (Which, etl_format::Error)> {
        loop {
            self.together()?;
            self.matching_fronts()?;
            if self.a.is_done() && self.b.is_done() {
                return Ok(());
            }
            if self.a.waiting.is_empty() && self.b.waiting.is_empty() {
                continue;
            }
            self.a.fill(self.window, &mut self.watch).map_err(|e| (Which::First, e))?;
            self.b.fill(self.window, &mut |_| {}).map_err(|e| (Which::Second, e))?;
            self.settle();
        }
    }

    /// While nothing waits and the records are the same, nothing has to be kept of them.
    fn together(&mut self) -> Result<(), (Which, etl_format::Error)> {
        if !self.a.waiting.is_empty() || !self.b.waiting.is_empty() {
            return Ok(());
        }
        loop {
            let (a, b, watch) = (&mut self.a, &mut self.b, &mut self.watch);
            let parted = a
                .advance(watch, |a| {
                    b.advance(&mut |_| {}, |b| match (a, b) {
                        (Some(a), Some(b)) if a.is_same(&b) => None,
                        (a, b) => Some((a.map(|a| a.keep()), b.map(|b| b.keep()))),
                    })
                })
                .map_err(|e| (Which::First, e))?
                .map_err(|e| (Which::Second, e))?;
            let Some((a, b)) = parted else {
                self.summary.same += 1;
                continue;
            };
            self.a.waiting.extend(a);
            self.b.waiting.extend(b);
            return Ok(());
        }
    }

    /// Matches what is at the front of both while it is the same.
    fn matching_fronts(&mut self) -> Result<(), (Which, etl_format::Error)> {
        while !self.a.waiting.is_empty() || !self.b.waiting.is_empty() {
            self.a.fill(1, &mut self.watch).map_err(|e| (Which::First, e))?;
            self.b.fill(1, &mut |_| {}).map_err(|e| (Which::Second, e))?;
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

    /// Aligns the windows and decides as much of them as is sure.
    fn settle(&mut self) {
        let (a, b) = (self.a.waiting.make_contiguous(), self.b.waiting.make_contiguous());
        let whole = self.a.ended && self.b.ended;
        let aligned = align::windows(a, b, whole, self.ignore.time);
        for op in &aligned.ops {
            match *op {
                Op::Same => self.summary.same += 1,
                Op::Missing(i) => {
                    if let Some(event) = a.get(i) {
                        self.summary.missing += 1;
                        (self.sink)(Difference::Missing(event));
                    }
                }
                Op::Extra(j) => {
                    if let Some(event) = b.get(j) {
                        self.summary.extra += 1;
                        (self.sink)(Difference::Extra(event));
                    }
                }
                Op::Changed(i, j) => {
                    if let (Some(before), Some(after)) = (a.get(i), b.get(j)) {
                        self.summary.changed += 1;
                        let changes = before.changes(after);
                        (self.sink)(Difference::Changed { before, after, changes: &changes });
                    }
                }
            }
        }
        let (a, b) = (aligned.decided.0.min(a.len()), aligned.decided.1.min(b.len()));
        self.a.waiting.drain(..a);
        self.b.waiting.drain(..b);
    }
}

/// Counts that differ, by provider and by event.
fn count<A: Source, B: Source>(a: &Side<'_, A>, b: &Side<'_, B>) -> (Vec<Counted>, Vec<Counted>) {
    let mut events: BTreeMap<&Key, (u64, u64)> = BTreeMap::new();
    for (key, tally) in &a.counts {
        events.entry(key).or_default().0 = tally.count;
    }
    for (key, tally) in &b.counts {
        events.entry(key).or_default().1 = tally.count;
    }
    let provider_name = |guid| a.provider_name(guid).or_else(|| b.provider_name(guid));
    let mut providers: BTreeMap<Guid, (u64, u64)> = BTreeMap::new();
    for (key, n) in &events {
        let sum = providers.entry(key.provider).or_default();
        *sum = (sum.0 + n.0, sum.1 + n.1);
    }
    let of_provider = |(provider, (before, after)): (Guid, (u64, u64))| Counted {
        provider,
        provider_name: provider_name(provider),
        name: None,
        hook: None,
        id: 0,
        opcode: 0,
        before,
        after,
    };
    let of_event = |(key, (before, after)): (&Key, (u64, u64))| Counted {
        provider: key.provider,
        provider_name: provider_name(key.provider),
        name: a.name(key).or_else(|| b.name(key)),
        hook: key.hook,
        id: key.id,
        opcode: key.opcode,
        before,
        after,
    };
    let providers = providers.into_iter().filter(|(_, (a, b))| a != b).map(of_provider).collect();
    let events = events.into_iter().filter(|(_, (a, b))| a != b).map(of_event).collect();
    (providers, events)
}
