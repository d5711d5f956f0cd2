//! Tables of traces, handed to other libraries as streams of Arrow (the PyCapsule interface).

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use etl_events::conditions::Conditions;
use etl_events::filter::Filter;
use etl_tables::{Options, Reader, tables};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::Fault;
use crate::files::{self, Files};
use crate::select::Selection;

/// A table of one or several traces: a stream of Arrow record batches.
///
/// DuckDB, Polars, pandas, pyarrow and others read it directly. Each stream reads the traces again.
#[pyclass(frozen, module = "etwkit")]
pub struct Table {
    /// Name of the table.
    #[pyo3(get)]
    name: String,
    files: Arc<Files>,
    columns: Option<Vec<String>>,
    names: bool,
    batch_rows: usize,
    filters: Vec<Filter>,
    conditions: Conditions,
}

/// The batches of several traces, one after the other.
struct Chain {
    schema: SchemaRef,
    current: Option<Reader>,
    /// The traces that follow, by index.
    left: VecDeque<(usize, Filter)>,
    table: Arc<Request>,
}

/// Why a table of a trace cannot be read.
struct Failed {
    /// The name of the trace.
    trace: String,
    error: etl_tables::Error,
}

/// The part of each trace to read.
struct Request {
    name: String,
    files: Arc<Files>,
    columns: Option<Vec<String>>,
    names: bool,
    batch_rows: usize,
    conditions: Conditions,
}

impl Request {
    fn open(&self, file: usize, filter: Filter) -> Result<Reader, Box<Failed>> {
        let Some(input) = self.files.inputs.get(file) else {
            return Err(Box::new(Failed {
                trace: String::new(),
                error: etl_tables::Error::NoTable(self.name.clone()),
            }));
        };
        let mut options = Options::new(input.name.clone())
            .filter(filter)
            .events(self.conditions.clone())
            .store(files::store())
            .batch_rows(self.batch_rows)
            .limits(self.files.limits)
            .threads(self.files.threads);
        if !self.names {
            options = options.without_names();
        }
        if let Some(columns) = &self.columns {
            options = options.columns(columns.iter().cloned());
        }
        Reader::open(input.source(), &self.name, options).map_err(|error| {
            Box::new(Failed {
                trace: input.name.clone(),
                error,
            })
        })
    }
}

impl Iterator for Chain {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.current.as_mut().and_then(Iterator::next) {
                Some(Ok(batch)) => {
                    // Typed tables of different traces can have different fields.
                    if *batch.schema() != *self.schema {
                        let text = "the traces have different fields for this event; read each \
                                    trace alone";
                        return Some(Err(ArrowError::SchemaError(text.to_owned())));
                    }
                    return Some(Ok(batch));
                }
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    let (file, filter) = self.left.pop_front()?;
                    match self.table.open(file, filter) {
                        Ok(reader) => self.current = Some(reader),
                        // A trace without such events has no rows.
                        Err(failed) if failed.is_without_events() => self.current = None,
                        Err(failed) => {
                            let error = format!("{}: {}", failed.trace, failed.error);
                            return Some(Err(ArrowError::ComputeError(error)));
                        }
                    }
                }
            }
        }
    }
}

impl RecordBatchReader for Chain {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// How a table is read.
pub struct Reading {
    pub columns: Option<Vec<String>>,
    pub names: bool,
    pub batch_rows: usize,
}

impl Table {
    pub fn new(
        py: Python<'_>,
        files: Arc<Files>,
        name: &str,
        reading: Reading,
        selection: &Selection,
    ) -> PyResult<Self> {
        let Reading {
            columns,
            names,
            batch_rows,
        } = reading;
        if batch_rows == 0 {
            return Err(PyValueError::new_err("batch_rows must be at least 1"));
        }
        let is_of_events = tables::Table::named(name).is_none_or(|table| table.name == "events");
        if let Some(argument) = selection.event_argument()
            && !is_of_events
        {
            return Err(PyValueError::new_err(format!(
                "{argument}: the rows of the table {name} are not events; select with process, \
                 start or end, or read the table events"
            )));
        }
        let conditions = selection.conditions()?;
        // The rows of each trace have the times of its own clock.
        let clocks = files.inputs.iter().map(|input| input.clock);
        let filters = py.detach(|| selection.filters(&files, clocks))?;
        crate::select::warn(py, &filters.unknown)?;
        let table = Table {
            name: name.to_owned(),
            files,
            columns,
            names,
            batch_rows,
            filters: filters.list,
            conditions,
        };
        // Errors of names are reported here.
        table.read(py)?;
        Ok(table)
    }

    fn read(&self, py: Python<'_>) -> PyResult<Chain> {
        let Table {
            name,
            files,
            columns,
            names,
            batch_rows,
            conditions,
            filters,
        } = self;
        let table = Arc::new(Request {
            name: name.clone(),
            files: Arc::clone(files),
            columns: columns.clone(),
            names: *names,
            batch_rows: *batch_rows,
            conditions: conditions.clone(),
        });
        let mut left: VecDeque<_> = filters.iter().cloned().enumerate().collect();
        let mut first_without_events = None;
        while let Some((file, filter)) = left.pop_front() {
            match py.detach(|| table.open(file, filter)) {
                Ok(reader) => {
                    return Ok(Chain {
                        schema: reader.schema(),
                        current: Some(reader),
                        left,
                        table,
                    });
                }
                Err(failed) if failed.is_without_events() => {
                    first_without_events.get_or_insert(failed);
                }
                Err(failed) => return Err((*failed).into()),
            }
        }
        Err(match first_without_events {
            Some(failed) => (*failed).into(),
            None => PyValueError::new_err("no trace is open"),
        })
    }
}

impl Failed {
    /// Whether the trace has no event of the kind of the table.
    fn is_without_events(&self) -> bool {
        matches!(self.error, etl_tables::Error::NoEvent(_))
    }
}

impl From<Failed> for PyErr {
    fn from(failed: Failed) -> PyErr {
        let Failed { trace, error } = failed;
        match error {
            etl_tables::Error::Trace(error) => Fault::format(&trace, &error).into(),
            etl_tables::Error::NoTable(_)
            | etl_tables::Error::NoColumn { .. }
            | etl_tables::Error::NoEvent(_) => PyKeyError::new_err(error.to_string()),
            error => Fault::new(&trace, error.to_string()).into(),
        }
    }
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn columns(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let schema = self.read(py)?.schema;
        let fields = schema.fields().iter();
        Ok(fields.map(|field| field.name().clone()).collect())
    }

    /// The schema as an Arrow capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let chain = self.read(py)?;
        let schema = FFI_ArrowSchema::try_from(chain.schema.as_ref())
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows as an Arrow stream. Reading it does not need the interpreter, which it must not
    /// hold.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer converts to other types itself, as the interface allows.
        drop(requested_schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(self.read(py)?));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        let traces = self.files.inputs.len();
        format!(
            "<etwkit.Table {} of {traces} trace{}>",
            self.name,
            if traces == 1 { "" } else { "s" }
        )
    }
}
