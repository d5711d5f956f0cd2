//! `Display` for values and fields.

use super::Renderer;
use crate::decode::{Fields, Value};
use crate::model::{Field, Shown};
use std::fmt;

/// The value as text without quotes; of an array the first eight elements.
///
/// No character on which a terminal could act is written as it is. What only the field states, such
/// as names of values, is missing: see [`Renderer::text_value`].
///
/// ```
/// use etl_schema::decode::Value;
///
/// assert_eq!(Value::UInt(7).to_string(), "7");
/// assert_eq!(Value::Pointer(0x7ff0).to_string(), "0x7ff0");
/// assert_eq!(Value::FileTime(0).to_string(), "1601-01-01T00:00:00.0000000Z");
/// assert_eq!(Value::Ansi(b"a\x1b[m").to_string(), "a\\u{1b}[m");
/// ```
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = match self {
            Value::Array(items) => items.field(),
            _ => Field::unnamed(),
        };
        let mut text = Vec::new();
        Renderer::new().unquoted(&mut text, field, &Shown::of(field), *self);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

/// All fields as `Name=value`, with blanks between, as [`Renderer::text_fields`] writes them.
///
/// ```
/// use etl_format::read::{Options, Order, Trace};
/// use etl_schema::store::SchemaStore;
///
/// let bytes = etl_schema::testing::snapshot::example();
/// let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
/// let mut records = trace.records(Order::Time)?;
/// let store = SchemaStore::new();
/// let mut text = String::new();
/// while let Some(record) = records.next_record()? {
///     if record.is_event() && let Some(fields) = store.fields(&record) {
///         text = fields.to_string();
///     }
/// }
/// assert_eq!(
///     text,
///     "AppDomainID=0x7f001000 AppDomainFlags=0x2(Executable) AppDomainName=\"app.exe\" \
///      AppDomainIndex=1 ClrInstanceID=9"
/// );
/// # Ok::<(), etl_format::Error>(())
/// ```
impl fmt::Display for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        Renderer::new().text_fields(&mut text, &mut self.rewound());
        f.write_str(String::from_utf8_lossy(&text).trim_start())
    }
}
