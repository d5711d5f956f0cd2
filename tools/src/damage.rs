//! How results show that a part of the source could not be read.

use etl_format::read::Damage;
use serde::Serializer;

/// Serializes damage as whether there is any.
pub(crate) fn is_damaged<S: Serializer>(damage: &[Damage], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bool(!damage.is_empty())
}
