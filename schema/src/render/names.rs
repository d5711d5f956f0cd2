//! Names that the trace has for values: of processes and threads, of code, and of drives.

use std::borrow::Cow;

use crate::decode::Utf16;
use crate::model::Meaning;

/// What is known of the values of an event beyond its schema.
pub trait Names {
    /// Whether numbers that identify such a thing may have names.
    fn has(&self, meaning: Meaning) -> bool;

    /// The name of a number: of a process id, a thread id or an address.
    fn name(&self, meaning: Meaning, value: u64) -> Option<Cow<'_, str>>;

    /// What stands for the beginning of a path, and how many UTF-16 units it stands for.
    fn path(&self, text: Utf16<'_>) -> Option<(usize, &str)>;
}

/// A text as what stands for its beginning, and its rest.
pub(super) fn split<'t, 'n>(names: Option<&'n dyn Names>, text: Utf16<'t>) -> (&'n str, Utf16<'t>) {
    let Some((units, path)) = names.and_then(|names| names.path(text)) else { return ("", text) };
    (path, Utf16::new(text.bytes().get(2 * units..).unwrap_or_default()))
}
