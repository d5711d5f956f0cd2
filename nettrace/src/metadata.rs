//! Metadata: what the events with a metadata id have in common.

mod fields;

pub use fields::{Field, FieldType};

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::guid::Guid;
use crate::header::Property;

/// Bits that the runtimes set in the keywords of each event source, in addition to its own: the
/// session to which an event goes.
pub const SESSION_KEYWORDS: u64 = 0xf000_0000_0000;

/// What the events with a metadata id have in common: provider, event, level, keywords and fields.
///
/// Events of the runtime itself have neither a name nor fields. Provider, id and version select
/// their description in the runtime's manifest.
///
/// ```
/// # mod write { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/common/write.rs")); }
/// # let stream = write::sample();
/// use etl_nettrace::Reader;
///
/// let mut reader = Reader::new(stream.as_slice())?;
/// let event = reader.next_event()?.expect("the sample has one");
/// assert_eq!(event.metadata.provider, "Contoso-Web");
/// assert_eq!((event.metadata.event_id, event.metadata.name.as_str()), (7, "RequestStart"));
/// assert_eq!(event.metadata.fields.len(), 2);
/// # Ok::<(), etl_nettrace::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// The id by which events refer to it. A later definition replaces an earlier one.
    pub metadata_id: u32,
    /// The name of the provider.
    pub provider: String,
    /// The GUID of the provider, if the stream states it. Versions 4 and 5 do not.
    pub provider_id: Option<Guid>,
    /// The id of the event.
    pub event_id: u32,
    /// The name of the event. Empty if the stream does not state it.
    pub name: String,
    /// The keywords, including [`SESSION_KEYWORDS`].
    pub keywords: u64,
    /// The version of the event.
    pub version: u32,
    /// The level of the event.
    pub level: u32,
    /// The opcode, if the stream states it. See [`Metadata::opcode_or_implied`].
    pub opcode: Option<u8>,
    /// The fields. Empty if the stream does not describe them.
    pub fields: Vec<Field>,
    /// The message of version 6.
    pub message: Option<String>,
    /// The description of version 6.
    pub description: Option<String>,
    /// Other properties of version 6.
    pub properties: Vec<Property>,
}

/// Metadata, and the error that ended the reading of its optional parts.
#[derive(Debug)]
pub(crate) struct ParsedMetadata {
    pub metadata: Metadata,
    pub error: Option<Error>,
}

impl ParsedMetadata {
    fn new(metadata: Metadata, optional: Result<()>) -> Self {
        ParsedMetadata {
            metadata,
            error: optional.err(),
        }
    }
}

impl Metadata {
    /// The keywords without [`SESSION_KEYWORDS`].
    #[must_use]
    pub fn own_keywords(&self) -> u64 {
        self.keywords & !SESSION_KEYWORDS
    }

    /// The opcode. If the stream states none, it is 1 or 2 for an event source's event whose name
    /// ends with `Start` or `Stop`, as event sources define it, and 0 for others.
    #[must_use]
    pub fn opcode_or_implied(&self) -> u8 {
        match self.opcode {
            Some(opcode) => opcode,
            None if self.name.ends_with("Start") => 1,
            None if self.name.ends_with("Stop") => 2,
            None => 0,
        }
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn size_in_memory(&self) -> usize {
        let texts = [Some(&self.provider), Some(&self.name)];
        let optional = [self.message.as_ref(), self.description.as_ref()];
        let mut size = size_of::<Self>();
        for text in texts.into_iter().chain(optional).flatten() {
            size += text.len();
        }
        for property in &self.properties {
            size += size_of::<Property>() + property.key.len() + property.value.len();
        }
        size + fields::size_in_memory(&self.fields)
    }

    /// The payload of a metadata event of versions 4 and 5.
    pub(crate) fn read_blob(cursor: &mut Cursor<'_>) -> Result<ParsedMetadata> {
        let mut metadata = Metadata {
            metadata_id: cursor.u32("the id of metadata")?,
            provider: cursor.utf16_text("the name of a provider")?,
            event_id: cursor.u32("the id of an event")?,
            name: cursor.utf16_text("the name of an event")?,
            keywords: cursor.u64("the keywords of an event")?,
            version: cursor.u32("the version of an event")?,
            level: cursor.u32("the level of an event")?,
            ..Metadata::default()
        };
        let optional = metadata.read_fields_and_tags(cursor);
        Ok(ParsedMetadata::new(metadata, optional))
    }

    fn read_fields_and_tags(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        const TAG_OPCODE: u8 = 1;
        const TAG_FIELDS: u8 = 2;
        if !cursor.is_empty() {
            self.fields = fields::read(cursor, fields::Layout::Plain)?;
        }
        while !cursor.is_empty() {
            let size = cursor.size("the size of a metadata tag")?;
            let tag = cursor.u8("a metadata tag")?;
            let mut content = cursor.sub(size, "the content of a metadata tag")?;
            match tag {
                TAG_OPCODE => self.opcode = Some(content.u8("the opcode of an event")?),
                TAG_FIELDS => self.fields = fields::read(&mut content, fields::Layout::Sized)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A row of a metadata block of version 6.
    pub(crate) fn read_row(cursor: &mut Cursor<'_>) -> Result<ParsedMetadata> {
        let mut metadata = Metadata {
            metadata_id: cursor.var32("the id of metadata")?,
            provider: cursor.utf8_text("the name of a provider")?,
            event_id: cursor.var32("the id of an event")?,
            name: cursor.utf8_text("the name of an event")?,
            ..Metadata::default()
        };
        let optional = metadata.read_fields_and_options(cursor);
        Ok(ParsedMetadata::new(metadata, optional))
    }

    fn read_fields_and_options(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        self.fields = fields::read(cursor, fields::Layout::Short)?;
        let size = cursor.u16("the size of the options of metadata")?;
        let mut options = cursor.sub(size.into(), "the options of metadata")?;
        while !options.is_empty() {
            match options.u8("an option of metadata")? {
                1 => self.opcode = Some(options.u8("the opcode of an event")?),
                3 => self.keywords = options.u64("the keywords of an event")?,
                4 => self.message = Some(options.utf8_text("the message of an event")?),
                5 => self.description = Some(options.utf8_text("the description of an event")?),
                6 => {
                    let property = Property::read(&mut options, "a property of an event")?;
                    self.properties.push(property);
                }
                7 => self.provider_id = Some(options.guid("the id of a provider")?),
                8 => self.level = options.u8("the level of an event")?.into(),
                9 => self.version = options.u8("the version of an event")?.into(),
                // The length of an unknown option is not known.
                _ => break,
            }
        }
        Ok(())
    }
}
