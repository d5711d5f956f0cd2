//! The traced machine over time, from one pass over its Windows event traces.
//!
//! [`Analysis`] reads one or several traces as one [`Recording`], in time order, and keeps a
//! [`Machine`]: processes, threads, images, CLRs with their modules and methods, losses, and what
//! the addresses of stacks and samples resolve to. An [`Observer`] sees the events with the machine
//! as it is at their time. [`Symbols`](symbols::Symbols) finds what is at an address of a process
//! at a time: method, module, image.
//!
//! Memory grows with what is alive in the traced machine (processes, modules, methods, distinct
//! addresses that are not resolved yet), not with the number of events.
#![forbid(unsafe_code)]

#[macro_use]
mod accessors;
#[doc(hidden)]
pub mod address;
pub mod behavior;
mod buffers;
mod counted;
mod error;
pub mod files;
mod join;
mod keys;
pub mod loss;
pub mod machine;
mod observe;
mod observers;
mod open;
mod owner;
mod owner_counts;
mod owners;
#[cfg(feature = "pdb")]
pub mod pdb;
pub mod profile;
mod run;
mod scan;
mod select;
mod steps;
pub mod symbols;
mod timeline;
mod within;

pub use error::{Error, Result};
/// Named by the macro [`observers!`].
#[doc(hidden)]
pub use etl_format::read::Record;
pub use etl_schema::views::kernel::Interrupt;
pub use keys::{ClrKey, ProcessIndex, ThreadKey};
pub use machine::Machine;
pub use machine::changes::{Change, Life};
#[doc(hidden)]
pub use machine::changes::{ClrEvent, StateObserver};
#[doc(hidden)]
pub use observe::RecordObserver;
pub use observe::{EventKind, EventRef, Frames, Joins, Observer, Sample, Stack};
pub use open::{OpenOperations, Scope};
#[doc(hidden)]
pub use owner::has_thread_only;
pub use owner::{RecordOwner, owner};
pub use owner_counts::{EventsByProcess, OwnerCounts};
pub use run::{Analysis, MachineBuilder, Recording, RecordingFile};
pub use select::{Life as ProcessLife, Lives as ProcessLives, ProcessSelector, UnknownProcess};
pub use within::Within;

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
