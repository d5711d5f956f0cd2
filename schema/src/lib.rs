//! What ETW providers define about their events: schemas, and payloads read and written by them.
//!
//! * [`model`]: the one [`EventSchema`] that describes a payload, whatever source it is from.
//! * [`tables`]: the built-in tables of the CLR's and the kernel's events, and their
//!   [`Registry`](tables::Registry).
//! * [`providers`]: GUIDs and names of providers.
//! * [`clr`]: the keywords of the CLR.
//! * [`decode`]: payload bytes to named, typed values, without allocating.
//! * [`encode`]: the inverse; [`EventEncoder`] makes records of events.
//! * [`render`]: values as text and JSON.
//! * [`sources`]: schemas from elsewhere: in the trace, or from files.
//! * [`store`]: all sources in one place: a record's schema.
//! * [`views`]: typed views of the events of the kernel and of the CLR.
//! * [`testing`]: traces as stable text for snapshot tests, and events for property tests.
//!
//! Which sessions receive an event is the subject of the crate
//! [`etl-control`](https://docs.rs/etl-control).
//!
//! ```
//! use etl_schema::tables::Registry;
//!
//! let rundown = Registry::builtin().find("rundown").expect("built in");
//! assert_eq!(rundown.keyword("EndRundownKeyword"), Some(0x100));
//! ```
//!
//! # Examples
//! Programs in `examples/`, which run without arguments: `decode_event` prints a trace's events
//! with their fields, `snapshot` tests a decoder.
//!
//! # Features
//! * `proptest` (off by default): the module `testing::strategies`.
#![forbid(unsafe_code)]

pub mod clr;
pub mod decode;
pub mod encode;
mod error;
mod escape;
mod event_encoder;
pub mod model;
mod named;
pub mod providers;
pub mod render;
pub mod sources;
pub mod store;
pub mod tables;
pub mod testing;
pub mod views;

pub use error::Error;
pub use event_encoder::EventEncoder;
pub use model::{
    Count, EventSchema, Field, FieldKind, FieldRef, Identity, InType, Length, MapEntry, MapKind,
    Named, OutType, Pattern, SchemaSource, Text, ValueMap,
};

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
