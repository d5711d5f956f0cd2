//! The event with which the runtime names its process.

use crate::cursor::Cursor;
use crate::event::Event;

/// The process of a stream. The runtime writes this event when the session stops, so that a cut
/// stream lacks it.
///
/// ```
/// use etl_nettrace::{ProcessInfo, Reader};
///
/// fn command_line(stream: &[u8]) -> etl_nettrace::Result<Option<String>> {
///     let mut reader = Reader::new(stream)?;
///     while let Some(event) = reader.next_event()? {
///         if let Some(info) = ProcessInfo::decode(&event) {
///             return Ok(Some(info.command_line));
///         }
///     }
///     Ok(None)
/// }
/// # mod write { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/common/write.rs")); }
/// assert_eq!(command_line(&write::sample())?, None, "it has no such event");
/// # Ok::<(), etl_nettrace::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// The command line.
    pub command_line: String,
    /// The operating system: `Linux`, `Windows`, `macOS`. `None` before .NET 5.
    pub operating_system: Option<String>,
    /// The architecture: `x64`, `arm64`. `None` before .NET 5.
    pub architecture: Option<String>,
}

impl ProcessInfo {
    /// The provider of the event.
    pub const PROVIDER: &str = "Microsoft-DotNETCore-EventPipe";
    /// The id of the event.
    pub const EVENT_ID: u32 = 1;

    /// Decodes the event; `None` if it is another event or its payload ends early.
    #[must_use]
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        if event.provider() != Self::PROVIDER || event.id() != Self::EVENT_ID {
            return None;
        }
        let mut cursor = Cursor::new(event.payload, 0);
        Some(ProcessInfo {
            command_line: cursor.utf16_text("the command line").ok()?,
            operating_system: cursor.utf16_text("the operating system").ok(),
            architecture: cursor.utf16_text("the architecture").ok(),
        })
    }
}
