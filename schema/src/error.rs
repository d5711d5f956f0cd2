//! The error type of this crate.

use crate::deserialize::DeserializeError;
use crate::encode::EncodeError;
use crate::tables::TableError;

/// A schema or an event that cannot be read, built or encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A table of events or of errata.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A manifest that is not XML.
    #[error("the manifest is not XML: {0}")]
    Xml(String),
    /// XML, but no provider in it.
    #[error("the manifest has no <provider>")]
    NoProvider,
    /// An element of a manifest with an attribute that is missing, cannot be read, or names
    /// something that does not exist.
    #[error("line {line}: {problem}")]
    Element {
        /// Line of the element.
        line: u32,
        /// What is wrong with it.
        problem: String,
    },
    /// A manifest that would take more memory or time than any real one.
    #[error("the manifest is refused: too many {0}")]
    TooBig(&'static str),
    /// A line of a WPP trace message format file that cannot be understood.
    #[error("line {line}: expected {expected}")]
    Tmf {
        /// Number of the line, from 1.
        line: usize,
        /// What a valid line has.
        expected: &'static str,
    },
    /// A WPP trace message format file whose messages need more memory than allowed.
    #[error("line {line}: the messages up to here need more than {max} bytes of memory")]
    TmfTooBig {
        /// Number of the line, from 1.
        line: usize,
        /// The allowed bytes.
        max: usize,
    },
    /// A WPP trace message format file without messages.
    #[error("the file describes no message")]
    NoMessage,
    /// A `TRACE_EVENT_INFO` that is shorter than what it describes.
    #[error("TRACE_EVENT_INFO of {have} bytes needs {need}")]
    ShortInfo {
        /// Bytes needed.
        need: usize,
        /// Bytes of the blob.
        have: usize,
    },
    /// A property of an unknown type, so that the fields after it cannot be located.
    #[error("TRACE_EVENT_INFO has a property of in-type {0}, which is not known")]
    UnknownType(u16),
    /// A `TRACE_EVENT_INFO` with structs nested too deeply, or with too many fields.
    #[error("the structs of a TRACE_EVENT_INFO nest too deeply or have too many members")]
    InfoTooBig,
    /// TraceLogging metadata that ends within something.
    #[error("TraceLogging metadata ends at byte {at}, within {what}")]
    ShortMetadata {
        /// Offset of the end.
        at: usize,
        /// What is cut.
        what: &'static str,
    },
    /// A struct of TraceLogging metadata claims more members than there are fields.
    #[error("a struct of TraceLogging metadata has fewer members than it says")]
    MissingMembers,
    /// Structs of TraceLogging metadata are nested too deeply.
    #[error("structs of TraceLogging metadata are nested more than 12 deep")]
    TooDeep,
    /// A type, length or count for which TraceLogging has no code.
    #[error("field {field}: TraceLogging has no code for its type, length or count")]
    NoCode {
        /// The field.
        field: String,
    },
    /// A name with a NUL, which TraceLogging cannot represent.
    #[error("the name {name:?} contains a NUL")]
    NulInName {
        /// The name.
        name: String,
    },
    /// A struct without members, with more than 127, or nested too deeply for TraceLogging.
    #[error("field {field}: a struct has 1 to 127 members and nests at most 12 deep")]
    BadStruct {
        /// The field.
        field: String,
    },
    /// TraceLogging metadata of more than 65,535 bytes.
    #[error("the metadata would take {size} bytes, more than fit an item")]
    TooLong {
        /// Their size.
        size: usize,
    },
    /// Fields that do not fit the type into which they are deserialized.
    #[error(transparent)]
    Deserialize(#[from] DeserializeError),
    /// Values that cannot be encoded to a payload.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}
