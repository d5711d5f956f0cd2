//! What processes loaded, and when: images, and domains, assemblies and modules of .NET.

use etl_format::Ticks;
use std::borrow::Cow;

use etl_analysis::Machine;
use etl_analysis::behavior::loads::{Load, LoadKind, Loads};

use super::{OfProcess, TID, UNLOADED, add_process, file_name, process_label, ticks};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};
use crate::selection::Selection;

/// A row of `loads`.
#[derive(Clone, Debug)]
pub struct LoadRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    /// When it was loaded, in ticks of the recording's clock.
    loaded: Ticks,
    unloaded: Option<Ticks>,
    kind: &'static str,
    name: String,
    path: Cow<'m, str>,
    native_path: &'m str,
    /// The event of a CLR; `None` for an image.
    load: Option<&'m Load>,
}

impl OfProcess for LoadRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for LoadRow<'_> {
    const NAME: &'static str = "loads";
    const ROW: &'static str =
        "One load of an image, or of a domain, an assembly or a module of .NET, in time order";
    const ABOUT: &'static str = "`analyze loader` prints the same rows. Items that were loaded before \
        the recording are in `images` and `modules`.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const KIND: Column = Column::new(
            "kind",
            Kind::Word,
            "`image`, `domain`, `assembly` or `module`",
        );
        const DURATION: Column = Column::micros(
            "duration_us",
            "How long the search for an assembly took: .NET 5 and later state it",
        );
        const CLR: Column =
            super::CLR.meaning("Number of the runtime in the process; null of images");
        const RESULT: Column = Column::new("result", Kind::Word, "`loaded` or `not found`");
        const NAME: Column = Column::new(
            "name",
            Kind::Text,
            "File name, name of the domain, or full name of the assembly",
        );
        const NATIVE: Column = Column::new(
            "native_path",
            Kind::Text,
            "Path of the native image of a module",
        );
        add_process(columns);
        columns.add(
            Column::time("loaded", "When it was loaded").heading("time"),
            |row| Cell::time(row.machine.clock(), Some(row.loaded)),
        );
        columns.add(KIND.heading("kind"), |row| Cell::Text(row.kind));
        columns.add(DURATION.or_null().heading("ms"), |row| {
            Cell::micros(row.duration())
        });
        columns.add(UNLOADED, |row| {
            Cell::time(row.machine.clock(), row.unloaded)
        });
        columns.add(TID, |row| Cell::int(row.load.and_then(|load| load.tid)));
        columns.add(CLR.or_null(), |row| {
            Cell::int(row.load.map(|load| load.clr))
        });
        columns.add(RESULT, |row| Cell::Text(row.result()));
        columns.add(NAME.or_null().heading("name"), |row| Cell::text(&row.name));
        columns.add(
            Column::new("path", Kind::Text, "Path")
                .or_null()
                .heading("path"),
            |row| Cell::text(&row.path),
        );
        columns.add(NATIVE.or_null(), |row| Cell::text(row.native_path));
    }
}

impl LoadRow<'_> {
    /// Whether an image was loaded, and not something of .NET.
    #[must_use]
    pub fn is_image(&self) -> bool {
        self.load.is_none()
    }

    fn duration(&self) -> Option<u64> {
        let duration = self.load?.duration?;
        Some(ticks(self.machine.clock(), duration))
    }

    fn result(&self) -> &'static str {
        match self.load {
            Some(load) if load.has_failed => "not found",
            _ => "loaded",
        }
    }
}

/// A row for each selected load, in time order. The thread that loaded an image is not known.
#[must_use]
pub fn loads<'m>(
    machine: &'m Machine,
    loads: &'m Loads,
    selection: &Selection,
) -> Vec<LoadRow<'m>> {
    let mut rows = Vec::new();
    for image in machine.image_lives() {
        let Some(loaded) = image.loaded else { continue };
        if !selection.has_process(Some(image.process))
            || !selection.has_thread(None)
            || !selection.has_time(loaded)
        {
            continue;
        }
        let path = machine.user_path(image.path);
        rows.push(LoadRow {
            machine,
            process: process_label(machine, Some(image.process)),
            loaded,
            unloaded: image.unloaded,
            kind: "image",
            name: file_name(&path).to_owned(),
            path,
            native_path: "",
            load: None,
        });
    }
    for load in loads.list() {
        if selection.has_process(Some(load.process)) && selection.has_thread(load.tid) {
            rows.push(clr_load(machine, load));
        }
    }
    rows.sort_by_key(|row| row.loaded);
    rows
}

/// The row of a load by a CLR.
fn clr_load<'m>(machine: &'m Machine, load: &'m Load) -> LoadRow<'m> {
    let (name, path, native_path): (&str, &str, &str) = match load.kind {
        LoadKind::Module => (file_name(&load.path), &load.path, &load.name),
        LoadKind::Domain | LoadKind::Assembly => (&load.name, &load.path, ""),
        _ => (&load.name, "", ""),
    };
    let name = if load.has_failed {
        format!("{name} (not found)")
    } else {
        name.to_owned()
    };
    LoadRow {
        machine,
        process: process_label(machine, Some(load.process)),
        loaded: load.loaded,
        unloaded: load.unloaded,
        kind: load.kind.name(),
        name,
        path: Cow::Borrowed(path),
        native_path,
        load: Some(load),
    }
}
