//! The files that `--report` writes.

use std::path::{Path, PathBuf};

use etl_verify::{Format, Report};

use super::report::render;
use super::{Args, FORMATS};
use crate::error::Failure;
use crate::input;
use crate::sink::{Sink, Wanted};
use crate::trace_files::Found;

/// The option, in messages.
const OPTION: &str = "--report";

/// A report that the user wants in a file.
#[derive(Clone, Debug)]
pub(super) struct ReportFile {
    format: Format,
    path: PathBuf,
}

impl ReportFile {
    /// Reads `FORMAT=FILE`.
    ///
    /// # Errors
    /// If there is no such format, or no file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<_> = FORMATS.iter().map(|choice| choice.word).collect();
        let expected = format!("expected FORMAT=FILE, with one of {}", words.join(", "));
        let Some((word, path)) = text.split_once('=') else {
            return Err(expected);
        };
        let choice = FORMATS.iter().find(|choice| choice.word == word);
        let choice = choice.ok_or(expected)?;
        if path.is_empty() || path == "-" {
            return Err("needs the name of a file; --format writes to standard output".to_owned());
        }
        Ok(ReportFile {
            format: choice.value,
            path: PathBuf::from(path),
        })
    }
}

/// The files of `--report`, which replace earlier reports when all traces were read.
pub(super) struct ReportFiles(Vec<OpenFile>);

struct OpenFile {
    format: Format,
    sink: Sink,
}

impl ReportFiles {
    /// Opens the files, before the traces are read.
    ///
    /// # Errors
    /// If one is a file that is read, is named twice, or cannot be created.
    pub fn open(args: &Args, traces: &[Found]) -> Result<Self, Failure> {
        let mut read: Vec<&Path> = Vec::new();
        for path in traces.iter().flatten() {
            read.push(path);
        }
        for path in [&args.truth, &args.config, &args.baseline]
            .into_iter()
            .flatten()
        {
            read.push(path);
        }
        let mut open = Vec::new();
        for (index, wanted) in args.report.iter().enumerate() {
            let earlier = args.report.iter().take(index);
            if earlier
                .into_iter()
                .any(|earlier| earlier.path == wanted.path)
            {
                return Err(Failure::new(
                    input::display(&wanted.path),
                    "is named by two reports",
                ));
            }
            let sink = Wanted {
                path: &wanted.path,
                force: true,
                content: "a report",
                option: OPTION,
                replaces_input: false,
            };
            open.push(OpenFile {
                format: wanted.format,
                sink: Sink::open(sink, read.iter().copied())?,
            });
        }
        Ok(ReportFiles(open))
    }

    /// Writes the reports. `several`: whether several traces were named, so that JSON is a list.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(self, reports: &[Report], several: bool) -> Result<(), Failure> {
        for OpenFile { format, sink } in self.0 {
            sink.write(render(format, reports, several).as_bytes())?;
        }
        Ok(())
    }
}
