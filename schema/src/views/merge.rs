//! Typed views of the events by which a merge identifies images (`KernelTraceControl/ImageID`).

use std::sync::LazyLock;

use etl_format::constants::PointerSize;
use etl_format::read::{Header, Record};

use super::Pdb;
use super::layout::{Catalogue, Layout, Position};
use crate::model::Identity;
use crate::providers::IMAGE_ID;
use crate::tables::{Entry, Registry};

/// An image as a merge identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageId<'a> {
    /// First address of the image.
    pub base: Option<u64>,
    /// The process; `None` in events about a file, which any process may have loaded.
    pub process_id: Option<u32>,
    /// The identity.
    pub identity: ImageIdentity,
    /// Path of its PDB as its linker wrote it, in the linker's encoding; empty in other events.
    pub pdb_path: &'a [u8],
    /// The identity of its file, if the event states it.
    pub stamp: Option<ImageStamp>,
}

/// What the header of an image file states: together with its name, this identifies the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageStamp {
    /// When it was linked: seconds since 1970, or a hash.
    pub link_time: u32,
    /// Bytes of its image in memory.
    pub size: u64,
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

impl<'a> ImageId<'a> {
    /// The event of a record; `None` for other records.
    #[must_use]
    pub fn of(record: &Record<'a>) -> Option<Self> {
        let Header::Full(header) = record.header() else {
            return None;
        };
        if header.class != IMAGE_ID {
            return None;
        }
        let version = u8::try_from(header.version).unwrap_or(u8::MAX);
        let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
        let (event, _) = EVENTS.event(header.opcode.into(), version, pointers)?;
        let layout = &event.layout;
        let payload = record.payload();
        let [base, process, signature, age, pdb_path, link_time, size] = event.fields;
        let identity = match (layout.read(payload, signature), layout.read(payload, age)) {
            (Some(signature), Some(age)) => ImageIdentity::Pdb(Pdb { signature, age }),
            _ if event.is_none => ImageIdentity::None,
            _ => ImageIdentity::Other,
        };
        let process_id = layout.read(payload, process);
        let stamp = match (layout.read(payload, link_time), layout.read(payload, size)) {
            (Some(link_time), Some(size)) => Some(ImageStamp { link_time, size }),
            _ => None,
        };
        Some(ImageId {
            base: layout.read(payload, base),
            process_id,
            identity,
            pdb_path: layout.read(payload, pdb_path).unwrap_or_default(),
            stamp,
        })
    }
}

/// Where the fields of one of these events are.
#[derive(Debug)]
struct EventLayout {
    /// Whether the event states that there is no PDB.
    is_none: bool,
    layout: Layout,
    fields: [Position; 7],
}

/// Opcodes of these events end here.
const OPCODES: u16 = 65;

/// The events by opcode.
static EVENTS: LazyLock<Catalogue<EventLayout>> = LazyLock::new(|| {
    Catalogue::new(0..OPCODES, entry, |_, decoder, pointers| {
        Some(EventLayout {
            is_none: &*decoder.schema().name == "None",
            layout: Layout::new(decoder, pointers),
            fields: Layout::positions(decoder, pointers, FIELDS),
        })
    })
});

const FIELDS: [&str; 7] = [
    "ImageBase",
    "ProcessId",
    "GuidSig",
    "Age",
    "PDBFileName",
    "TimeDateStamp",
    "ImageSize",
];

/// The table entry of a version of an event.
fn entry(opcode: u16, version: u8) -> Option<Entry<'static>> {
    let identity = Identity::Classic {
        opcode: opcode as u8,
        version: version.into(),
    };
    Registry::classic().entry(IMAGE_ID, identity)
}
