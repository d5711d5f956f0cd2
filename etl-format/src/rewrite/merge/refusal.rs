//! Reasons for which traces are merged although they do not belong together.

use crate::refusal::{Reason, Refusal};

/// Reasons for which traces are merged all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // Each is a switch of its own.
pub struct Allow {
    /// [`Reason::Machine`].
    pub machine: bool,
    /// [`Reason::Boot`].
    pub boot: bool,
    /// [`Reason::Clock`].
    pub clock: bool,
    /// [`Reason::PointerSize`].
    pub pointer_size: bool,
}

impl Allow {
    /// All reasons: traces are never refused.
    pub const ALL: Allow = Allow {
        machine: true,
        boot: true,
        clock: true,
        pointer_size: true,
    };

    fn contains(self, reason: &Reason) -> bool {
        match reason {
            Reason::Machine { .. } => self.machine,
            Reason::Boot { .. } => self.boot,
            Reason::Clock { .. } => self.clock,
            Reason::PointerSize { .. } => self.pointer_size,
        }
    }

    /// Refuses the input, unless the reason is allowed.
    pub(super) fn check(self, input: usize, with: usize, reason: Reason) -> Result<(), Refusal> {
        if self.contains(&reason) {
            Ok(())
        } else {
            Err(Refusal {
                input,
                with,
                reason,
            })
        }
    }
}
