//! The selection of events: arguments of Python to filters and conditions.

use etl_analysis::ProcessSelector;
use etl_control::enable::Enablement;
use etl_events::Error;
use etl_events::conditions::Conditions;
use etl_events::filter::Filter;
use etl_format::constants::FILETIME_UNIX_EPOCH;
use etl_format::read::{Order, Trace};
use etl_format::{Clock, FileTime, ProcessId, ThreadId, Ticks, TimeRange};
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySet, PyString, PyTuple};

use crate::error::Fault;
use crate::files::{self, Files};

/// What is selected, whatever the trace.
#[derive(Default)]
pub struct Selection {
    pub providers: Vec<String>,
    pub events: Vec<String>,
    /// File names of programs.
    pub processes: Vec<String>,
    /// Ids of processes.
    pub pids: Vec<u32>,
    pub threads: Vec<u32>,
    pub ids: Vec<u16>,
    pub opcodes: Vec<u8>,
    pub level: u8,
    pub keyword: u64,
    pub start: Option<TimeArgument>,
    pub end: Option<TimeArgument>,
    pub conditions: Vec<String>,
    pub grep: Option<String>,
}

/// A time of the user.
#[derive(Clone, Copy)]
pub enum TimeArgument {
    /// 100 ns since the start of the recording.
    SinceStart(i64),
    FileTime(i64),
}

impl TimeArgument {
    /// Seconds since the start of the trace, or a datetime (UTC where it has no time zone).
    pub fn new(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(seconds) = value.extract::<f64>() {
            if !seconds.is_finite() {
                return Err(PyValueError::new_err("expected a finite number of seconds"));
            }
            // Rounded to the 100 ns of a FILETIME.
            return Ok(TimeArgument::SinceStart((seconds * 1e7).round() as i64));
        }
        let py = value.py();
        let module = py.import("datetime")?;
        if !value.is_instance(&module.getattr("datetime")?)? {
            return Err(PyTypeError::new_err(
                "expected seconds since the start of the trace, or a datetime",
            ));
        }
        let utc = module.getattr("timezone")?.getattr("utc")?;
        let aware = if value.getattr("tzinfo")?.is_none() {
            let kwargs = pyo3::types::PyDict::new(py);
            kwargs.set_item("tzinfo", &utc)?;
            value.call_method("replace", (), Some(&kwargs))?
        } else {
            value.clone()
        };
        let epoch = module
            .getattr("datetime")?
            .call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
        let one = module.getattr("timedelta")?.call1((0, 0, 1))?;
        let micros: i64 = aware.sub(epoch)?.floor_div(one)?.extract()?;
        Ok(TimeArgument::FileTime(
            micros
                .saturating_mul(10)
                .saturating_add(FILETIME_UNIX_EPOCH),
        ))
    }

    /// The same in ticks of a clock; `start` is the start of the recording.
    fn timestamp(self, start: FileTime, clock: &Clock) -> Ticks {
        let filetime = match self {
            TimeArgument::SinceStart(since) => start.get().saturating_add(since),
            TimeArgument::FileTime(filetime) => filetime,
        };
        clock.ticks_at(FileTime::new(filetime))
    }
}

/// One value or several.
pub fn several<T>(value: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<T>>
where
    T: for<'a, 'py> FromPyObject<'a, 'py, Error: Into<PyErr>>,
{
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let is_list = value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PySet>();
    if !is_list {
        return Ok(vec![value.extract::<T>().map_err(Into::into)?]);
    }
    let mut out = Vec::new();
    for item in value.try_iter()? {
        out.push(item?.extract::<T>().map_err(Into::into)?);
    }
    if out.is_empty() {
        return Err(PyValueError::new_err(
            "an empty list selects nothing; leave the argument out",
        ));
    }
    Ok(out)
}

/// Names or ids of processes.
pub fn processes(value: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let items: Vec<Py<PyAny>> = several(value)?;
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let py = value.py();
    items
        .iter()
        .map(|item| {
            let item = item.bind(py);
            match item.cast::<PyString>() {
                Ok(name) => name.extract(),
                Err(_) => Ok(item.extract::<u32>()?.to_string()),
            }
        })
        .collect()
}

impl Selection {
    /// Selects processes: numbers are ids, texts are file names of programs.
    pub fn with_processes(mut self, value: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let items: Vec<Py<PyAny>> = several(value)?;
        if let Some(value) = value {
            for item in &items {
                let item = item.bind(value.py());
                match item.cast::<PyString>() {
                    Ok(name) => self.processes.push(name.extract()?),
                    Err(_) => self.pids.push(item.extract()?),
                }
            }
        }
        Ok(self)
    }

    /// The first argument that selects by what only events have.
    pub fn of_events(&self) -> Option<&'static str> {
        let given = [
            ("provider", !self.providers.is_empty()),
            ("event", !self.events.is_empty()),
            ("id", !self.ids.is_empty()),
            ("level", self.level != 0),
            ("keyword", self.keyword != 0),
        ];
        given
            .into_iter()
            .find(|(_, is_given)| *is_given)
            .map(|(name, _)| name)
    }

    /// Whether a trace has to be read for its processes and threads first.
    pub fn needs_names(&self) -> bool {
        !self.processes.is_empty()
            || !self.pids.is_empty()
            || !self.threads.is_empty()
            || !self.conditions.is_empty()
            || self.grep.is_some()
    }

    /// The conditions on names and fields.
    pub fn conditions(&self) -> PyResult<Conditions> {
        Conditions::new(&self.events, &self.conditions, self.grep.as_slice())
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The filter for each of the traces, with the clock that its times are of, and names of
    /// providers that nothing defines. Call it without holding the interpreter.
    pub fn filters(
        &self,
        files: &Files,
        clocks: impl IntoIterator<Item = Clock>,
    ) -> Result<(Vec<Filter>, Vec<String>), Fault> {
        let start = files.timeline.clock().start_time;
        let (mut filters, mut unknown) = (Vec::new(), Vec::new());
        let (mut missing, mut found) = (None, false);
        let selector = ProcessSelector::new(&self.processes);
        for (input, clock) in files.inputs.iter().zip(clocks) {
            let mut filter = Filter {
                ids: self.ids.clone(),
                opcodes: self.opcodes.clone(),
                enablement: Enablement::new(self.level, self.keyword),
                processes: self.pids.iter().copied().map(ProcessId::new).collect(),
                threads: self.threads.iter().copied().map(ThreadId::new).collect(),
                time: TimeRange::new(
                    self.start.map(|time| time.timestamp(start, &clock)),
                    self.end.map(|time| time.timestamp(start, &clock)),
                ),
                ..Filter::of_providers(&self.providers)
            };
            let (source, name) = (input.source(), &input.name);
            match filter.select_processes(source, name, &selector, files.limits) {
                Ok(()) => found = true,
                Err(Error::Recording(error)) => {
                    return Err(Fault::format(name, &error.into_source()));
                }
                Err(error) => {
                    filter.lives = Filter::of_no_process().lives;
                    missing.get_or_insert_with(|| {
                        Fault::new(name, error.to_string()).hint(
                            "process= takes the id of a process, or the file name of a program",
                        )
                    });
                }
            }
            if !filter.names.is_empty() {
                let failed = |error: etl_format::Error| Fault::format(name, &error);
                let trace = Trace::open(input.source(), &files.options()).map_err(failed)?;
                let mut records = trace.into_records(Order::File).map_err(failed)?;
                let names = filter
                    .learn_names_of_trace(&mut records, &files::store())
                    .map_err(failed)?;
                unknown.push(names);
            }
            filters.push(filter);
        }
        if let Some(missing) = missing
            && !found
        {
            return Err(missing);
        }
        // A name is unknown that no trace defines.
        let everywhere = unknown.len() == files.inputs.len();
        let mut unknown = unknown.into_iter();
        let mut names = unknown.next().filter(|_| everywhere).unwrap_or_default();
        unknown.for_each(|others| names.retain(|name| others.contains(name)));
        Ok((filters, names))
    }
}

/// Warns of providers that nothing defines.
pub fn warn(py: Python<'_>, unknown: &[String]) -> PyResult<()> {
    for name in unknown {
        let text = format!("unknown provider {name}: neither the trace nor the tables define it");
        let text = std::ffi::CString::new(text).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 2)?;
    }
    Ok(())
}
