//! Image identities that a merge adds: it finds the file of each image that the kernel's events
//! report, and inserts the identity before the event.

use std::collections::{BTreeMap, BTreeSet};

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::read::Record;
use etl_format::rewrite::merge::Insertions;
use etl_format::write::record::Full;
use etl_schema::Identity;
use etl_schema::decode::Utf16;
use etl_schema::encode::{OwnedValue, encode_into};
use etl_schema::providers::IMAGE_ID;
use etl_schema::tables::Registry;
use etl_schema::views::kernel;

use super::values;
use crate::machine::Image;
use crate::model::FileVersion;
use crate::truth::{ImageIdentity, PdbIdentity};

/// The thread id in records that a merge adds.
const NO_THREAD: u32 = u32::MAX;

/// The image files on the disk of the machine, one entry for each file.
#[derive(Clone, Debug)]
pub(crate) struct ImageFiles {
    /// The version of Windows.
    os: (u8, u8, u32),
    known: BTreeMap<Key, OnDisk>,
}

/// Content of the file of an image.
#[derive(Clone, Debug)]
struct OnDisk {
    pdb: Option<(Guid, u32)>,
    version: Option<FileVersion>,
}

/// The key of a file: its path in lower case, and link time and size from its header.
type Key = (String, u32, u64);

impl ImageFiles {
    pub fn new(os: (u8, u8, u32)) -> Self {
        ImageFiles { os, known: BTreeMap::new() }
    }

    /// Adds the file of an image.
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
    /// Processes and addresses of images that were identified.
    identified: BTreeSet<(u32, u64)>,
    /// Files whose version was reported.
    versions: BTreeSet<Key>,
    /// Images in the order in which they were identified.
    pub images: Vec<ImageIdentity>,
}

impl<'f> ImageIdentifier<'f> {
    pub fn new(files: &'f ImageFiles) -> Self {
        let (identified, versions) = (BTreeSet::new(), BTreeSet::new());
        ImageIdentifier { files, identified, versions, images: Vec::new() }
    }

    /// Inserts the identity of an image before a record that reports it, if its file is known.
    pub fn identify(
        &mut self,
        record: &Record<'_>,
        timestamp: i64,
        added: &mut Insertions,
    ) -> etl_format::Result<()> {
        let Some(image) = self.image(record) else { return Ok(()) };
        let width = record.pointer_size().unwrap_or(PointerSize::P8);
        let file = image.path.rsplit('\\').next().unwrap_or_default().to_owned();
        let ImageIdentity { pid, base, size, link_time, .. } = image;
        let mut push = |opcode: u8, version: u16, values: &[OwnedValue]| {
            let mut payload = Vec::new();
            let class = Registry::classic();
            let id = Identity::Classic { opcode, version: 0 };
            let Some(table) = class.event(IMAGE_ID, id) else { return Ok(()) };
            // Values that do not fit the pointer size of the record are not reported.
            if encode_into(&table.schema.fields, values, width, &mut payload).is_err() {
                return Ok(());
            }
            added.push(&Full {
                pointer_size: width,
                opcode,
                level: 0,
                version,
                thread_id: NO_THREAD,
                process_id: pid,
                timestamp,
                class: IMAGE_ID,
                kernel_time: 0,
                user_time: 0,
                payload: &payload,
            })
        };
        // The version of a file is reported once, with its first image.
        let key = (image.path.to_lowercase(), link_time, size);
        if let Some(version) = image.version.as_ref().filter(|_| self.versions.insert(key)) {
            push(64, 0, &version_of(version, &file, size, link_time))?;
        }
        let (at, bytes) = (base, size);
        push(0, 2, &values![at, bytes, pid, link_time, file.as_str()])?;
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

    /// The image that a record reports, if its file is known.
    fn image(&self, record: &Record<'_>) -> Option<ImageIdentity> {
        let kernel::Event::Image(_, image) = kernel::decode(record)? else { return None };
        let kernel::Image { pid, base, size, .. } = image;
        let (path, time) = (Utf16::new(image.path()?).to_string(), image.link_time()?);
        let file = self.files.known.get(&(path.to_lowercase(), time, size))?;
        let (pdb, version) = (file.pdb.map(PdbIdentity::from), file.version.clone());
        Some(ImageIdentity { pid, base, size, link_time: time, path, pdb, version })
    }
}

/// The version information of a file, as the fields of its record.
fn version_of(v: &FileVersion, file: &str, size: u64, timestamp: u32) -> [OwnedValue; 12] {
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    let (numbers, language) = (v.numbers(), v.language.to_string());
    let [about, text, product, company] =
        [&v.description, &v.version, &v.product, &v.company].map(String::as_str);
    let fixed = numbers.clone();
    // The last two identify the program in the inventory of Windows.
    values![size, timestamp, file, about, text, fixed, language, product, company, numbers, "", ""]
}

/// The name of the PDB of an image: the name of the image with another extension.
fn pdb_name(file: &str) -> String {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    format!("{stem}.pdb")
}
