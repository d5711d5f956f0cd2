//! Schemas that stand in a trace after the events that need them.

use etl_format::read::Record;

use super::learn::Pass;
use super::{Reassembler, SchemaStore};

/// Learns the schemas of a trace in a pass over its records ahead of the one that decodes them.
///
/// With the store of [`SchemasAhead::into_store`], an event is decoded by the last description
/// before it, else by the first one after it.
#[derive(Clone, Debug)]
pub struct SchemasAhead(SchemaStore);

impl SchemasAhead {
    /// `store` knows further schemas.
    #[must_use]
    pub fn new(store: SchemaStore) -> Self {
        SchemasAhead(SchemaStore { pass: Pass::Ahead, ..store })
    }

    /// Takes from a record what it says about schemas. Cheap for records that say nothing.
    #[inline]
    pub fn learn(&mut self, record: &Record<'_>) {
        self.0.learn(record);
    }

    /// The store for the next pass, which learns from the records as if there had been none before.
    #[must_use]
    pub fn into_store(self) -> SchemaStore {
        let SchemasAhead(mut store) = self;
        store.merged.bytes = 0;
        let reassembler = Reassembler::new(store.limits.bytes);
        SchemaStore { pass: Pass::Again, reassembler, ..store }
    }
}
