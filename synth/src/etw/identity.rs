//! What a merge tells of images: it finds their files on the machine's disk, by what the traces say
//! of them, and puts their identities in front of the events of the kernel's that tell of the images.

use std::collections::{BTreeMap, BTreeSet};

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::read::Record;
use etl_format::rewrite::merge::Insertions;
use etl_format::write::record::Full;
use etl_schema::Identity;
use etl_schema::encode::{OwnedValue, encode_into};
use etl_schema::providers::IMAGE_ID;
use etl_schema::store::SchemaStore;
use etl_schema::tables::Registry;

use super::values;
use crate::machine::Image;
use crate::model::FileVersion;
use crate::truth::{ImageIdentity, PdbIdentity};

/// Hooks of the events that tell of images: load, unload, and both rundowns.
const IMAGES: [u16; 4] = [0x030a, 0x1402, 0x1403, 0x1404];
/// The thread of records that a merge adds.
const NOBODY: u32 = u32::MAX;

/// What is on the machine's disk of images: one entry for each file, whoever loads it.
#[derive(Clone, Debug)]
pub(crate) struct ImageFiles {
    /// Windows' version.
    os: (u8, u8, u32),
    known: BTreeMap<Key, OnDisk>,
}

/// What the file of an image holds.
#[derive(Clone, Debug)]
struct OnDisk {
    pdb: Option<(Guid, u32)>,
    version: Option<FileVersion>,
}

/// A file by its path, in lower case, and what its header says: time timestamp and size.
type Key = (String, u32, u64);

impl ImageFiles {
    pub fn new(os: (u8, u8, u32)) -> Self {
        ImageFiles { os, known: BTreeMap::new() }
    }

    /// There is the file of an image.
    pub fn add(&mut self, image: &Image) {
        let path = image.kernel_path().to_lowercase();
        let version = image.about.of(&image.path, self.os);
        let file = OnDisk { pdb: image.pdb, version };
        self.known.insert((path, image.timestamp, image.size), file);
    }
}

/// Adds identities to a merge.
pub(super) struct ImageIdentifier<'f> {
    files: &'f ImageFiles,
    schemas: SchemaStore,
    /// Processes and addresses of images that were told of before.
    identified: BTreeSet<(u32, u64)>,
    /// ImageFiles whose version was told before.
    versions: BTreeSet<Key>,
    /// Images in the order in which they were told of.
    pub images: Vec<ImageIdentity>,
}

impl<'f> ImageIdentifier<'f> {
    pub fn new(files: &'f ImageFiles) -> Self {
        let schemas = SchemaStore::default();
        ImageIdentifier {
            files,
            schemas,
            identified: BTreeSet::new(),
            versions: BTreeSet::new(),
            images: Vec::new(),
        }
    }

    /// Puts in front of a record what its image is, if it tells of one whose file is there.
    pub fn identify(
        &mut self,
        record: &Record<'_>,
        timestamp: i64,
        added: &mut Insertions,
    ) -> etl_format::Result<()> {
        if !record.hook().is_some_and(|hook| IMAGES.contains(&hook)) {
            return Ok(());
        }
        let Some(image) = self.image(record) else { return Ok(()) };
        let width = record.pointer_size().unwrap_or(PointerSize::P8);
        let file = image.path.rsplit('\\').next().unwrap_or_default().to_owned();
        let ImageIdentity { pid, base, size, link_time, .. } = image;
        let mut push = |opcode: u8, version: u16, values: &[OwnedValue]| {
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
                version,
                thread_id: NOBODY,
                process_id: pid,
                timestamp,
                class: IMAGE_ID,
                kernel_time: 0,
                user_time: 0,
                payload: &payload,
            })
        };
        // A file is told of once, with the first image that is made of it.
        let key = (image.path.to_lowercase(), link_time, size);
        if let Some(version) = image.version.as_ref().filter(|_| self.versions.insert(key)) {
            push(64, 0, &version_of(version, &file, size, link_time))?;
        }
        let (at, bytes) = (OwnedValue::Pointer(base), OwnedValue::Pointer(size));
        push(0, 2, &values![at.clone(), bytes, pid, link_time, file.as_str()])?;
        match image.pdb {
            Some(PdbIdentity { signature, age }) => {
                let pdb = OwnedValue::Text(pdb_name(&file));
                push(36, 2, &values![at, pid, signature, age, pdb])?;
            }
            None => push(32, 2, &values![at, pid])?,
        }
        if self.identified.insert((pid, base)) {
            self.images.push(image);
        }
        Ok(())
    }

    /// The image that a record tells of, if its file is there.
    fn image(&self, record: &Record<'_>) -> Option<ImageIdentity> {
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
        let file = self.files.known.get(&(path.to_lowercase(), time, size))?;
        let (pdb, version) = (file.pdb.map(PdbIdentity::from), file.version.clone());
        Some(ImageIdentity { pid, base, size, link_time: time, path, pdb, version })
    }
}

/// What a file says of itself, as its record has it.
fn version_of(v: &FileVersion, file: &str, size: u64, timestamp: u32) -> [OwnedValue; 12] {
    values![
        u32::try_from(size).unwrap_or(u32::MAX),
        timestamp,
        file,
        v.description.as_str(),
        v.version.as_str(),
        v.numbers(),
        v.language.to_string(),
        v.product.as_str(),
        v.company.as_str(),
        v.numbers(),
        // Of programs that Windows keeps an inventory of: not here.
        "",
        ""
    ]
}

/// The name of the PDB of an image: its own, with another ending.
fn pdb_name(file: &str) -> String {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    format!("{stem}.pdb")
}
