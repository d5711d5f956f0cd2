//! What the events of one trace have in common.

use etl_format::{Clock, FileTime};

use crate::context::Context;

/// What the events of one trace have in common.
#[derive(Clone, Debug)]
pub(crate) struct Origin<'c> {
    pub clock: Clock,
    /// Seconds count from this time.
    pub start: FileTime,
    /// The name of the file, if events show it.
    pub file: Option<String>,
    pub context: Option<Context<'c>>,
}
