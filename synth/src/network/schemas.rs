//! Events of the drivers: their schemas in a build of Windows, and values by the names of fields.

use std::collections::BTreeMap;

use etl_format::Guid;
use etl_schema::EventSchema;
use etl_schema::encode::OwnedValue;
use etl_schema::tables::windows;

use crate::counts;
use crate::error::Result;
use crate::etw::{Etw, Event, Origin};

/// The events of a driver.
#[derive(Debug)]
pub(super) struct Driver {
    provider: Guid,
    events: BTreeMap<u16, &'static EventSchema>,
}

impl Driver {
    /// The events with these ids, as a build has them.
    pub fn new(provider: Guid, ids: &[u16], build: u32) -> Self {
        let find = |id: &u16| Some((*id, windows::in_build(provider, *id, 0, build)?.schema));
        Driver { provider, events: ids.iter().filter_map(find).collect() }
    }

    /// Logs an event with values by the names of its fields; lengths are those of what they count.
    pub fn log(
        &self,
        etw: &mut Etw<'_>,
        origin: &Origin,
        id: u16,
        more_keywords: u64,
        values: &[(&str, OwnedValue)],
    ) -> Result<()> {
        let Some(schema) = self.events.get(&id) else { return Ok(()) };
        let provider = etw.provider(self.provider, false);
        let mut descriptor = schema.descriptor();
        descriptor.keyword |= more_keywords;
        if !etw.seen(provider, origin.pid).raises(descriptor.level, descriptor.keyword) {
            return Ok(());
        }
        let value = |name: &str| {
            let given = values.iter().find(|(given, _)| *given == name);
            given.map_or(OwnedValue::Auto, |(_, value)| value.clone())
        };
        let mut values: Vec<OwnedValue> = schema.fields.iter().map(|f| value(&f.name)).collect();
        counts::fill(&schema.fields, &mut values);
        let event = Event { descriptor, ..Event::new(schema, &values) };
        etw.raise(provider, origin, &event)
    }
}
