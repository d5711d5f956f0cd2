//! Work of idle processors: deferred procedure calls and interrupt service routines.

use std::fmt;

use crate::Interrupt;
use crate::observe::Sample;

/// The thread of idle processors.
const IDLE_THREAD: u32 = 0;

/// What interrupted an idle processor. Windows attributes such samples to the idle thread, which
/// does not run then: the drivers do.
///
/// ```
/// use etl_analysis::Interrupt;
/// use etl_analysis::profile::ProcessorInterrupt;
///
/// let interrupt = ProcessorInterrupt { kind: Interrupt::Dpc, processor: 2 };
/// assert_eq!(interrupt.to_string(), "DPC of processor 2");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessorInterrupt {
    /// What it is.
    pub kind: Interrupt,
    /// The processor.
    pub processor: u16,
}

impl ProcessorInterrupt {
    /// What interrupted the idle processor of a sample; `None` if another thread was running, which
    /// the sample is attributed to, or nothing interrupted the processor.
    #[must_use]
    pub fn of_idle(sample: &Sample<'_>) -> Option<Self> {
        if sample.event.tid.is_none_or(|tid| tid != IDLE_THREAD) {
            return None;
        }
        Some(ProcessorInterrupt {
            kind: sample.interrupt?,
            processor: sample.event.processor,
        })
    }
}

impl fmt::Display for ProcessorInterrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of processor {}", self.kind.name(), self.processor)
    }
}
