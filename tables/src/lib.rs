//! Windows event traces (`.etl`) as tables: Arrow record batches, and data sets of Parquet files.
//!
//! A [`Reader`] returns the rows of one table of a trace, batch by batch, in bounded memory. The
//! tables are [`tables::ALL`], and `Provider.Event` for the events of one kind, with a column for
//! each field.
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing, clippy::unreachable)]

#[cfg(feature = "arrow")]
mod builder;
mod cell;
mod column;
pub mod comparison;
#[cfg(feature = "parquet")]
pub mod dataset;
#[cfg(feature = "arrow")]
mod error;
mod event_columns;
#[cfg(feature = "arrow")]
mod events;
#[cfg(feature = "arrow")]
mod facts;
#[cfg(feature = "arrow")]
pub mod ipc;
#[cfg(feature = "arrow")]
mod options;
#[cfg(feature = "arrow")]
mod reader;
#[cfg(feature = "arrow")]
mod recorded;
mod report;
mod row;
pub mod rows;
#[cfg(feature = "arrow")]
mod schema;
mod selection;
#[cfg(feature = "arrow")]
mod stack_id;
mod table;
pub mod tables;
#[cfg(feature = "arrow")]
mod typed;
#[cfg(feature = "arrow")]
mod write;

pub use cell::{Cell, Label};
pub use column::{Column, Comparing, Kind, SCHEMA_VERSION, Style, SumNames};
#[cfg(feature = "arrow")]
pub use error::{Error, Result};
#[cfg(feature = "arrow")]
pub use options::Options;
#[cfg(feature = "arrow")]
pub use reader::{Reader, for_each_batch};
pub use report::{REPORT_VERSION, Report, ReportTable};
pub use row::{Columns, Row};
pub use selection::Selection;
pub use table::Table;
#[cfg(feature = "arrow")]
pub use typed::TypedTable;

/// The code of the page runs with the documentation tests.
#[cfg(all(doctest, feature = "arrow"))]
#[doc = include_str!("../README.md")]
struct Readme;
