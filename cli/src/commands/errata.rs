//! `etlkit errata`: where the reference pages and the runtimes disagree.

use std::fmt::Write;

use etl_schema::tables::{Erratum, errata, erratum};
use serde_json::json;

use super::spec::{Printed, print, rows};
use crate::Outcome;
use crate::error::Failure;
use crate::output::{ReportFormat, text};

/// Arguments of `etlkit errata`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  etlkit errata
  etlkit errata X04
  etlkit errata --format json")]
pub(crate) struct Args {
    /// Show this erratum in full
    id: Option<String>,
    /// Output format; docs/json.md describes the JSON
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut listed = Vec::new();
    match &args.id {
        None => {
            for erratum in errata() {
                listed.push(row(erratum, format!("{}  {}\n", erratum.id, erratum.about)));
            }
        }
        Some(id) => {
            let Some(erratum) = erratum(id) else {
                return Err(Failure::new(id, "unknown erratum").hint("`etlkit errata` lists all"));
            };
            listed.push(row(erratum, describe(erratum)));
        }
    }
    print(args.format, &rows(listed))
}

fn row(erratum: &Erratum, text: String) -> Printed {
    let json = json!({
        "id": erratum.id,
        "about": erratum.about,
        "documents": erratum.documents,
        "shipped": erratum.shipped,
        "evidence": erratum.evidence,
        "follows": erratum.follows,
    });
    Printed { text, json }
}

/// All of an erratum.
fn describe(erratum: &Erratum) -> String {
    text(|out| {
        writeln!(out, "{}  {}", erratum.id, erratum.about)?;
        writeln!(out, "  documents  {}", erratum.documents)?;
        writeln!(out, "  shipped    {}", erratum.shipped)?;
        writeln!(out, "  evidence   {}", erratum.evidence)?;
        writeln!(out, "  follows    {}", erratum.follows)
    })
}
