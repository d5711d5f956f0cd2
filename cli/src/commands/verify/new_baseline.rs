//! The file that `--write-baseline` writes.

use std::path::Path;

use etl_verify::{Baseline, Report};

use super::Args;
use super::settings::read_baseline;
use crate::error::Failure;
use crate::input;
use crate::sink::{Sink, Wanted};
use crate::trace_files::Found;

/// The option, in messages.
const OPTION: &str = "--write-baseline";

/// A baseline that is written when all traces were read.
pub(super) struct NewBaseline(Sink);

impl NewBaseline {
    /// Opens the file. It replaces an earlier baseline only, and none of the files that are read: a
    /// user who forgets to name it names a trace in its place.
    ///
    /// # Errors
    /// When it is another file, or cannot be created.
    pub fn open(file: &Path, args: &Args, traces: &[Found]) -> Result<Self, Failure> {
        if input::is_stdin(file) {
            return Err(Failure::new(OPTION, "needs the name of a file")
                .hint("--format json prints the findings"));
        }
        let settings = [&args.truth, &args.config].into_iter().flatten();
        let inputs = traces
            .iter()
            .flatten()
            .chain(settings)
            .map(|path| path.as_path());
        let content = "a baseline";
        let sink = Sink::open(
            Wanted {
                path: file,
                force: true,
                content,
                option: OPTION,
            },
            inputs,
        )?;
        let has_bytes = file
            .metadata()
            .is_ok_and(|file| file.is_file() && file.len() > 0);
        if has_bytes && read_baseline(file).is_err() {
            return Err(
                Failure::new(input::display(file), "exists and is not a baseline").hint(format!(
                    "choose another file with {OPTION}, or remove this one"
                )),
            );
        }
        Ok(NewBaseline(sink))
    }

    /// Writes the findings of reports, and returns them.
    pub fn write(self, reports: &[Report]) -> Result<Baseline, Failure> {
        let baseline = Baseline::of(reports);
        let name = self.0.name().to_owned();
        self.0.write(baseline.json().as_bytes())?;
        stderr_line!("note: {name}: known findings: {}", baseline.count());
        Ok(baseline)
    }

    /// Leaves the file as it is: the findings of a trace that could not be read are not known.
    pub fn leave(self) {
        stderr_line!(
            "note: {}: not written, as a trace could not be read",
            self.0.name()
        );
    }
}
