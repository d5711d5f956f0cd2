//! The time, processor and thread of an event.

use etl_format::Guid;
use etl_format::constants::PointerSize;

use crate::time::Nanos;

/// Where and when an event is raised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Origin {
    pub at: Nanos,
    pub processor: u16,
    pub pid: u32,
    pub tid: u32,
    pub pointer_size: PointerSize,
    /// The current activity of the thread.
    pub activity: Guid,
    /// User time of the thread in timer ticks.
    pub user_time: u32,
}

/// Values of fields, in the order of the schema.
macro_rules! values {
    ($($value:expr),* $(,)?) => { [$(etl_schema::encode::OwnedValue::from($value)),*] };
}
pub(crate) use values;
