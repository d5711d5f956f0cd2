//! One of the two traces, read in time order.

use std::collections::{BTreeMap, VecDeque};

use etl_format::constants::{BUFFER_HEADER_SIZE, hook};
use etl_format::read::{Damage, Ordered, Record, Source};
use etl_format::{Clock, Guid, Result};
use etl_schema::store::SchemaStore;

use super::event::{Event, Key};
use super::{Ignore, MOST_IDENTITIES};

/// How often an event occurs, and what it is called.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub count: u64,
    pub name: Option<String>,
}

pub(super) struct Side<'t, S: Source> {
    records: &'t mut Ordered<S>,
    store: SchemaStore,
    clock: Clock,
    same_clock: bool,
    ignore: &'t Ignore,
    /// Events that were read and have not been decided.
    pub waiting: VecDeque<Event>,
    /// Whether all has been read.
    pub ended: bool,
    pub counts: BTreeMap<Key, Tally>,
}

/// A record with what it takes to understand it.
pub(super) struct Current<'a> {
    pub record: Record<'a>,
    pub store: &'a SchemaStore,
    pub clock: &'a Clock,
    /// Whether raw timestamps of both traces mean the same.
    pub same_clock: bool,
    pub ignore: &'a Ignore,
}

impl Current<'_> {
    /// Whether both records are the same event: quickly where they are the same bytes.
    pub fn is_same(&self, other: &Current<'_>) -> bool {
        let (a, b) = (&self.record, &other.record);
        let bytes = a.kind() == b.kind()
            && a.bytes() == b.bytes()
            && a.processor() == b.processor()
            && a.timestamp() == b.timestamp()
            && self.same_clock;
        bytes || self.keep().is_same(&other.keep())
    }

    /// The event, on its own.
    pub fn keep(&self) -> Event {
        Event::new(self)
    }
}

impl<'t, S: Source> Side<'t, S> {
    pub fn new(
        records: &'t mut Ordered<S>,
        clock: Clock,
        ignore: &'t Ignore,
        same_clock: bool,
    ) -> Self {
        Side {
            records,
            store: SchemaStore::default(),
            clock,
            same_clock,
            ignore,
            waiting: VecDeque::new(),
            ended: false,
            counts: BTreeMap::new(),
        }
    }

    /// Whether everything was read and decided.
    pub fn is_done(&self) -> bool {
        self.ended && self.waiting.is_empty()
    }

    /// Shows `f` the next record that is compared, or `None` at the end.
    pub fn advance<R>(
        &mut self,
        watch: &mut impl FnMut(&Record<'_>),
        f: impl FnOnce(Option<Current<'_>>) -> R,
    ) -> Result<R> {
        loop {
            let Some(record) = self.records.next_record()? else {
                self.ended = true;
                return Ok(f(None));
            };
            watch(&record);
            self.store.learn(&record);
            if is_header_event(&record)
                || record.provider().is_some_and(|p| self.ignore.providers.contains(&p))
            {
                continue;
            }
            let key = Key::of(&record, &self.store);
            if let Some(tally) = self.counts.get_mut(&key) {
                tally.count += 1;
            } else if self.counts.len() < MOST_IDENTITIES {
                let name = key.name.as_ref().map(|name| name.to_string());
                let name = name.or_else(|| event_name(&record, &self.store));
                self.counts.insert(key, Tally { count: 1, name });
            }
            let (store, clock) = (&self.store, &self.clock);
            let (same_clock, ignore) = (self.same_clock, self.ignore);
            return Ok(f(Some(Current { record, store, clock, same_clock, ignore })));
        }
    }

    /// Reads until `most` events wait, or to the end.
    pub fn fill(&mut self, most: usize, watch: &mut impl FnMut(&Record<'_>)) -> Result<()> {
        while self.waiting.len() < most && !self.ended {
            let event = self.advance(watch, |current| current.map(|c| c.keep()))?;
            self.waiting.extend(event);
        }
        Ok(())
    }

    pub fn damage(&self) -> &[Damage] {
        self.records.damage()
    }

    pub fn provider_name(&self, provider: Guid) -> Option<String> {
        self.store.provider_name(provider).map(str::to_owned)
    }

    pub fn name(&self, key: &Key) -> Option<String> {
        self.counts.get(key)?.name.clone()
    }
}

/// What the schema calls the event.
pub(super) fn event_name(record: &Record<'_>, store: &SchemaStore) -> Option<String> {
    let name = &store.decoder(record)?.schema().name;
    Some(name.to_string()).filter(|n| !n.is_empty())
}

/// Whether this is the file's own header event, which is compared by itself.
fn is_header_event(record: &Record<'_>) -> bool {
    let place = record.location();
    record.hook() == Some(hook::HEADER)
        && place.buffer_offset == 0
        && place.in_buffer as usize == BUFFER_HEADER_SIZE
}
