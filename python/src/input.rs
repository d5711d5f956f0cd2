//! Opens inputs: paths, bytes or file objects, packed or not.

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etl_events::eventpipe::ConversionReport;
use etl_events::input::{self, Bytes, Head, InputOptions};
use etl_format::read::{Limits, Options, Trace};
use etl_format::{Clock, ErrorKind, FileHeader};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMemoryView, PyString, PyTuple};

use crate::data::{Data, SharedSource};
use crate::error::{Fault, os_error};

/// An opened trace.
pub struct Input {
    /// Its name in reports and errors.
    pub name: String,
    /// Its bytes, unpacked.
    pub data: Arc<Data>,
    /// Its clock, by its own header.
    pub clock: Clock,
    pub header: FileHeader,
    /// Bytes of all records, for progress.
    pub used: u64,
    /// The conversion, if it is an EventPipe stream.
    pub conversion: Option<ConversionReport>,
}

/// How inputs are opened.
pub struct Opening {
    /// How inputs are unpacked and mapped.
    pub input: InputOptions,
    /// Bounds on memory.
    pub limits: Limits,
}

/// A file object of Python.
struct PythonReader(Py<PyAny>);

impl Read for PythonReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let read = self.0.bind(py).call_method1("read", (out.len(),))?;
            let bytes = read
                .cast::<PyBytes>()
                .map_err(|_| PyTypeError::new_err("the file object is not in binary mode"))?
                .as_bytes();
            let space = out.get_mut(..bytes.len()).ok_or_else(|| {
                PyTypeError::new_err("read(n) of the file object returned more than n bytes")
            })?;
            space.copy_from_slice(bytes);
            Ok(bytes.len())
        })
        .map_err(|error: PyErr| io::Error::other(error))
    }
}

/// Opens one input, or several in a list or tuple.
pub fn open(source: &Bound<'_, PyAny>, opening: &Opening) -> PyResult<Vec<Input>> {
    if source.is_instance_of::<PyList>() || source.is_instance_of::<PyTuple>() {
        let mut inputs = Vec::new();
        for item in source.try_iter()? {
            inputs.push(one(&item?, opening)?);
        }
        if inputs.is_empty() {
            return Err(PyValueError::new_err("no trace is named"));
        }
        return Ok(inputs);
    }
    Ok(vec![one(source, opening)?])
}

fn one(source: &Bound<'_, PyAny>, opening: &Opening) -> PyResult<Input> {
    let py = source.py();
    if let Ok(bytes) = source.cast::<PyBytes>() {
        let bytes = PyBackedBytes::from(bytes.clone());
        return py.detach(|| of_bytes(bytes, opening));
    }
    if source.is_instance_of::<PyByteArray>() || source.is_instance_of::<PyMemoryView>() {
        let bytes = py.import("builtins")?.call_method1("bytes", (source,))?;
        return one(&bytes, opening);
    }
    if source.is_instance_of::<PyString>() || source.hasattr("__fspath__")? {
        let path: PathBuf = source.extract()?;
        return py.detach(|| of_path(&path, opening));
    }
    if source.hasattr("read")? {
        let name = source.getattr("name").and_then(|name| name.extract());
        let name = name.unwrap_or_else(|_| "(file object)".to_owned());
        let reader = PythonReader(source.clone().unbind());
        return py.detach(|| loaded(Bytes::Pipe(Box::new(reader)), name, opening));
    }
    Err(PyTypeError::new_err(format!(
        "expected a path, bytes, a binary file object, or a list of these, not {}",
        source.get_type().name()?
    )))
}

fn of_bytes(bytes: PyBackedBytes, opening: &Opening) -> PyResult<Input> {
    let name = "(bytes)".to_owned();
    // Reading the beginning shows whether they are packed or a stream. Bytes of a trace are not
    // copied.
    let kept = Python::attach(|py| bytes.clone_ref(py));
    let unpacked = opening.input.unpacker.open(pipe(kept));
    let head = unpacked.map_err(|error| Fault::input(&name, &error))?.head;
    if head.from.is_some() || head.conversion.is_some() {
        return loaded(pipe(bytes), name, opening);
    }
    checked(Data::Python(bytes), &head, name, opening)
}

/// Bytes that are read front to back.
fn pipe(bytes: PyBackedBytes) -> Bytes {
    Bytes::Pipe(Box::new(Cursor::new(bytes)))
}

fn of_path(path: &Path, opening: &Opening) -> PyResult<Input> {
    let name = path.display().to_string();
    let file = match input::open_file(path) {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
            let error = Fault::new(&name, "is a directory").hint("name the .etl files in it");
            return Err(error.into());
        }
        file => file.map_err(|error| os_error(&error, &name))?,
    };
    loaded(
        Bytes::of_file(file).map_err(|error| os_error(&error, &name))?,
        name,
        opening,
    )
}

/// All bytes, unpacked, in memory or mapped.
fn loaded(bytes: Bytes, name: String, opening: &Opening) -> PyResult<Input> {
    let input = input::Input::new(bytes, &name, &opening.input);
    let input = input.map_err(|error| Fault::input(&name, &error))?;
    let head = input.head().clone();
    let data = input
        .into_mapped()
        .map_err(|error| os_error(&error, &name))?;
    checked(Data::Mapped(data), &head, name, opening)
}

/// Checks that the bytes are a trace.
fn checked(data: Data, head: &Head, name: String, opening: &Opening) -> PyResult<Input> {
    let source = SharedSource(Arc::new(data));
    let options = Options {
        limits: opening.limits,
        ..Options::salvage()
    };
    let trace = Trace::open(source.clone(), &options).map_err(|error| match error.kind {
        ErrorKind::Budget { .. } => Fault::format(&name, &error),
        _ => Fault::input(&name, &head.not_a_trace(&name, &error)).at(error.offset),
    })?;
    head.ensure_records(source.clone(), opening.limits)
        .map_err(|error| Fault::input(&name, &error))?;
    let fills = trace.buffers().iter().map(|buffer| u64::from(buffer.fill));
    Ok(Input {
        name,
        data: source.0,
        clock: trace.clock(),
        header: trace.header().clone(),
        used: fills.sum(),
        conversion: head.conversion.clone(),
    })
}

impl Input {
    /// A source of a reader.
    pub fn source(&self) -> SharedSource {
        SharedSource(Arc::clone(&self.data))
    }
}
