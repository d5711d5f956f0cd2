//! Errors as exceptions, with the file, the offset in it, and what to do next.

use std::io;

use etl_events::input::OptionNames;
use etl_format::ErrorKind;
use pyo3::create_exception;
use pyo3::exceptions::{PyBaseException, PyException, PyOSError};
use pyo3::prelude::*;

create_exception!(
    etwkit,
    TraceError,
    PyException,
    "A trace cannot be read, or a scenario cannot be simulated.\n\n\
     Attributes: ``file`` (its name), ``offset`` (bytes from its start, or None), ``hint`` (what \
     to do about it, or None), ``message`` (what is wrong)."
);

/// The options that errors of inputs advise.
const OPTIONS: OptionNames = OptionNames {
    member: "member=NAME",
    max_unpacked: "max_unpacked=64 << 30",
    max_memory: "max_memory=",
};

/// Why a trace cannot be read.
#[derive(Clone, Debug)]
pub struct Fault {
    file: String,
    message: String,
    offset: Option<u64>,
    hint: Option<String>,
}

impl Fault {
    /// A fault of a file.
    pub fn new(file: &str, message: impl Into<String>) -> Self {
        Fault {
            file: file.to_owned(),
            message: message.into(),
            offset: None,
            hint: None,
        }
    }

    /// What the user can do about it.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Fault {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// A fault of reading records.
    pub fn format(file: &str, error: &etl_format::Error) -> Self {
        let needs_memory = matches!(error.kind, ErrorKind::Budget { .. });
        let hint = needs_memory.then(|| "max_memory= allows more".to_owned());
        Fault {
            offset: Some(error.offset),
            hint,
            ..Fault::new(file, error.to_string())
        }
    }

    /// A fault of the bytes of a file.
    pub fn input(file: &str, error: &etl_events::input::Error) -> Self {
        Fault {
            hint: error.hint(OPTIONS),
            ..Fault::new(file, error.message())
        }
    }

    fn set_attributes(self, exception: &Bound<'_, PyBaseException>) -> PyResult<()> {
        exception.setattr("file", self.file)?;
        exception.setattr("message", self.message)?;
        exception.setattr("offset", self.offset)?;
        exception.setattr("hint", self.hint)
    }

    /// Adds the offset at which it was noticed.
    pub fn at(self, offset: u64) -> Self {
        Fault {
            offset: Some(offset),
            ..self
        }
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> PyErr {
        let mut text = format!("{}: {}", fault.file, fault.message);
        if let Some(hint) = &fault.hint {
            text.push_str("\nhint: ");
            text.push_str(hint);
        }
        Python::attach(|py| {
            let error = TraceError::new_err(text);
            match fault.set_attributes(error.value(py)) {
                Ok(()) => error,
                Err(other) => other,
            }
        })
    }
}

/// The exception of Python for an error of the system, with the name of the file.
pub fn os_error(error: &io::Error, name: &str) -> PyErr {
    match error.raw_os_error() {
        Some(code) => {
            let text = error.to_string();
            let message = match text.split_once(" (os error") {
                Some((message, _)) => message.to_owned(),
                None => text,
            };
            PyOSError::new_err((code, message, name.to_owned()))
        }
        None => Fault::new(name, error.to_string()).into(),
    }
}
