//! Columns and tables as data: names, types, units and meanings.

/// The version of the tables that this crate documents. It grows when a column changes its meaning
/// or its type, or goes; a new column does not change it.
pub const SCHEMA_VERSION: u32 = 1;

/// The type of a column. All numbers are signed, so that every engine reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A truth value.
    Bool,
    /// A number of 32 bits.
    Int32,
    /// A number of 64 bits; unsigned ones keep their bits.
    Int64,
    /// IEEE 754, 64 bits.
    Float64,
    /// Microseconds since 1970 in UTC.
    Time,
    /// Text.
    Text,
    /// Text that comes often: each value is kept once.
    Word,
    /// Bytes.
    Bytes,
}

impl Kind {
    /// The type in the words of SQL.
    #[must_use]
    pub const fn sql(self) -> &'static str {
        match self {
            Kind::Bool => "BOOLEAN",
            Kind::Int32 => "INTEGER",
            Kind::Int64 => "BIGINT",
            Kind::Float64 => "DOUBLE",
            Kind::Time => "TIMESTAMP WITH TIME ZONE",
            Kind::Text | Kind::Word => "VARCHAR",
            Kind::Bytes => "BLOB",
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether rows may have no value.
    pub nullable: bool,
    /// The unit of its numbers; empty where they have none.
    pub unit: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Whether it is left out unless it is asked for.
    pub on_request: bool,
}

impl Column {
    pub(crate) const fn new(name: &'static str, kind: Kind, meaning: &'static str) -> Self {
        Column { name, kind, nullable: false, unit: "", meaning, on_request: false }
    }

    /// The same, where rows may have no value.
    pub(crate) const fn or_null(self) -> Self {
        Column { nullable: true, ..self }
    }

    pub(crate) const fn unit(self, unit: &'static str) -> Self {
        Column { unit, ..self }
    }

    pub(crate) const fn on_request(self) -> Self {
        Column { on_request: true, ..self }
    }
}
