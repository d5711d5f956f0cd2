//! What a merge tells of images: it finds their files on the machine's disk, by what the traces say
//! of them, and puts their identities in front of the events of the kernel's that tell of the images.

use std::collections::{BTreeMap, BTreeSet};

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::read::Record;
use etl_format::write::merge::Added;
use etl_format::write::record::Full;
use etl_schema::Identity;
use etl_schema::encode::{OwnedValue, encode_into};
use etl_schema::store::SchemaStore;
use etl_schema::tables::Registry;

use crate::clr::values;
use crate::machine::Image;

/// The class of the events by which a merge tells what images are.
const IMAGE_ID: Guid =
    Guid::new(0xb3e6_75d7, 0x2554, 0x4f18, [0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde]);
/// Hooks of the events that tell of images: load, unload, and both rundowns.
const IMAGES: [u16; 4] = [0x030a, 0x1402, 0x1403, 0x1404];
/// The thread of records that a merge adds.
const NOBODY: u32 = u32::MAX;

/// What is on the machine's disk of an image: one entry for each file, whoever loads it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files(BTreeMap<Key, Option<(Guid, u32)>>);

/// A file by its path, in lower case, and what its header says: time stamp and size.
type Key = (String, u32, u64);

/// An image of which a merge has told what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageIdentity {
    /// Its process.
    pub pid: u32,
    /// First address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// Path, as the kernel tells it.
    pub path: String,
    /// Signature and age of its PDB; `None` where it has none.
    pub pdb: Option<(Guid, u32)>,
}

impl Files {
    /// There is the file of an image.
    pub fn add(&mut self, image: &Image) {
        let path = image.kernel_path().to_lowercase();
        self.0.insert((path, image.time_stamp, image.size), image.pdb);
    }
}

/// Adds identities to a merge.
pub(super) struct Identifier<'f> {
    files: &'f Files,
    schemas: SchemaStore,
    /// Processes and addresses of images that were told of before.
    told: BTreeSet<(u32, u64)>,
    /// Images in the order in which they were told of.
    pub images: Vec<ImageIdentity>,
}

impl<'f> Identifier<'f> {
    pub fn new(files: &'f Files) -> Self {
        let schemas = SchemaStore::default();
        Identifier { files, schemas, told: BTreeSet::new(), images: Vec::new() }
    }

    /// Puts in front of a record what its image is, if it tells of one whose file is there.
    pub fn identify(
        &mut self,
        record: &Record<'_>,
        stamp: i64,
        added: &mut Added,
    ) -> etl_format::Result<()> {
        if !record.hook().is_some_and(|hook| IMAGES.contains(&hook)) {
            return Ok(());
        }
        let Some(image) = self.image(record) else { return Ok(()) };
        let width = record.pointer_size().unwrap_or(PointerSize::P8);
        let file = image.0.path.rsplit('\\').next().unwrap_or_default().to_owned();
        let ImageIdentity { pid, base, size, .. } = image.0;
        let mut push = |opcode: u8, values: &[OwnedValue]| {
            let mut payload = Vec::new();
            let class = Registry::classic();
            let id = Identity::Classic { opcode, version: 0 };
            let Some(table) = class.event(IMAGE_ID, id) else { return Ok(()) };
            // What does not fit into the width of the record is not told.
            if encode_into(&table.schema.fields, values, width, &mut payload).is_err() {
                return Ok(());
            }
            added.push(&Full {
                pointer_size: width,
                opcode,
                level: 0,
                version: 2,
                thread_id: NOBODY,
                process_id: pid,
                stamp,
                class: IMAGE_ID,
                kernel_time: 0,
                user_time: 0,
                payload: &payload,
            })
        };
        let (at, bytes) = (OwnedValue::Pointer(base), OwnedValue::Pointer(size));
        push(0, &values![at.clone(), bytes, pid, image.1, file.as_str()])?;
        match image.0.pdb {
            Some((signature, age)) => {
                let pdb = OwnedValue::Text(pdb_name(&file));
                push(36, &values![at, pid, signature, age, pdb])?;
            }
            None => push(32, &values![at, pid])?,
        }
        if self.told.insert((pid, base)) {
            self.images.push(image.0);
        }
        Ok(())
    }

    /// The image that a record tells of, and the time stamp in its header, if its file is there.
    fn image(&self, record: &Record<'_>) -> Option<(ImageIdentity, u32)> {
        let decoder = self.schemas.decoder(record)?;
        let (mut base, mut size, mut pid, mut time, mut path) = (0, 0, 0, 0, String::new());
        for (field, value) in decoder.fields(record.payload(), record.pointer_size()?) {
            let number = || value.as_u64().unwrap_or(0);
            match &*field.name {
                "ImageBase" => base = number(),
                "ImageSize" => size = number(),
                "ProcessId" => pid = number() as u32,
                "TimeDateStamp" => time = number() as u32,
                "FileName" => path = value.as_utf16().map_or(path, |text| text.to_string()),
                _ => {}
            }
        }
        let pdb = *self.files.0.get(&(path.to_lowercase(), time, size))?;
        Some((ImageIdentity { pid, base, size, path, pdb }, time))
    }
}

/// The name of the PDB of an image: its own, with another ending.
fn pdb_name(file: &str) -> String {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    format!("{stem}.pdb")
}
