//! An opened trace: reports, events and tables.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use etl_analysis::OwnerCounts;
use etl_events::survey::{Report, Survey};
use etl_format::read::{Order, Trace as Opened};
use etl_verify::{Config, Enabled, Format, ProcessSelector, Verifier};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arrow::{Reading, Table};
use crate::chunk::Chunk;
use crate::decoding::Decoding;
use crate::error::Fault;
use crate::event::{Event, from_json};
use crate::files::{self, Files};
use crate::input::Input;
use crate::reader::Reader;
use crate::select::{self, Selection};

/// Bytes between two calls of a callback that shows progress.
const PROGRESS: u64 = 1 << 20;

/// One or several opened traces, read as one recording. Made by :func:`etwkit.open`.
#[pyclass(frozen, module = "etwkit")]
pub struct Trace {
    files: Mutex<Option<Arc<Files>>>,
    /// Whether a list was opened.
    several: bool,
}

impl Trace {
    pub fn new(files: Files, several: bool) -> Self {
        Trace {
            files: Mutex::new(Some(Arc::new(files))),
            several,
        }
    }

    fn files(&self) -> PyResult<Arc<Files>> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files
            .clone()
            .ok_or_else(|| PyValueError::new_err("the trace is closed"))
    }
}

/// Calls back with the bytes that were read and the total.
struct Callback {
    callback: Option<Py<PyAny>>,
    total: u64,
    read: u64,
    reported: u64,
    failed: Option<PyErr>,
}

impl Callback {
    fn new(callback: Option<Py<PyAny>>, total: u64) -> Self {
        Callback {
            callback,
            total,
            read: 0,
            reported: 0,
            failed: None,
        }
    }

    fn add(&mut self, bytes: u64) {
        self.read = self.read.saturating_add(bytes);
        if self.read - self.reported >= PROGRESS {
            self.report();
        }
    }

    /// After an error the callback is not called again.
    fn report(&mut self) {
        self.reported = self.read;
        if let (Some(callback), None) = (&self.callback, &self.failed) {
            // A trace that is read twice has no more to read.
            let read = self.read.min(self.total);
            self.failed =
                Python::attach(|py| callback.call1(py, (read, self.total)).map(drop)).err();
        }
    }

    fn finish(mut self) -> PyResult<()> {
        self.read = self.total;
        self.report();
        match self.failed {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

#[pymethods]
impl Trace {
    /// Names of the traces.
    #[getter]
    fn names(&self) -> PyResult<Vec<String>> {
        let files = self.files()?;
        let names = files.inputs.iter().map(|input| input.name.clone());
        Ok(names.collect())
    }

    /// Summary of the trace: the JSON report of ``etlkit info`` as a dict, or a list of them if a
    /// list was opened.
    #[pyo3(signature = (*, progress=None))]
    fn info<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let files = self.files()?;
        let total = files.inputs.iter().map(|input| input.used).sum();
        let mut callback = Callback::new(progress, total);
        let texts = py.detach(|| {
            let mut texts = Vec::new();
            for input in &files.inputs {
                texts.push(info(input, &files, &mut callback)?);
            }
            Ok::<_, Fault>(texts)
        })?;
        callback.finish()?;
        let reports = PyList::empty(py);
        for text in &texts {
            reports.append(from_json(py, text)?)?;
        }
        if self.several {
            Ok(reports.into_any())
        } else {
            reports.get_item(0)
        }
    }

    /// Checks that the trace is complete: the JSON report of ``etlkit verify`` as a dict. Several
    /// traces are checked as one recording.
    #[pyo3(signature = (*, allow=None, deny=None, enable=None, process=None,
        config=None, stale=false, progress=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "the keyword arguments of the Python method"
    )]
    fn verify<'py>(
        &self,
        py: Python<'py>,
        allow: Option<Bound<'py, PyAny>>,
        deny: Option<Bound<'py, PyAny>>,
        enable: Option<Bound<'py, PyAny>>,
        process: Option<Bound<'py, PyAny>>,
        config: Option<PathBuf>,
        stale: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let files = self.files()?;
        let mut settings = match config {
            Some(path) => {
                let text = std::fs::read_to_string(&path)?;
                Config::parse(&text)
                    .map_err(|error| Fault::new(&path.display().to_string(), error.to_string()))?
            }
            None => Config::default(),
        };
        for name in &select::several::<String>(allow.as_ref())? {
            let policy = settings.policy.overrule(name);
            settings.policy = policy.map_err(|_| unknown_rule(name))?;
        }
        for name in &select::several::<String>(deny.as_ref())? {
            let policy = settings.policy.deny(name);
            settings.policy = policy.map_err(|_| unknown_rule(name))?;
        }
        for text in select::several::<String>(enable.as_ref())? {
            let enabled = Enabled::parse(&text);
            settings
                .enabled
                .extend(enabled.map_err(|error| PyValueError::new_err(error.to_string()))?);
        }
        let processes = ProcessSelector::new(select::processes(process.as_ref())?);
        let total = files.inputs.iter().map(|input| input.used).sum();
        let mut callback = Callback::new(progress, total);
        let text = py.detach(|| {
            let mut verifier = Verifier::new()
                .policy(settings.policy)
                .enabled(settings.enabled)
                .threads(files.threads)
                .limits(files.limits)
                .processes(processes)
                .on_progress(|bytes| callback.add(bytes));
            if stale {
                verifier = verifier.with_stale_records();
            }
            let sources = files.inputs.iter().map(|i| (i.source(), i.name.clone()));
            let report = verifier.verify_together(sources).map_err(|error| {
                let file = match &error {
                    etl_verify::Error::Trace(error) => error.file(),
                    _ => 0,
                };
                let name = files.inputs.get(file).map_or("", |input| &input.name);
                match error {
                    etl_verify::Error::Trace(error) => Fault::format(name, &error.into_source()),
                    error => Fault::new(name, error.to_string()),
                }
            })?;
            Ok::<_, Fault>(report.render(Format::Json))
        })?;
        callback.finish()?;
        from_json(py, &text)
    }

    /// The selected events in time order.
    #[pyo3(signature = (*, provider=None, event=None, process=None, id=None, opcode=None, level=0,
        keyword=0, thread=None, start=None, end=None, r#where=None, grep=None, names=false,
        stale=false, order="time", progress=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "the keyword arguments of the Python method"
    )]
    fn events<'py>(
        &self,
        py: Python<'py>,
        provider: Option<Bound<'py, PyAny>>,
        event: Option<Bound<'py, PyAny>>,
        process: Option<Bound<'py, PyAny>>,
        id: Option<Bound<'py, PyAny>>,
        opcode: Option<Bound<'py, PyAny>>,
        level: u8,
        keyword: u64,
        thread: Option<Bound<'py, PyAny>>,
        start: Option<Bound<'py, PyAny>>,
        end: Option<Bound<'py, PyAny>>,
        r#where: Option<Bound<'py, PyAny>>,
        grep: Option<String>,
        names: bool,
        stale: bool,
        order: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Events> {
        let files = self.files()?;
        let order = match order {
            "time" => Order::Time,
            "file" if files.inputs.len() == 1 => Order::File,
            "file" => {
                return Err(PyValueError::new_err("order=\"file\" needs a single trace"));
            }
            _ => return Err(PyValueError::new_err("order is \"time\" or \"file\"")),
        };
        let selection = Selection {
            providers: select::several(provider.as_ref())?,
            events: select::several(event.as_ref())?,
            threads: select::several(thread.as_ref())?,
            ids: select::several(id.as_ref())?,
            opcodes: select::several(opcode.as_ref())?,
            level,
            keyword,
            start: select::time(start.as_ref())?,
            end: select::time(end.as_ref())?,
            conditions: select::several(r#where.as_ref())?,
            grep,
            ..Selection::default()
        };
        let selection = selection.with_processes(process.as_ref())?;
        let conditions = selection.conditions()?;
        let with_names = names || selection.needs_names();
        let mut unknown = Vec::new();
        let reader = py.detach(|| {
            let filters = selection.filters(&files, files.clocks())?;
            unknown = filters.unknown;
            let all_names = if with_names {
                files.names()?.to_vec()
            } else {
                Vec::new()
            };
            let mut decodings = Vec::new();
            for (file, filter) in filters.list.into_iter().enumerate() {
                let names = all_names.get(file).cloned().flatten();
                let conditions = conditions.clone();
                let decoding = Decoding::new(&files, file, names, filter, conditions, stale);
                decodings.extend(decoding.map(Arc::new));
            }
            Reader::new(decodings, order)
        })?;
        select::warn(py, &unknown)?;
        let total = files.inputs.iter().map(|input| input.used).sum();
        Ok(Events {
            reader,
            chunk: Arc::default(),
            next: 0,
            callback: Some(Callback::new(progress, total)),
        })
    }

    /// A table: one of :func:`etwkit.tables`, or ``Provider.Event`` for the events of one kind.
    #[pyo3(signature = (name="events", *, columns=None, provider=None, event=None, process=None,
        id=None, level=0, keyword=0, start=None, end=None, names=true, batch_rows=65536))]
    #[expect(
        clippy::too_many_arguments,
        reason = "the keyword arguments of the Python method"
    )]
    fn table<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        columns: Option<Vec<String>>,
        provider: Option<Bound<'py, PyAny>>,
        event: Option<Bound<'py, PyAny>>,
        process: Option<Bound<'py, PyAny>>,
        id: Option<Bound<'py, PyAny>>,
        level: u8,
        keyword: u64,
        start: Option<Bound<'py, PyAny>>,
        end: Option<Bound<'py, PyAny>>,
        names: bool,
        batch_rows: usize,
    ) -> PyResult<Table> {
        let selection = Selection {
            providers: select::several(provider.as_ref())?,
            events: select::several(event.as_ref())?,
            ids: select::several(id.as_ref())?,
            level,
            keyword,
            start: select::time(start.as_ref())?,
            end: select::time(end.as_ref())?,
            ..Selection::default()
        };
        let selection = selection.with_processes(process.as_ref())?;
        let reading = Reading {
            columns,
            names,
            batch_rows,
        };
        Table::new(py, self.files()?, name, reading, &selection)
    }

    /// The events as an Arrow stream: the table ``events``.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        slf: Bound<'py, Self>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let table = slf.call_method0("table")?;
        table.call_method1("__arrow_c_stream__", (requested_schema,))
    }

    /// Frees the trace. Events that were read stay valid.
    fn close(&self) {
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, _args: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        match self.files() {
            Ok(files) => {
                let names: Vec<_> = files.inputs.iter().map(|input| &*input.name).collect();
                format!("<etwkit.Trace {}>", names.join(", "))
            }
            Err(_) => "<etwkit.Trace (closed)>".to_owned(),
        }
    }
}

fn unknown_rule(name: &str) -> PyErr {
    PyValueError::new_err(format!("{name}: unknown rule"))
}

/// The JSON report of `etlkit info` on a trace.
fn info(input: &Input, files: &Files, callback: &mut Callback) -> Result<String, Fault> {
    let mut trace = Opened::open(input.source(), &files.options())
        .map_err(|error| Fault::format(&input.name, &error))?;
    // Counting by process needs times, which a trace without a header event lacks.
    let mut owners = trace.header().is_known().then(OwnerCounts::default);
    let survey = Survey::of(&mut trace, files::store(), |record| {
        if let Some(owners) = &mut owners {
            owners.add(record);
        }
        callback.add(record.bytes().len() as u64);
    });
    let survey = survey.map_err(|error| Fault::format(&input.name, &error))?;
    drop(trace);
    let report = Report::new(
        survey,
        &input.name,
        input.source(),
        files.limits,
        &[],
        owners,
    );
    let mut report = report.map_err(|error| Fault::format(&input.name, &error.into_source()))?;
    report.stream = input.conversion.clone();
    serde_json::to_string(&report).map_err(|error| Fault::new(&input.name, error.to_string()))
}

/// The selected events of a trace, one after the other.
#[pyclass(module = "etwkit")]
pub struct Events {
    reader: Reader,
    chunk: Arc<Chunk>,
    /// The index of the next record in the chunk.
    next: usize,
    callback: Option<Callback>,
}

#[pymethods]
impl Events {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Event>> {
        while self.next >= self.chunk.len() {
            py.check_signals()?;
            let before = self.reader.read;
            let reader = &mut self.reader;
            let Some(chunk) = py.detach(|| reader.next())? else {
                return match self.callback.take() {
                    Some(callback) => callback.finish().map(|()| None),
                    None => Ok(None),
                };
            };
            self.chunk = Arc::new(chunk);
            self.next = 0;
            if let Some(callback) = &mut self.callback {
                callback.add(self.reader.read - before);
                if let Some(error) = callback.failed.take() {
                    return Err(error);
                }
            }
        }
        let index = self.next;
        self.next += 1;
        Ok(Some(Event::new(Arc::clone(&self.chunk), index)))
    }
}
