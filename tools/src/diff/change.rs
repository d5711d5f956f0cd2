//! A difference in one part of a header or an event.

/// A part of a header or an event that differs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Change {
    /// Name of a header field, a property of the event, or a payload field.
    pub name: String,
    /// Its value in the first trace; `None` if it is not there.
    pub before: Option<String>,
    /// Its value in the second trace; `None` if it is not there.
    pub after: Option<String>,
}
