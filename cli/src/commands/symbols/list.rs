//! `etlkit symbols list`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use etl_analysis::machine::images::ImageId;
use etl_analysis::pdb::{Found, PdbId, PdbKind, SymbolPaths, image_server_path};
use etl_analysis::symbols::Symbol;
use etl_analysis::{EventRef, Machine, Observer, Sample, Stack};
use etl_format::file_name;
use etl_schema::views::Pdb;
use etl_schema::views::merge::ImageStamp;
use etl_tables::{Cell, Column, Columns, Kind, Report, ReportTable, Row};

use super::ListArgs;
use crate::Outcome;
use crate::error::Failure;
use crate::output;
use crate::recording::{Analyzed, Between};

/// How often each address is in samples and stacks, and when last; by process.
#[derive(Debug, Default)]
struct Addresses {
    threads: Vec<u32>,
    counts: HashMap<(Option<usize>, u64), (u64, i64)>,
}

impl Addresses {
    fn add(&mut self, event: &EventRef, addresses: impl Iterator<Item = u64>) {
        let is_selected = event.tid.is_some_and(|tid| self.threads.contains(&tid));
        if !self.threads.is_empty() && !is_selected {
            return;
        }
        for address in addresses {
            let (count, last) = self.counts.entry((event.process, address)).or_default();
            (*count, *last) = (*count + 1, event.time);
        }
    }
}

impl Observer for Addresses {
    fn sample(&mut self, _: &Machine, sample: &Sample<'_>) {
        let own = (sample.frames.iter().next() != Some(sample.address)).then_some(sample.address);
        self.add(&sample.event, own.into_iter().chain(sample.frames.iter()));
    }

    fn stack(&mut self, _: &Machine, stack: &Stack<'_>) {
        self.add(&stack.event, stack.frames.iter());
    }

    fn restart(&mut self) {
        self.counts.clear();
    }
}

/// What a PDB is for.
#[derive(Clone, Debug, Default)]
struct Wanted {
    /// Path of the image or module.
    path: String,
    /// Whether it is the PDB of .NET code.
    is_managed: bool,
    /// The identity of the image's file.
    stamp: Option<ImageStamp>,
    addresses: u64,
}

impl Wanted {
    const fn code(&self) -> &'static str {
        if self.is_managed { "managed" } else { "native" }
    }
}

pub(super) fn list(args: &ListArgs) -> Result<Outcome, Failure> {
    let symbolizer = args.symbols.symbolizer()?;
    let analyzed = args.recording.analyze(|span| {
        let threads = args.recording.thread.clone();
        Between::new(span, Addresses { threads, ..Addresses::default() })
    })?;
    let machine = &analyzed.machine;
    let selected = analyzed.selected.as_ref();
    let (wanted, unidentified) = wanted(machine, &analyzed.observer.observer, selected);
    let mut rows: Vec<(Pdb, Wanted)> = wanted.into_iter().collect();
    rows.sort_by_key(|(pdb, wanted)| {
        (Reverse(wanted.addresses), machine.pdb_path(*pdb).to_lowercase(), *pdb)
    });
    let found: Vec<Option<Found>> =
        rows.iter().map(|(pdb, _)| symbolizer.find(machine, *pdb)).collect();
    let is_missing =
        |wanted: &Wanted, found: &Option<Found>| wanted.addresses > 0 && found.is_none();
    let missing = rows.iter().zip(&found).filter(|((_, w), found)| is_missing(w, found));
    let missing: Vec<&(Pdb, Wanted)> = missing.map(|(row, _)| row).collect();
    let mut outcome = analyzed.outcome;
    if !missing.is_empty() {
        outcome = outcome.max(Outcome::Findings);
    }
    if args.missing {
        let mut lines: BTreeSet<String> = BTreeSet::new();
        for (pdb, wanted) in missing {
            lines.extend(server_paths(machine, *pdb, wanted).into_iter().flatten());
        }
        output::print(&lines.into_iter().map(|line| line + "\n").collect::<String>())?;
        return Ok(outcome);
    }
    let mut report = report(&analyzed, symbolizer.paths(), args.symbols.is_asked());
    report.headline.push(format!(
        "{} PDBs, {} of them needed, {} of these missing",
        rows.len(),
        rows.iter().filter(|(_, wanted)| wanted.addresses > 0).count(),
        missing.len()
    ));
    report.fact(MISSING, Cell::int(Some(missing.len())));
    report.fact(UNIDENTIFIED, Cell::int(Some(unidentified)));
    if unidentified > 0 {
        report.missing.push(format!(
            "identities of images with {unidentified} addresses of samples and stacks: merge the \
             trace on the traced machine with `xperf -merge`"
        ));
    }
    report.tables.push(ReportTable::new("", pdb_rows(machine, &rows, &found)));
    args.format.print(&report, None)?;
    Ok(outcome)
}

const MISSING: Column = Column::count("missing_pdbs", "Needed PDBs that are missing");
const UNIDENTIFIED: Column =
    Column::count("unidentified_addresses", "Addresses in images without an identity");

fn report<'r, O>(analyzed: &Analyzed<O>, paths: &SymbolPaths, is_asked: bool) -> Report<'r> {
    let mut report = Report::new("symbols");
    report.start = analyzed.machine.clock().start_time;
    report.files.clone_from(&analyzed.names);
    if paths.is_empty() {
        let why = match is_asked {
            true => "there is none where --symbols says",
            false => "--symbols names where they are",
        };
        report.headline.push(format!("no PDB was looked at: {why}"));
    }
    report
}

/// The PDBs of images and modules, and how many addresses are in images of unknown identity.
fn wanted(
    machine: &Machine,
    addresses: &Addresses,
    selected: Option<&BTreeSet<usize>>,
) -> (BTreeMap<Pdb, Wanted>, u64) {
    let mut wanted: BTreeMap<Pdb, Wanted> = BTreeMap::new();
    let is_selected = |process| selected.is_none_or(|selected| selected.contains(&process));
    for image in machine.image_lives().filter(|image| is_selected(image.process)) {
        if let Some(ImageId::Pdb(pdb)) = image.id {
            let new = wanted.entry(pdb).or_default();
            if new.path.is_empty() {
                new.path = machine.user_path(image.path).into_owned();
            }
            new.stamp = new.stamp.or(image.stamp);
        }
    }
    let symbols = machine.symbols();
    for (_, _, module, _) in symbols.modules().filter(|&(process, ..)| is_selected(process)) {
        let il = module.il_pdb.map(|pdb| (pdb, module.path, true));
        let native = module.native_pdb.map(|pdb| (pdb, module.native_path, false));
        for (pdb, path, is_managed) in il.into_iter().chain(native) {
            let new = wanted.entry(pdb).or_default();
            if new.path.is_empty() {
                new.path = machine.user_path(path).into_owned();
            }
            new.is_managed |= is_managed;
        }
    }
    let mut unidentified = 0;
    for (&(process, address), &(count, time)) in &addresses.counts {
        if process.is_some_and(|process| !is_selected(process)) {
            continue;
        }
        let pid = process.and_then(|at| machine.processes().get(at)).map(|p| p.pid());
        let pdb = match symbols.at(pid.unwrap_or(u32::MAX), address, time) {
            Some(Symbol::Image(image)) => {
                unidentified += if image.pdb.is_none() { count } else { 0 };
                image.pdb
            }
            Some(Symbol::Method(method)) => method.module.and_then(|module| module.il_pdb),
            _ => None,
        };
        if let Some(wanted) = pdb.and_then(|pdb| wanted.get_mut(&pdb)) {
            wanted.addresses += count;
        }
    }
    (wanted, unidentified)
}

/// Paths of a PDB on a symbol server: of the Windows PDB, and of the portable one where it may be
/// one.
fn server_paths(machine: &Machine, pdb: Pdb, wanted: &Wanted) -> [Option<String>; 2] {
    let id = PdbId::of_machine(machine, pdb);
    if id.name().is_empty() {
        return [None, None];
    }
    // Compilers of .NET write the age 1 for a portable PDB.
    let may_be_portable = wanted.is_managed && pdb.age == 1;
    [Some(id.server_path()), may_be_portable.then(|| id.portable_server_path())]
}

/// A row of `pdbs`.
struct PdbRow<'p> {
    pdb: Pdb,
    wanted: &'p Wanted,
    found: Option<&'p Found>,
    found_path: String,
    name: String,
    guid: String,
    server_path: String,
    portable_server_path: String,
    image_server_path: String,
}

impl PdbRow<'_> {
    /// File name of the image or module.
    fn image(&self) -> &str {
        file_name(&self.wanted.path)
    }

    /// The kind of the PDB, if it is there.
    fn kind(&self) -> &'static str {
        match self.found.map(|found| found.kind) {
            None => "",
            Some(PdbKind::Windows) => "windows",
            Some(PdbKind::Portable) => "portable",
            Some(_) => "other",
        }
    }
}

impl Row for PdbRow<'_> {
    const NAME: &'static str = "symbols.pdbs";
    const ROW: &'static str = "One PDB";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const ADDRESSES: Column =
            Column::count("addresses", "Addresses of samples and stacks in its code");
        const IMAGE: Column = Column::new("image", Kind::Word, "File name of the image or module");
        const CODE: Column = Column::new("code", Kind::Word, "The kind of code");
        const FOUND: Column = Column::new("found", Kind::Text, "Where it is");
        const KIND: Column = Column::new("kind", Kind::Word, "`windows`, `portable` or `other`");
        const SERVER: Column = Column::new("server_path", Kind::Text, "Path on a symbol server");
        const PORTABLE: Column = Column::new(
            "portable_server_path",
            Kind::Text,
            "Path on a symbol server of a portable PDB",
        );
        const IMAGE_SERVER: Column =
            Column::new("image_server_path", Kind::Text, "Path of the image on a symbol server");
        const PATH: Column = Column::new("image_path", Kind::Text, "Path of the image or module");
        columns.add(ADDRESSES.heading("addresses"), |row| Cell::int(Some(row.wanted.addresses)));
        columns.add(IMAGE.heading("image"), |row| Cell::text(row.image()));
        columns.add(CODE.heading("code"), |row| Cell::text(row.wanted.code()));
        columns.add(FOUND.heading("found"), |row| Cell::text(&row.found_path));
        columns.add(KIND, |row| Cell::text(row.kind()));
        columns.add(Column::new("pdb", Kind::Text, "File name"), |row| Cell::text(&row.name));
        columns.add(Column::new("pdb_guid", Kind::Text, "GUID"), |row| Cell::text(&row.guid));
        columns.add(Column::count("pdb_age", "Age"), |row| Cell::int(Some(row.pdb.age)));
        columns.add(SERVER.heading("server path"), |row| Cell::text(&row.server_path));
        columns.add(PORTABLE, |row| Cell::text(&row.portable_server_path));
        columns.add(IMAGE_SERVER, |row| Cell::text(&row.image_server_path));
        columns.add(PATH, |row| Cell::text(&row.wanted.path));
    }
}

fn pdb_rows<'p>(
    machine: &Machine,
    rows: &'p [(Pdb, Wanted)],
    found: &'p [Option<Found>],
) -> Vec<PdbRow<'p>> {
    let mut out = Vec::new();
    for ((pdb, wanted), found) in rows.iter().zip(found) {
        let found = found.as_ref();
        let [windows, portable] = server_paths(machine, *pdb, wanted);
        let mut row = PdbRow {
            pdb: *pdb,
            wanted,
            found,
            found_path: found.map_or_else(String::new, |found| found.path.display().to_string()),
            name: PdbId::of_machine(machine, *pdb).name().to_owned(),
            guid: pdb.signature.to_string(),
            server_path: windows.unwrap_or_default(),
            portable_server_path: portable.unwrap_or_default(),
            image_server_path: String::new(),
        };
        if let Some(stamp) = wanted.stamp
            && !row.image().is_empty()
        {
            row.image_server_path = image_server_path(row.image(), stamp.link_time, stamp.size);
        }
        out.push(row);
    }
    out
}
