//! Values as text, JSON and CSV, written to a buffer of the caller without allocating.
//!
//! A [`Renderer`] holds the choices; its methods write all fields of an event or one value. The
//! functions of this module write single numbers, times and texts.
//!
//! No character on which a terminal could act is written as it is, see [`is_terminal_unsafe`].
//! JSON keeps everything else, unpaired surrogates included, as `\udXXX`.

mod chars;
mod digits;
mod display;
mod json;
mod message;
mod names;
mod plan;
mod readable;
mod status;
mod text;
mod time;
mod values;

pub use crate::escape::{escape_json, escape_line, is_terminal_unsafe, one_line};
pub use crate::escaped_json::{EscapedJson, escaped_json};
pub use digits::{decimal, hex_bytes, hexadecimal, signed};
pub use message::Prefix;
pub use names::{Names, PathStart};
pub use readable::readable_text;
pub use status::{hresult, ntstatus, win32};
pub use time::{filetime, system_time, time_of};
pub use values::{bits, shown_bytes, sid, socket_address, status_name, until_nul};

/// Bytes that the arrays of one payload may become. No payload of 64 KiB comes near it by its
/// values; members of structs bring their names with every element, and those may be of any length.
pub const MAX_LEN: usize = 16 << 20;

/// Writes fields and values as text, JSON or CSV.
///
/// All methods append to a buffer of the caller and allocate nothing else. Arrays end early after
/// [`MAX_LEN`] bytes of output.
///
/// ```
/// use etl_format::constants::PointerSize;
/// use etl_schema::decode::Decoder;
/// use etl_schema::render::Renderer;
/// use etl_schema::{EventSchema, Field, Identity, InType, SchemaSource};
/// use etl_format::Guid;
///
/// let identity = Identity::Modern { id: 1, version: 0 };
/// let mut schema = EventSchema::new(Guid::ZERO, identity, SchemaSource::Manifest);
/// schema.fields = vec![Field::new("Count", InType::UInt32), Field::new("Flags", InType::UInt32)];
/// let decoder = Decoder::new(schema.into());
/// let payload = [7, 0, 0, 0, 0x10, 0, 0, 0];
///
/// let mut line = Vec::new();
/// let mut fields = decoder.fields(&payload, PointerSize::P8);
/// Renderer::new().text_fields(&mut line, &mut fields);
/// assert_eq!(line, b" Count=7 Flags=0x10");
///
/// let mut json = Vec::new();
/// let mut fields = decoder.fields(&payload, PointerSize::P8);
/// Renderer::new().hex().json_fields(&mut json, &mut fields);
/// assert_eq!(json, br#"{"Count":7,"Flags":"0x10"}"#);
/// ```
#[derive(Clone, Copy, Default)]
pub struct Renderer<'n> {
    names: Option<&'n dyn Names>,
    hex: bool,
    lossy: bool,
    names_alone: bool,
}

impl<'n> Renderer<'n> {
    /// A renderer without names of the trace, with numbers in JSON.
    #[must_use]
    pub fn new() -> Self {
        Renderer::default()
    }

    /// With the names that the trace has for values: processes, threads, addresses and drives.
    ///
    /// ```
    /// use etl_schema::decode::{Utf16, Value};
    /// use etl_schema::render::{Names, PathStart, Renderer};
    /// use etl_schema::{Field, InType, Meaning};
    /// use std::borrow::Cow;
    ///
    /// struct Processes;
    ///
    /// impl Names for Processes {
    ///     fn has(&self, meaning: Meaning) -> bool {
    ///         meaning == Meaning::Process
    ///     }
    ///     fn name(&self, _: Meaning, value: u64) -> Option<Cow<'_, str>> {
    ///         (value == 4).then_some("System".into())
    ///     }
    ///     fn path(&self, _: Utf16<'_>) -> Option<PathStart<'_>> {
    ///         None
    ///     }
    /// }
    ///
    /// let mut text = Vec::new();
    /// let field = Field::new("ProcessId", InType::UInt32);
    /// let renderer = Renderer::new().names(Some(&Processes));
    /// renderer.text_value(&mut text, &field, Value::UInt(4));
    /// assert_eq!(text, b"4(System)");
    /// ```
    #[must_use]
    pub fn names(self, names: Option<&'n dyn Names>) -> Self {
        Renderer { names, ..self }
    }

    /// In JSON, addresses, masks and ids of 64 bits are hexadecimal text, as in the text form.
    #[must_use]
    pub fn hex(self) -> Self {
        Renderer { hex: true, ..self }
    }

    /// In JSON, an unpaired surrogate becomes U+FFFD. Readers of JSON that keep text as UTF-8
    /// reject its escape sequence.
    ///
    /// ```
    /// use etl_schema::decode::{Utf16, Value};
    /// use etl_schema::{Field, InType, render::Renderer};
    ///
    /// let field = Field::new("Name", InType::Utf16);
    /// let text = Value::Utf16(Utf16::new(b"\x00\xd8"));
    /// let mut json = Vec::new();
    /// Renderer::new().json_value(&mut json, &field, text);
    /// Renderer::new().lossy().json_value(&mut json, &field, text);
    /// assert_eq!(String::from_utf8_lossy(&json), "\"\\ud800\"\"\u{fffd}\"");
    /// ```
    #[must_use]
    pub fn lossy(self) -> Self {
        Renderer {
            lossy: true,
            ..self
        }
    }

    /// In text, a value with a name in its map is written as the name alone.
    ///
    /// ```
    /// use etl_schema::{Field, InType, MapEntry, MapKind, ValueMap};
    /// use etl_schema::{decode::Value, render::Renderer};
    /// use std::sync::Arc;
    ///
    /// let forced = MapEntry { value: 2, name: "Forced".into() };
    /// let map = ValueMap::new("Reason", MapKind::Values, vec![forced]);
    /// let field = Field::new("Reason", InType::UInt32).with_map(Arc::new(map));
    /// let mut text = Vec::new();
    /// Renderer::new().text_value(&mut text, &field, Value::UInt(2));
    /// Renderer::new().names_alone().text_value(&mut text, &field, Value::UInt(2));
    /// assert_eq!(text, b"2(Forced)Forced");
    /// ```
    #[must_use]
    pub fn names_alone(self) -> Self {
        Renderer {
            names_alone: true,
            ..self
        }
    }
}

impl std::fmt::Debug for Renderer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renderer")
            .field("has_names", &self.names.is_some())
            .field("hex", &self.hex)
            .field("lossy", &self.lossy)
            .field("names_alone", &self.names_alone)
            .finish()
    }
}

#[cfg(test)]
mod tests;
