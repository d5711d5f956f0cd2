//! Reports with tables: which format they are printed in.

use clap::ValueEnum;
use etl_tables::Report;

use crate::output;

/// The format of a report with tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// Tables for people
    #[default]
    Text,
    /// One JSON object
    Json,
    /// The rows of the table as comma-separated values, with a header line
    Csv,
}

impl TableFormat {
    /// Prints a report with the first `top` rows of each table, `None` for all.
    pub fn print(self, report: &Report<'_>, top: Option<usize>) -> std::io::Result<()> {
        let text = match self {
            TableFormat::Text => report.text(top),
            TableFormat::Json => output::json(&report.json(top)),
            TableFormat::Csv => report.csv(top),
        };
        output::print(&text)
    }
}
