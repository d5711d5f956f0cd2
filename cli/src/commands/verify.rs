//! `etlkit verify`, alias `etlverify`.

use std::path::PathBuf;

use clap::ValueEnum;
use etl_format::read::Source;
use etl_verify::{Report, Verdict};

use crate::Outcome;
use crate::error::Failure;
use crate::input::{self, Input, WithSource};
use crate::output;
use crate::progress::Progress;

/// Arguments of `etlverify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 sound, 1 findings, 2 nothing to judge or not readable.

Examples:
  etlverify merged.etl
  etlverify --format json merged.etl | jq .coverage
  gunzip -c merged.etl.gz | etlverify -")]
pub(crate) struct Args {
    /// The trace; `-` reads standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// How to print the report
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Text,
    /// One report, or an array of reports for several files
    Json,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let reports = args.files.iter().map(|f| judge(f)).collect::<Result<Vec<_>, _>>()?;
    let text = match (args.format, reports.as_slice()) {
        (Format::Json, [report]) => report.json(),
        (Format::Json, reports) => {
            let mut json = serde_json::to_string_pretty(reports).unwrap_or_default();
            json.push('\n');
            json
        }
        (Format::Text, reports) => reports.iter().map(Report::text).collect::<Vec<_>>().join("\n"),
    };
    output::print(&text)?;
    let any = |verdict| reports.iter().any(|r| r.verdict == verdict);
    Ok(if any(Verdict::Broken) {
        Outcome::Findings
    } else if any(Verdict::Undecided) {
        Outcome::Undecided
    } else {
        Outcome::Fine
    })
}

fn judge(path: &std::path::Path) -> Result<Report, Failure> {
    struct Judge(String);
    impl WithSource for Judge {
        type Output = Result<Report, Failure>;
        fn with<S: Source>(self, mut source: S) -> Self::Output {
            // How much a compressed trace unpacks to is not known yet; its stored bytes are a guess.
            let mut progress = Progress::new(source.size().unwrap_or(0), false);
            etl_verify::verify_watched(&mut source, &self.0, |r| progress.pass(r.bytes().len()))
                .map_err(|e| input::not_a_trace(&self.0, &e, &input::head(&mut source)))
        }
    }
    Input::open(path)?.with(Judge(input::display(path)))
}
