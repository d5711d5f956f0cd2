//! Converts an EventPipe stream when it is opened.

use std::fs::File;

use etl_format::read::Spooled;
use etl_nettrace::ErrorKind;

use super::bytes::Bytes;
use super::error::{Advice, Error};
use super::packing::Unpacker;
use super::spooled_output::SpooledOutput;
use crate::eventpipe::{ConversionReport, ConvertError, convert};

/// A converted stream.
pub(super) struct Converted {
    pub trace: Spooled<File>,
    pub conversion: ConversionReport,
}

/// Converts a stream to a trace in memory, or in a temporary file if it is long.
pub(super) fn convert_stream(bytes: Bytes, unpacker: &Unpacker) -> Result<Converted, Error> {
    let output = SpooledOutput::new(unpacker.max_unpacked);
    let finished = convert(bytes.reader()?, output, &unpacker.eventpipe)?;
    Ok(Converted {
        trace: finished.output.into_spooled()?,
        conversion: finished.report,
    })
}

impl From<ConvertError> for Error {
    /// The failure of converting a stream.
    fn from(error: ConvertError) -> Self {
        match &error {
            ConvertError::Read(read) => match &read.kind {
                ErrorKind::Io(io) => Error::from(&**io),
                ErrorKind::Limit { .. } => unreadable(read).advise(Advice::RaiseMemory),
                ErrorKind::Version { found, remedy } => Error::new(format!(
                    "EventPipe streams of format version {found} are not supported"
                ))
                .hint_text(remedy),
                _ => unreadable(read).hint_text("copy the file again: it may be incomplete"),
            },
            ConvertError::Write(write) => match &write.kind {
                etl_format::ErrorKind::Io(io) => Error::from(&**io),
                _ => Error::new(write.to_string()),
            },
        }
    }
}

fn unreadable(error: &etl_nettrace::Error) -> Error {
    Error::new(format!(
        "this EventPipe stream (.nettrace) cannot be read: {error}"
    ))
}
