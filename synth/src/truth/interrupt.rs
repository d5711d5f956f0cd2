//! What drivers run when devices interrupt processors.

use serde::Serialize;

use crate::time::Nanos;

/// A routine that a driver ran, whether or not it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct InterruptReport {
    /// Its begin, simulated time.
    pub started_ns: Nanos,
    /// Its end.
    pub ended_ns: Nanos,
    /// `isr`, `message_isr`, `dpc`, `timer_dpc` or `threaded_dpc`.
    pub call: &'static str,
    /// The processor.
    pub processor: u16,
    /// File name of the driver in the script.
    pub driver: String,
    /// Address of the routine, as in the events.
    pub routine: u64,
}
