//! Makes events of the records of a trace.

use etl_format::read::Record;
use etl_format::{Clock, FileTime, Guid};
use etl_schema::decode::Decoder;
use etl_schema::providers;
use etl_schema::render;
use etl_schema::store::SchemaStore;

use crate::context::Context;
use crate::event::{Event, Heads, Origin, learned_provider, provider_name};
use crate::selection::Selection;

/// Makes events of the records of one trace.
///
/// Records may contain the schemas of later events. So give the decoder every record of the trace,
/// in their order: [`EventDecoder::event`] and [`EventDecoder::select`] learn what a record defines
/// before they make its event, and [`EventDecoder::learn`] is for records whose events are not
/// wanted.
///
/// Nothing is allocated for each event. A clone goes on independently: clones on several threads
/// make the same events if each is given all records that
/// [`may_learn`](SchemaStore::may_learn) accepts.
///
/// ```
/// use etl_events::EventDecoder;
/// use etl_format::read::{Options, Order, Trace};
/// use etl_schema::store::SchemaStore;
///
/// # let bytes = etl_events::testing::trace();
/// let mut trace = Trace::open(bytes.as_slice(), &Options::salvage())?;
/// let mut decoder = EventDecoder::new(trace.clock(), SchemaStore::default());
/// let mut records = trace.records(Order::Time)?;
/// let mut names = Vec::new();
/// while let Some(record) = records.next_record()? {
///     names.push(decoder.event(&record).name().to_owned());
/// }
/// assert_eq!(names[2..], ["GCStart_V1", "GCEnd_V1", "EventID(5)"]);
/// # Ok::<(), etl_events::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct EventDecoder<'c> {
    store: SchemaStore,
    origin: Origin<'c>,
    depth: Depth,
    heads: Heads,
    /// The readable text of the last payload that was not decoded.
    payload_text: String,
}

/// How much of records is decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Depth {
    /// The header: events have the names and numbers that headers and providers' tables contain.
    Headers,
    /// In addition the names in the schemas of events.
    Names,
    /// In addition the fields of payloads.
    Fields,
    /// In addition the readable text of payloads that no schema describes.
    #[default]
    Texts,
}

impl<'c> EventDecoder<'c> {
    /// A decoder of the records of a trace with this clock. `store` describes the events.
    #[must_use]
    pub fn new(clock: Clock, store: SchemaStore) -> Self {
        let start = clock.start_time;
        EventDecoder {
            store,
            origin: Origin {
                clock,
                start,
                file: None,
                context: None,
            },
            depth: Depth::default(),
            heads: Heads::default(),
            payload_text: String::new(),
        }
    }

    /// Adds the names that the whole trace has for processes, threads, paths and addresses.
    /// Default: none.
    #[must_use]
    pub fn context(mut self, context: Option<Context<'c>>) -> Self {
        self.origin.context = context;
        self
    }

    /// The name of the file of the trace, if events of several files are shown together. Default:
    /// none.
    ///
    /// ```
    /// use etl_events::EventDecoder;
    /// # use etl_format::read::{Options, Order, Trace};
    /// # let bytes = etl_events::testing::trace();
    /// # let mut trace = Trace::open(bytes.as_slice(), &Options::salvage())?;
    /// let mut decoder = EventDecoder::new(trace.clock(), Default::default()).file(Some("a.etl"));
    /// # let mut records = trace.records(Order::Time)?;
    /// # let record = records.next_record()?.unwrap();
    /// assert_eq!(decoder.event(&record).file(), Some("a.etl"));
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    #[must_use]
    pub fn file(mut self, name: Option<&str>) -> Self {
        self.origin.file = name.map(str::to_owned);
        self
    }

    /// The time from which seconds count: for traces that are read together. Default: the start of
    /// the trace.
    #[must_use]
    pub fn start(mut self, time: FileTime) -> Self {
        self.origin.start = time;
        self
    }

    /// How much of records is decoded. Default: all of it.
    ///
    /// ```
    /// use etl_events::{Depth, EventDecoder};
    /// # use etl_format::read::{Options, Order, Trace};
    /// # let bytes = etl_events::testing::trace();
    /// # let mut trace = Trace::open(bytes.as_slice(), &Options::salvage())?;
    /// let decoder = EventDecoder::new(trace.clock(), Default::default());
    /// let mut decoder = decoder.depth(Depth::Headers);
    /// # let mut records = trace.records(Order::Time)?;
    /// # drop(records.next_record()?);
    /// # let record = records.next_record()?.unwrap();
    /// assert!(decoder.event(&record).fields().is_none());
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    #[must_use]
    pub fn depth(mut self, depth: Depth) -> Self {
        self.depth = depth;
        self
    }

    /// The schemas that are known so far.
    #[must_use]
    #[inline]
    pub fn store(&self) -> &SchemaStore {
        &self.store
    }

    /// The clock of the trace.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.origin.clock
    }

    /// The name of a provider: from the tables of providers, else from the trace so far.
    ///
    /// ```
    /// use etl_events::EventDecoder;
    /// use etl_schema::providers::CLR_RUNTIME;
    ///
    /// # let trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// let decoder = EventDecoder::new(trace.clock(), Default::default());
    /// assert_eq!(decoder.provider_name(CLR_RUNTIME), Some("Microsoft-Windows-DotNETRuntime"));
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    #[must_use]
    pub fn provider_name(&self, provider: Guid) -> Option<&str> {
        provider_name(provider, None, &self.store)
    }

    /// Learns the schemas that a record defines, and makes its event.
    #[inline]
    pub fn event<'a>(&'a mut self, record: &Record<'a>) -> Event<'a> {
        self.store.learn(record);
        self.decode(record)
    }

    /// Learns the schemas that a record defines, and makes its event if the selection admits it.
    ///
    /// ```
    /// use etl_events::{EventDecoder, Selection, filter::Filter};
    /// # use etl_format::read::{Options, Order, Trace};
    /// # let bytes = etl_events::testing::trace();
    /// # let mut trace = Trace::open(bytes.as_slice(), &Options::salvage())?;
    ///
    /// let filter = Filter { ids: vec![2], ..Filter::default() };
    /// let selection = Selection::default().filter(filter);
    /// let mut decoder = EventDecoder::new(trace.clock(), Default::default());
    /// let mut records = trace.records(Order::Time)?;
    /// while let Some(record) = records.next_record()? {
    ///     if let Some(event) = decoder.select(&record, &selection) {
    ///         assert_eq!(event.name(), "GCEnd_V1");
    ///     }
    /// }
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    #[inline]
    pub fn select<'a>(
        &'a mut self,
        record: &Record<'a>,
        selection: &Selection,
    ) -> Option<Event<'a>> {
        self.store.learn(record);
        if !selection.admits_record(record, &self.origin, &self.store) {
            return None;
        }
        let event = self.decode(record);
        if !selection.admits_content(&event) {
            return None;
        }
        Some(event)
    }

    /// Learns the schemas that a record defines, without making its event.
    #[inline]
    pub fn learn(&mut self, record: &Record<'_>) {
        self.store.learn(record);
    }

    /// Whether the selection admits the event of a record, which the decoder has learned from. The
    /// event is made only if the selection has conditions on its content.
    #[inline]
    pub fn admits(&mut self, record: &Record<'_>, selection: &Selection) -> bool {
        selection.admits_record(record, &self.origin, &self.store)
            && (!selection.has_content() || selection.admits_content(&self.decode(record)))
    }

    /// The event of a record, which the decoder has learned from: for records that were kept.
    #[inline]
    pub fn decode<'a>(&'a mut self, record: &Record<'a>) -> Event<'a> {
        let EventDecoder {
            store,
            origin,
            depth,
            heads,
            payload_text,
        } = self;
        let decoder = match depth {
            Depth::Headers => None,
            _ => store.decoder(record),
        };
        let schema = decoder.map(Decoder::schema);
        let payload = record.payload();
        payload_text.clear();
        // A schema without fields does not describe a payload.
        let is_described = schema.is_some_and(|schema| !schema.fields.is_empty());
        let fields = match decoder {
            Some(decoder) if *depth >= Depth::Fields && (is_described || payload.is_empty()) => {
                Some(decoder.fields(payload, decoder.pointers_of(record)))
            }
            _ => None,
        };
        if !is_described && *depth == Depth::Texts {
            render::readable_text(payload_text, payload);
        }
        let owner = match &origin.context {
            Some(context) => context.owner(record),
            None => etl_analysis::owner(record),
        };
        let head = heads.head(record, schema);
        let learned_provider = match head.provider {
            Some(provider) if head.provider_name.is_none() => {
                learned_provider(provider, providers::name_in_traits(record), store)
            }
            _ => None,
        };
        Event {
            record: *record,
            origin,
            head,
            shared_head: head,
            decoder,
            fields,
            learned_provider,
            pid: owner.process_id,
            tid: owner.thread_id,
            payload_text,
            kept_names: None,
        }
    }
}
