//! The parts of messages about an input: its name, its first bytes, its archive.

use etl_events::input::Head;
use etl_format::Error;
use etl_format::read::Mode;

use crate::error::Failure;

/// What to do about damage in strict mode.
const OMIT_STRICT: &str = "omit --strict to read the intact parts of a damaged trace";

/// The parts of messages about an input.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    /// The name of the input.
    pub name: String,
    /// Its first bytes, and the archive if it is unpacked while it is read.
    pub(super) head: Head,
}

impl About {
    /// An input of which only the name is known.
    pub fn named(name: &str) -> Self {
        About {
            name: name.to_owned(),
            ..About::default()
        }
    }

    /// The failure of opening the input as a trace: names its format, if that is known.
    pub fn not_a_trace(&self, error: &Error) -> Failure {
        Failure::input(&self.name, &self.head.not_a_trace(&self.name, error))
    }

    /// The failure of a command that needs an intact trace: `hint` says what to do with a damaged
    /// one.
    pub fn not_intact(&self, error: &Error, hint: &str) -> Failure {
        match error.code() {
            // Too short for any trace.
            "truncated" if self.head.bytes.len() < Head::SIZE => self.not_a_trace(error),
            "truncated" | "invalid" | "compression" if !self.head.is_other_format() => {
                let failure = Failure::trace(&self.name, error).hint(hint);
                failure.unpacked(self.head.from.as_deref())
            }
            _ => self.not_a_trace(error),
        }
    }

    /// Checks in strict mode that an EventPipe stream was converted as a whole.
    ///
    /// # Errors
    /// If a part of the stream is damaged or missing.
    pub fn check_stream(&self, mode: Mode) -> Result<(), Failure> {
        match mode {
            Mode::Strict => self.ensure_whole_stream(OMIT_STRICT),
            Mode::Salvage => Ok(()),
        }
    }

    /// Checks that an EventPipe stream was converted as a whole; `hint` says what to do otherwise.
    ///
    /// # Errors
    /// If a part of the stream is damaged or missing.
    pub fn ensure_whole_stream(&self, hint: &str) -> Result<(), Failure> {
        let Some(conversion) = &self.head.conversion else {
            return Ok(());
        };
        let message = match (conversion.damage.first(), conversion.cut_offset) {
            (Some(fault), _) => format!("this EventPipe stream is damaged: {}", fault.error),
            (None, Some(offset)) => format!("this EventPipe stream is cut at offset {offset:#x}"),
            (None, None) => return Ok(()),
        };
        Err(Failure::new(&self.name, message).hint(hint))
    }

    /// The failure of reading the trace in this mode; `--strict` chooses [`Mode::Strict`].
    pub fn unreadable(&self, mode: Mode, error: &Error) -> Failure {
        match mode {
            Mode::Salvage => self.not_a_trace(error),
            Mode::Strict => self.not_intact(error, OMIT_STRICT),
        }
    }
}
