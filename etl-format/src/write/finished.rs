//! The result of writing a trace.

use super::SessionSummary;

/// A finished trace: the output that it was written to, and a report on it.
///
/// ```
/// use etl_format::FileHeader;
/// use etl_format::write::{Finished, Session};
///
/// let finished: Finished<Vec<u8>> = Session::in_memory(FileHeader::new())?.close(None)?;
/// assert_eq!(finished.report.buffers_written, 1);
/// assert_eq!(finished.output.len(), 0x1_0000, "one buffer of 64 KiB");
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished<O, R = SessionSummary> {
    /// The output, for example the bytes in memory.
    pub output: O,
    /// What was written and lost, and other results of the writer.
    pub report: R,
}
