//! The reader of one of the two traces, in time order.

use std::collections::{BTreeMap, VecDeque};

use etl_events::EventDecoder;
use etl_events::filter::Filter;
use etl_format::constants::{BUFFER_HEADER_SIZE, hook};
use etl_format::read::{Damage, Record, Records, Source};
use etl_format::{Clock, Guid, Result};
use etl_schema::store::SchemaStore;

use super::event::{Current, Event, Key, schema_name};
use super::ignore::Ignore;
use crate::OnRecord;

/// The number of identities that are counted. Events with further identities are not.
pub const MAX_IDENTITIES: usize = 1 << 18;

/// How often an event occurs, with its name.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub count: u64,
    pub name: Option<String>,
}

pub(super) struct TraceReader<'t, S: Source> {
    records: &'t mut Records<S>,
    decoder: EventDecoder<'static>,
    same_clock: bool,
    ignore: &'t Ignore,
    filter: Option<&'t Filter>,
    on_record: OnRecord<'t>,
    /// Events that were read and are not matched yet.
    pub waiting: VecDeque<Event>,
    /// Whether the end of the trace was reached.
    pub ended: bool,
    pub counts: BTreeMap<Key, Tally>,
}

impl<'t, S: Source> TraceReader<'t, S> {
    pub fn new(
        records: &'t mut Records<S>,
        clock: Clock,
        ignore: &'t Ignore,
        same_clock: bool,
    ) -> Self {
        TraceReader {
            records,
            decoder: EventDecoder::new(clock, SchemaStore::default()),
            same_clock,
            ignore,
            filter: None,
            on_record: OnRecord::default(),
            waiting: VecDeque::new(),
            ended: false,
            counts: BTreeMap::new(),
        }
    }

    /// Decodes events with these schemas as well.
    pub fn schemas(mut self, schemas: SchemaStore) -> Self {
        self.decoder = EventDecoder::new(self.decoder.clock(), schemas);
        self
    }

    /// Reads only the events that a filter admits.
    pub fn select(mut self, filter: &'t Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Calls a function for every record.
    pub fn on_record(mut self, on_record: OnRecord<'t>) -> Self {
        self.on_record = on_record;
        self
    }

    /// Whether all events were read and matched.
    pub fn is_done(&self) -> bool {
        self.ended && self.waiting.is_empty()
    }

    /// Calls `f` with the next record that is compared, or with `None` at the end.
    pub fn advance<R>(&mut self, f: impl FnOnce(Option<Current<'_>>) -> R) -> Result<R> {
        loop {
            let Some(record) = self.records.next_record()? else {
                self.ended = true;
                return Ok(f(None));
            };
            self.on_record.call(&record);
            self.decoder.learn(&record);
            if is_header_event(&record) || !is_selected(&record, self.filter, self.ignore) {
                continue;
            }
            let event = self.decoder.decode(&record);
            let key = Key::of(&event);
            if let Some(tally) = self.counts.get_mut(&key) {
                tally.count += 1;
            } else if self.counts.len() < MAX_IDENTITIES {
                let name = key.name.as_ref().map(|name| name.to_string());
                let name = name.or_else(|| schema_name(&event));
                self.counts.insert(key, Tally { count: 1, name });
            }
            let current = Current {
                event,
                same_clock: self.same_clock,
                ignore: self.ignore,
            };
            return Ok(f(Some(current)));
        }
    }

    /// Reads until `count` events wait, or to the end.
    pub fn fill(&mut self, count: usize) -> Result<()> {
        while self.waiting.len() < count && !self.ended {
            let event = self.advance(|current| current.map(|c| c.to_event()))?;
            self.waiting.extend(event);
        }
        Ok(())
    }

    pub fn damage(&self) -> &[Damage] {
        self.records.damage()
    }

    pub fn provider_name(&self, provider: Guid) -> Option<String> {
        self.decoder.provider_name(provider).map(str::to_owned)
    }

    pub fn name(&self, key: &Key) -> Option<String> {
        self.counts.get(key)?.name.clone()
    }
}

/// Whether the filter selects a record, and its provider is not ignored.
fn is_selected(record: &Record<'_>, filter: Option<&Filter>, ignore: &Ignore) -> bool {
    if let Some(filter) = filter
        && !filter.admits(record)
    {
        return false;
    }
    match record.provider() {
        Some(provider) => !ignore.providers.contains(&provider),
        None => true,
    }
}

/// Whether this is the header event of the file, which is compared field by field.
fn is_header_event(record: &Record<'_>) -> bool {
    let location = record.location();
    record.hook() == Some(hook::HEADER)
        && location.buffer_offset == 0
        && location.in_buffer as usize == BUFFER_HEADER_SIZE
}
