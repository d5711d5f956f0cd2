//! How the events of one trace are decoded: shared by the reader, which learns schemas, and by its
//! events.
//!
//! No code of Python runs while the lock is held: it could wait for another thread that waits for
//! the lock.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use etl_events::conditions::Conditions;
use etl_events::filter::Filter;
use etl_events::rows::{Format, RowWriter};
use etl_events::{Depth, Event, EventDecoder, Selection};
use etl_format::Clock;
use etl_format::constants::PointerSize;
use etl_format::read::Record;
use etl_schema::decode::Decoder;
use foldhash::{HashMap, HashMapExt};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;
use self_cell::self_cell;

use crate::data::Data;
use crate::error::Fault;
use crate::files::{self, Files, Names};

/// Schemas that are kept with the names of their fields.
const MAX_KEPT: usize = 1 << 12;

type Events<'n> = EventDecoder<'n>;

self_cell!(
    struct NamedEvents {
        owner: Option<Names>,
        #[covariant]
        dependent: Events,
    }
);

/// How the events of one trace are decoded.
pub struct Decoding {
    /// Name of the trace.
    pub name: String,
    /// The clock of the timeline of all traces.
    pub clock: Clock,
    pub data: Arc<Data>,
    /// The traces that were opened.
    pub files: Arc<Files>,
    /// The index of the trace among them.
    file: usize,
    has_names: bool,
    state: Mutex<State>,
    /// Events with names, if these were read after the events.
    named_later: OnceLock<Mutex<NamedEvents>>,
}

struct State {
    events: NamedEvents,
    rows: RowWriter,
    selection: Selection,
    /// By the address of their schema.
    described: HashMap<usize, Arc<Described>>,
}

/// The decoder of a record.
pub struct RecordDecoder {
    pub described: Arc<Described>,
    pub pointers: PointerSize,
}

/// A decoder, with names as objects of Python.
pub struct Described {
    pub decoder: Decoder,
    name: PyOnceLock<Py<PyString>>,
    fields: PyOnceLock<Vec<Py<PyString>>>,
}

impl Described {
    /// The name of the event.
    pub fn name<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        let name = self.name.get_or_init(py, || {
            PyString::intern(py, &self.decoder.schema().name).unbind()
        });
        name.bind(py)
    }

    /// The names of the fields.
    pub fn fields(&self, py: Python<'_>) -> &[Py<PyString>] {
        self.fields.get_or_init(py, || {
            let fields = self.decoder.schema().fields.iter();
            fields
                .map(|field| PyString::intern(py, &field.name).unbind())
                .collect()
        })
    }
}

/// A decoder of the events of a trace, with its names if there are any.
fn named_events(clock: Clock, names: Option<Names>, depth: Depth) -> NamedEvents {
    let store = match &names {
        Some(names) => names.schemas(),
        None => files::store(),
    };
    NamedEvents::new(names, |names| {
        let context = names.as_ref().and_then(Names::context).cloned();
        EventDecoder::new(clock, store)
            .context(context)
            .depth(depth)
    })
}

/// The decoding, locked for as long as a reader or an event uses it.
pub struct Locked<'d>(MutexGuard<'d, State>);

impl Decoding {
    /// The decoding of one of the opened traces, by its index. `None` if there is no such trace.
    pub fn new(
        files: &Arc<Files>,
        file: usize,
        names: Option<Names>,
        filter: Filter,
        conditions: Conditions,
        stale: bool,
    ) -> Option<Self> {
        let input = files.inputs.get(file)?;
        let clock = files.timeline.clock_of(file);
        let has_names = names.is_some();
        let events = named_events(clock, names, Depth::default());
        let mut selection = Selection::default().filter(filter).conditions(conditions);
        if stale {
            selection = selection.with_stale_records();
        }
        let state = State {
            events,
            rows: RowWriter::new(Format::JsonLines),
            selection,
            described: HashMap::new(),
        };
        Some(Decoding {
            name: input.name.clone(),
            clock,
            data: Arc::clone(&input.data),
            files: Arc::clone(files),
            file,
            has_names,
            state: Mutex::new(state),
            named_later: OnceLock::new(),
        })
    }

    pub fn lock(&self) -> Locked<'_> {
        Locked(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Works with the event of a record, which has the names of processes and threads. Reads the
    /// trace for them the first time.
    pub fn named_event<R: Send>(
        &self,
        py: Python<'_>,
        record: &Record<'_>,
        work: impl FnOnce(&Event<'_>) -> R + Send,
    ) -> Result<R, Fault> {
        if self.has_names {
            return Ok(self.lock().event(record, work));
        }
        py.detach(|| {
            let events = match self.named_later.get() {
                Some(events) => events,
                None => {
                    let names = self.files.names()?.get(self.file).cloned().flatten();
                    let events = named_events(self.clock, names, Depth::Headers);
                    self.named_later.get_or_init(|| Mutex::new(events))
                }
            };
            let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(events.with_dependent_mut(|_, decoder| work(&decoder.decode(record))))
        })
    }

    /// The decoder of a record.
    pub fn described(&self, record: &Record<'_>) -> Option<RecordDecoder> {
        let mut locked = self.lock();
        let State {
            events, described, ..
        } = &mut *locked.0;
        let decoder = events.borrow_dependent().store().decoder(record)?;
        let pointers = decoder.pointers_of(record);
        // The kept decoder holds its schema, so that no other schema gets its address.
        let key = Arc::as_ptr(decoder.schema()) as usize;
        if let Some(kept) = described.get(&key) {
            return Some(RecordDecoder {
                described: Arc::clone(kept),
                pointers,
            });
        }
        let new = Arc::new(Described {
            decoder: decoder.clone(),
            name: PyOnceLock::new(),
            fields: PyOnceLock::new(),
        });
        if described.len() < MAX_KEPT {
            described.insert(key, Arc::clone(&new));
        }
        Some(RecordDecoder {
            described: new,
            pointers,
        })
    }
}

impl Locked<'_> {
    /// Learns the schemas that a record defines.
    #[inline]
    pub fn learn(&mut self, record: &Record<'_>) {
        self.0
            .events
            .with_dependent_mut(|_, decoder| decoder.learn(record));
    }

    /// Whether a record is selected.
    #[inline]
    pub fn admits(&mut self, record: &Record<'_>) -> bool {
        let State {
            events, selection, ..
        } = &mut *self.0;
        events.with_dependent_mut(|_, decoder| decoder.admits(record, selection))
    }

    /// Works with the event of a record.
    #[inline]
    pub fn event<R>(&mut self, record: &Record<'_>, work: impl FnOnce(&Event<'_>) -> R) -> R {
        self.0
            .events
            .with_dependent_mut(|_, decoder| work(&decoder.decode(record)))
    }

    /// A record as a line of JSON.
    pub fn write(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        let State { events, rows, .. } = &mut *self.0;
        events.with_dependent_mut(|_, decoder| rows.write(out, &decoder.decode(record)));
    }
}
