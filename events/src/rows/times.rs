//! The text of times; most of it is the same for consecutive events.

use std::io::Write;

use etl_format::FileTime;
use etl_format::constants::FILETIME_PER_SECOND;

use crate::event::Event;

/// The text of the time of the last event.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    /// The second of `utc`, in seconds since 1601.
    second: i64,
    utc: Vec<u8>,
    seconds: Vec<u8>,
    form: TimeForm,
}

/// The form of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TimeForm {
    #[default]
    Utc,
    /// Seconds since the start of the trace.
    Relative,
}

impl Times {
    /// Writes seconds since the start of the trace as well.
    pub fn set_relative(&mut self) {
        self.form = TimeForm::Relative;
    }

    /// The time in UTC.
    pub fn utc(&self) -> &[u8] {
        &self.utc
    }

    /// The seconds since the start of the trace, if they are written.
    pub fn seconds(&self) -> Option<&[u8]> {
        match self.form {
            TimeForm::Utc => None,
            TimeForm::Relative => Some(&self.seconds),
        }
    }

    /// Formats the time of an event. If the second is the same as before, only its fraction
    /// changes.
    #[inline]
    pub fn format(&mut self, event: &Event<'_>) {
        if self.form == TimeForm::Relative {
            self.seconds.clear();
            // Writing to a vector does not fail.
            let _ = write!(self.seconds, "{}", event.seconds());
        }
        let time = event.time();
        let second = time.get().div_euclid(FILETIME_PER_SECOND);
        if second != self.second || self.utc.is_empty() {
            self.second = second;
            self.utc.clear();
            let start_of_second = second.saturating_mul(FILETIME_PER_SECOND);
            let _ = write!(self.utc, "{}", FileTime::new(start_of_second));
        }
        // Less than a second, so less than 2^32.
        let fraction = time.get().rem_euclid(FILETIME_PER_SECOND) as u32;
        if let Some(end) = self.utc.last_chunk_mut() {
            *end = fraction_digits(fraction);
        }
    }
}

/// The seven digits of a fraction of a second, and the letter after them.
fn fraction_digits(fraction: u32) -> [u8; 8] {
    let places = [1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];
    let [a, b, c, d, e, f, g] = places.map(|place| b'0' + (fraction / place % 10) as u8);
    [a, b, c, d, e, f, g, b'Z']
}
