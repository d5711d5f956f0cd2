//! What ETW providers say about their events, and which events a session gets.
//!
//! * [`enable`]: the rule by which a session admits an event.
//! * [`model`]: the one [`EventSchema`] that describes a payload, whatever source it is from.
//! * [`tables`]: the tables of the CLR's providers, as text made to be read, and their
//!   [`Registry`](tables::Registry).
//! * [`clr`]: what the CLR raises under which masks and levels.
//! * [`controller`]: command lines of `xperf`, `logman` and `tracelog`.
//! * [`mask`]: what a mask asks for, and what it will not give.
//! * [`decode`]: payload bytes to named, typed values, without allocating.
//! * [`encode`]: the inverse.
//! * [`render`]: values as text and JSON.
//! * [`sources`]: schemas from elsewhere: in the trace, or from files.
//! * [`store`]: all sources in one place: a record's schema.
//! * `strategies`, with the feature `proptest`: masks, enablements and events for property tests.
//!
//! Does the end of a module come when the CLR's rundown provider is enabled with `0x138` at level 5, and
//! what is there to know of the mask?
//!
//! ```
//! use etl_schema::enable::{Enablement, EventKey};
//! use etl_schema::tables::Registry;
//!
//! let rundown = Registry::builtin().find("Microsoft-Windows-DotNETRuntimeRundown").expect("known");
//! let named = |name: &str| rundown.keywords.iter().find(|(_, n)| n == name).map(|(mask, _)| *mask);
//! assert_eq!(named("EndRundownKeyword"), Some(0x100));
//!
//! // ModuleDCEnd: id, level and keywords.
//! let module_end = EventKey { id: 154, level: 4, keyword: 0x2000_0008 };
//! assert!(Enablement::new(5, 0x138).admits(&module_end));
//! assert!(!Enablement::new(5, 0x30).admits(&module_end), "0x8 is the loader's");
//! ```
//!
//! # Examples
//! Programs in `examples/`, each of which runs as it is: `decode_event` prints a trace's events with their fields, `test_a_filter`
//! property-tests a filter against the enable rule, `decode_speed` measures decoding.
//!
//! # Features
//! * `proptest` (off by default): the module `strategies`.
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing, clippy::unreachable)]

pub mod clr;
pub mod controller;
pub mod decode;
pub mod enable;
pub mod encode;
pub mod mask;
pub mod model;
pub mod render;
pub mod sources;
pub mod store;
#[cfg(any(test, feature = "proptest"))]
pub mod strategies;
pub mod tables;
#[cfg(any(test, feature = "proptest"))]
mod testing;

pub use model::{
    Count, EventSchema, Field, FieldKind, FieldRef, Identity, InType, Length, MapEntry, MapKind,
    Named, OutType, Pattern, SchemaSource, Text, ValueMap,
};

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
