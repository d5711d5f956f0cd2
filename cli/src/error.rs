//! Why a command failed: the file, the offset in it, and what to do next.

use std::fmt;
use std::io;

use etl_events::input::{OptionNames, TemporaryError};
use etl_format::ErrorKind;

use crate::escape::one_line;
use crate::{Outcome, output};

/// The options that errors of inputs advise.
const OPTIONS: OptionNames = OptionNames {
    member: "--member NAME",
    max_unpacked: "--max-unpacked 64G",
    max_memory: "--max-memory",
};

/// A failure that ends a command with exit code 2.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The file or argument it is about; empty for none.
    subject: String,
    message: String,
    /// Whether the message has several lines.
    has_lines: bool,
    hint: Option<String>,
    broken_pipe: bool,
    needs_memory: bool,
}

impl Failure {
    pub fn new(subject: impl Into<String>, message: impl Into<String>) -> Self {
        Failure {
            subject: subject.into(),
            message: message.into(),
            has_lines: false,
            hint: None,
            broken_pipe: false,
            needs_memory: false,
        }
    }

    /// What the user can do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Keeps the line breaks of the message, which shows a piece of a file.
    pub fn lines(self) -> Self {
        Failure {
            has_lines: true,
            ..self
        }
    }

    /// Prints the failure to standard error.
    pub fn print(&self) {
        output::write_stderr(format_args!("error: {self}\n"));
    }

    /// Names the archive that the input was unpacked from: the user named it, not the file in it.
    pub fn unpacked(mut self, from: Option<&str>) -> Self {
        if let Some(from) = from {
            self.message = format!("{from}: {}", self.message);
        }
        self
    }

    /// The failure of reading a trace.
    pub fn trace(subject: &str, error: &etl_format::Error) -> Self {
        let mut failure = Failure::new(subject, error.to_string());
        match &error.kind {
            ErrorKind::Limit { .. } | ErrorKind::Budget { .. } => {
                failure.needs_memory = true;
                failure.hint("--max-memory allows more")
            }
            _ => failure,
        }
    }

    /// The failure of reading the bytes of an input.
    pub fn input(subject: &str, error: &etl_events::input::Error) -> Self {
        let mut failure = Failure::new(subject, error.message());
        failure.needs_memory = error.needs_memory();
        match error.hint(OPTIONS) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    /// The failure of an operation on the file `subject`.
    pub fn io(subject: impl fmt::Display, error: &io::Error) -> Self {
        let failure = Failure::new(subject.to_string(), error.to_string());
        match TemporaryError::of(error) {
            Some(_) => failure.hint(TemporaryError::HINT),
            None => failure,
        }
    }

    /// The message, with the subject before it unless that is `name`.
    pub fn message_about(&self, name: &str) -> String {
        if self.subject.is_empty() || self.subject == name {
            self.message.clone()
        } else {
            format!("{}: {}", self.subject, self.message)
        }
    }

    pub fn is_broken_pipe(&self) -> bool {
        self.broken_pipe
    }

    /// Whether more memory would help.
    pub fn needs_memory(&self) -> bool {
        self.needs_memory
    }
}

/// Prints the results of several files with `print`, even if there are none, then the failures: an
/// unreadable file does not hide the other files. Returns the last failure.
pub(crate) fn print_readable<T>(
    results: Vec<Result<T, Failure>>,
    print: impl FnOnce(&[T]) -> Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    let mut read = Vec::new();
    let mut failures = Vec::new();
    for result in results {
        match result {
            Ok(report) => read.push(report),
            Err(failure) => failures.push(failure),
        }
    }
    let last = failures.pop();
    let outcome = print(&read)?;
    failures.iter().for_each(Failure::print);
    match last {
        Some(failure) => Err(failure),
        None => Ok(outcome),
    }
}

impl From<io::Error> for Failure {
    /// An error of writing the output; errors of reading name their file.
    fn from(error: io::Error) -> Self {
        let mut failure = Failure::new("output", error.to_string());
        failure.broken_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        failure
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.subject.is_empty() {
            write!(f, "{}: ", one_line(&self.subject))?;
        }
        // Names may have line breaks, with which they would look like other messages.
        match self.has_lines {
            true => f.write_str(&self.message)?,
            false => f.write_str(&one_line(&self.message))?,
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {}", one_line(hint)),
            None => Ok(()),
        }
    }
}
