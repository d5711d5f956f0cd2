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
                ErrorKind::Limit { .. } => Error::new(read.to_string()).advise(Advice::RaiseMemory),
                ErrorKind::Truncated { .. } => Error::new(read.to_string())
                    .hint_text("copy the file again: it ends before its first event"),
                _ => Error::new(read.to_string()),
            },
            ConvertError::Write(write) => match &write.kind {
                etl_format::ErrorKind::Io(io) => Error::from(&**io),
                _ => Error::new(write.to_string()),
            },
        }
    }
}
