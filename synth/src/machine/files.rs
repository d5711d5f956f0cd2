//! Files, open files, and disks.

use std::collections::BTreeMap;

use crate::model::{DiskPlan, MachinePlan};
use crate::rng::{Rng, Source};
use crate::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

/// Bytes before the first volume with a letter: partition table and system partition.
pub(crate) const FIRST_VOLUME: u64 = 351 << 20;
/// Bytes between two files on a disk.
const EXTENT: u64 = 64 << 20;
/// Bytes of a sector.
const SECTOR: u64 = 512;

/// Addresses of objects of one kind in the kernel's memory. The last freed address is used
/// again first, as in real traces.
#[derive(Debug)]
pub(crate) struct Addresses {
    next: u64,
    size: u64,
    /// Free ones, and since when they are: processors are ahead of each other.
    free: Vec<(u64, Nanos)>,
}

impl Addresses {
    fn new(first: u64, size: u64) -> Self {
        Addresses {
            next: first,
            size,
            free: Vec::new(),
        }
    }

    pub fn take(&mut self, at: Nanos) -> u64 {
        if let Some(last) = self.free.iter().rposition(|(_, since)| *since < at) {
            return self.free.remove(last).0;
        }
        let address = self.next;
        self.next += self.size;
        address
    }

    pub fn give_back(&mut self, address: u64, at: Nanos) {
        self.free.push((address, at));
    }
}

/// A file.
#[derive(Debug)]
pub(crate) struct File {
    /// Path with its drive letter, or the path of the kernel.
    pub path: String,
    /// Number of its disk, and its first byte there.
    pub disk: u32,
    pub start: u64,
    /// The key by which events name it, from when it is first opened until it is deleted.
    pub key: Option<u64>,
    /// Whether it exists: a file that was not deleted does.
    pub exists: bool,
    /// Whether it is deleted as soon as it is not open any more.
    deleted: bool,
}

/// A file that a process has open, as it asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenFile {
    pub handle: u64,
    /// The thread that uses it.
    pub thread: usize,
}

/// An open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle {
    /// Index of the process, and of the file.
    pub process: usize,
    pub file: usize,
    /// Address of the file object.
    pub object: u64,
    pub key: u64,
}

/// The files of the machine.
#[derive(Debug)]
pub(crate) struct Files {
    all: Vec<File>,
    by_path: BTreeMap<String, usize>,
    /// Volumes: letter and colon, disk, first byte, bytes; and bytes given to files.
    volumes: Vec<(String, u32, u64, u64, u64)>,
    pub open: BTreeMap<u64, Handle>,
    handles: u64,
    keys: Addresses,
    pub objects: Addresses,
    /// Requests of programs to file systems, and of file systems to disks.
    pub irps: Addresses,
}

impl Files {
    pub fn new(disks: &[DiskPlan]) -> Self {
        let mut volumes = Vec::new();
        for (number, disk) in (0u32..).zip(disks) {
            let mut start = FIRST_VOLUME;
            for volume in &disk.volumes {
                volumes.push((volume.letter.clone(), number, start, volume.bytes, 0));
                start = start.saturating_add(volume.bytes);
            }
        }
        Files {
            all: Vec::new(),
            by_path: BTreeMap::new(),
            volumes,
            open: BTreeMap::new(),
            handles: 0,
            keys: Addresses::new(0xffff_f8a0_0100_1140, 0x2b0),
            objects: Addresses::new(0xffff_fa83_0160_0070, 0x150),
            irps: Addresses::new(0xffff_fa83_0047_e010, 0x4e0),
        }
    }

    /// A file by its path; `None` if the machine has no such volume.
    pub fn find(&mut self, path: &str) -> Option<usize> {
        let name = path.to_lowercase();
        if let Some(known) = self.by_path.get(&name) {
            return Some(*known);
        }
        let letter = path.get(..2)?;
        let volume = self
            .volumes
            .iter_mut()
            .find(|v| v.0.eq_ignore_ascii_case(letter))?;
        let (_, disk, first, bytes, used) = volume;
        let disk = *disk;
        let start = first.saturating_add(*used);
        *used = (*used + EXTENT) % (*bytes).max(1);
        Some(self.add(path, disk, start))
    }

    /// The file of an image, wherever it is.
    pub fn find_image(&mut self, path: &str) -> usize {
        self.find(path)
            .unwrap_or_else(|| self.add(path, 0, FIRST_VOLUME))
    }

    fn add(&mut self, path: &str, disk: u32, start: u64) -> usize {
        self.all.push(File {
            path: path.to_owned(),
            disk,
            start,
            key: None,
            exists: true,
            deleted: false,
        });
        self.by_path.insert(path.to_lowercase(), self.all.len() - 1);
        self.all.len() - 1
    }

    pub fn get(&self, file: usize) -> Option<&File> {
        self.all.get(file)
    }

    /// Assigns a key to a file, if it has none. Returns the key, whether it is new, and whether the
    /// file is created.
    pub fn name(&mut self, file: usize, at: Nanos) -> (u64, bool, bool) {
        let Some(found) = self.all.get_mut(file) else {
            return (0, false, false);
        };
        let created = !std::mem::replace(&mut found.exists, true);
        match found.key {
            Some(key) => (key, false, created),
            None => {
                let key = self.keys.take(at);
                found.key = Some(key);
                (key, true, created)
            }
        }
    }

    /// A file is deleted when the last one that has it open closes it.
    pub fn delete_at_close(&mut self, file: usize) {
        if let Some(found) = self.all.get_mut(file) {
            found.deleted = true;
        }
    }

    /// A file was closed. If that deletes it, its key is free and is returned.
    pub fn closed(&mut self, file: usize, at: Nanos) -> Option<u64> {
        let in_use = self.open.values().any(|open| open.file == file);
        let deleted_file = self.all.get_mut(file).filter(|f| f.deleted && !in_use)?;
        deleted_file.exists = false;
        deleted_file.deleted = false;
        let key = deleted_file.key.take()?;
        self.keys.give_back(key, at);
        Some(key)
    }

    /// Files with a key, in the order of their first use.
    pub fn named(&self) -> impl Iterator<Item = (u64, &File)> {
        self.all.iter().filter_map(|file| Some((file.key?, file)))
    }

    /// A new number for an open file.
    pub fn new_handle(&mut self) -> u64 {
        self.handles += 1;
        self.handles
    }

    /// The path of a file as the kernel reports it. The system partition is volume 1.
    pub fn kernel_path(&self, path: &str) -> String {
        let letter = path.get(..2).unwrap_or_default();
        let volume = self
            .volumes
            .iter()
            .position(|v| v.0.eq_ignore_ascii_case(letter));
        match (volume, path.get(2..)) {
            (Some(volume), Some(rest)) => format!("\\Device\\HarddiskVolume{}{rest}", volume + 2),
            _ => path.to_owned(),
        }
    }
}

/// A disk: it serves one request after the other.
#[derive(Debug)]
pub(crate) struct Disk {
    bytes_per_second: u64,
    free_from: Nanos,
    rng: Rng,
}

impl Disk {
    /// The disks of a machine.
    pub fn all(plan: &MachinePlan, source: Source) -> Vec<Disk> {
        let numbers = 0..plan.disks.len() as u64;
        numbers
            .map(|number| Disk {
                bytes_per_second: plan.disk_speed.max(1),
                free_from: 0,
                rng: source.named("disk").numbered(number).rng(),
            })
            .collect()
    }

    /// When a transfer of some bytes ends, or a flush without any.
    pub fn serve(&mut self, bytes: u64, at: Nanos) -> Nanos {
        let latency = match bytes {
            0 => self.rng.between(2 * MILLISECOND, 40 * MILLISECOND),
            _ => self.rng.between(80 * MICROSECOND, 900 * MICROSECOND),
        };
        let time = u128::from(bytes) * u128::from(SECOND) / u128::from(self.bytes_per_second);
        let time = u64::try_from(time).unwrap_or(u64::MAX);
        let start = at.max(self.free_from);
        self.free_from = start.saturating_add(latency).saturating_add(time);
        self.free_from
    }
}

/// The whole sectors of a part of a file: first byte and bytes.
pub(crate) fn sectors(offset: u64, bytes: u64) -> (u64, u64) {
    let start = offset / SECTOR * SECTOR;
    let end = offset
        .saturating_add(bytes)
        .div_ceil(SECTOR)
        .saturating_mul(SECTOR);
    (start, end.saturating_sub(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_of_a_deleted_file_is_used_again() {
        let mut files = Files::new(&[DiskPlan::default()]);
        let one = files.find("C:\\one").unwrap();
        let two = files.find("C:\\two").unwrap();
        assert_eq!(files.find("c:\\ONE"), Some(one));
        assert_eq!(files.find("X:\\one"), None);
        let (key, new, created) = files.name(one, 1);
        assert_eq!((new, created), (true, false), "it existed");
        assert_eq!(files.name(one, 2), (key, false, false));
        assert_eq!(files.closed(one, 3), None, "it is not to be deleted");
        files.delete_at_close(one);
        assert_eq!(files.closed(one, 5), Some(key));
        let (early, ..) = files.name(one, 5);
        assert_ne!(early, key, "not before it is free");
        files.delete_at_close(one);
        assert_eq!(files.closed(one, 9), Some(early));
        assert_eq!(files.name(two, 8), (key, true, false));
        let (other, new, created) = files.name(one, 10);
        assert!(other != key && new && created);
        assert_eq!(
            files.kernel_path("c:\\one"),
            "\\Device\\HarddiskVolume2\\one"
        );
    }

    #[test]
    fn disk_serves_one_request_after_the_other() {
        let mut disk = Disk::all(&MachinePlan::default(), Source::new(1)).remove(0);
        let first = disk.serve(4096, 1000);
        let second = disk.serve(4096, 1000);
        assert!(first > 1000 + 80 * MICROSECOND && second > first + 80 * MICROSECOND);
        assert_eq!(sectors(700, 100), (512, 512));
        assert_eq!(sectors(0, 513), (0, 1024));
    }
}
