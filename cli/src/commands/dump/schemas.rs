//! The columns and schemas that the arguments of `etlkit dump` select.

use std::path::PathBuf;

use etl_schema::SchemaSource;
use etl_schema::sources::{manifest, tmf};
use etl_schema::store::SchemaStore;
use etl_tools::rows::{Columns, Format};

use super::Args;
use crate::error::Failure;
use crate::input;

/// The columns of the CSV.
pub(super) fn columns(args: &Args) -> Result<Columns, Failure> {
    if args.columns.is_empty() {
        return Ok(Columns::default());
    }
    if args.format != Format::Csv {
        return Err(Failure::new("--columns", "needs the CSV format").hint("add --format csv"));
    }
    Columns::new(&args.columns).map_err(|e| Failure::new("--columns", e.to_string()))
}

/// The schemas of the tables, and of the manifests and TMF files of the user.
pub(super) fn store(args: &Args) -> Result<SchemaStore, Failure> {
    const MANIFEST: &str =
        "name an instrumentation manifest: the XML (.man, .xml) that a provider is compiled from";
    const TMF: &str = "name a TMF file; tracepdb extracts them from a PDB";
    let mut store = SchemaStore::default().with_tables(args.event_tables);
    let read = |path: &PathBuf, hint: &str| {
        let bytes = input::read_all(path).map_err(|failure| failure.hint(hint))?;
        let name = input::display(path);
        match input::binary_format(&bytes) {
            Some(what) => Err(Failure::new(name, format!("this is {what}, not text")).hint(hint)),
            None => Ok((text_of(&bytes), name)),
        }
    };
    for path in &args.manifest {
        let (text, name) = read(path, MANIFEST)?;
        let schemas = manifest::parse(&text, SchemaSource::Manifest)
            .map_err(|e| Failure::new(name, e.to_string()).hint(MANIFEST))?;
        store.add_schemas(schemas);
    }
    for path in &args.tmf {
        let (text, name) = read(path, TMF)?;
        let tmf = tmf::parse(&text).map_err(|e| Failure::new(&name, e.to_string()).hint(TMF))?;
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
