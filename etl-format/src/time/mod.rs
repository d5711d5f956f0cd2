//! Types for time: raw timestamps, calendar time, and ranges.

mod file_time;
mod range;
mod ticks;

pub use file_time::{FileTime, OutOfRange};
pub use range::TimeRange;
pub use ticks::Ticks;
