//! What a merge adds: the directories and volumes of the machine before the first record, and the
//! identity of each image, whose file it finds, before the kernel's event of the image.

use std::collections::{BTreeMap, BTreeSet};

use etl_format::constants::PointerSize;
use etl_format::cursor::Bytes;
use etl_format::read::{Header, Record};
use etl_format::rewrite::merge::Insertions;
use etl_format::write::record::Full;
use etl_schema::Identity;
use etl_schema::decode::Utf16;
use etl_schema::encode::{OwnedValue, encode_into};
use etl_schema::providers::{IMAGE_ID, SYSTEM_CONFIG_EX};
use etl_schema::tables::Registry;
use etl_schema::views::kernel;

use super::values;
use crate::machine::Image;
use crate::model::{DiskPlan, FileVersion, PdbIdentity, WindowsVersion};
use crate::truth::ImageIdentity;

/// The thread id in records that a merge adds.
const NO_THREAD: u32 = u32::MAX;

/// Records that describe the machine: directories of Windows, a volume without a drive letter,
/// and what users call a volume.
const SYSTEM_PATHS: u8 = 33;
const UNKNOWN_VOLUME: u8 = 34;
const VOLUME_MAPPING: u8 = 35;

/// The image files on the disk of the machine, one entry for each file.
#[derive(Clone, Debug)]
pub(crate) struct ImageFiles {
    /// Drive letters of the volumes, with the colon. The system partition is volume 1 and has none.
    letters: Vec<String>,
    /// The version of Windows.
    os: WindowsVersion,
    known: BTreeMap<Key, OnDisk>,
}

/// Content of the file of an image.
#[derive(Clone, Debug)]
struct OnDisk {
    pdb: Option<PdbIdentity>,
    version: Option<FileVersion>,
}

/// The key of a file: its path in lower case, and link time and size from its header.
type Key = (String, u32, u64);

impl ImageFiles {
    pub fn new(os: WindowsVersion, disks: &[DiskPlan]) -> Self {
        let volumes = disks.iter().flat_map(|disk| &disk.volumes);
        let letters = volumes.map(|volume| volume.letter.clone()).collect();
        ImageFiles {
            letters,
            os,
            known: BTreeMap::new(),
        }
    }

    /// Adds the file of an image.
    pub fn add(&mut self, image: &Image) {
        let path = image.kernel_path().to_lowercase();
        let version = image.about.of(&image.path, self.os);
        let file = OnDisk {
            pdb: image.pdb,
            version,
        };
        self.known.insert((path, image.timestamp, image.size), file);
    }
}

/// Adds identities to a merge.
pub(super) struct ImageIdentifier<'f> {
    files: &'f ImageFiles,
    /// Whether the machine was described.
    is_described: bool,
    /// Processes and addresses of images that were identified.
    identified: BTreeSet<(u32, u64)>,
    /// Images that a file to merge identifies itself, until the image is reported.
    present: BTreeSet<(u32, u64)>,
    /// Files whose version was reported.
    versions: BTreeSet<Key>,
    /// Images in the order in which they were identified.
    pub images: Vec<ImageIdentity>,
}

/// Inserts the events that identify one image.
struct IdentityEvents<'i> {
    added: &'i mut Insertions,
    timestamp: i64,
    width: PointerSize,
    pid: u32,
}

impl IdentityEvents<'_> {
    /// Inserts an event, unless its values do not fit the pointer size of the record.
    fn push(&mut self, opcode: u8, version: u16, values: &[OwnedValue]) -> etl_format::Result<()> {
        let mut payload = Vec::new();
        let id = Identity::Classic { opcode, version: 0 };
        let Some(table) = Registry::classic().event(IMAGE_ID, id) else {
            return Ok(());
        };
        if encode_into(&table.schema.fields, values, self.width, &mut payload).is_err() {
            return Ok(());
        }
        self.added.push(
            &Full::new(IMAGE_ID, opcode, self.timestamp)
                .pointer_size(self.width)
                .version(version)
                .process(self.pid, NO_THREAD)
                .payload(&payload),
        )
    }
}

impl<'f> ImageIdentifier<'f> {
    pub fn new(files: &'f ImageFiles) -> Self {
        let identified = BTreeSet::new();
        let versions = BTreeSet::new();
        let is_described = false;
        let present = BTreeSet::new();
        let images = Vec::new();
        ImageIdentifier {
            files,
            is_described,
            identified,
            present,
            versions,
            images,
        }
    }

    /// Inserts what describes the machine, before the first record.
    fn describe(
        &mut self,
        record: &Record<'_>,
        timestamp: i64,
        added: &mut Insertions,
    ) -> etl_format::Result<()> {
        self.is_described = true;
        let mut texts: Vec<(u8, Vec<OwnedValue>)> = vec![
            (
                SYSTEM_PATHS,
                values!["C:\\Windows\\system32", "C:\\Windows\\"].into(),
            ),
            (
                UNKNOWN_VOLUME,
                values!["\\Device\\HarddiskVolume1\\"].into(),
            ),
            (VOLUME_MAPPING, values!["\\??\\", ""].into()),
            (
                VOLUME_MAPPING,
                values!["\\SystemRoot\\", "C:\\Windows\\"].into(),
            ),
        ];
        for (number, letter) in (2u32..).zip(&self.files.letters) {
            let device = format!("\\Device\\HarddiskVolume{number}\\");
            let path = format!("{letter}\\");
            texts.push((
                VOLUME_MAPPING,
                values![device.as_str(), path.as_str()].into(),
            ));
        }
        let width = record.pointer_size().unwrap_or(PointerSize::P8);
        for (opcode, values) in texts {
            let mut payload = Vec::new();
            let id = Identity::Classic { opcode, version: 0 };
            let Some(table) = Registry::classic().event(SYSTEM_CONFIG_EX, id) else {
                continue;
            };
            if encode_into(&table.schema.fields, &values, width, &mut payload).is_err() {
                continue;
            }
            added.push(
                &Full::new(SYSTEM_CONFIG_EX, opcode, timestamp)
                    .pointer_size(width)
                    .payload(&payload),
            )?;
        }
        Ok(())
    }

    /// Inserts what describes the machine before the first record, and the identity of an image
    /// before a record that reports it, if its file is known.
    pub fn identify(
        &mut self,
        record: &Record<'_>,
        timestamp: i64,
        added: &mut Insertions,
    ) -> etl_format::Result<()> {
        // A merge that is merged again has all this already.
        match record.provider() {
            Some(SYSTEM_CONFIG_EX) => self.is_described = true,
            Some(IMAGE_ID) => self.present.extend(identified(record)),
            _ => {}
        }
        if !self.is_described {
            self.describe(record, timestamp, added)?;
        }
        let Some(image) = self.image(record) else {
            return Ok(());
        };
        if self.present.remove(&(image.pid.get(), image.base)) {
            return Ok(());
        }
        let width = record.pointer_size().unwrap_or(PointerSize::P8);
        let file = image
            .path
            .rsplit('\\')
            .next()
            .unwrap_or_default()
            .to_owned();
        let ImageIdentity {
            base,
            size,
            link_time,
            ..
        } = image;
        let pid = image.pid.get();
        let mut events = IdentityEvents {
            added,
            timestamp,
            width,
            pid,
        };
        // The version of a file is reported once, with its first image.
        let key = (image.path.to_lowercase(), link_time, size);
        if let Some(version) = image.version.as_ref().filter(|_| self.versions.insert(key)) {
            events.push(64, 0, &version_of(version, &file, size, link_time))?;
        }
        events.push(0, 2, &values![base, size, pid, link_time, file.as_str()])?;
        match image.pdb {
            Some(PdbIdentity { signature, age }) => {
                let pdb = OwnedValue::Text(pdb_name(&file));
                events.push(36, 2, &values![base, pid, signature, age, pdb])?;
            }
            None => events.push(32, 2, &values![base, pid])?,
        }
        if self.identified.insert((pid, base)) {
            self.images.push(image);
        }
        Ok(())
    }

    /// The image that a record reports, if its file is known.
    fn image(&self, record: &Record<'_>) -> Option<ImageIdentity> {
        let kernel::Event::Image(_, image) = kernel::decode(record)? else {
            return None;
        };
        let kernel::Image {
            pid, base, size, ..
        } = image;
        let path = Utf16::new(image.path()?).to_string();
        let link_time = image.link_time()?;
        let file = self
            .files
            .known
            .get(&(path.to_lowercase(), link_time, size))?;
        Some(ImageIdentity {
            pid: pid.into(),
            base,
            size,
            link_time,
            path,
            pdb: file.pdb,
            version: file.version.clone(),
        })
    }
}

/// The process and the address of the image that a record identifies.
fn identified(record: &Record<'_>) -> Option<(u32, u64)> {
    let width = record.pointer_size()?;
    let payload = record.payload();
    let base = match width {
        PointerSize::P4 => payload.u32_at(0)?.into(),
        PointerSize::P8 => payload.u64_at(0)?,
    };
    let Header::Full(header) = record.header() else {
        return None;
    };
    (header.opcode == 0).then_some((payload.u32_at(2 * width.bytes())?, base))
}

/// The version information of a file, as the fields of its record.
fn version_of(v: &FileVersion, file: &str, size: u64, timestamp: u32) -> [OwnedValue; 12] {
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    let numbers = v.numbers();
    let language = v.language.to_string();
    let [about, text, product, company] =
        [&v.description, &v.version, &v.product, &v.company].map(String::as_str);
    let fixed = numbers.clone();
    // The last two identify the program in the inventory of Windows.
    values![
        size, timestamp, file, about, text, fixed, language, product, company, numbers, "", ""
    ]
}

/// The name of the PDB of an image: the name of the image with another extension.
fn pdb_name(file: &str) -> String {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    format!("{stem}.pdb")
}
