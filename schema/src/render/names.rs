//! Names that the trace has for values: of processes and threads, of code, and of drives.

use std::borrow::Cow;

use crate::decode::Utf16;
use crate::model::Meaning;

/// Names of the values of an event that its schema does not contain.
pub trait Names {
    /// Whether numbers with this meaning may have names.
    fn has(&self, meaning: Meaning) -> bool;

    /// The name of a number: of a process id, a thread id or an address.
    fn name(&self, meaning: Meaning, value: u64) -> Option<Cow<'_, str>>;

    /// The name of the beginning of a path, such as a drive for a device.
    fn path(&self, text: Utf16<'_>) -> Option<PathStart<'_>>;
}

/// The beginning of a path, with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathStart<'n> {
    /// Length of the beginning in UTF-16 code units.
    pub units: usize,
    /// The name that is written instead of it.
    pub name: &'n str,
}

/// A text as the name of its beginning, and its rest.
pub(super) fn split<'t, 'n>(names: Option<&'n dyn Names>, text: Utf16<'t>) -> (&'n str, Utf16<'t>) {
    let Some(start) = names.and_then(|names| names.path(text)) else {
        return ("", text);
    };
    let rest = text.bytes().get(2 * start.units..).unwrap_or_default();
    (start.name, Utf16::new(rest))
}
