//! The frame of a stream: its first bytes, and where each block begins and ends.
//!
//! Versions 4 and 5 are objects of "FastSerialization", each with its name and its version. Blocks
//! are objects with a size. Version 6 has blocks only, whose kind is a number.

use std::io::Read;

use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::header::{TRACE_OBJECT_SIZE, TraceHeader, Version};
use crate::input::Input;

/// The first bytes of versions 4 and later.
const MAGIC: &[u8; 8] = b"Nettrace";
/// The text that follows its length in streams of objects.
const SERIALIZATION: &[u8; 20] = b"!FastSerialization.1";
/// The first bytes of version 3 and earlier, and of other streams of objects: the length and the
/// beginning of the same text.
const OLD_MAGIC: &[u8; 8] = b"\x14\0\0\0!Fas";
const REST_OF_OLD_MAGIC: &[u8; 16] = b"tSerialization.1";
/// Tags of streams of objects.
const TAG_NULL_REFERENCE: u8 = 1;
const TAG_BEGIN_OBJECT: u8 = 4;
const TAG_BEGIN_PRIVATE_OBJECT: u8 = 5;
const TAG_END_OBJECT: u8 = 6;
/// The latest version of the `Trace` object that this crate understands, and of the blocks.
const MAX_TRACE_VERSION: u32 = 5;
const MAX_BLOCK_VERSION: u32 = 2;
/// The longest name of an object. The names of the format have up to 40 bytes.
const MAX_NAME: usize = 100;
/// Version 6 pads nothing; objects are padded to this.
const ALIGNMENT: u64 = 4;

/// What a block contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Events,
    Metadata,
    SequencePoint,
    Stacks,
    Threads,
    RemovedThreads,
    LabelLists,
    /// One that this crate does not know: the name of an object, or the number of a kind.
    Unknown(String),
}

impl BlockKind {
    /// The name for errors.
    pub fn name(&self) -> &'static str {
        match self {
            BlockKind::Events => "event block",
            BlockKind::Metadata => "metadata block",
            BlockKind::SequencePoint => "sequence point",
            BlockKind::Stacks => "stack block",
            BlockKind::Threads => "thread block",
            BlockKind::RemovedThreads => "block of removed threads",
            BlockKind::LabelLists => "block of label lists",
            BlockKind::Unknown(_) => "block of an unknown kind",
        }
    }

    fn from_name(name: &str) -> Self {
        match name {
            "EventBlock" => BlockKind::Events,
            "MetadataBlock" => BlockKind::Metadata,
            "SPBlock" => BlockKind::SequencePoint,
            "StackBlock" => BlockKind::Stacks,
            _ => BlockKind::Unknown(name.to_owned()),
        }
    }

    fn from_number(number: u8) -> Self {
        match number {
            block_number::EVENTS => BlockKind::Events,
            block_number::METADATA => BlockKind::Metadata,
            block_number::SEQUENCE_POINT => BlockKind::SequencePoint,
            block_number::STACKS => BlockKind::Stacks,
            block_number::THREADS => BlockKind::Threads,
            block_number::REMOVED_THREADS => BlockKind::RemovedThreads,
            block_number::LABEL_LISTS => BlockKind::LabelLists,
            other => BlockKind::Unknown(other.to_string()),
        }
    }
}

/// Kinds of blocks of version 6.
mod block_number {
    pub const END: u8 = 0;
    pub const TRACE: u8 = 1;
    pub const EVENTS: u8 = 2;
    pub const METADATA: u8 = 3;
    pub const SEQUENCE_POINT: u8 = 4;
    pub const STACKS: u8 = 5;
    pub const THREADS: u8 = 6;
    pub const REMOVED_THREADS: u8 = 7;
    pub const LABEL_LISTS: u8 = 8;
}

/// A block whose content comes next in the input.
#[derive(Clone, Debug)]
pub(crate) struct BlockHead {
    pub kind: BlockKind,
    /// File offset of the content.
    pub offset: u64,
    /// Bytes of the content, as stated.
    pub size: u64,
}

/// The two encodings of blocks and of event headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Versions 4 and 5.
    Objects,
    /// Version 6.
    Blocks,
}

/// Finds the blocks of a stream.
#[derive(Debug)]
pub(crate) struct Frame<R> {
    pub input: Input<R>,
    pub encoding: Encoding,
    pub header: TraceHeader,
}

impl<R: Read> Frame<R> {
    /// Reads up to the first block after the header.
    pub fn open(source: R, max_block: u64) -> Result<Self> {
        let mut input = Input::new(source);
        let first: [u8; 8] = input.array("the first bytes")?;
        if first == *OLD_MAGIC {
            return Err(refusal_of_old_objects(&mut input));
        }
        if first.starts_with(&[0x1f, 0x8b]) {
            return Err(not_nettrace("it is packed with gzip"));
        }
        if first != *MAGIC {
            return Err(not_nettrace("it does not begin with \"Nettrace\""));
        }
        let start = input.offset();
        let what = "the number after \"Nettrace\"";
        match input.u32(what)? {
            20 => Self::open_objects(input),
            0 => Self::open_blocks(input, max_block),
            other => Err(Error::invalid(start, what, other.into(), "20 or 0")),
        }
    }

    /// Versions 4 and 5: the `Trace` object comes first.
    fn open_objects(mut input: Input<R>) -> Result<Self> {
        let text: [u8; 20] = input.array("\"!FastSerialization.1\"")?;
        if text != *SERIALIZATION {
            return Err(not_nettrace("\"!FastSerialization.1\" is missing"));
        }
        let start = input.offset();
        input.expect_tag(TAG_BEGIN_PRIVATE_OBJECT, "the tag of an object", "5")?;
        let object = ObjectType::read(&mut input, TAG_BEGIN_PRIVATE_OBJECT)?;
        if object.name != "Trace" {
            return Err(not_nettrace("its first object is not \"Trace\""));
        }
        if object.version < 4 {
            return Err(refusal_of_version(start, object.version));
        }
        if object.min_reader > MAX_TRACE_VERSION {
            return Err(refusal_of_version(start, object.min_reader));
        }
        let base = input.offset();
        let content: [u8; TRACE_OBJECT_SIZE] = input.array("the Trace object")?;
        let header = TraceHeader::read_object(&mut Cursor::new(&content, base))?;
        Ok(Frame {
            input,
            encoding: Encoding::Objects,
            header,
        })
    }

    /// Version 6: a block with the header comes first.
    fn open_blocks(mut input: Input<R>, max_block: u64) -> Result<Self> {
        let start = input.offset();
        let major = input.u32("the major version")?;
        let minor = input.u32("the minor version")?;
        if major != 6 {
            return Err(refusal_of_version(start, major));
        }
        let start = input.offset();
        let head = BlockNumber::read(&mut input)?;
        if head.kind != block_number::TRACE {
            let what = "the kind of the first block";
            return Err(Error::invalid(start, what, head.kind.into(), "1 (trace)"));
        }
        if head.size > max_block {
            return Err(Error::limit(start, "the trace block", head.size, max_block));
        }
        let base = input.offset();
        let mut content = Vec::new();
        input.read_up_to(head.size, &mut content)?;
        let version = Version { major, minor };
        let header = TraceHeader::read_block(&mut Cursor::new(&content, base), version)?;
        Ok(Frame {
            input,
            encoding: Encoding::Blocks,
            header,
        })
    }

    /// Reads up to the content of the next block; `None` at the end of the stream.
    pub fn next_block(&mut self) -> Result<Option<BlockHead>> {
        match self.encoding {
            Encoding::Objects => self.next_object(),
            Encoding::Blocks => self.next_numbered_block(),
        }
    }

    fn next_object(&mut self) -> Result<Option<BlockHead>> {
        let input = &mut self.input;
        // Of the object before this one.
        input.expect_tag(TAG_END_OBJECT, "the tag after an object", "6")?;
        let start = input.offset();
        let what = "the tag of an object";
        match input.u8(what)? {
            TAG_NULL_REFERENCE => return Ok(None),
            TAG_BEGIN_PRIVATE_OBJECT => {}
            other => return Err(Error::invalid(start, what, other.into(), "5 or 1")),
        }
        let object = ObjectType::read(input, TAG_BEGIN_PRIVATE_OBJECT)?;
        if object.name == "Trace" {
            // It has no size, so that what follows it cannot be found.
            let what = "the number of Trace objects";
            return Err(Error::invalid(start, what, 2, "1"));
        }
        let size_start = input.offset();
        let what = "the size of a block";
        let size = input.u32(what)?;
        if i32::try_from(size).is_err() {
            let expected = "0 to 0x7fffffff";
            return Err(Error::invalid(size_start, what, size.into(), expected));
        }
        while !input.offset().is_multiple_of(ALIGNMENT) {
            input.u8("the padding of a block")?;
        }
        let kind = if object.min_reader > MAX_BLOCK_VERSION {
            BlockKind::Unknown(object.name)
        } else {
            BlockKind::from_name(&object.name)
        };
        Ok(Some(BlockHead {
            kind,
            offset: input.offset(),
            size: size.into(),
        }))
    }

    fn next_numbered_block(&mut self) -> Result<Option<BlockHead>> {
        let head = BlockNumber::read(&mut self.input)?;
        if head.kind == block_number::END {
            return Ok(None);
        }
        Ok(Some(BlockHead {
            kind: BlockKind::from_number(head.kind),
            offset: self.input.offset(),
            size: head.size,
        }))
    }
}

/// The head of a block of version 6.
struct BlockNumber {
    kind: u8,
    size: u64,
}

impl BlockNumber {
    fn read<R: Read>(input: &mut Input<R>) -> Result<Self> {
        let [size @ .., kind] = input.array::<4>("the head of a block")?;
        let [low, middle, high] = size;
        Ok(BlockNumber {
            kind,
            size: u32::from_le_bytes([low, middle, high, 0]).into(),
        })
    }
}

/// The type of an object, which precedes its content.
struct ObjectType {
    name: String,
    version: u32,
    min_reader: u32,
}

impl ObjectType {
    /// Reads from after the tag of the object. `begin` is the tag of an object of this version.
    fn read<R: Read>(input: &mut Input<R>, begin: u8) -> Result<Self> {
        input.expect_tag(begin, "the tag of a type", "5, or 4 before version 4")?;
        input.expect_tag(TAG_NULL_REFERENCE, "the tag in a type", "1")?;
        let version = input.u32("the version of an object")?;
        let min_reader = input.u32("the least reader version of an object")?;
        let start = input.offset();
        let what = "the length of an object's name";
        let len = input.u32(what)? as usize;
        if len == 0 || len > MAX_NAME {
            return Err(Error::invalid(start, what, len as u64, "1 to 100"));
        }
        let mut name = Vec::new();
        input.read_up_to(len as u64, &mut name)?;
        if name.len() < len {
            let what = "the name of an object";
            let have = name.len() as u64;
            return Err(Error::truncated(start + 4, what, len as u64, have));
        }
        input.expect_tag(TAG_END_OBJECT, "the tag after a type", "6")?;
        Ok(ObjectType {
            name: String::from_utf8_lossy(&name).into_owned(),
            version,
            min_reader,
        })
    }
}

fn not_nettrace(reason: &'static str) -> Error {
    Error::new(0, ErrorKind::NotNettrace(reason))
}

fn refusal_of_version(offset: u64, found: u32) -> Error {
    let remedy = match found {
        0..=3 => "record it again as .nettrace, for example with dotnet-trace",
        4..=6 => "the writer mixes the parts of two versions",
        _ => "a later version of this program may read it",
    };
    Error::new(offset, ErrorKind::Version { found, remedy })
}

/// Why a stream of objects without "Nettrace" is refused: it has version 3, which .NET Core 2.1
/// writes if environment variables request it, or an earlier one, or it is a file of PerfView.
fn refusal_of_old_objects<R: Read>(input: &mut Input<R>) -> Error {
    match first_old_object(input) {
        Ok(object) => match object.name.as_str() {
            "Trace" | "Microsoft.DotNet.Runtime.EventPipeFile" => {
                refusal_of_version(0, object.version)
            }
            _ => not_nettrace("it contains objects of another kind, as .etlx and .gcdump do"),
        },
        Err(error) if error.is_io() => error,
        Err(_) => not_nettrace("it does not begin with \"Nettrace\""),
    }
}

fn first_old_object<R: Read>(input: &mut Input<R>) -> Result<ObjectType> {
    let text: [u8; 16] = input.array("\"!FastSerialization.1\"")?;
    if text != *REST_OF_OLD_MAGIC {
        return Err(not_nettrace("it does not begin with \"Nettrace\""));
    }
    input.expect_tag(TAG_BEGIN_OBJECT, "the tag of an object", "4")?;
    ObjectType::read(input, TAG_BEGIN_OBJECT)
}
