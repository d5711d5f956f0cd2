//! Events of garbage collections: their ids under the runtime provider, and values of their fields.

/// A collection starts.
pub const START: u16 = 1;
/// It ends.
pub const END: u16 = 2;
/// The threads of the process run again.
pub const RESTARTED: u16 = 3;
/// Sizes of the generations after a collection.
pub const HEAP_STATS: u16 = 4;
/// The threads are about to run again.
pub const RESTARTING: u16 = 7;
/// The threads are suspended.
pub const SUSPENDED: u16 = 8;
/// The threads are about to be suspended.
pub const SUSPEND: u16 = 9;
/// Finalizers have run.
pub const FINALIZED: u16 = 13;
/// Finalizers begin to run.
pub const FINALIZING: u16 = 14;
/// What a collection did to one heap.
pub const HEAP_HISTORY: u16 = 204;
/// A hundred KB were allocated.
pub const ALLOCATED: u16 = 10;

/// The type of a collection that runs concurrently with the process and with other collections.
pub const BACKGROUND: u32 = 1;
