//! What the fields of all payloads of a schema share.

use crate::model::{EventSchema, Field};
use std::any::Any;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, OnceLock};

/// A value of any type that threads may share.
type Prepared = Arc<dyn Any + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// A schema, and the data that a renderer prepared for its fields.
///
/// Decoding does not look into the latter: it only keeps it where each event has it at hand.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) schema: Arc<EventSchema>,
    prepared: OnceLock<Prepared>,
}

impl Shared {
    pub(super) fn new(schema: Arc<EventSchema>) -> Self {
        Shared {
            schema,
            prepared: OnceLock::new(),
        }
    }

    /// What `prepare` makes of the fields of the schema. It is called once.
    ///
    /// `None` if something of another type was prepared before.
    #[inline]
    pub(super) fn prepared<T>(&self, prepare: fn(&[Field]) -> T) -> Option<&T>
    where
        T: Any + Send + Sync + UnwindSafe + RefUnwindSafe,
    {
        let prepared = self
            .prepared
            .get_or_init(|| Arc::new(prepare(&self.schema.fields)));
        let prepared: &dyn Any = &**prepared;
        prepared.downcast_ref()
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.schema.fmt(f)
    }
}
