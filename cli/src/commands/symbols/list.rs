//! `etlkit symbols list`.

use std::collections::BTreeSet;

use etl_analysis::pdb::{CodeAddresses, Found, NeededPdb, PdbId, PdbKind, SymbolPaths};
use etl_analysis::{Machine, Within};
use etl_format::file_name;
use etl_tables::{Cell, Column, Columns, Kind, Report, ReportTable, Row};

use super::{ListArgs, MissingLines};
use crate::Outcome;
use crate::error::Failure;
use crate::output;
use crate::recording::Analyzed;

pub(super) fn list(args: &ListArgs) -> Result<Outcome, Failure> {
    let symbolizer = args.symbols.symbolizer()?;
    let threads = &args.recording.thread;
    let analyzed = args
        .recording
        .analyze(|range| Within::new(range, CodeAddresses::default()).threads(threads))?;
    let machine = &analyzed.machine;
    let addresses = &analyzed.observer.observer;
    let pdbs = addresses.needed_pdbs(machine, analyzed.selected.as_ref());
    let mut rows = Vec::new();
    for needed in &pdbs.list {
        rows.push(PdbRow::new(
            machine,
            needed,
            symbolizer.find(machine, needed.pdb),
        ));
    }
    for pdb in &pdbs.messages {
        rows.push(PdbRow::of_messages(pdb, symbolizer.paths().find(pdb).found));
    }
    let missing_count = rows.iter().filter(|row| row.is_missing()).count();
    let mut outcome = analyzed.outcome;
    if missing_count > 0 {
        outcome = outcome.max(Outcome::Findings);
    }
    if let Some(lines) = args.missing {
        output::print(&missing_lines(args, lines, &rows))?;
        return Ok(outcome);
    }
    let mut report = report(&analyzed, symbolizer.paths(), args.symbols.is_asked());
    report.headline.push(format!(
        "{} PDBs, {} of them needed, {missing_count} of these missing",
        rows.len(),
        rows.iter().filter(|row| row.is_needed()).count(),
    ));
    let unidentified = pdbs.unidentified_addresses;
    report.fact(MISSING, Cell::int(Some(missing_count)));
    report.fact(UNIDENTIFIED, Cell::int(Some(unidentified)));
    if unidentified > 0 {
        report.missing.push(format!(
            "identities of images with {unidentified} addresses of samples and stacks: merge the \
             trace on the traced machine with `xperf -merge`"
        ));
    }
    report.tables.push(ReportTable::new("", rows));
    args.format.print(&report, None)?;
    Ok(outcome)
}

/// The lines about the needed PDBs that are missing, each once.
fn missing_lines(args: &ListArgs, form: MissingLines, rows: &[PdbRow]) -> String {
    let mut lines: BTreeSet<String> = BTreeSet::new();
    for row in rows.iter().filter(|row| row.is_missing()) {
        match form {
            MissingLines::Paths => lines.extend(row.server_paths().map(|path| format!("{path}\n"))),
            MissingLines::Curl => {
                let folder = args.symbols.folder();
                for path in row.server_paths() {
                    lines.insert(curl_lines(&args.server, &folder, path));
                }
            }
            MissingLines::Symchk => lines.extend(row.symchk_line()),
        }
    }
    lines.into_iter().collect()
}

/// The lines of a configuration of curl that download a file into a cache of symbols.
fn curl_lines(server: &str, folder: &str, path: &str) -> String {
    let server = server.trim_end_matches('/');
    let url = curl_text(&format!("{server}/{path}"));
    let output = curl_text(&format!("{folder}/{path}"));
    format!("url = {url}\noutput = {output}\ncreate-dirs\n")
}

/// A value of a configuration of curl, in quotes.
fn curl_text(value: &str) -> String {
    let mut text = String::from("\"");
    for character in value.chars() {
        if matches!(character, '"' | '\\') {
            text.push('\\');
        }
        // Names of PDBs come from the trace: a line break would be another option.
        if !character.is_control() {
            text.push(character);
        }
    }
    text.push('"');
    text
}

const MISSING: Column = Column::count("missing_pdbs", "Needed PDBs that are missing");
const UNIDENTIFIED: Column = Column::count(
    "unidentified_addresses",
    "Addresses in images without an identity",
);

fn report<'r, O>(analyzed: &Analyzed<O>, paths: &SymbolPaths, is_asked: bool) -> Report<'r> {
    let mut report = Report::new("symbols");
    report.start = analyzed.machine.clock().start_time;
    report.files.clone_from(&analyzed.names);
    if paths.is_empty() {
        let why = match is_asked {
            true => "there is none in the places of --symbols",
            false => "--symbols names their places",
        };
        report.headline.push(format!("no PDB was looked at: {why}"));
    }
    report
}

/// A row of `pdbs`.
struct PdbRow {
    pdb: PdbId,
    code: Code,
    /// Addresses of samples and stacks in its code.
    addresses: u64,
    /// Path of the image or module; empty if it is unknown.
    path: String,
    found: Option<Found>,
    found_path: String,
    guid: String,
    server_path: String,
    portable_server_path: String,
    image_server_path: String,
}

/// Whether a path on a server is below the folder of a cache: a trace could name a PDB `..`.
fn is_below(path: &str) -> bool {
    !path.is_empty() && !path.starts_with("..")
}

/// For what a PDB is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Code {
    Native,
    Managed,
    /// The formats of WPP messages.
    Messages,
}

impl PdbRow {
    fn new(machine: &Machine, needed: &NeededPdb, found: Option<Found>) -> Self {
        let pdb = PdbId::of_machine(machine, needed.pdb);
        let code = if needed.is_managed {
            Code::Managed
        } else {
            Code::Native
        };
        PdbRow {
            code,
            addresses: needed.addresses,
            path: needed.path.clone(),
            server_path: needed.server_path(machine).unwrap_or_default(),
            portable_server_path: needed.portable_server_path(machine).unwrap_or_default(),
            image_server_path: needed.image_server_path().unwrap_or_default(),
            ..PdbRow::of_messages(&pdb, found)
        }
    }

    /// The row of a PDB with the formats of WPP messages.
    fn of_messages(pdb: &PdbId, found: Option<Found>) -> Self {
        let found_path = match &found {
            Some(found) => found.path.display().to_string(),
            None => String::new(),
        };
        PdbRow {
            pdb: pdb.clone(),
            code: Code::Messages,
            addresses: 0,
            path: String::new(),
            found,
            found_path,
            guid: pdb.guid().to_string(),
            server_path: pdb.server_path(),
            portable_server_path: String::new(),
            image_server_path: String::new(),
        }
    }

    /// Its paths on a symbol server, as a Windows PDB and as a portable PDB.
    fn server_paths(&self) -> impl Iterator<Item = &str> {
        let paths = [&self.server_path, &self.portable_server_path].into_iter();
        paths.map(String::as_str).filter(|path| is_below(path))
    }

    /// Its line in a manifest of `symchk`: the name, and GUID and age without separators.
    fn symchk_line(&self) -> Option<String> {
        let mut parts = self.server_paths().next()?.split('/');
        let name = parts.next()?;
        let identity = parts.next()?;
        Some(format!("{name},{identity},1\n"))
    }

    /// Whether it names code of samples and stacks, or has the formats of messages.
    fn is_needed(&self) -> bool {
        self.addresses > 0 || self.code == Code::Messages
    }

    /// Whether it is needed and was not found.
    fn is_missing(&self) -> bool {
        self.is_needed() && self.found.is_none()
    }

    /// File name of the image or module.
    fn image(&self) -> &str {
        file_name(&self.path)
    }

    /// The kind of code.
    fn code(&self) -> &'static str {
        match self.code {
            Code::Native => "native",
            Code::Managed => "managed",
            Code::Messages => "wpp",
        }
    }

    /// The kind of the PDB, if it was found.
    fn kind(&self) -> &'static str {
        match self.found.as_ref().map(|found| found.kind) {
            None => "",
            Some(PdbKind::Windows) => "windows",
            Some(PdbKind::Portable) => "portable",
            Some(_) => "other",
        }
    }
}

impl Row for PdbRow {
    const NAME: &'static str = "symbols.pdbs";
    const ROW: &'static str = "One PDB";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const ADDRESSES: Column =
            Column::count("addresses", "Addresses of samples and stacks in its code");
        const IMAGE: Column = Column::new("image", Kind::Word, "File name of the image or module");
        const CODE: Column = Column::new(
            "code",
            Kind::Word,
            "For what it is needed: `native` or `managed` code, or `wpp` messages",
        );
        const FOUND: Column = Column::new("found", Kind::Text, "Where it is");
        const KIND: Column = Column::new("kind", Kind::Word, "`windows`, `portable` or `other`");
        const SERVER: Column = Column::new("server_path", Kind::Text, "Path on a symbol server");
        const PORTABLE: Column = Column::new(
            "portable_server_path",
            Kind::Text,
            "Path on a symbol server of a portable PDB",
        );
        const IMAGE_SERVER: Column = Column::new(
            "image_server_path",
            Kind::Text,
            "Path of the image on a symbol server",
        );
        const PATH: Column = Column::new("image_path", Kind::Text, "Path of the image or module");
        columns.add(ADDRESSES.heading("addresses"), |row| {
            Cell::int(Some(row.addresses))
        });
        columns.add(IMAGE.heading("image"), |row| Cell::text(row.image()));
        columns.add(CODE.heading("code"), |row| Cell::text(row.code()));
        columns.add(FOUND.heading("found"), |row| Cell::text(&row.found_path));
        columns.add(KIND, |row| Cell::text(row.kind()));
        columns.add(Column::new("pdb", Kind::Text, "File name"), |row| {
            Cell::text(row.pdb.name())
        });
        columns.add(Column::new("pdb_guid", Kind::Text, "GUID"), |row| {
            Cell::text(&row.guid)
        });
        columns.add(Column::count("pdb_age", "Age"), |row| {
            Cell::int(Some(row.pdb.age()))
        });
        columns.add(SERVER.heading("server path"), |row| {
            Cell::text(&row.server_path)
        });
        columns.add(PORTABLE, |row| Cell::text(&row.portable_server_path));
        columns.add(IMAGE_SERVER, |row| Cell::text(&row.image_server_path));
        columns.add(PATH, |row| Cell::text(&row.path));
    }
}
