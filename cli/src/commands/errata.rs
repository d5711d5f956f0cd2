//! `etlkit errata`: where the reference pages and the runtimes disagree.

use std::fmt::Write;

use etl_schema::tables::{Erratum, errata, erratum};
use serde_json::json;

use super::spec::{print, rows};
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
    let (found, in_full): (Vec<&Erratum>, bool) = match &args.id {
        None => (errata().iter().collect(), false),
        Some(id) => {
            let one = erratum(id).ok_or_else(|| {
                Failure::new(id.as_str(), "unknown erratum").hint("`etlkit errata` lists all")
            })?;
            (vec![one], true)
        }
    };
    let printed = rows(found.into_iter().map(|e| {
        let lines = text(|out| {
            writeln!(out, "{}  {}", e.id, e.about)?;
            if in_full {
                writeln!(out, "  documents  {}", e.documents)?;
                writeln!(out, "  shipped    {}", e.shipped)?;
                writeln!(out, "  evidence   {}", e.evidence)?;
                writeln!(out, "  follows    {}", e.follows)?;
            }
            Ok(())
        });
        let json = json!({
            "id": e.id,
            "about": e.about,
            "documents": e.documents,
            "shipped": e.shipped,
            "evidence": e.evidence,
            "follows": e.follows,
        });
        (lines, json)
    }));
    print(args.format, &printed)
}
