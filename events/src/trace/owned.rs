//! Events that can be kept, one after the other.

use super::events::Events;
use crate::Result;
use crate::event::OwnedEvent;

/// Iterator over events that can be kept: made by [`Events::into_owned`].
#[derive(Debug)]
pub struct OwnedEvents<'t> {
    events: Events<'t>,
    has_failed: bool,
}

impl Iterator for OwnedEvents<'_> {
    type Item = Result<OwnedEvent>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        match self.events.next() {
            Ok(event) => Some(Ok(event?.to_owned())),
            Err(error) => {
                self.has_failed = true;
                Some(Err(error))
            }
        }
    }
}

impl<'t> Events<'t> {
    /// Events that can be kept, as an iterator. It ends after the first error.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// let events: Vec<_> = trace.events().event("GC*").into_owned().collect::<Result<_, _>>()?;
    /// let start = events[0].event();
    /// let end = events[1].event();
    /// let duration = end.time().duration_since(start.time()).ok_or("out of order")?;
    /// assert_eq!(duration.as_millis(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn into_owned(self) -> OwnedEvents<'t> {
        OwnedEvents {
            events: self,
            has_failed: false,
        }
    }
}
