//! The actions of `etlkit dataset`.

use std::path::Path;

use etl_control::nearest_names;
use etl_tables::dataset::{Dataset, Packing};
use serde::Serialize;

use super::{CheckArgs, CompactArgs, RemoveArgs};
use crate::Outcome;
use crate::commands::export::open_dataset;
use crate::error::Failure;
use crate::output::{self, ReportFormat, size};

/// Opens a data set that exists.
fn open(path: &Path) -> Result<Dataset, Failure> {
    if !path.join("_traces").is_dir() {
        return Err(Failure::new(
            path.display().to_string(),
            "this is not a data set: it has no folder `_traces`",
        )
        .hint("`etlkit export parquet traces/ -o DATASET` makes one"));
    }
    open_dataset(path)
}

fn failure(path: &Path, error: &etl_tables::Error) -> Failure {
    match error {
        etl_tables::Error::File(path, error) => Failure::io(path, error),
        error => Failure::new(path.display().to_string(), error.to_string()),
    }
}

/// The report of `dataset compact`.
#[derive(Debug, Serialize)]
struct CompactReport {
    dataset: String,
    replaced: u64,
    replaced_bytes: u64,
    written: u64,
    written_bytes: u64,
}

pub(super) fn compact(args: &CompactArgs) -> Result<Outcome, Failure> {
    let dataset = open(&args.dataset)?;
    let packing = Packing {
        bytes: u64::from(args.size) << 20,
    };
    let done = dataset
        .compact(packing)
        .map_err(|error| failure(&args.dataset, &error))?;
    finish(&args.dataset, &dataset)?;
    let report = CompactReport {
        dataset: args.dataset.display().to_string(),
        replaced: done.replaced,
        replaced_bytes: done.replaced_bytes,
        written: done.written,
        written_bytes: done.written_bytes,
    };
    if args.format == ReportFormat::Json {
        output::print(&output::json(&report))?;
        return Ok(Outcome::Success);
    }
    let text = match report.written {
        0 => format!("{}: nothing to pack\n", report.dataset),
        _ => format!(
            "{}: {} files of {} are {} of {} now\n",
            report.dataset,
            report.replaced,
            size(report.replaced_bytes),
            report.written,
            size(report.written_bytes)
        ),
    };
    output::print(&text)?;
    Ok(Outcome::Success)
}

fn finish(path: &Path, dataset: &Dataset) -> Result<(), Failure> {
    dataset.finish().map_err(|error| failure(path, &error))
}

/// The report of `dataset check`.
#[derive(Debug, Serialize)]
struct CheckReport {
    dataset: String,
    traces: u64,
    files: u64,
    rows: u64,
    problems: Vec<ProblemReport>,
}

#[derive(Debug, Serialize)]
struct ProblemReport {
    place: String,
    message: String,
}

pub(super) fn check(args: &CheckArgs) -> Result<Outcome, Failure> {
    let dataset = open(&args.dataset)?;
    let checked = dataset
        .check()
        .map_err(|error| failure(&args.dataset, &error))?;
    let problems = checked.problems.into_iter().map(|problem| ProblemReport {
        place: problem.place,
        message: problem.message,
    });
    let report = CheckReport {
        dataset: args.dataset.display().to_string(),
        traces: checked.traces,
        files: checked.files,
        rows: checked.rows,
        problems: problems.collect(),
    };
    let outcome = match report.problems.is_empty() {
        true => Outcome::Success,
        false => Outcome::Findings,
    };
    if args.format == ReportFormat::Json {
        output::print(&output::json(&report))?;
        return Ok(outcome);
    }
    let mut text = String::new();
    for ProblemReport { place, message } in &report.problems {
        text += &format!("{place}: {message}\n");
    }
    text += &format!(
        "{}: {} rows of {} traces in {} files, {}\n",
        report.dataset,
        report.rows,
        report.traces,
        report.files,
        match report.problems.len() {
            0 => "as their entries state".to_owned(),
            1 => "1 problem".to_owned(),
            problems => format!("{problems} problems"),
        }
    );
    output::print(&text)?;
    Ok(outcome)
}

pub(super) fn remove(args: &RemoveArgs) -> Result<Outcome, Failure> {
    let mut dataset = open(&args.dataset)?;
    for trace in &args.traces {
        if !dataset.traces().any(|known| known == trace) {
            let mut failure = Failure::new(trace, "the data set has no trace with this name");
            if let Some(nearest) = nearest_names(trace, dataset.traces()).first() {
                failure = failure.hint(format!("the nearest name is {nearest}"));
            }
            return Err(failure);
        }
    }
    let mut text = String::new();
    for trace in &args.traces {
        let removed = dataset
            .remove(trace)
            .map_err(|error| failure(&args.dataset, &error))?;
        if removed {
            text += &format!("{trace}: removed\n");
        }
    }
    finish(&args.dataset, &dataset)?;
    output::print(&text)?;
    Ok(Outcome::Success)
}
