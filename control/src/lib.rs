//! How ETW events are enabled: the enable rule, masks and levels, command lines of recording tools.
//!
//! * [`enable`]: the rule by which a session receives an event.
//! * [`clr`]: the events that the CLR raises for a mask and a level.
//! * [`mask`]: explanation of a mask: the events it selects, and the ones it seems to select.
//! * [`controller`]: command lines of `xperf`, `logman` and `tracelog`, and their explanation.
//! * `strategies`, with the feature `proptest`: masks, enablements and events for property tests.
//!
//! Does a session that enables the CLR's rundown provider with the mask `0x138` at level 5 receive
//! the events at the end of a module?
//!
//! ```
//! use etl_control::enable::{Enablement, EventKey};
//! use etl_schema::tables::Registry;
//!
//! let rundown = Registry::builtin().find("rundown").expect("built in");
//! assert_eq!(rundown.keyword("EndRundownKeyword"), Some(0x100));
//!
//! // ModuleDCEnd: id, level and keywords.
//! let module_end = EventKey { id: 154, level: 4, keyword: 0x2000_0008 };
//! assert!(Enablement::new(5, 0x138).admits(&module_end));
//! assert!(!Enablement::new(5, 0x30).admits(&module_end), "LoaderRundownKeyword (0x8) is missing");
//! ```
//!
//! # Features
//! * `proptest` (off by default): the module `strategies`.
#![forbid(unsafe_code)]

pub mod clr;
pub mod controller;
pub mod enable;
pub mod mask;
mod nearest;
#[cfg(any(test, feature = "proptest"))]
pub mod strategies;

pub use controller::error::Error;
pub use nearest::nearest_names;

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
