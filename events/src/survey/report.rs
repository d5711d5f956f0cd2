//! The report of `etlkit info`: a summary of a trace, with its file and its processes.

use etl_analysis::OwnerCounts;
use etl_format::read::{Limits, Source};
use serde::Serialize;

use super::Survey;
use crate::eventpipe::ConversionReport;
use crate::processes::{ProcessCount, processes};

/// Incremented when a field of the report changes its meaning or is removed.
const SCHEMA_VERSION: u32 = 1;

/// The report on a file; `docs/json.md` describes its JSON.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Incremented when a field of the report changes its meaning or is removed.
    pub schema_version: u32,
    /// Name of the file.
    pub file: String,
    /// Bytes of the file, unpacked.
    pub bytes: u64,
    /// The processes whose events are counted, as the user named them; empty for all.
    pub processes: Vec<String>,
    /// The conversion, if the file is an EventPipe stream (`.nettrace`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<ConversionReport>,
    /// The summary.
    #[serde(flatten)]
    pub survey: Survey,
    /// The processes, the one with the most events first; empty if some are selected.
    pub process_counts: Vec<ProcessCount>,
}

impl Report {
    /// The report on the trace in `source`, whose summary is `survey`. `selected` names the
    /// processes whose events it counts. If there are `owners`, the trace is read for the names of
    /// its processes.
    ///
    /// # Errors
    /// If the processes do not fit into the memory budget of `limits`.
    pub fn new<S: Source>(
        survey: Survey,
        file: &str,
        source: S,
        limits: Limits,
        selected: &[String],
        owners: Option<OwnerCounts>,
    ) -> Result<Self, etl_analysis::Error> {
        let bytes = source.size().unwrap_or(0);
        let process_counts = match owners {
            Some(owners) => processes(source, file, limits, owners)?,
            None => Vec::new(),
        };
        Ok(Report {
            schema_version: SCHEMA_VERSION,
            file: file.to_owned(),
            bytes,
            processes: selected.to_vec(),
            stream: None,
            survey,
            process_counts,
        })
    }
}
