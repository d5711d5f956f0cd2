//! What messages about the bytes of a trace need.

use etl_format::ErrorKind;
use etl_format::read::{Limits, Options, Records, Source};

use super::error::{Advice, Error};
use super::sniff;

/// What messages about the bytes of a trace need.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Head {
    /// The first bytes, unpacked, to recognize the type of the file.
    pub bytes: Vec<u8>,
    /// What they were unpacked from, in words.
    pub from: Option<String>,
}

impl Head {
    /// Number of bytes that are enough to recognize the type of a file.
    pub const SIZE: usize = 512;

    /// Why the bytes of the file with this name are no trace: names their format, if it is a known
    /// one.
    #[must_use]
    pub fn not_a_trace(&self, name: &str, error: &etl_format::Error) -> Error {
        let head = self.bytes.as_slice();
        let failure = Error::new(error.to_string());
        let part = || {
            let is_packed = self.from.is_none() && error.code() == "not-etl";
            sniff::last_part(name).filter(|_| is_packed && !head.is_empty())
        };
        let named = sniff::named(name, head).or_else(part);
        let failure = match (&error.kind, named, error.code()) {
            (ErrorKind::Io(error), ..) => Error::from(&**error),
            (ErrorKind::Limit { .. } | ErrorKind::Budget { .. }, ..) => {
                failure.advise(Advice::RaiseMemory)
            }
            (_, Some(named), _) => sniff::other(named),
            (_, None, "not-etl") if head.is_empty() => Error::new("this file is empty")
                .hint_text("stop the recording before copying its file, and copy it again"),
            (_, None, "not-etl") => failure.hint_text(
                "an .etl trace starts with a buffer whose first record is the header event",
            ),
            (_, None, "truncated" | "invalid") => failure
                .hint_text("no part of it can be read: copy the file again, it may be incomplete"),
            _ => failure,
        };
        failure.unpacked_from(self.from.as_deref())
    }

    /// Whether these are the first bytes of a file of another format, or of text.
    #[must_use]
    pub fn is_other_format(&self) -> bool {
        sniff::what(&self.bytes).is_some()
    }

    /// Checks that a trace has a header event or a record: without both, it only looks like one.
    /// Reads the first buffers only; what is no trace at all is not an error here.
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
