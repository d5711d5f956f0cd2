//! The first bytes of an input, which tell messages what it is instead of a trace.

use etl_format::ErrorKind;
use etl_format::read::{Limits, Options, Records, Source};

use super::error::{Advice, Error};
use super::sniff;
use crate::eventpipe::ConversionReport;

/// The first bytes of an input, for messages about an input that is not a trace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Head {
    /// The first bytes, unpacked, to recognize the type of the file.
    pub bytes: Vec<u8>,
    /// The archive from which they were unpacked, in words.
    pub from: Option<String>,
    /// The conversion, if the input was an EventPipe stream (`.nettrace`).
    pub conversion: Option<ConversionReport>,
}

impl Head {
    /// Number of bytes that are enough to recognize the type of a file.
    pub const SIZE: usize = 512;

    /// Why the bytes of the file with this name are not a trace: names their format, if it is
    /// recognized.
    #[must_use]
    pub fn not_a_trace(&self, name: &str, error: &etl_format::Error) -> Error {
        let failure = match &error.kind {
            ErrorKind::Io(error) => Error::from(&**error),
            ErrorKind::Limit { .. } | ErrorKind::Budget { .. } => {
                Error::new(error.to_string()).advise(Advice::RaiseMemory)
            }
            _ => match self.other_format(name, error) {
                Some(format) => sniff::other(format),
                None => self.unreadable(error),
            },
        };
        failure.unpacked_from(self.from.as_deref())
    }

    /// The format of the file with this name, if it is recognized.
    fn other_format(&self, name: &str, error: &etl_format::Error) -> Option<sniff::Format> {
        if let Some(format) = sniff::named(name, &self.bytes) {
            return Some(format);
        }
        if self.from.is_some() || self.bytes.is_empty() || error.code() != "not-etl" {
            return None;
        }
        sniff::last_part(name)
    }

    /// The error of a file whose format is not recognized.
    fn unreadable(&self, error: &etl_format::Error) -> Error {
        let failure = Error::new(error.to_string());
        match error.code() {
            "not-etl" if self.bytes.is_empty() => Error::new("this file is empty")
                .hint_text("stop the recording before copying its file, and copy it again"),
            "not-etl" => failure.hint_text(
                "an .etl trace starts with a buffer whose first record is the header event",
            ),
            "truncated" | "invalid" => failure
                .hint_text("no part of it can be read: copy the file again, it may be incomplete"),
            _ => failure,
        }
    }

    /// Whether these are the first bytes of a file of another format, or of text.
    #[must_use]
    pub fn is_other_format(&self) -> bool {
        sniff::what(&self.bytes).is_some()
    }

    /// Checks that a trace has a header event or a record: without both, it only looks like one.
    /// Reads the first buffers only; an input that is not a trace at all is not an error here.
    ///
    /// # Errors
    /// When it has neither, or when reading fails.
    pub fn ensure_records<S: Source>(&self, source: S, limits: Limits) -> Result<(), Error> {
        let options = Options {
            limits,
            ..Options::salvage()
        };
        match Records::stream(source, &options) {
            Ok(mut records) if !records.header().is_known() => match records.next_record() {
                Ok(Some(_)) => Ok(()),
                Ok(None) => Err(Head::no_records()),
                Err(error) => Err(self.not_a_trace("", &error)),
            },
            _ => Ok(()),
        }
    }

    /// The error of a trace without header event and records.
    #[must_use]
    pub fn no_records() -> Error {
        Error::new("the header event is lost, and no record can be read")
            .hint_text("copy the file again: it may be incomplete")
    }
}
