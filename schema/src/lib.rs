//! What ETW providers say about their events.
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing, clippy::unreachable)]

pub mod model;

pub use model::{
    Count, EventSchema, Field, FieldKind, FieldRef, Identity, InType, Length, MapEntry, MapKind,
    Named, OutType, SchemaSource, Text, ValueMap,
};
