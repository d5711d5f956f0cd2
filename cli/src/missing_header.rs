//! Traces whose header event is lost: their session, system and clock are unknown.

use etl_format::read::{Limits, Options, Order, Records, Source, Trace};

use crate::error::Failure;

/// What a user has to know about such a trace.
pub(crate) const MESSAGE: &str =
    "the header event is lost: times count from the first record, assuming a clock of 10 MHz";

/// [`ensure_records`] for a trace that is opened later. Reads the first buffers only; what is no
/// trace at all is not an error here.
///
/// # Errors
/// As [`ensure_records`].
pub(crate) fn ensure_records_in<S: Source>(
    name: &str,
    source: S,
    limits: Limits,
) -> Result<(), Failure> {
    match Records::stream(source, &Options { limits, ..Options::salvage() }) {
        Ok(records) if !records.header().is_known() => first(name, records),
        _ => Ok(()),
    }
}

/// Checks that a trace has a header event or a record.
///
/// # Errors
/// When it has neither: then it only looks like a trace.
pub(crate) fn ensure_records<S: Source>(name: &str, trace: &mut Trace<S>) -> Result<(), Failure> {
    if trace.header().is_known() {
        return Ok(());
    }
    first(name, trace.records(Order::File).map_err(|e| Failure::trace(name, &e))?)
}

fn first<S: Source>(name: &str, mut records: Records<S>) -> Result<(), Failure> {
    match records.next_record() {
        Ok(None) => Err(no_records_error(name)),
        Ok(Some(_)) => Ok(()),
        Err(e) => Err(Failure::trace(name, &e)),
    }
}

/// The failure of a trace without header event and records.
pub(crate) fn no_records_error(name: &str) -> Failure {
    Failure::new(name, "the header event is lost, and no record can be read")
        .hint("copy the file again: it may be incomplete")
}
