//! Typed views of the events by which a merge identifies images (`KernelTraceControl/ImageID`).

use std::sync::LazyLock;

use etl_format::constants::PointerSize;
use etl_format::read::{Header, Record};

use super::Pdb;
use super::layout::{Layout, Position};
use crate::decode::Decoder;
use crate::model::Identity;
use crate::providers::IMAGE_ID;
use crate::tables::Registry;

/// An image as a merge identifies it.
#[derive(Clone, Copy, Debug)]
pub struct ImageId<'a> {
    event: &'static EventLayout,
    payload: &'a [u8],
}

/// Where the fields of one of these events are.
#[derive(Debug)]
struct EventLayout {
    opcode: u8,
    version: u16,
    /// Whether the event states that there is no PDB.
    is_none: bool,
    layout: Layout,
    base: Position,
    process: Position,
    signature: Position,
    age: Position,
}

impl EventLayout {
    /// The layouts of all events of the tables, by version.
    fn all(pointers: PointerSize) -> Vec<Self> {
        let table = Registry::classic().provider(IMAGE_ID);
        let mut all: Vec<_> = table
            .iter()
            .flat_map(|table| &table.events)
            .filter_map(|event| {
                let Identity::Classic { opcode, version } = event.schema.identity else {
                    return None;
                };
                let decoder = Registry::classic().decoder(IMAGE_ID, event.schema.identity)?;
                Some(EventLayout::new(opcode, version, decoder, pointers))
            })
            .collect();
        all.sort_by_key(|layout| layout.version);
        all
    }

    fn new(opcode: u8, version: u16, decoder: &Decoder, pointers: PointerSize) -> Self {
        let find = |name| Layout::find(decoder, pointers, &[name]);
        EventLayout {
            opcode,
            version,
            is_none: &*decoder.schema().name == "None",
            layout: Layout::new(decoder, pointers),
            base: find("ImageBase"),
            process: find("ProcessId"),
            signature: find("GuidSig"),
            age: find("Age"),
        }
    }
}

/// The identity of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageIdentity {
    /// Its PDB.
    Pdb(Pdb),
    /// The image has no PDB, or its file could not be read.
    None,
    /// The event is about something else of the image, such as its version.
    Other,
}

/// Whether a record is one of these events.
#[must_use]
#[inline]
pub fn is_image_id(record: &Record<'_>) -> bool {
    record.provider() == Some(IMAGE_ID) && matches!(record.header(), Header::Full(_))
}

impl<'a> ImageId<'a> {
    /// The event of a record; `None` for other records.
    #[must_use]
    pub fn of(record: &Record<'a>) -> Option<Self> {
        let Header::Full(header) = record.header() else { return None };
        if header.class != IMAGE_ID {
            return None;
        }
        static NARROW: LazyLock<Vec<EventLayout>> =
            LazyLock::new(|| EventLayout::all(PointerSize::P4));
        static WIDE: LazyLock<Vec<EventLayout>> =
            LazyLock::new(|| EventLayout::all(PointerSize::P8));
        let is_narrow = record.pointer_size() == Some(PointerSize::P4);
        let layouts = if is_narrow { &NARROW } else { &WIDE };
        // A version that the tables do not have extends the nearest older one.
        let event = layouts
            .iter()
            .rfind(|layout| layout.opcode == header.opcode && layout.version <= header.version)?;
        Some(ImageId { event, payload: record.payload() })
    }

    /// First address of the image.
    #[must_use]
    pub fn base(&self) -> Option<u64> {
        self.event.layout.read(self.payload, self.event.base)
    }

    /// The process; `None` in events about a file, which any process may have loaded.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.event.layout.read(self.payload, self.event.process)
    }

    /// The identity.
    #[must_use]
    pub fn identity(&self) -> ImageIdentity {
        let (event, payload) = (self.event, self.payload);
        let signature = event.layout.read(payload, event.signature);
        match (signature, event.layout.read(payload, event.age)) {
            (Some(signature), Some(age)) => ImageIdentity::Pdb(Pdb { signature, age }),
            _ if event.is_none => ImageIdentity::None,
            _ => ImageIdentity::Other,
        }
    }
}
