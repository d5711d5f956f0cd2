//! An event with the text of its time.

use super::times::Times;
use crate::columns::{Column, write_column};
use crate::event::Event;

/// An event with the text of its time, as a writer shows it.
pub(super) struct Row<'a> {
    pub event: &'a Event<'a>,
    /// UTC, ISO 8601 with 100 ns.
    pub time: &'a [u8],
    /// Seconds since the start of the trace, if the writer shows them.
    pub seconds: Option<&'a [u8]>,
}

impl<'a> Row<'a> {
    pub fn new(event: &'a Event<'a>, times: &'a Times) -> Self {
        Row {
            event,
            time: times.utc(),
            seconds: times.seconds(),
        }
    }

    /// Writes the value of a column, text with `escape`.
    #[inline]
    pub fn write_column(
        &self,
        out: &mut Vec<u8>,
        column: Column,
        scratch: &mut Vec<u8>,
        escape: fn(&mut Vec<u8>, &str),
    ) {
        if column != Column::Time {
            return write_column(out, self.event, column, scratch, escape);
        }
        match self.seconds {
            Some(seconds) => out.extend(seconds),
            // A year before 0 begins like a formula.
            None if self.time.starts_with(b"-") => {
                escape(out, core::str::from_utf8(self.time).unwrap_or_default());
            }
            None => out.extend(self.time),
        }
    }
}
