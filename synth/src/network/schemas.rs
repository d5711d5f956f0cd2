//! Events of the drivers: their schemas in a build of Windows, and values by the names of fields.

use std::collections::BTreeMap;

use etl_format::Guid;
use etl_schema::EventSchema;
use etl_schema::tables::windows;

use crate::error::Result;
use crate::etw::{Etw, Origin};
use crate::windows_event::{self, NamedValue};

/// The events of a driver.
#[derive(Debug)]
pub(super) struct Driver {
    provider: Guid,
    events: BTreeMap<u16, &'static EventSchema>,
}

impl Driver {
    /// The events with these ids, as a build has them.
    pub fn new(provider: Guid, ids: &[u16], build: u32) -> Self {
        let mut events = BTreeMap::new();
        for id in ids {
            if let Some(event) = windows::in_build(provider, *id, 0, build) {
                events.insert(*id, event.schema);
            }
        }
        Driver { provider, events }
    }

    /// Logs an event with values by the names of its fields; lengths and counts are filled in.
    pub fn log(
        &self,
        etw: &mut Etw<'_>,
        origin: &Origin,
        id: u16,
        more_keywords: u64,
        values: &[NamedValue<'_>],
    ) -> Result<()> {
        let Some(schema) = self.events.get(&id) else {
            return Ok(());
        };
        windows_event::raise(etw, origin, self.provider, schema, more_keywords, values)
    }
}
