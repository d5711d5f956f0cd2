//! Images in the address spaces of processes.

use std::borrow::Cow;

use etl_analysis::Machine;
use etl_analysis::machine::ImageLife;
use etl_analysis::machine::images::ImageId;

use super::{LOADED, OfProcess, UNLOADED, add_process, file_name, process_label};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind, Style};
use crate::row::{Columns, Row};
use crate::selection::Selection;

/// A row of `images`.
#[derive(Clone, Debug)]
pub struct ImageRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    image: ImageLife<'m>,
    path: Cow<'m, str>,
    pdb_guid: String,
    pdb_age: Option<u32>,
}

impl OfProcess for ImageRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for ImageRow<'_> {
    const NAME: &'static str = "images";
    const ROW: &'static str =
        "One image in the address space of a process, from its load to its unload";
    const ABOUT: &'static str = "Images of the kernel belong to the processes 0 and 4.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const ADDRESS: Column = Column::address("address", "First address, as bits");
        const SIZE: Column = Column::bytes("size_bytes", "Size in memory").style(Style::Plain);
        const PDB: Column = Column::new(
            "pdb_guid",
            Kind::Text,
            "GUID of its PDB, if a merge recorded it",
        );
        const PATH: Column = Column::new(
            "path",
            Kind::Text,
            "Path of its file, with the drive if it is known",
        );
        add_process(columns);
        columns.add(ADDRESS.heading("address"), |row| {
            Cell::bits(Some(row.image.start))
        });
        columns.add(SIZE.heading("bytes"), |row| {
            Cell::bits(Some(row.image.end.saturating_sub(row.image.start)))
        });
        columns.add(LOADED, |row| {
            Cell::time(row.machine.clock(), row.image.loaded)
        });
        columns.add(UNLOADED, |row| {
            Cell::time(row.machine.clock(), row.image.unloaded)
        });
        columns.add(PDB.or_null().heading("PDB"), |row| {
            Cell::text(&row.pdb_guid)
        });
        columns.add(
            Column::count("pdb_age", "Age of that PDB")
                .or_null()
                .heading("age"),
            |row| Cell::int(row.pdb_age),
        );
        columns.add(PATH.or_null().heading("path"), |row| Cell::text(&row.path));
        columns.add(
            Column::new("image", Kind::Word, "File name").or_null(),
            |row| Cell::text(file_name(&row.path)),
        );
    }
}

/// A row for each image of the selected processes.
pub fn images<'m>(
    machine: &'m Machine,
    selection: &Selection,
) -> impl Iterator<Item = ImageRow<'m>> {
    let images = machine.image_lives().filter(move |image| {
        selection.has_process(Some(image.process))
            && selection.has_lifetime(image.loaded, image.unloaded)
    });
    images.map(move |image| {
        let pdb = match image.id {
            Some(ImageId::Pdb(pdb)) => Some(pdb),
            _ => None,
        };
        ImageRow {
            machine,
            process: process_label(machine, Some(image.process)),
            path: machine.user_path(image.path),
            pdb_guid: pdb.map_or_else(String::new, |pdb| pdb.signature.to_string()),
            pdb_age: pdb.map(|pdb| pdb.age),
            image,
        }
    })
}
