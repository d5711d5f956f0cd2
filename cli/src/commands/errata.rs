//! `etlkit errata`: where reference pages and runtimes disagree.

use std::fmt::Write;

use etl_schema::tables::{Erratum, errata, erratum};
use serde_json::json;

use super::spec::{print, text};
use crate::Outcome;
use crate::error::Failure;
use crate::output::ReportFormat;

/// Arguments of `etlkit errata`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  etlkit errata
  etlkit errata X04
  etlkit errata --format json")]
pub(crate) struct Args {
    /// Only this one
    id: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let (found, whole): (Vec<&Erratum>, bool) = match &args.id {
        None => (errata().iter().collect(), false),
        Some(id) => {
            let one = erratum(id).ok_or_else(|| {
                Failure::new(id.as_str(), "no erratum has this id")
                    .hint("`etlkit errata` lists all of them")
            })?;
            (vec![one], true)
        }
    };
    let lines = text(|out| {
        for e in &found {
            writeln!(out, "{}  {}", e.id, e.about)?;
            if whole {
                writeln!(out, "  documents  {}", e.documents)?;
                writeln!(out, "  shipped    {}", e.shipped)?;
                writeln!(out, "  evidence   {}", e.evidence)?;
                writeln!(out, "  follows    {}", e.follows)?;
            }
        }
        Ok(())
    });
    let json = found
        .iter()
        .map(|e| {
            json!({
                "id": e.id,
                "about": e.about,
                "documents": e.documents,
                "shipped": e.shipped,
                "evidence": e.evidence,
                "follows": e.follows,
            })
        })
        .collect();
    print(args.format, &(lines, json))
}
