//! Columns: names, types, units and meanings.

/// The version of the tables that this crate documents. It grows when a column changes its meaning
/// or its type, or is removed; a new column does not change it.
pub const SCHEMA_VERSION: u32 = 3;

/// The type of a column. All numbers are signed, so that every engine reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A truth value.
    Bool,
    /// A number of 32 bits.
    Int32,
    /// A number of 64 bits; unsigned numbers keep their bits.
    Int64,
    /// IEEE 754, 64 bits.
    Float64,
    /// A time in UTC: microseconds since 1970 in Arrow, ISO 8601 with 100 ns in CSV and JSON.
    Time,
    /// Text.
    Text,
    /// Text that occurs often: Arrow has each value once.
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

/// How a number is written in text, CSV and JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Style {
    /// As its unit: sizes with units, durations as milliseconds.
    #[default]
    Unit,
    /// As a plain number.
    Plain,
    /// As bits: `0x7ffe0000`, in CSV and JSON as well.
    Hexadecimal,
    /// As a difference: with its sign.
    Signed,
}

/// What a comparison of two tables does with a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Comparing {
    /// A comparison leaves it out.
    #[default]
    Nothing,
    /// Rows with the same value are compared with each other.
    Key,
    /// The same, and the case of letters does not matter: names of files.
    KeyOfAnyCase,
    /// The values of rows with the same key are added up.
    Sum(SumNames),
}

/// The names of the columns that a comparison has for a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SumNames {
    /// Its growth.
    pub delta: &'static str,
    /// The sum in the earlier recording.
    pub before: &'static str,
    /// The sum in the later recording.
    pub after: &'static str,
}

/// A column of a table.
///
/// ```
/// use etl_tables::tables;
///
/// let columns = tables::GCS.columns();
/// let pause = columns.iter().find(|column| column.name == "pause_us").unwrap();
/// assert_eq!(pause.unit, "µs");
/// assert_eq!(pause.kind.sql(), "DOUBLE");
/// assert_eq!(pause.heading, "pause ms");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// Its name, the same in all tables and forms. The name of a number ends with its unit.
    pub name: &'static str,
    /// The type of its values.
    pub kind: Kind,
    /// Whether rows may have no value.
    pub nullable: bool,
    /// The unit of its numbers; empty if they have none.
    pub unit: &'static str,
    /// The meaning of its values, in a sentence for the documentation.
    pub meaning: &'static str,
    /// Its heading in text; empty if text leaves the column out.
    pub heading: &'static str,
    /// How its numbers are written.
    pub style: Style,
    /// Whether Arrow and Parquet leave it out unless it is requested.
    pub on_request: bool,
    /// What a comparison of two tables does with it.
    pub comparing: Comparing,
}

impl Column {
    /// A column that has a value in every row, has no unit, and is not in text.
    #[must_use]
    pub const fn new(name: &'static str, kind: Kind, meaning: &'static str) -> Self {
        Column {
            name,
            kind,
            nullable: false,
            unit: "",
            meaning,
            heading: "",
            style: Style::Unit,
            on_request: false,
            comparing: Comparing::Nothing,
        }
    }

    /// Rows may have no value.
    #[must_use]
    pub const fn or_null(self) -> Self {
        Column {
            nullable: true,
            ..self
        }
    }

    /// Sets the unit of its numbers.
    #[must_use]
    pub const fn unit(self, unit: &'static str) -> Self {
        Column { unit, ..self }
    }

    /// Sets its heading in text.
    #[must_use]
    pub const fn heading(self, heading: &'static str) -> Self {
        Column { heading, ..self }
    }

    /// Sets how its numbers are written.
    #[must_use]
    pub const fn style(self, style: Style) -> Self {
        Column { style, ..self }
    }

    /// Sets another meaning.
    #[must_use]
    pub const fn meaning(self, meaning: &'static str) -> Self {
        Column { meaning, ..self }
    }

    /// Rows with the same value are compared with each other.
    #[must_use]
    pub const fn key(self) -> Self {
        Column {
            comparing: Comparing::Key,
            ..self
        }
    }

    /// The same, and the case of letters does not matter.
    #[must_use]
    pub const fn key_of_any_case(self) -> Self {
        Column {
            comparing: Comparing::KeyOfAnyCase,
            ..self
        }
    }

    /// A comparison adds the values up. These are the names of the growth of the sum, of the sum
    /// before and of the sum after.
    #[must_use]
    pub const fn sum(self, delta: &'static str, before: &'static str, after: &'static str) -> Self {
        let names = SumNames {
            delta,
            before,
            after,
        };
        Column {
            comparing: Comparing::Sum(names),
            ..self
        }
    }

    pub(crate) const fn on_request(self) -> Self {
        Column {
            on_request: true,
            ..self
        }
    }

    /// A number.
    #[must_use]
    pub const fn count(name: &'static str, meaning: &'static str) -> Self {
        Column::new(name, Kind::Int64, meaning)
    }

    /// A number of bytes, whose name ends with `bytes`.
    #[must_use]
    pub const fn bytes(name: &'static str, meaning: &'static str) -> Self {
        Column::new(name, Kind::Int64, meaning).unit("bytes")
    }

    /// A duration in microseconds, whose name ends with `_us`.
    #[must_use]
    pub const fn micros(name: &'static str, meaning: &'static str) -> Self {
        Column::new(name, Kind::Float64, meaning).unit("µs")
    }

    /// A share in percent, whose name ends with `_percent`.
    #[must_use]
    pub const fn percent(name: &'static str, meaning: &'static str) -> Self {
        Column::new(name, Kind::Float64, meaning).unit("%")
    }

    /// A time in UTC.
    #[must_use]
    pub const fn time(name: &'static str, meaning: &'static str) -> Self {
        Column::new(name, Kind::Time, meaning)
    }

    /// An address, as bits.
    #[must_use]
    pub const fn address(name: &'static str, meaning: &'static str) -> Self {
        Column::new(name, Kind::Int64, meaning).style(Style::Hexadecimal)
    }
}
