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
    /// Opens the file. It only replaces an earlier baseline, and none of the files that are read:
    /// if the user forgets its name, the option takes the name of a trace.
    ///
    /// # Errors
    /// If it is another file, or cannot be created.
    pub fn open(file: &Path, args: &Args, traces: &[Found]) -> Result<Self, Failure> {
        if input::is_stdin(file) {
            return Err(Failure::new(OPTION, "needs the name of a file")
                .hint("--format json prints the findings"));
        }
        let mut inputs: Vec<&Path> = Vec::new();
        for path in traces.iter().flatten() {
            inputs.push(path);
        }
        for path in [&args.truth, &args.config].into_iter().flatten() {
            inputs.push(path);
        }
        let wanted = Wanted {
            path: file,
            force: true,
            content: "a baseline",
            option: OPTION,
            replaces_input: true,
        };
        let sink = Sink::open(wanted, inputs)?;
        let has_bytes = match file.metadata() {
            Ok(file) => file.is_file() && file.len() > 0,
            Err(_) => false,
        };
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

    /// Leaves the file as it is: the findings of a trace that could not be read are unknown.
    pub fn leave(self) {
        stderr_line!(
            "note: {}: not written, as a trace could not be read",
            self.0.name()
        );
    }
}
