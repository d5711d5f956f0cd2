//! Typed views of the events by which a merge identifies images (`KernelTraceControl/ImageID`).

use etl_format::constants::PointerSize;
use etl_format::read::{Header, Record};

use super::Pdb;
use crate::decode::{Decoder, Value};
use crate::model::Identity;
use crate::providers::IMAGE_ID;
use crate::tables::Registry;

/// Where the tables lack a version, versions below this are tried in its stead.
const MAX_VERSION: u16 = 16;

/// An image as a merge identifies it. These events are few, so fields are found by name.
#[derive(Clone, Copy, Debug)]
pub struct ImageId<'a> {
    decoder: &'static Decoder,
    payload: &'a [u8],
    pointers: PointerSize,
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
        // A version that the tables do not have extends the nearest older one.
        let older = (0..header.version.min(MAX_VERSION)).rev();
        let mut versions = std::iter::once(header.version).chain(older);
        let decoder = versions.find_map(|version| {
            let identity = Identity::Classic { opcode: header.opcode, version };
            Registry::classic().decoder(IMAGE_ID, identity)
        })?;
        let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
        Some(ImageId { decoder, payload: record.payload(), pointers })
    }

    fn value(&self, name: &str) -> Option<Value<'a>> {
        self.decoder.get(name, self.payload, self.pointers)
    }

    /// First address of the image.
    #[must_use]
    pub fn base(&self) -> Option<u64> {
        self.value("ImageBase")?.as_u64()
    }

    /// The process; `None` in events about a file, which any process may have loaded.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.value("ProcessId")?.as_u64()?.try_into().ok()
    }

    /// The identity.
    #[must_use]
    pub fn identity(&self) -> ImageIdentity {
        match (self.value("GuidSig"), self.value("Age").and_then(|age| age.as_u64())) {
            (Some(Value::Guid(signature)), Some(age)) => {
                ImageIdentity::Pdb(Pdb { signature, age: age as u32 })
            }
            _ if &*self.decoder.schema().name == "None" => ImageIdentity::None,
            _ => ImageIdentity::Other,
        }
    }
}
