//! How often each process was sampled, in equal parts of time.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};
use etl_events::Trace;
use etl_format::constants::FILETIME_UNIX_EPOCH;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::tables::{TableRequest, for_each_batch_of};

/// The parts of time of a reply, at most.
const MAX_BINS: usize = 4096;

/// 100 ns in a microsecond.
const PER_MICROSECOND: i64 = 10;

/// The time that is divided: seconds since the start of the recording.
#[derive(Debug, Deserialize)]
pub struct TimelineRequest {
    from: f64,
    to: f64,
    bins: usize,
}

/// A process with its samples in each part.
struct Lane {
    name: String,
    total: u64,
    counts: Vec<u32>,
}

/// The samples of each process, the process with the most samples first.
pub fn lanes(trace: &mut Trace, request: &TimelineRequest) -> Result<Value> {
    let bins = request.bins.clamp(1, MAX_BINS);
    let unix_start = trace.start_time().get().saturating_sub(FILETIME_UNIX_EPOCH);
    let start = unix_start.div_euclid(PER_MICROSECOND) as f64;
    let width = (request.to - request.from).max(1e-6) * 1e6 / bins as f64;
    let table = TableRequest {
        table: "samples".to_owned(),
        columns: ["time", "pid", "process"].map(str::to_owned).to_vec(),
        ..TableRequest::default()
    };
    let mut lanes: HashMap<String, Lane> = HashMap::new();
    for_each_batch_of(trace, &table, |batch| {
        for row in 0..batch.num_rows() {
            let Some(sample) = sample(&batch, row) else {
                continue;
            };
            let offset = sample.micros as f64 - start - request.from * 1e6;
            let lane = lanes.entry(sample.label).or_insert_with_key(|name| Lane {
                name: name.clone(),
                total: 0,
                counts: vec![0; bins],
            });
            let index = (offset / width).floor();
            if index >= 0.0
                && let Some(count) = lane.counts.get_mut((index as usize).min(bins))
            {
                *count += 1;
                lane.total += 1;
            }
        }
        Ok::<_, Error>(())
    })?;
    let mut lanes: Vec<Lane> = lanes.into_values().filter(|lane| lane.total > 0).collect();
    lanes.sort_by(|one, other| (other.total, &one.name).cmp(&(one.total, &other.name)));
    let lanes = lanes
        .into_iter()
        .map(|lane| json!({ "name": lane.name, "total": lane.total, "counts": lane.counts }));
    Ok(Value::Array(lanes.collect()))
}

/// A sample of a process.
struct Sample {
    micros: i64,
    label: String,
}

fn sample(batch: &RecordBatch, row: usize) -> Option<Sample> {
    let times = batch.column_by_name("time")?;
    let micros = times.as_primitive::<TimestampMicrosecondType>().value(row);
    let pids = batch.column_by_name("pid")?;
    let pid = pids.as_primitive_opt::<Int64Type>()?;
    let names = batch
        .column_by_name("process")?
        .as_dictionary::<Int32Type>();
    let name = match names.key(row) {
        Some(key) => names.values().as_string::<i32>().value(key),
        None => "?",
    };
    let label = if pid.is_null(row) {
        "unknown process".to_owned()
    } else {
        format!("{name} ({})", pid.value(row))
    };
    Some(Sample { micros, label })
}
