//! Images of the traced machine, and the identities that a merge adds for them.

use etl_format::{ProcessId, Ticks};
use foldhash::HashMap;

use etl_format::read::Record;
use etl_schema::views::Pdb;
use etl_schema::views::merge::{self, ImageStamp};

use super::image_ids::{Place, Stated};
use super::names::{Names, file_name};
use crate::address::Origin;
use crate::counted::Span;

/// An image in the address space of a process.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// The process; 0 for the kernel.
    pub pid: ProcessId,
    /// First address.
    pub base: u64,
    /// File name without the path, in lower case; empty if no event states it.
    pub name: Box<str>,
    /// How many addresses are in it, by origin, without the samples of idle processors.
    pub hits: [u64; Origin::COUNT],
    /// Its identity, if a merge recorded it, or a stream of `collect-linux`; known once the
    /// recording was read.
    pub id: Option<ImageId>,
    /// The identity of its file; `None` if no event states it.
    pub stamp: Option<ImageStamp>,
}

impl Image {
    /// Whether it is an image of the kernel, which all processes see.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        self.pid == 0 || self.pid == super::SYSTEM
    }
}

/// The identity of an image, from a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageId {
    /// Its PDB.
    Pdb(Pdb),
    /// The image has no PDB, or its PDB could not be read.
    None,
}

/// How many addresses of a process are in images of the kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelHits {
    /// The index of the image with an ordinal.
    indices: HashMap<u16, u32>,
    /// Ordinals of the images, and hits by origin.
    list: Vec<(u16, [u64; Origin::COUNT])>,
}

impl KernelHits {
    /// The index at which hits in the image with an ordinal are counted.
    pub fn index(&mut self, ordinal: u16) -> u32 {
        *self.indices.entry(ordinal).or_insert_with(|| {
            self.list.push((ordinal, [0; Origin::COUNT]));
            // There are no more than ordinals.
            (self.list.len() - 1) as u32
        })
    }

    /// Counts addresses.
    pub(crate) fn add(&mut self, index: usize, origin: Origin, count: u64) {
        let hits = self.list.get_mut(index);
        if let Some(n) = hits.and_then(|(_, hits)| hits.get_mut(origin as usize)) {
            *n += count;
        }
    }

    /// Ordinals of images, and hits by origin.
    pub fn take(self) -> Vec<(u16, [u64; Origin::COUNT])> {
        self.list
    }
}

with_accessors! {
    /// All images, and their identities.
    #[derive(Clone, Debug, Default)]
    pub struct Images {
        copy {
            /// Events by which a merge adds identities.
            identities: u64,
        }
        borrow {
            /// In the order in which they appeared.
            list: Vec<Image> => [Image],
        }
        own {
            /// Indices of the kernel's images.
            kernel: Vec<u64>,
            ids: Stated<ImageId>,
            stamps: Stated<ImageStamp>,
        }
    }
}

impl Images {
    /// Adds an image; returns its index.
    pub(crate) fn add(&mut self, pid: ProcessId, base: u64, path: &[u8]) -> u64 {
        let name = file_name(path);
        self.list.push(Image {
            pid,
            base,
            name,
            ..Image::default()
        });
        (self.list.len() - 1) as u64
    }

    /// Adds an image to the images of the kernel. Returns its ordinal among them; all images beyond
    /// 16 bits have the last ordinal.
    pub(crate) fn add_kernel(&mut self, index: u64) -> u16 {
        let Ok(ordinal) = u16::try_from(self.kernel.len()) else {
            return u16::MAX;
        };
        self.kernel.push(index);
        ordinal
    }

    /// The image with an index.
    #[must_use]
    pub fn get(&self, index: u64) -> Option<&Image> {
        self.list.get(usize::try_from(index).ok()?)
    }

    /// Counts addresses in an image.
    #[inline]
    pub(crate) fn hit(&mut self, index: u64, origin: Origin, count: u64) {
        let image = self.get_mut(index);
        if let Some(hits) = image.and_then(|image| image.hits.get_mut(origin as usize)) {
            *hits += count;
        }
    }

    /// Keeps the identity of an image, if the record is a merge's record of one.
    pub(crate) fn identity(
        &mut self,
        record: &Record<'_>,
        timestamp: Ticks,
        names: Option<&mut Names>,
    ) {
        let Some(event) = merge::ImageId::of(record) else {
            return;
        };
        self.identities += 1;
        if let Some(names) = names
            && let merge::ImageIdentity::Pdb(pdb) = event.identity
        {
            names.pdb(pdb, event.pdb_path);
        }
        let Some(pid) = event.process_id else {
            return;
        };
        let Some(base) = event.base else {
            return;
        };
        let place = Place {
            pid: ProcessId::new(pid),
            base,
        };
        if let Some(stamp) = event.stamp {
            self.stamps.add(place, timestamp, stamp, |_, _| false);
        }
        let id = match event.identity {
            merge::ImageIdentity::None => ImageId::None,
            merge::ImageIdentity::Pdb(pdb) => ImageId::Pdb(pdb),
            _ => return,
        };
        self.ids
            .add(place, timestamp, id, |_, known| known == ImageId::None);
    }

    /// Keeps the PDB of an image that the event of the image states.
    pub(crate) fn set_pdb(&mut self, index: u64, pdb: Pdb) {
        if let Some(image) = self.get_mut(index) {
            image.id = Some(ImageId::Pdb(pdb));
        }
    }

    /// Keeps what the event of an image states of its file.
    pub(crate) fn stamp(&mut self, index: u64, stamp: ImageStamp) {
        if let Some(image) = self.get_mut(index) {
            image.stamp.get_or_insert(stamp);
        }
    }

    /// Sets the identity of an image that was stated while it was there.
    pub(crate) fn identify(&mut self, index: u64, lived: Span) {
        let Ok(index) = usize::try_from(index) else {
            return;
        };
        let Some(image) = self.list.get_mut(index) else {
            return;
        };
        let place = Place {
            pid: image.pid,
            base: image.base,
        };
        image.id = image.id.or_else(|| self.ids.of(place, lived));
        image.stamp = image.stamp.or_else(|| self.stamps.of(place, lived));
    }

    fn get_mut(&mut self, index: u64) -> Option<&mut Image> {
        self.list.get_mut(usize::try_from(index).ok()?)
    }

    /// Whether the PDB identity of an image is known.
    #[must_use]
    pub fn is_identified(&self, index: u64) -> bool {
        let image = self.get(index);
        image.is_some_and(|image| matches!(image.id, Some(ImageId::Pdb(_))))
    }
}
