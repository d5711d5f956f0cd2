//! Losses in words and as codes.

use etl_format::Clock;
use serde::Serialize;

use crate::facts::loss::{Loss, What};
use crate::finding::utc;

/// What was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LossKind {
    /// Events were dropped because no buffer was free.
    EventsLost,
    /// A buffer could not be written.
    BuffersLost,
    /// Bytes of the file are damaged or missing.
    FileDamaged,
    /// The session was not closed: its end is missing.
    EndMissing,
    /// New buffers replaced the oldest ones of a circular file.
    Overwritten,
}

/// The kind of a loss, and what happened as the beginning of a sentence.
pub(crate) fn kind(loss: &Loss) -> (LossKind, &'static str) {
    match loss.what {
        What::Events => (LossKind::EventsLost, "events were lost"),
        What::Buffers => (LossKind::BuffersLost, "a buffer was lost"),
        What::Bytes => (LossKind::FileDamaged, "the file is damaged"),
        What::Tail => (LossKind::EndMissing, "the end of the session is missing"),
        What::Oldest => {
            (LossKind::Overwritten, "the oldest buffers of a circular file were overwritten")
        }
    }
}

/// What was lost, where and when.
pub(crate) fn message(clock: &Clock, loss: &Loss) -> String {
    let (_, what) = kind(loss);
    let processor = loss.processor.map_or(String::new(), |p| format!(" on processor {p}"));
    let at = |timestamp: Option<i64>| timestamp.map(|timestamp| utc(clock, timestamp));
    let when = match (at(loss.from), at(loss.to)) {
        (Some(from), Some(to)) => format!(" between {from} and {to}"),
        (Some(from), None) => format!(" after {from}"),
        (None, Some(to)) => format!(" before {to}"),
        (None, None) => ", at an unknown time".to_owned(),
    };
    format!("{what}{processor}{when}")
}
