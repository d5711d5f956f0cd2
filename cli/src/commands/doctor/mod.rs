//! `etlkit doctor`: what this build has, what it finds on this machine, and whether it works.

mod self_test;

use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use self::self_test::Step;
use super::spec::{Printed, print};
use crate::Outcome;
use crate::build_info::{self, FEATURES, VERSION};
use crate::error::Failure;
use crate::output::{ReportFormat, text};
use crate::threads;

/// Arguments of `etlkit doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The self-test simulates a trace in memory, compares it with the bytes of this version, reads it and
verifies it. Exit codes: 0 everything works, 1 something does not.

Examples:
  etlkit doctor
  etlkit doctor --format json")]
pub(crate) struct Args {
    /// Output format; docs/json.md describes the JSON
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
}

/// What every build reads.
const INPUTS: [(&str, &str); 5] = [
    (
        "traces",
        ".etl of all versions of Windows since Vista: merged, compressed, unclosed, damaged",
    ),
    ("streams", ".nettrace of .NET: versions 4, 5 and 6"),
    ("packed", "gzip, Zstandard and ZIP files of them"),
    (
        "definitions",
        "manifests (--manifest) and TMF files (--tmf)",
    ),
    ("scenarios", "scripts (.kdl) of `etlkit synth`"),
];

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let temporary = TemporaryDirectory::check();
    let steps = self_test::run();
    let works = temporary.error.is_none() && steps.iter().all(|step| step.result.is_ok());
    let printed = Printed {
        text: report(&temporary, &steps),
        json: json_report(&temporary, &steps),
    };
    print(args.format, &printed)?;
    Ok(if works {
        Outcome::Success
    } else {
        Outcome::Findings
    })
}

/// The directory in which pipes and unpacked traces are kept while they are read.
struct TemporaryDirectory {
    path: PathBuf,
    /// Why no file can be made in it.
    error: Option<String>,
}

impl TemporaryDirectory {
    fn check() -> Self {
        TemporaryDirectory {
            path: std::env::temp_dir(),
            error: tempfile::tempfile().err().map(|error| error.to_string()),
        }
    }
}

fn report(temporary: &TemporaryDirectory, steps: &[Step]) -> String {
    text(|out| {
        writeln!(
            out,
            "etlkit {VERSION}, {} build for {}",
            build_info::profile(),
            build_info::target()
        )?;
        writeln!(out, "\nfeatures")?;
        for feature in FEATURES {
            let state = if feature.is_enabled { "yes" } else { "no" };
            writeln!(out, "  {:<12} {state:<4} {}", feature.name, feature.adds)?;
        }
        writeln!(out, "\nreads")?;
        for (kind, what) in INPUTS {
            writeln!(out, "  {kind:<12} {what}")?;
        }
        writeln!(out, "\nthis machine")?;
        writeln!(out, "  {:<12} {}", "processors", threads::processors())?;
        let path = temporary.path.display();
        match &temporary.error {
            None => writeln!(out, "  {:<12} {path}", "temporary")?,
            Some(error) => writeln!(
                out,
                "  {:<12} {path}: no file can be made in it: {error} (TMPDIR names another)",
                "temporary"
            )?,
        }
        writeln!(out, "  {:<12} {SYMBOLS}", "PDBs")?;
        writeln!(out, "\nself-test")?;
        for step in steps {
            match &step.result {
                Ok(detail) => writeln!(out, "  {:<12} {detail}", step.name)?,
                Err(reason) => writeln!(out, "  {:<12} FAILED: {reason}", step.name)?,
            }
        }
        Ok(())
    })
}

/// Where PDBs are looked for.
const SYMBOLS: &str = "only where --symbols says, also as _NT_SYMBOL_PATH is written; nothing is \
                       downloaded";

fn json_report(temporary: &TemporaryDirectory, steps: &[Step]) -> Value {
    let mut features = serde_json::Map::new();
    for feature in FEATURES {
        features.insert(feature.name.to_owned(), feature.is_enabled.into());
    }
    let mut tests = Vec::new();
    for step in steps {
        tests.push(json!({
            "name": step.name,
            "passed": step.result.is_ok(),
            "detail": match &step.result {
                Ok(detail) | Err(detail) => detail,
            },
        }));
    }
    json!({
        "schema_version": 1,
        "version": VERSION,
        "build": build_info::profile(),
        "target": build_info::target(),
        "features": features,
        "processors": threads::processors(),
        "temporary_directory": temporary.path.display().to_string(),
        "temporary_directory_error": temporary.error,
        "self_test": tests,
    })
}
