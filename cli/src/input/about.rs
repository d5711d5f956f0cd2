//! What messages about an input need: its name, its first bytes, what it was unpacked from.

use etl_format::read::Mode;
use etl_format::{Error, ErrorKind};

use super::{sniff, unpack};
use crate::error::Failure;

/// What messages about an input need.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    /// The name of the input.
    pub name: String,
    /// Its first bytes, unpacked, to recognize the type of the file.
    pub(super) head: Vec<u8>,
    /// What it was unpacked from, in words, if it is unpacked while it is read.
    pub(super) from: Option<String>,
}

impl About {
    /// An input that is known by its name only.
    pub fn named(name: &str) -> Self {
        About { name: name.to_owned(), ..About::default() }
    }

    /// The failure of opening the input as a trace: names its format, if it is a known one.
    pub fn not_a_trace(&self, error: &Error) -> Failure {
        let head = self.head.as_slice();
        let failure = Failure::trace(&self.name, error);
        let failure = match (&error.kind, sniff::named(&self.name, head), error.code()) {
            (ErrorKind::Io(error), ..) => unpack::failure(&self.name, error),
            (_, Some(named), _) => sniff::other(&self.name, named),
            (_, None, "not-etl") if head.is_empty() => {
                Failure::new(&self.name, "this file is empty")
                    .hint("stop the recording before copying its file, and copy it again")
            }
            (_, None, "not-etl") => failure
                .hint("an .etl trace starts with a buffer whose first record is the header event"),
            (_, None, "truncated" | "invalid") => {
                failure.hint("no part of it can be read: copy the file again, it may be incomplete")
            }
            _ => failure,
        };
        failure.unpacked(self.from.as_deref())
    }

    /// The failure of a command that needs an intact trace: `hint` says what to do with a damaged
    /// one.
    pub fn not_intact(&self, error: &Error, hint: &str) -> Failure {
        match error.code() {
            "truncated" | "invalid" | "compression" if sniff::what(&self.head).is_none() => {
                let failure = Failure::trace(&self.name, error).hint(hint);
                failure.unpacked(self.from.as_deref())
            }
            _ => self.not_a_trace(error),
        }
    }

    /// The failure of reading the trace in this mode; `--strict` chooses [`Mode::Strict`].
    pub fn unreadable(&self, mode: Mode, error: &Error) -> Failure {
        match mode {
            Mode::Salvage => self.not_a_trace(error),
            Mode::Strict => {
                self.not_intact(error, "omit --strict to read the intact parts of a damaged trace")
            }
        }
    }
}
