//! Schemas of Arrow for columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::column::{Column, Kind, SCHEMA_VERSION};
use crate::table::Table;

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
    /// Its schema with `trace` and all columns that are not on request.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        let columns = self
            .data_set_columns()
            .into_iter()
            .filter(|column| !column.on_request);
        let slots: Vec<Slot> = columns.map(|column| Slot::from(&column)).collect();
        schema_of(&slots)
    }

    /// All columns in a data set, as builders need them.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        self.data_set_columns().iter().map(Slot::from).collect()
    }
}

/// The keys of the metadata of a field.
const UNIT: &str = "unit";
const MEANING: &str = "meaning";

/// A column as builders need it, of a fixed table or of the events of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub name: String,
    pub kind: Kind,
    pub nullable: bool,
    pub unit: &'static str,
    pub meaning: &'static str,
    pub on_request: bool,
}

impl From<&Column> for Slot {
    fn from(column: &Column) -> Self {
        let Column {
            kind,
            nullable,
            unit,
            meaning,
            on_request,
            ..
        } = *column;
        Slot {
            name: column.name.to_owned(),
            kind,
            nullable,
            unit,
            meaning,
            on_request,
        }
    }
}

impl Slot {
    /// A column that may have no value, without unit and meaning.
    pub fn of_field(name: &str, kind: Kind) -> Self {
        Slot {
            name: name.to_owned(),
            kind,
            nullable: true,
            unit: "",
            meaning: "",
            on_request: false,
        }
    }

    /// The field in Arrow, with the unit and the meaning as metadata.
    fn field(&self) -> Field {
        let mut metadata = HashMap::new();
        for (key, value) in [(UNIT, self.unit), (MEANING, self.meaning)] {
            if !value.is_empty() {
                metadata.insert(key.to_owned(), value.to_owned());
            }
        }
        Field::new(&self.name, self.kind.data_type(), self.nullable).with_metadata(metadata)
    }
}

/// The schema of some columns, with the version in its metadata.
pub(crate) fn schema_of<'s>(slots: impl IntoIterator<Item = &'s Slot>) -> SchemaRef {
    let fields: Vec<Field> = slots.into_iter().map(Slot::field).collect();
    let version = ("etlkit.schema".to_owned(), SCHEMA_VERSION.to_string());
    Arc::new(Schema::new(fields).with_metadata(HashMap::from([version])))
}
