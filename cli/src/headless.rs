//! Traces whose header event is lost: nobody told their session, system and clock.

use etl_format::read::{Source, Trace};

use crate::error::Failure;
use crate::escape::Printable;

/// What there is to know of such a trace.
pub(crate) const LOST: &str =
    "its header event is lost: times count from its first record, at an assumed 10 MHz";

/// Says so on standard error, where it is so.
pub(crate) fn warn<S: Source>(name: &str, trace: &Trace<S>) {
    if !trace.header().is_known() {
        tell!("warning: {}: {LOST}", Printable(name));
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
    let mut records = trace.file_order().map_err(|e| Failure::trace(name, &e))?;
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
