//! Interrupts of devices: what their drivers run.

use crate::time::Nanos;

/// A device interrupts a processor. Its driver runs a service routine, then a deferred procedure
/// call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptPlan {
    /// File name of the driver.
    pub driver: String,
    /// The processor.
    pub processor: u16,
    /// How long the service routine runs, if it runs.
    pub isr: Option<Nanos>,
    /// Whether the device interrupts by a message.
    pub message: bool,
    /// How long the deferred call runs, if it runs.
    pub dpc: Option<Nanos>,
    /// The kind of the deferred call.
    pub dpc_kind: DpcKind,
    /// How long a second service routine of the same driver runs in the middle of the deferred
    /// call, if it does. The deferred call takes longer by this time.
    pub nested: Option<Nanos>,
}

/// A kind of deferred procedure call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DpcKind {
    /// A service routine requested it.
    #[default]
    Ordinary,
    /// A timer requested it.
    Timer,
    /// It runs in a thread.
    Threaded,
}

impl DpcKind {
    pub(crate) const WORDS: [(&'static str, DpcKind); 3] = [
        ("ordinary", DpcKind::Ordinary),
        ("timer", DpcKind::Timer),
        ("threaded", DpcKind::Threaded),
    ];
}
