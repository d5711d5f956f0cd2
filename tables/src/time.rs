//! Times of Arrow.

use etl_format::constants::FILETIME_UNIX_EPOCH;

/// 100 ns in a microsecond.
const TICKS: i64 = 10;

/// Microseconds since 1970 of a FILETIME.
pub(crate) fn unix_micros(filetime: i64) -> i64 {
    filetime
        .saturating_sub(FILETIME_UNIX_EPOCH)
        .div_euclid(TICKS)
}
