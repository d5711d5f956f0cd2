//! The report of a trace in memory: the report that `etlverify --no-config` prints.
#![forbid(unsafe_code)]

use etl_events::input::{Bytes, Input, InputOptions};
use etl_format::read::{Limits, Spooled};
use etl_verify::{Error, Report, Verifier};

/// Verifies the bytes of a trace, packed or not. The report calls it `name`. If they cannot be
/// read, the report states why.
pub fn report(trace: Vec<u8>, name: &str) -> Report {
    match verify(trace, name) {
        Ok(report) => report,
        Err(message) => Report::unreadable(name, message),
    }
}

fn verify(trace: Vec<u8>, name: &str) -> Result<Report, String> {
    let bytes = Bytes::Whole(Spooled::Memory(trace));
    let mut input = Input::new(bytes, name, &InputOptions::default()).map_err(text)?;
    let report = match Verifier::new().verify(input.source(), name) {
        Ok(report) => report,
        Err(Error::Trace(error)) => {
            return Err(text(input.head().not_a_trace(name, &error.into_source())));
        }
        Err(error) => return Err(text(error)),
    };
    if report.records == 0 {
        let head = input.head().clone();
        head.ensure_records(input.source(), Limits::default())
            .map_err(text)?;
    }
    Ok(report)
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}
