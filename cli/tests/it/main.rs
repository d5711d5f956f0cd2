//! Tests of the tools as processes: their output, exit codes and files.
// Tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod activities;
mod allocations;
mod at_once;
#[cfg(unix)]
mod closed_pipes;
mod common;
mod comparisons;
#[cfg(unix)]
mod console;
#[cfg(unix)]
mod cookbook;
mod diff;
#[cfg(unix)]
mod doc_pages;
mod doctor;
mod dump_formats;
mod dump_names;
mod dump_selection;
mod errors;
mod exports;
#[cfg(unix)]
mod failing_disks;
mod help;
mod hostile;
#[cfg(unix)]
mod interruptions;
mod interrupts;
mod json_contract;
mod losses;
mod man_and_completions;
mod memory;
mod missing_header;
#[cfg(unix)]
mod named_pipes;
mod nettrace;
mod numbers;
mod options;
mod outputs;
mod packed_inputs;
#[cfg(target_os = "linux")]
mod pipelines;
mod provider_names;
mod report_formats;
mod reports;
mod reused_ids;
mod rewriting;
mod screens_page;
mod scrub;
mod slice;
mod spec;
mod summaries;
mod synth;
#[cfg(feature = "parquet")]
mod tables;
mod threads;
mod transcripts;
mod verdicts;
mod verify;
mod verify_options;
mod verify_reports;
