//! A callback of the caller, as a field of a builder.

use core::fmt;

/// A function that a builder calls, if it is set.
pub(super) struct Callback<F: ?Sized>(pub Option<Box<F>>);

impl<F: ?Sized> Default for Callback<F> {
    fn default() -> Self {
        Callback(None)
    }
}

impl<F: ?Sized> fmt::Debug for Callback<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Callback" } else { "None" })
    }
}
