//! WPP messages in Windows PDBs, as `tracepdb` extracts them.
//!
//! The preprocessor of WPP puts the format of each message into an annotation of the function that
//! logs it: the text `TMF:`, then the lines of a trace message format file.

use std::collections::HashSet;
use std::path::Path;

use pdb_addr2line::pdb::{AnnotationSymbol, FallibleIterator, PDB, SymbolData, SymbolIter};

use super::error::{Error, Reason, Result};
use super::guard::guarded;
use super::source::BoundedFile;

/// The first text of an annotation with a message.
const MARK: &str = "TMF:";

/// Bytes of the messages of a PDB. The largest drivers have a few megabytes.
const MAX_BYTES: usize = 64 << 20;

/// The WPP messages of a Windows PDB, as the text of a trace message format file (TMF). Empty if it
/// has none.
///
/// ```no_run
/// use std::path::Path;
///
/// let text = etl_analysis::pdb::message_formats(Path::new("driver.pdb"))?;
/// let messages = etl_schema::sources::tmf::parse(&text)?;
/// println!("{} messages", messages.schemas.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When the file cannot be read, or is damaged.
pub fn message_formats(path: &Path) -> Result<String> {
    guarded(path, || {
        let file = BoundedFile::open(path)?;
        read(file).map_err(|reason| Error::new(path, reason))
    })
}

fn read(file: BoundedFile) -> Result<String, Reason> {
    let mut pdb = PDB::open(file).map_err(Reason::malformed)?;
    let debug = pdb.debug_information().map_err(Reason::malformed)?;
    let mut modules = debug.modules().map_err(Reason::malformed)?;
    let mut messages = Messages::default();
    while let Some(module) = modules.next().map_err(Reason::malformed)? {
        // What is wrong with one module says nothing about the others.
        if let Ok(Some(info)) = pdb.module_info(&module)
            && let Ok(symbols) = info.symbols()
        {
            messages.add_all(symbols);
        }
    }
    Ok(messages.text)
}

/// Messages that were found.
#[derive(Default)]
struct Messages {
    text: String,
    /// Messages of inlined functions are in each function that contains them.
    seen: HashSet<String>,
}

impl Messages {
    /// Adds the messages among symbols, up to the first symbol that is damaged.
    fn add_all(&mut self, mut symbols: SymbolIter<'_>) {
        while let Ok(Some(symbol)) = symbols.next() {
            if let Ok(SymbolData::Annotation(annotation)) = symbol.parse() {
                self.add(&annotation);
            }
        }
    }

    fn add(&mut self, annotation: &AnnotationSymbol<'_>) {
        let mut strings = annotation.strings.iter().map(|text| text.to_string());
        if strings.next().as_deref() != Some(MARK) {
            return;
        }
        let mut message = String::new();
        for line in strings {
            message.push_str(&line);
            message.push('\n');
        }
        let is_bounded = self.text.len().saturating_add(message.len()) <= MAX_BYTES;
        if is_bounded && self.seen.insert(message.clone()) {
            self.text.push_str(&message);
        }
    }
}
