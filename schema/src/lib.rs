//! What ETW providers define about their events: schemas, and payloads read and written by them.
//!
//! * [`EventSchema`]: what describes an event, from any source.
//! * [`tables`]: the built-in tables of the CLR's and the kernel's events, and their
//!   [`Registry`](tables::Registry).
//! * [`providers`]: GUIDs and names of providers.
//! * [`clr`]: the keywords of the CLR.
//! * [`decode`]: payload bytes to named, typed values, without allocating; one value by its path,
//!   all values into a type of yours with serde.
//! * [`encode`]: the inverse; [`EventEncoder`] makes records of events.
//! * [`render`]: values as text, JSON and CSV, with one [`Renderer`](render::Renderer).
//! * [`sources`]: schemas in the trace and in files.
//! * [`store`]: all sources together: the schema and the fields of a record.
//! * [`views`]: typed views of the events of the kernel and of the CLR.
//! * [`testing`]: traces as stable text for snapshot tests, and events for property tests.
//!
//! Which sessions receive an event is the subject of the crate
//! [`etl-control`](https://docs.rs/etl-control).
//!
//! Print the events of a trace with their fields:
//!
//! ```
//! use etl_format::read::{Options, Order, Trace};
//! use etl_schema::store::SchemaStore;
//! # let bytes = etl_schema::testing::snapshot::example();
//!
//! let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
//! let mut store = SchemaStore::new();
//! let mut records = trace.records(Order::Time)?;
//! while let Some(record) = records.next_record()? {
//!     store.learn(&record);
//!     if let Some(fields) = store.fields(&record) {
//!         println!("{} {fields}", fields.schema().name);
//!     }
//! }
//! # Ok::<(), etl_format::Error>(())
//! ```
//!
//! Look up a keyword of a provider:
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
mod deserialize;
pub mod encode;
mod error;
mod escape;
mod escaped_json;
mod event_encoder;
mod model;
mod named;
pub mod providers;
pub mod render;
#[cfg(test)]
mod serde_tests;
mod serialize;
pub mod sources;
pub mod store;
pub mod tables;
pub mod testing;
pub mod views;

pub use deserialize::DeserializeError;
pub use error::Error;
pub use event_encoder::EventEncoder;
pub use model::{
    Count, EventSchema, Field, FieldKind, FieldRef, Identity, InType, Length, MapEntry, MapKind,
    Meaning, Named, OutType, Pattern, SchemaSource, Text, ValueMap, number_name,
};

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
