//! Losses in words.

use etl_analysis::loss::Loss;
use etl_format::Clock;

/// What was lost, where and when.
pub(crate) fn message(clock: &Clock, loss: &Loss) -> String {
    let what = loss.what.message();
    let processor = loss
        .processor
        .map_or(String::new(), |p| format!(" on processor {p}"));
    let from = loss.from.map(|from| clock.time(from));
    let to = loss.to.map(|to| clock.time(to));
    let when = match (from, to) {
        (Some(from), Some(to)) => format!(" between {from} and {to}"),
        (Some(from), None) => format!(" after {from}"),
        (None, Some(to)) => format!(" before {to}"),
        (None, None) => ", at an unknown time".to_owned(),
    };
    format!("{what}{processor}{when}")
}
