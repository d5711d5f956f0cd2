//! Traces whose header event is lost: nobody told their session, system and clock.

use etl_format::read::{FileOrder, Options, Source, Trace};

use crate::error::Failure;
use crate::escape::Printable;

/// What there is to know of such a trace.
pub(crate) const LOST: &str =
    "its header event is lost: times count from its first record, at an assumed 10 MHz";

/// Says so on standard error, where it is so.
pub(crate) fn warn<S: Source>(name: &str, trace: &Trace<S>) {
    if !trace.header().is_known() {
        tell(name);
    }
}

/// Says so on standard error.
pub(crate) fn tell(name: &str) {
    tell!("warning: {}: {LOST}", Printable(name));
}

/// Whether the header event is lost of what somebody else opens later on, and names if it is no trace: that is not
/// said here. Only the first buffers are looked at.
///
/// # Errors
/// As [`something`].
pub(crate) fn is_lost<S: Source>(name: &str, source: S) -> Result<bool, Failure> {
    match FileOrder::open(source, &Options::salvage()) {
        Ok(records) if !records.header().is_known() => first(name, records).map(|()| true),
        _ => Ok(false),
    }
}

/// Whether there is anything to go by: a header event, or a record.
///
/// # Errors
/// When there is neither: what was found looks like a buffer, and no more.
pub(crate) fn something<S: Source>(name: &str, trace: &mut Trace<S>) -> Result<(), Failure> {
    if trace.header().is_known() {
        return Ok(());
    }
    first(name, trace.file_order().map_err(|e| Failure::trace(name, &e))?)
}

/// Whether there is a record.
fn first<S: Source>(name: &str, mut records: FileOrder<S>) -> Result<(), Failure> {
    match records.next_record() {
        Ok(None) => Err(nothing(name)),
        Ok(Some(_)) => Ok(()),
        Err(e) => Err(Failure::trace(name, &e)),
    }
}

/// The failure of a trace without header event and records.
pub(crate) fn nothing(name: &str) -> Failure {
    Failure::new(name, "its header event is lost, and there is no record that could be read")
        .hint("was the whole of the file copied?")
}
