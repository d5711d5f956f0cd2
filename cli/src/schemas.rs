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
use crate::input::{self, InputArgs};
use crate::memory;
use crate::output;

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

    /// The schemas of the tables, and of the manifests and TMF files of the user. Their memory is
    /// not in the budget of any trace: the files have a budget of their own, of the same kind.
    pub fn store(&self, input: &InputArgs) -> Result<SchemaStore, Failure> {
        let mut definitions = Definitions {
            store: SchemaStore::default().with_tables(self.event_tables),
            input,
            size: 0,
            before: memory::allocated(),
        };
        memory::set_definitions(0);
        for path in &files(&self.manifest, MANIFEST_EXTENSIONS, MANIFEST)? {
            definitions.add_manifest(path, self.manifest.contains(path))?;
        }
        for path in &files(&self.tmf, TMF_EXTENSIONS, TMF)? {
            definitions.add_messages(path, self.tmf.contains(path))?;
        }
        memory::set_definitions(definitions.used());
        Ok(definitions.store)
    }
}

/// Schemas from files of the user, while they are read.
struct Definitions<'a> {
    store: SchemaStore,
    input: &'a InputArgs,
    /// Bytes of the files.
    size: u64,
    /// The bytes that were allocated before.
    before: u64,
}

impl Definitions<'_> {
    /// Adds the events of a manifest. A file of a directory may be another kind of XML: it is left
    /// out with a note, unless the user named the file itself.
    fn add_manifest(&mut self, path: &Path, is_named: bool) -> Result<(), Failure> {
        self.add_size(path);
        match read_manifest(path, self.max_text()) {
            Ok(schemas) => self.store.add_schemas(schemas),
            Err(failure) => return leave_out(path, failure, is_named),
        }
        self.ensure_memory(path)
    }

    /// Adds the messages of a TMF file or PDB. A PDB of a directory may be public, without
    /// messages: it is left out with a note, unless the user named the file itself.
    fn add_messages(&mut self, path: &Path, is_named: bool) -> Result<(), Failure> {
        self.add_size(path);
        let text = match message_formats(path, self.max_text()) {
            Ok(text) => text,
            Err(failure) => return leave_out(path, failure, is_named),
        };
        let name = input::display(path);
        let left = self.memory().saturating_sub(self.used());
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let tmf = tmf::parse_within(&text, left).map_err(|error| match error {
            etl_schema::Error::TmfTooBig { .. } => self.too_big(path),
            other => Failure::new(&name, other.to_string()).hint(TMF),
        })?;
        for note in tmf.notes {
            print_note(&name, &note);
        }
        self.store.add_schemas(tmf.schemas);
        drop(text);
        self.ensure_memory(path)
    }

    fn add_size(&mut self, path: &Path) {
        if let Ok(metadata) = fs::metadata(path) {
            self.size = self.size.saturating_add(metadata.len());
        }
    }

    /// The memory for the schemas.
    fn memory(&self) -> u64 {
        self.input.memory(self.size)
    }

    /// The longest text of a file: it is in memory beside the schemas, twice if it is UTF-16.
    fn max_text(&self) -> u64 {
        self.memory() / 4
    }

    /// The bytes of the schemas so far.
    fn used(&self) -> u64 {
        memory::allocated().saturating_sub(self.before)
    }

    fn ensure_memory(&self, path: &Path) -> Result<(), Failure> {
        if self.used() <= self.memory() {
            return Ok(());
        }
        Err(self.too_big(path))
    }

    fn too_big(&self, path: &Path) -> Failure {
        let message = format!(
            "the definitions up to this file need more than the {} bytes of memory for definitions",
            self.memory()
        );
        Failure::new(input::display(path), message).hint("--max-memory allows more")
    }
}

/// Leaves out a file of a directory with a note. A file that the user named is an error.
fn leave_out(path: &Path, failure: Failure, is_named: bool) -> Result<(), Failure> {
    if is_named {
        return Err(failure);
    }
    let name = input::display(path);
    stderr_line!("note: {name} is left out: {}", failure.message_about(&name));
    Ok(())
}

/// The text of a TMF file, or the same text from a PDB.
fn message_formats(path: &Path, max_text: u64) -> Result<String, Failure> {
    let extension = path.extension().and_then(OsStr::to_str);
    if !extension.is_some_and(|extension| extension.eq_ignore_ascii_case("pdb")) {
        return read(path, max_text, TMF);
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

fn read_manifest(path: &Path, max_text: u64) -> Result<Vec<EventSchema>, Failure> {
    let text = read(path, max_text, MANIFEST)?;
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

/// The text of a file with definitions, which has at most `max_text` bytes.
fn read(path: &Path, max_text: u64, hint: &str) -> Result<String, Failure> {
    let bytes = input::read_up_to(path, max_text.saturating_add(1));
    let bytes = bytes.map_err(|failure| failure.hint(hint))?;
    if bytes.len() as u64 > max_text {
        let message = format!("this is longer than {}", output::size(max_text));
        return Err(Failure::new(input::display(path), message).hint("--max-memory allows more"));
    }
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
