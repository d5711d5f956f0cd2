//! The selection of events: arguments of Python to filters and conditions.

use etl_analysis::ProcessSelector;
use etl_control::enable::Enablement;
use etl_events::Error;
use etl_events::conditions::Conditions;
use etl_events::filter::Filter;
use etl_events::time::TimePoint;
use etl_format::constants::FILETIME_UNIX_EPOCH;
use etl_format::read::{Order, Trace};
use etl_format::{Clock, FileTime, ProcessId, ThreadId, TimeRange};
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyModule, PySet, PyString, PyTuple};

use crate::error::Fault;
use crate::files::{self, Files};
use crate::input::Input;

/// The selection of events, for any trace.
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
    pub start: Option<TimePoint>,
    pub end: Option<TimePoint>,
    pub conditions: Vec<String>,
    pub grep: Option<String>,
}

/// A time argument: seconds since the start of the trace, or a datetime (UTC if it has no time
/// zone).
pub fn time(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<TimePoint>> {
    let Some(value) = value else { return Ok(None) };
    if let Ok(seconds) = value.extract::<f64>() {
        if !seconds.is_finite() {
            return Err(PyValueError::new_err("expected a finite number of seconds"));
        }
        return Ok(Some(TimePoint::since_start(seconds)));
    }
    let module = value.py().import("datetime")?;
    if !value.is_instance(&module.getattr("datetime")?)? {
        return Err(PyTypeError::new_err(
            "expected seconds since the start of the trace, or a datetime",
        ));
    }
    datetime(&module, value).map(Some)
}

fn datetime(module: &Bound<'_, PyModule>, value: &Bound<'_, PyAny>) -> PyResult<TimePoint> {
    let utc = module.getattr("timezone")?.getattr("utc")?;
    let aware = if value.getattr("tzinfo")?.is_none() {
        let kwargs = PyDict::new(value.py());
        kwargs.set_item("tzinfo", &utc)?;
        value.call_method("replace", (), Some(&kwargs))?
    } else {
        value.clone()
    };
    let epoch = module
        .getattr("datetime")?
        .call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
    let microsecond = module.getattr("timedelta")?.call1((0, 0, 1))?;
    let micros: i64 = aware.sub(epoch)?.floor_div(microsecond)?.extract()?;
    let units = micros.saturating_mul(10);
    let time = FileTime::new(units.saturating_add(FILETIME_UNIX_EPOCH));
    Ok(TimePoint::Utc(time))
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
    let mut processes = Vec::new();
    for item in &items {
        let item = item.bind(py);
        processes.push(match item.cast::<PyString>() {
            Ok(name) => name.extract()?,
            Err(_) => item.extract::<u32>()?.to_string(),
        });
    }
    Ok(processes)
}

/// The filters for traces.
pub struct Filters {
    /// The filter for each trace.
    pub list: Vec<Filter>,
    /// Selected names of providers that nothing defines.
    pub unknown: Vec<String>,
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

    /// The first argument that selects by properties that only events have.
    pub fn event_argument(&self) -> Option<&'static str> {
        if !self.providers.is_empty() {
            Some("provider")
        } else if !self.events.is_empty() {
            Some("event")
        } else if !self.ids.is_empty() {
            Some("id")
        } else if self.level != 0 {
            Some("level")
        } else if self.keyword != 0 {
            Some("keyword")
        } else {
            None
        }
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

    /// The filters for traces, whose times are of these clocks. Call it without holding the
    /// interpreter.
    pub fn filters(
        &self,
        files: &Files,
        clocks: impl IntoIterator<Item = Clock>,
    ) -> Result<Filters, Fault> {
        let selector = ProcessSelector::new(&self.processes);
        let mut list = Vec::new();
        let mut missing = None;
        let mut has_processes = false;
        let mut unknown: Option<Vec<String>> = None;
        for (input, clock) in files.inputs.iter().zip(clocks) {
            let mut filter = self.filter(files, &clock);
            let name = &input.name;
            match filter.select_processes(input.source(), name, &selector, files.limits) {
                Ok(()) => has_processes = true,
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
            let names = learn_names(&mut filter, input, files)?;
            // A name is unknown if no trace defines it.
            match &mut unknown {
                Some(unknown) => unknown.retain(|name| names.contains(name)),
                None => unknown = Some(names),
            }
            list.push(filter);
        }
        match missing {
            Some(missing) if !has_processes => Err(missing),
            _ => Ok(Filters {
                list,
                unknown: unknown.unwrap_or_default(),
            }),
        }
    }

    /// The filter for a trace, without processes.
    fn filter(&self, files: &Files, clock: &Clock) -> Filter {
        let start = files.timeline.clock().start_time;
        Filter {
            ids: self.ids.clone(),
            opcodes: self.opcodes.clone(),
            enablement: Enablement::new(self.level, self.keyword),
            processes: self.pids.iter().copied().map(ProcessId::new).collect(),
            threads: self.threads.iter().copied().map(ThreadId::new).collect(),
            time: TimeRange::new(
                self.start.map(|time| time.ticks(start, clock)),
                self.end.map(|time| time.ticks(start, clock)),
            ),
            ..Filter::of_providers(&self.providers)
        }
    }
}

/// Resolves the names of providers that only the trace can define. Returns the names that it does
/// not define.
fn learn_names(filter: &mut Filter, input: &Input, files: &Files) -> Result<Vec<String>, Fault> {
    if filter.names.is_empty() {
        return Ok(Vec::new());
    }
    let records = Trace::open(input.source(), &files.options())
        .and_then(|trace| trace.into_records(Order::File));
    let unknown = match records {
        Ok(mut records) => filter.learn_names_of_trace(&mut records, &files::store()),
        Err(error) => Err(error),
    };
    unknown.map_err(|error| Fault::format(&input.name, &error))
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
