//! The Python package `etwkit`: Windows event traces (`.etl`) as events, tables and reports.
//!
//! `etwkit/__init__.py` and `etwkit/_native.pyi` are what users see of it.
#![forbid(unsafe_code)]

mod arrow;
mod chunk;
mod data;
mod decoding;
mod error;
mod event;
mod files;
mod input;
mod memory;
mod reader;
mod scenario;
mod select;
mod trace;
mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;

use etl_events::input::InputOptions;
use files::Files;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// More threads do not help: one thread orders the records that the others decompress.
const MAX_USEFUL: usize = 4;

/// Opens a trace: a path, `bytes`, a binary file object, or a list of these, which are read as one
/// recording. Packed ones (`.gz`, `.zst`, `.zip`) are unpacked. With `max_memory`, a trace for
/// which the package would allocate more bytes is refused.
#[pyfunction]
#[pyo3(signature = (source, *, member=None, max_unpacked=None, max_memory=None, mmap=true,
    threads=None))]
fn open(
    source: &Bound<'_, PyAny>,
    member: Option<String>,
    max_unpacked: Option<u64>,
    max_memory: Option<u64>,
    mmap: bool,
    threads: Option<usize>,
) -> PyResult<trace::Trace> {
    let mut options = InputOptions::default();
    options.unpacker.member = member;
    options.unpacker.max_unpacked = max_unpacked;
    // The window is only a part of what reading needs.
    options.unpacker.window = max_memory.map(|memory| memory / 4);
    if !mmap {
        options.max_mapped = 0;
    }
    let limits = memory::limits(max_memory);
    let several = source.is_instance_of::<PyList>() || source.is_instance_of::<PyTuple>();
    let threads = match threads {
        Some(threads) => threads.clamp(1, 64),
        None => processors().clamp(1, MAX_USEFUL),
    };
    let opening = input::Opening {
        input: options,
        limits,
    };
    let files = Files::new(input::open(source, &opening)?, threads, limits);
    Ok(trace::Trace::new(files, several))
}

/// Threads that can run at the same time.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Simulates a scenario, and writes its traces and `truth.jsonl` to a directory. Returns the paths.
#[pyfunction]
#[pyo3(signature = (script, out, *, seed=None, parameters=None, truth=true, force=false))]
fn synth(
    py: Python<'_>,
    script: PathBuf,
    out: PathBuf,
    seed: Option<u64>,
    parameters: Option<BTreeMap<String, String>>,
    truth: bool,
    force: bool,
) -> PyResult<Vec<PathBuf>> {
    let settings = scenario::Settings {
        seed,
        parameters: parameters.unwrap_or_default().into_iter().collect(),
        truth,
        force,
    };
    py.detach(|| scenario::synth(&script, &out, settings))
}

/// The tables: a dict of names and what a row is.
#[pyfunction]
fn tables(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let tables = PyDict::new(py);
    for table in etl_tables::tables::ALL {
        tables.set_item(table.name, table.row)?;
    }
    Ok(tables)
}

/// The module that `etwkit` imports.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("TraceError", module.py().get_type::<error::TraceError>())?;
    module.add_class::<trace::Trace>()?;
    module.add_class::<trace::Events>()?;
    module.add_class::<event::Event>()?;
    module.add_class::<arrow::Table>()?;
    module.add_function(wrap_pyfunction!(open, module)?)?;
    module.add_function(wrap_pyfunction!(synth, module)?)?;
    module.add_function(wrap_pyfunction!(tables, module)?)?;
    Ok(())
}
