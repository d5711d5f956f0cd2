//! The form of damage in the JSON of results.

use etl_format::read::Damage;
use serde::Serializer;

/// Serializes damage as true if there is any.
pub(crate) fn is_damaged<S: Serializer>(damage: &[Damage], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bool(!damage.is_empty())
}
