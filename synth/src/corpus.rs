//! The scripts of the corpus, in the library, so that its traces can be made anywhere.
//!
//! `tables/corpus.txt` contains the files of the directory `corpus`, one after the other; a test
//! keeps both equal.
//!
//! ```
//! use etl_synth::corpus;
//!
//! let script = corpus::scripts().find(|script| script.name == "recipe").unwrap();
//! let scenario = etl_synth::Script::new("recipe", script.text).include(&corpus::include).parse()?;
//! assert_eq!(scenario.name, "recipe");
//! # Ok::<(), etl_synth::ScriptErrors>(())
//! ```

use std::io;

use crate::corpus_lock::CorpusLock;

/// The files, each after a line `=== PATH`.
const FILES: &str = include_str!("../tables/corpus.txt");
/// What a line before a file begins with.
const MARK: &str = "=== ";
/// The directory of included files, which are not scenarios.
const PARTS: &str = "parts/";

/// Commented scripts to begin with, by name: `etlkit synth --template NAME` prints them.
///
/// ```
/// use etl_synth::{Script, corpus};
///
/// for template in corpus::TEMPLATES {
///     assert!(Script::new(template.name, template.text).parse().is_ok(), "{}", template.name);
/// }
/// ```
pub const TEMPLATES: [CorpusScript; 6] = [
    CorpusScript {
        name: "attach",
        text: include_str!("../templates/attach.kdl"),
    },
    CorpusScript {
        name: "launch",
        text: include_str!("../templates/launch.kdl"),
    },
    CorpusScript {
        name: "desktop",
        text: include_str!("../templates/desktop.kdl"),
    },
    CorpusScript {
        name: "ring",
        text: include_str!("../templates/ring.kdl"),
    },
    CorpusScript {
        name: "pktmon",
        text: include_str!("../templates/pktmon.kdl"),
    },
    CorpusScript {
        name: "kernel",
        text: include_str!("../templates/kernel.kdl"),
    },
];

/// The files by their paths in the directory `corpus`.
fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut rest = FILES;
    std::iter::from_fn(move || {
        let (path, after) = rest.strip_prefix(MARK)?.split_once('\n')?;
        let end = after
            .find(&format!("\n{MARK}"))
            .map_or(after.len(), |at| at + 1);
        let (text, next) = after.split_at_checked(end)?;
        rest = next;
        Some((path, text))
    })
}

/// A scenario script of the corpus, or a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CorpusScript {
    /// Its name, for example `recipe` or `rules/file.damaged`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// The scenario scripts, by name.
pub fn scripts() -> impl Iterator<Item = CorpusScript> {
    let scripts = files().filter(|(path, _)| !path.starts_with(PARTS));
    scripts.filter_map(|(path, text)| {
        Some(CorpusScript {
            name: path.strip_suffix(".kdl")?,
            text,
        })
    })
}

/// The text of a file that a script of the corpus includes, by its path in the directory `corpus`,
/// for [`Script::include`](crate::Script::include).
///
/// # Errors
/// There is no such file.
pub fn include(path: &str) -> io::Result<String> {
    let path = path.strip_prefix("../").unwrap_or(path);
    let text = files()
        .find(|(known, _)| *known == path)
        .map(|(_, text)| text.to_owned());
    text.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "file not found"))
}

/// CRC-32 and size of every output of the scripts.
///
/// ```
/// use etl_synth::corpus;
/// use etl_synth::corpus_lock::{Checksum, Outputs};
///
/// let outputs = Outputs::from([("mine/a.etl".to_owned(), Checksum::of(b"bytes"))]);
/// let differences = corpus::lock().differences(&outputs, &["mine".to_owned()]);
/// assert!(differences[0].starts_with("new: mine/a.etl"));
/// ```
#[must_use]
pub fn lock() -> CorpusLock {
    let text = files()
        .find(|(path, _)| *path == CorpusLock::FILE_NAME)
        .map(|(_, text)| text);
    CorpusLock::parse(text.unwrap_or_default())
}
