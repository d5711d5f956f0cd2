//! A difference in one part of a header or an event.

/// A part of a header or an event that differs; `None` where one side does not have it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Change {
    /// Name of a header field, a property of the event, or a payload field.
    pub name: String,
    /// In the first trace.
    pub before: Option<String>,
    /// In the second trace.
    pub after: Option<String>,
}
