//! Windows event traces (`.etl`) as tables: Arrow record batches, and data sets of Parquet files.
//!
//! A [`Reader`] passes the rows of one table of a trace on, batch by batch, in bounded memory. The
//! tables are [`tables::ALL`], and `Provider.Event` for the events of one kind, with a column for
//! each field.
#![forbid(unsafe_code)]

mod builder;
mod column;
#[cfg(feature = "parquet")]
pub mod dataset;
mod error;
mod events;
mod facts;
pub mod ipc;
mod options;
mod reader;
mod stack_id;
pub mod tables;
mod typed;
mod write;

pub use column::{Column, Kind, SCHEMA_VERSION};
pub use error::{Error, Result};
pub use options::Options;
pub use reader::Reader;
pub use typed::TypedTable;

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
