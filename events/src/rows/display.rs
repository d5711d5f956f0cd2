//! Events as text.

use core::fmt;

use super::{Format, RowWriter};
use crate::event::Event;

/// The line of `etlkit dump`, without its end.
///
/// ```
/// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
/// let mut events = trace.events().event("GCEnd*");
/// let event = events.next()?.ok_or("no event")?;
/// let line = event.to_string();
/// assert!(line.starts_with("2022-06-18T04:26:40.0030000Z  cpu 0  pid app.exe (100) tid 101  "));
/// assert!(line.ends_with(" GCEnd_V1 Count=7 Depth=1 ClrInstanceID=9"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = Vec::new();
        RowWriter::new(Format::Text).write(&mut line, self);
        f.write_str(String::from_utf8_lossy(&line).trim_end_matches('\n'))
    }
}
