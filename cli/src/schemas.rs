//! The arguments that name schemas of events: manifests, TMF files, and which tables to use.

use std::path::{Path, PathBuf};

use clap::Args;
use etl_schema::EventSchema;
use etl_schema::sources::{manifest, tmf};
use etl_schema::store::SchemaStore;
use etl_schema::tables::TableSet;

use crate::choice::{EVENT_TABLES, one_of};
use crate::error::Failure;
use crate::input;

/// Which schemas are used beside those of the trace itself.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Definitions of the CLR events to use where the reference pages and the runtimes disagree
    #[arg(long, value_parser = one_of(EVENT_TABLES), value_name = "TABLES", default_value = "shipped")]
    event_tables: TableSet,
    /// Decode events with this XML instrumentation manifest, or with all in a directory (.man,
    /// .xml); may be repeated
    #[arg(long, value_name = "FILE|DIR")]
    manifest: Vec<PathBuf>,
    /// Decode WPP messages with this TMF file, or with all in a directory (.tmf); may be repeated
    #[arg(long, value_name = "FILE|DIR")]
    tmf: Vec<PathBuf>,
}

const MANIFEST: &str =
    "name an instrumentation manifest: the XML (.man, .xml) that a provider is compiled from";
const TMF: &str = "name a TMF file; tracepdb extracts them from a PDB";

impl SchemaArgs {
    /// The tables of the CLR's events, where others than by default are named.
    #[cfg(feature = "parquet")]
    pub fn other_tables(&self) -> Option<&'static str> {
        let mut others = EVENT_TABLES
            .iter()
            .filter(|(.., tables)| *tables != TableSet::default());
        others
            .find(|(.., tables)| *tables == self.event_tables)
            .map(|(name, ..)| *name)
    }

    /// The files with definitions, and the option of each.
    #[cfg(feature = "parquet")]
    pub fn files(&self) -> Result<Vec<(&'static str, PathBuf)>, Failure> {
        let of = |option, named: &[PathBuf], extensions: &[&str], hint| {
            let found = files(named, extensions, hint)?;
            Ok::<_, Failure>(found.into_iter().map(move |path| (option, path)))
        };
        let manifests = of("--manifest", &self.manifest, &["man", "xml"], MANIFEST)?;
        Ok(manifests
            .chain(of("--tmf", &self.tmf, &["tmf"], TMF)?)
            .collect())
    }

    /// The schemas of the tables, and of the manifests and TMF files of the user.
    pub fn store(&self) -> Result<SchemaStore, Failure> {
        let mut store = SchemaStore::default().with_tables(self.event_tables);
        for path in &files(&self.manifest, &["man", "xml"], MANIFEST)? {
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
        for path in &files(&self.tmf, &["tmf"], TMF)? {
            let (text, name) = read(path, TMF)?;
            let tmf =
                tmf::parse(&text).map_err(|e| Failure::new(&name, e.to_string()).hint(TMF))?;
            for note in tmf.notes {
                stderr_line!(
                    "note: {name}: line {}: unknown type {}; the message shows bytes from there on",
                    note.line,
                    note.item
                );
            }
            store.add_schemas(tmf.schemas);
        }
        Ok(store)
    }
}

fn read_manifest(path: &Path) -> Result<Vec<EventSchema>, Failure> {
    let (text, name) = read(path, MANIFEST)?;
    manifest::parse(&text).map_err(|e| Failure::new(name, e.to_string()).hint(MANIFEST))
}

/// The files that are named, and those with one of these extensions in the directories that are.
fn files(named: &[PathBuf], extensions: &[&str], hint: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut out = Vec::new();
    for path in named {
        if !path.is_dir() {
            out.push(path.clone());
            continue;
        }
        let failure = |e: std::io::Error| Failure::new(input::display(path), e.to_string());
        let mut found = Vec::new();
        for entry in std::fs::read_dir(path).map_err(failure)? {
            let file = entry.map_err(failure)?.path();
            let extension = file
                .extension()
                .and_then(|e| e.to_str())
                .unwrap_or_default();
            if extensions
                .iter()
                .any(|wanted| extension.eq_ignore_ascii_case(wanted))
            {
                found.push(file);
            }
        }
        if found.is_empty() {
            let wanted = extensions.join(" or .");
            let message = format!("the directory has no .{wanted} file");
            return Err(Failure::new(input::display(path), message).hint(hint));
        }
        found.sort();
        out.append(&mut found);
    }
    Ok(out)
}

fn read(path: &Path, hint: &str) -> Result<(String, String), Failure> {
    let bytes = input::read_all(path).map_err(|failure| failure.hint(hint))?;
    let name = input::display(path);
    match input::binary_format(&bytes) {
        Some(what) => Err(Failure::new(name, format!("this is {what}, not text")).hint(hint)),
        None => Ok((text_of(&bytes), name)),
    }
}

/// Text in UTF-8, or in UTF-16 with a byte order mark, as Windows tools write it.
fn text_of(bytes: &[u8]) -> String {
    let units = |rest: &[u8], from: fn([u8; 2]) -> u16| {
        let units: Vec<_> = rest.as_chunks().0.iter().map(|&unit| from(unit)).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}
