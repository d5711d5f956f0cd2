//! Images of processes with their lifetimes.

use etl_format::Ticks;
use etl_schema::views::Pdb;
use etl_schema::views::merge::ImageStamp;

use super::Machine;
use super::images::ImageId;
use crate::address::Range;
use crate::keys::ProcessIndex;

/// An image in the address space of a process, from its load to its unload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageLife<'m> {
    /// The process.
    pub process: ProcessIndex,
    /// First address.
    pub start: u64,
    /// Address after the last one.
    pub end: u64,
    /// Time of its load; `None` if it was there when the recording began.
    pub loaded: Option<Ticks>,
    /// Time of its unload; `None` if it was there to the end.
    pub unloaded: Option<Ticks>,
    /// Path of its file; empty if no event states it, or names are not kept.
    pub path: &'m str,
    /// Its identity, if a merge recorded it.
    pub id: Option<ImageId>,
    /// The identity of its file; `None` if no event states it.
    pub stamp: Option<ImageStamp>,
    /// How many addresses of stacks and samples are in it.
    pub hits: u64,
}

impl Machine {
    /// The path of a PDB as the image or the module states it; empty if no event states it, or
    /// names are not kept.
    #[must_use]
    pub fn pdb_path(&self, pdb: Pdb) -> &str {
        self.names.as_ref().map_or("", |names| names.pdb_path(pdb))
    }

    /// The images of all processes: by process, in the order in which they were loaded. The images
    /// of the kernel are images of the processes 0 and 4.
    pub fn image_lives(&self) -> impl Iterator<Item = ImageLife<'_>> {
        self.indexed_processes().flat_map(move |(index, process)| {
            let mut ranges: Vec<_> = process.images.all().collect();
            ranges.sort_unstable_by_key(|range| (range.from, range.start));
            ranges
                .into_iter()
                .map(move |range| self.image_life(index, &range))
        })
    }

    fn image_life(&self, process: ProcessIndex, range: &Range) -> ImageLife<'_> {
        let image = self.images.get(range.tag.id);
        let names = self.names.as_ref();
        ImageLife {
            process,
            start: range.start,
            end: range.end,
            loaded: range.from,
            unloaded: range.to,
            path: names.map_or("", |names| names.image_path(range.tag.id)),
            id: image.and_then(|image| image.id),
            stamp: image.and_then(|image| image.stamp),
            hits: image.map_or(0, |image| image.hits.iter().sum()),
        }
    }
}
