//! One event. Its attributes are decoded when they are read.

use std::ops::RangeInclusive;
use std::sync::Arc;

use etl_events::header_fields::HeaderFields;
use etl_format::constants::FILETIME_UNIX_EPOCH;
use etl_format::read::{ExtendedItem, Record};
use etl_format::{ProcessId, ThreadId};
use etl_schema::render;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::chunk::{Chunk, ChunkRecord};
use crate::decoding::RecordDecoder;
use crate::values;

/// An event of a trace.
///
/// An attribute is decoded when it is read, with the schemas that the trace has defined by then.
/// The event stays valid after its trace is closed.
#[pyclass(frozen, module = "etwkit")]
pub struct Event {
    chunk: Arc<Chunk>,
    index: usize,
}

impl Event {
    pub fn new(chunk: Arc<Chunk>, index: usize) -> Self {
        Event { chunk, index }
    }

    #[inline]
    fn content(&self) -> PyResult<ChunkRecord<'_>> {
        // An event is only made for a record that its chunk contains.
        self.chunk
            .get(self.index)
            .ok_or_else(|| PyRuntimeError::new_err("the event is gone"))
    }

    fn record(&self) -> PyResult<Record<'_>> {
        Ok(self.content()?.record)
    }

    fn header(&self) -> PyResult<HeaderFields> {
        Ok(HeaderFields::of(&self.record()?))
    }
}

#[pymethods]
impl Event {
    /// Time in UTC, to the microsecond; None outside of the years 1 to 9999, which only a damaged
    /// trace has.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.filetime()?)
    }

    /// Time as a FILETIME: 100 ns since 1601-01-01 UTC.
    #[getter]
    fn filetime(&self) -> PyResult<i64> {
        let ChunkRecord { record, decoding } = self.content()?;
        Ok(decoding.clock.time(record.timestamp()).get())
    }

    /// Time as the trace stores it, in ticks of its clock.
    #[getter]
    fn timestamp(&self) -> PyResult<i64> {
        Ok(self.record()?.timestamp().get())
    }

    /// Name of the trace, as it was opened.
    #[getter]
    fn trace(&self) -> PyResult<&str> {
        Ok(&self.content()?.decoding.name)
    }

    /// Kind of the record: ``event``, ``system``, ``perfinfo`` ...
    #[getter]
    fn kind(&self) -> PyResult<String> {
        let kind = self.record()?.kind();
        Ok(match kind.name() {
            Some(name) => name.to_owned(),
            None => kind.to_string(),
        })
    }

    /// Processor on which it was logged.
    #[getter]
    fn cpu(&self) -> PyResult<u16> {
        Ok(self.record()?.processor())
    }

    /// Id of the process, or None.
    #[getter]
    fn pid(&self) -> PyResult<Option<u32>> {
        let ChunkRecord { record, decoding } = self.content()?;
        let pid = decoding.lock().event(&record, |event| event.pid());
        Ok(pid.map(ProcessId::get))
    }

    /// Id of the thread, or None.
    #[getter]
    fn tid(&self) -> PyResult<Option<u32>> {
        let ChunkRecord { record, decoding } = self.content()?;
        let tid = decoding.lock().event(&record, |event| event.tid());
        Ok(tid.map(ThreadId::get))
    }

    /// File name of the program of the process, or None. The first use is slow: the trace is read
    /// for its processes.
    #[getter]
    fn process(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let ChunkRecord { record, decoding } = self.content()?;
        let name = decoding.named_event(py, &record, |event| event.process().map(str::to_owned))?;
        Ok(name)
    }

    /// Name of the thread, or None. The first use is slow: the trace is read for its threads.
    #[getter]
    fn thread(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let ChunkRecord { record, decoding } = self.content()?;
        let name = decoding.named_event(py, &record, |event| event.thread().map(str::to_owned))?;
        Ok(name)
    }

    /// Name of the provider, its GUID if it has no name, or None.
    #[getter]
    fn provider<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        let ChunkRecord { record, decoding } = self.content()?;
        let name = decoding
            .lock()
            .event(&record, |event| event.provider_name().map(str::to_owned));
        Ok(match name {
            Some(name) => Some(PyString::new(py, &name)),
            None => record.provider().map(|guid| values::guid(py, guid)),
        })
    }

    /// GUID of the provider, or None.
    #[getter]
    fn provider_guid<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        let provider = self.record()?.provider();
        Ok(provider.map(|guid| values::guid(py, guid)))
    }

    /// Name of the event; if no schema names it, its number in words (``EventID(160)``).
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let ChunkRecord { record, decoding } = self.content()?;
        if let Some(RecordDecoder { described, .. }) = decoding.described(&record)
            && !described.decoder.schema().name.is_empty()
        {
            return Ok(described.name(py).clone());
        }
        let name = decoding
            .lock()
            .event(&record, |event| event.name().to_owned());
        Ok(PyString::new(py, &name))
    }

    /// Id of the event, or the number of a WPP message, or None.
    #[getter]
    fn id(&self) -> PyResult<Option<u16>> {
        Ok(self.header()?.id)
    }

    /// Version of the payload, or None.
    #[getter]
    fn version(&self) -> PyResult<Option<u16>> {
        Ok(self.header()?.version)
    }

    /// Opcode, or the type of a kernel or classic event, or None.
    #[getter]
    fn opcode(&self) -> PyResult<Option<u8>> {
        Ok(self.header()?.opcode)
    }

    /// Task, or None.
    #[getter]
    fn task(&self) -> PyResult<Option<u16>> {
        Ok(self.header()?.task)
    }

    /// Level (1 critical ... 5 verbose), or None.
    #[getter]
    fn level(&self) -> PyResult<Option<u8>> {
        Ok(self.header()?.level)
    }

    /// Keywords as bits, or None.
    #[getter]
    fn keyword(&self) -> PyResult<Option<u64>> {
        Ok(self.header()?.keyword)
    }

    /// Activity as a GUID, or None.
    #[getter]
    fn activity<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        let activity = HeaderFields::activity(&self.record()?);
        Ok(activity.map(|guid| values::guid(py, guid)))
    }

    /// Related activity as a GUID, or None.
    #[getter]
    fn related_activity<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        let related = self.record()?.extended().find_map(|item| match item {
            ExtendedItem::RelatedActivity(guid) => Some(guid),
            _ => None,
        });
        Ok(related.map(|guid| values::guid(py, guid)))
    }

    /// Addresses of the stack that the event carries, innermost first; empty without one.
    #[getter]
    fn stack(&self) -> PyResult<Vec<u64>> {
        let stack = self.record()?.extended().find_map(|item| match item {
            ExtendedItem::Stack(stack) => Some(stack.addresses().collect()),
            _ => None,
        });
        Ok(stack.unwrap_or_default())
    }

    /// Bytes of the payload.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.record()?.payload()))
    }

    /// The decoded fields of the payload; empty if no schema describes them.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ChunkRecord { record, decoding } = self.content()?;
        match decoding.described(&record) {
            Some(RecordDecoder {
                described,
                pointers,
            }) => {
                let fields = described.decoder.fields(record.payload(), pointers);
                values::fields(py, &described, fields)
            }
            None => Ok(PyDict::new(py)),
        }
    }

    /// The message of the event with its fields in place, or None.
    #[getter]
    fn message(&self) -> PyResult<Option<String>> {
        let ChunkRecord { record, decoding } = self.content()?;
        Ok(decoding.lock().event(&record, |event| event.message()))
    }

    /// The event as one JSON object, as ``etlkit dump --format jsonl`` writes it.
    fn json(&self) -> PyResult<String> {
        let ChunkRecord { record, decoding } = self.content()?;
        let mut out = Vec::new();
        decoding.lock().write(&mut out, &record);
        out.pop();
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    /// The event as a dict, with the contents of :meth:`json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.json()?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut time = Vec::new();
        render::filetime(&mut time, self.filetime()?.max(0) as u64);
        let provider = self
            .provider(py)?
            .map(|name| name.to_string())
            .unwrap_or_default();
        let time = String::from_utf8_lossy(&time);
        let name = self.name(py)?;
        Ok(format!("<Event {time} {provider}/{name}>"))
    }
}

/// Parses JSON into objects of Python.
pub fn from_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOADS.import(py, "json", "loads")?.call1((text,))
}

/// A FILETIME as a datetime in UTC; None outside of the years of datetimes, 1 to 9999.
fn datetime(py: Python<'_>, filetime: i64) -> PyResult<Option<Bound<'_, PyAny>>> {
    const YEARS: RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;
    static EPOCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static TIMEDELTA: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let micros = (filetime.saturating_sub(FILETIME_UNIX_EPOCH)).div_euclid(10);
    if !YEARS.contains(&micros) {
        return Ok(None);
    }
    let epoch = EPOCH.get_or_try_init(py, || {
        let module = py.import("datetime")?;
        let utc = module.getattr("timezone")?.getattr("utc")?;
        let epoch = module
            .getattr("datetime")?
            .call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
        PyResult::Ok(epoch.unbind())
    })?;
    let timedelta = TIMEDELTA.import(py, "datetime", "timedelta")?;
    let since = timedelta.call1((0, 0, micros))?;
    epoch.bind(py).add(since).map(Some)
}
