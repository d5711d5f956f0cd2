//! Schemas of Arrow for columns.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::column::{Column, Kind, SCHEMA_VERSION};
use crate::tables::Table;

impl Kind {
    /// The type in Arrow.
    #[must_use]
    pub fn data_type(self) -> DataType {
        match self {
            Kind::Bool => DataType::Boolean,
            Kind::Int32 => DataType::Int32,
            Kind::Int64 => DataType::Int64,
            Kind::Float64 => DataType::Float64,
            Kind::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Kind::Text => DataType::Utf8,
            Kind::Word => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Kind::Bytes => DataType::Binary,
        }
    }
}

impl Table {
    /// Its schema with all columns that are not made on request only.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        let columns = self.columns.iter().filter(|column| !column.on_request);
        schema_of(&columns.map(Slot::from).collect::<Vec<_>>())
    }
}

/// A column as builders need it, of a fixed table or of the events of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub name: String,
    pub kind: Kind,
    pub nullable: bool,
}

impl From<&Column> for Slot {
    fn from(column: &Column) -> Self {
        let Column { kind, nullable, .. } = *column;
        Slot { name: column.name.to_owned(), kind, nullable }
    }
}

/// The schema of some columns, with the version in its metadata.
pub(crate) fn schema_of<'s>(slots: impl IntoIterator<Item = &'s Slot>) -> SchemaRef {
    let field = |slot: &Slot| Field::new(&slot.name, slot.kind.data_type(), slot.nullable);
    let fields: Vec<Field> = slots.into_iter().map(field).collect();
    let version = ("etlkit.schema".to_owned(), SCHEMA_VERSION.to_string());
    let metadata = std::collections::HashMap::from([version]);
    Arc::new(Schema::new(fields).with_metadata(metadata))
}
