//! Losses in words.

use etl_analysis::loss::Loss;
use etl_format::Clock;

use crate::finding::utc;

/// What was lost, where and when.
pub(crate) fn message(clock: &Clock, loss: &Loss) -> String {
    let what = loss.what.message();
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
