//! How the events of one trace are decoded: shared by the reader, which learns schemas, and by its
//! events.
//!
//! No code of Python runs while the lock is held: it could wait for another thread that waits for
//! the lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use etl_events::conditions::Conditions;
use etl_events::filter::Filter;
use etl_events::rows::{Format, RowWriter};
use etl_events::{Event, EventDecoder, Selection};
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
    /// The traces that were opened, and its place among them.
    pub files: Arc<Files>,
    pub file: usize,
    /// The names for its events, where they were asked for.
    pub names: Option<Names>,
    state: Mutex<State>,
}

struct State {
    events: NamedEvents,
    rows: RowWriter,
    selection: Selection,
    known: HashMap<usize, Arc<Described>>,
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
        let name = || PyString::intern(py, &self.decoder.schema().name).unbind();
        self.name.get_or_init(py, name).bind(py)
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

/// The decoding, for as long as a reader adds to it.
pub struct Locked<'d>(MutexGuard<'d, State>);

impl Decoding {
    /// The decoding of the trace at a place among those that were opened. `None` where there is
    /// none.
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
        let store = names.as_ref().map_or_else(files::store, Names::schemas);
        let events = NamedEvents::new(names.clone(), |names| {
            let context = names.as_ref().and_then(Names::context).cloned();
            EventDecoder::new(clock, store).context(context)
        });
        let mut selection = Selection::default().filter(filter).conditions(conditions);
        if stale {
            selection = selection.with_stale_records();
        }
        let rows = RowWriter::new(Format::JsonLines);
        let state = Mutex::new(State {
            events,
            rows,
            selection,
            known: HashMap::new(),
        });
        let (name, data) = (input.name.clone(), Arc::clone(&input.data));
        Some(Decoding {
            name,
            clock,
            data,
            files: Arc::clone(files),
            file,
            names,
            state,
        })
    }

    pub fn lock(&self) -> Locked<'_> {
        Locked(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The decoder of a record, and the size of its pointers.
    pub fn described(&self, record: &Record<'_>) -> Option<(Arc<Described>, PointerSize)> {
        let mut locked = self.lock();
        let State { events, known, .. } = &mut *locked.0;
        let decoder = events.borrow_dependent().store().decoder(record)?;
        let pointers = decoder.pointers_of(record);
        // The kept decoder holds its schema, so that no other schema gets its address.
        let key = Arc::as_ptr(decoder.schema()) as usize;
        if let Some(found) = known.get(&key) {
            return Some((Arc::clone(found), pointers));
        }
        let described = Arc::new(Described {
            decoder: decoder.clone(),
            name: PyOnceLock::new(),
            fields: PyOnceLock::new(),
        });
        if known.len() < MAX_KEPT {
            known.insert(key, Arc::clone(&described));
        }
        Some((described, pointers))
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
    pub fn event<R>(&mut self, record: &Record<'_>, f: impl FnOnce(&Event<'_>) -> R) -> R {
        self.0
            .events
            .with_dependent_mut(|_, decoder| f(&decoder.decode(record)))
    }

    /// A record as a line of JSON.
    pub fn write(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        let State { events, rows, .. } = &mut *self.0;
        events.with_dependent_mut(|_, decoder| rows.write(out, &decoder.decode(record)));
    }
}
