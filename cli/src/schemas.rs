//! The arguments that name schemas of events: manifests, TMF files, and which tables to use.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use etl_schema::EventSchema;
use etl_schema::sources::{manifest, tmf};
use etl_schema::store::SchemaStore;
use etl_schema::tables::TableSet;

use crate::choice::{EVENT_TABLES, one_of};
use crate::error::Failure;
use crate::input;

/// Which schemas are used in addition to the schemas in the trace.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Definitions of the CLR events to use where the reference pages and the runtimes disagree
    #[arg(long, value_parser = one_of(EVENT_TABLES), value_name = "TABLES", default_value = "shipped")]
    event_tables: TableSet,
    /// Decode events with this XML instrumentation manifest, or with all in a directory (.man,
    /// .xml); may be repeated
    #[arg(long, value_name = "FILE|DIR")]
    manifest: Vec<PathBuf>,
    /// Decode WPP messages with this TMF file or PDB, or with all in a directory (.tmf, .pdb); may
    /// be repeated
    #[arg(long, value_name = "FILE|DIR")]
    tmf: Vec<PathBuf>,
}

const MANIFEST: &str =
    "name an instrumentation manifest: the XML (.man, .xml) that a provider is compiled from";
const TMF: &str = "name a TMF file, or the private PDB of the program";

const MANIFEST_EXTENSIONS: &[&str] = &["man", "xml"];
const TMF_EXTENSIONS: &[&str] = &["tmf", "pdb"];

impl SchemaArgs {
    /// The name of the tables of the CLR's events, unless they are the default.
    #[cfg(feature = "parquet")]
    pub fn other_tables(&self) -> Option<&'static str> {
        if self.event_tables == TableSet::default() {
            return None;
        }
        let mut choices = EVENT_TABLES.iter();
        let choice = choices.find(|choice| choice.value == self.event_tables)?;
        Some(choice.word)
    }

    /// The files with definitions, and the option of each.
    #[cfg(feature = "parquet")]
    pub fn files(&self) -> Result<Vec<(&'static str, PathBuf)>, Failure> {
        let mut all = Vec::new();
        for path in files(&self.manifest, MANIFEST_EXTENSIONS, MANIFEST)? {
            all.push(("--manifest", path));
        }
        for path in files(&self.tmf, TMF_EXTENSIONS, TMF)? {
            all.push(("--tmf", path));
        }
        Ok(all)
    }

    /// The schemas of the tables, and of the manifests and TMF files of the user.
    pub fn store(&self) -> Result<SchemaStore, Failure> {
        let mut store = SchemaStore::default().with_tables(self.event_tables);
        for path in &files(&self.manifest, MANIFEST_EXTENSIONS, MANIFEST)? {
            match read_manifest(path) {
                Ok(schemas) => store.add_schemas(schemas),
                // Other files of a directory may be XML as well.
                Err(failure) if !self.manifest.contains(path) => {
                    let name = input::display(path);
                    stderr_line!("note: {name} is left out: {}", failure.message_about(&name));
                }
                Err(failure) => return Err(failure),
            }
        }
        for path in &files(&self.tmf, TMF_EXTENSIONS, TMF)? {
            let name = input::display(path);
            let text = match message_formats(path) {
                Ok(text) => text,
                // Other PDBs of a directory may be public, without messages.
                Err(failure) if !self.tmf.contains(path) => {
                    stderr_line!("note: {name} is left out: {}", failure.message_about(&name));
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            let tmf =
                tmf::parse(&text).map_err(|e| Failure::new(&name, e.to_string()).hint(TMF))?;
            for note in tmf.notes {
                print_note(&name, &note);
            }
            store.add_schemas(tmf.schemas);
        }
        Ok(store)
    }
}

/// The text of a TMF file, or the same text from a PDB.
fn message_formats(path: &Path) -> Result<String, Failure> {
    let extension = path.extension().and_then(OsStr::to_str);
    if !extension.is_some_and(|extension| extension.eq_ignore_ascii_case("pdb")) {
        return read(path, TMF);
    }
    let text = messages_of_pdb(path)?;
    if text.is_empty() {
        let message = "the PDB has no WPP messages: public PDBs are stripped of them";
        return Err(Failure::new(input::display(path), message).hint(TMF));
    }
    Ok(text)
}

#[cfg(feature = "symbols")]
fn messages_of_pdb(path: &Path) -> Result<String, Failure> {
    etl_analysis::pdb::message_formats(path)
        .map_err(|error| Failure::new(input::display(path), error.reason().to_string()).hint(TMF))
}

#[cfg(not(feature = "symbols"))]
fn messages_of_pdb(_: &Path) -> Result<String, Failure> {
    Err(crate::symbols::missing("--tmf with a PDB"))
}

/// Prints a remark on a line of a TMF file.
fn print_note(name: &str, note: &tmf::TmfNote) {
    match note {
        tmf::TmfNote::UnknownType { line, item } => stderr_line!(
            "note: {name}: line {line}: unknown type {item}; the message shows bytes from there on"
        ),
        tmf::TmfNote::MessageNumber { line, number } => stderr_line!(
            "note: {name}: line {line}: no record can have message number {number}; it is left out"
        ),
        _ => {}
    }
}

fn read_manifest(path: &Path) -> Result<Vec<EventSchema>, Failure> {
    let text = read(path, MANIFEST)?;
    manifest::parse(&text)
        .map_err(|e| Failure::new(input::display(path), e.to_string()).hint(MANIFEST))
}

/// The named files, and in the named directories the files with one of these extensions.
fn files(named: &[PathBuf], extensions: &[&str], hint: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in named {
        if path.is_dir() {
            files.extend(files_in(path, extensions, hint)?);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

/// The files of a directory with one of these extensions: at least one.
fn files_in(directory: &Path, extensions: &[&str], hint: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    let entries =
        fs::read_dir(directory).map_err(|e| Failure::io(input::display(directory), &e))?;
    for entry in entries {
        let entry = entry.map_err(|e| Failure::io(input::display(directory), &e))?;
        let path = entry.path();
        if let Some(extension) = path.extension().and_then(OsStr::to_str)
            && extensions
                .iter()
                .any(|wanted| extension.eq_ignore_ascii_case(wanted))
        {
            files.push(path);
        }
    }
    if files.is_empty() {
        let wanted = extensions.join(" or .");
        let message = format!("the directory has no .{wanted} file");
        return Err(Failure::new(input::display(directory), message).hint(hint));
    }
    files.sort();
    Ok(files)
}

/// The text of a file with definitions.
fn read(path: &Path, hint: &str) -> Result<String, Failure> {
    let bytes = input::read_all(path).map_err(|failure| failure.hint(hint))?;
    match input::binary_format(&bytes) {
        Some(format) => {
            let message = format!("this is {format}, not text");
            Err(Failure::new(input::display(path), message).hint(hint))
        }
        None => Ok(text_of(&bytes)),
    }
}

/// Text in UTF-8, or in UTF-16 with a byte order mark, as Windows tools write it.
fn text_of(bytes: &[u8]) -> String {
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn utf16(bytes: &[u8], decode_unit: fn([u8; 2]) -> u16) -> String {
    let pairs = bytes.as_chunks().0.iter();
    let units: Vec<u16> = pairs.map(|&pair| decode_unit(pair)).collect();
    String::from_utf16_lossy(&units)
}
