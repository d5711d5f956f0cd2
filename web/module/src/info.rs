//! The summary of each file: what `etlkit info --format json` prints.

use etl_analysis::OwnerCounts;
use etl_events::Trace;
use etl_events::filter::Filter;
use etl_events::survey::{Report, Survey};
use etl_format::read::{Limits, Options};
use etl_schema::store::SchemaStore;
use serde_json::Value;

use crate::error::Result;

/// The summaries of the files.
pub fn info(trace: &mut Trace) -> Result<Value> {
    let mut reports = Vec::new();
    for mut file in trace.sources() {
        let mut owners = OwnerCounts::default();
        let mut opened = etl_format::read::Trace::open(&mut file.source, &Options::salvage())?;
        let has_times = opened.header().is_known();
        let store = SchemaStore::default();
        let all = Filter::default();
        let survey = Survey::of_selected(&mut opened, store, &all, None, |record| {
            owners.add(record);
        })?;
        drop(opened);
        let owners = if has_times { Some(owners) } else { None };
        let limits = Limits::default();
        let mut report = Report::new(survey, &file.name, file.source, limits, &[], owners)?;
        report.stream = file.conversion;
        reports.push(serde_json::to_value(report)?);
    }
    Ok(Value::Array(reports))
}
