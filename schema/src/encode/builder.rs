//! Builder of a payload by field names.

use super::{EncodeError, EncodeProblem, OwnedValue, encode};
use crate::model::EventSchema;
use etl_format::constants::PointerSize;

/// Collects values by field name; fields that are not set are written as [`OwnedValue::Auto`].
#[derive(Debug, Clone)]
pub struct PayloadBuilder<'s> {
    schema: &'s EventSchema,
    values: Vec<OwnedValue>,
    unknown: Option<String>,
}

impl<'s> PayloadBuilder<'s> {
    /// A builder without values: all fields are [`OwnedValue::Auto`].
    #[must_use]
    pub fn new(schema: &'s EventSchema) -> Self {
        let values = vec![OwnedValue::Auto; schema.fields.len()];
        PayloadBuilder {
            schema,
            values,
            unknown: None,
        }
    }

    /// Sets the first field with this name. For an unknown name [`PayloadBuilder::encode`] fails.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl Into<OwnedValue>) -> Self {
        let index = self.schema.field_index(name);
        match index.and_then(|index| self.values.get_mut(index)) {
            Some(slot) => *slot = value.into(),
            None => {
                self.unknown.get_or_insert_with(|| name.to_owned());
            }
        }
        self
    }

    /// The payload.
    ///
    /// # Errors
    /// If a name is unknown or a value does not fit its field.
    pub fn encode(&self, pointers: PointerSize) -> Result<Vec<u8>, EncodeError> {
        if let Some(field) = self.unknown.clone() {
            return Err(EncodeError {
                field,
                problem: EncodeProblem::NoSuchField,
            });
        }
        encode(self.schema, &self.values, pointers)
    }
}
