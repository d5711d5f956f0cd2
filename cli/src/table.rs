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
        match self {
            TableFormat::Text => output::print(&report.text(top)),
            TableFormat::Json => output::print_pieces(|out| report.write_json(top, out)),
            TableFormat::Csv => output::print_pieces(|out| report.write_csv(top, out)),
        }
    }
}
