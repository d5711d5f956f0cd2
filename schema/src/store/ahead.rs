//! Schemas that come in a trace after the events that need them.

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
    /// Starts with the schemas of a store.
    #[must_use]
    pub fn new(store: SchemaStore) -> Self {
        SchemasAhead(SchemaStore {
            pass: Pass::Ahead,
            ..store
        })
    }

    /// Learns the schemas that a record contains. Cheap for records without schemas.
    #[inline]
    pub fn learn(&mut self, record: &Record<'_>) {
        self.0.learn(record);
    }

    /// The store for the next pass, which learns from the same records again.
    #[must_use]
    pub fn into_store(self) -> SchemaStore {
        let SchemasAhead(mut store) = self;
        store.merged.bytes = 0;
        let reassembler = Reassembler::new(store.limits.bytes);
        SchemaStore {
            pass: Pass::Again,
            reassembler,
            ..store
        }
    }
}
