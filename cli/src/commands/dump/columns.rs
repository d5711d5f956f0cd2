//! The columns that the arguments of `etlkit dump` select.

use etl_tools::rows::{Columns, Format};

use super::Args;
use crate::error::Failure;

/// The columns of the CSV.
pub(super) fn columns(args: &Args) -> Result<Columns, Failure> {
    if args.columns.is_empty() {
        return Ok(Columns::default());
    }
    if args.format != Format::Csv {
        return Err(Failure::new("--columns", "needs the CSV format").hint("add --format csv"));
    }
    Columns::new(&args.columns).map_err(|e| Failure::new("--columns", e.to_string()))
}
