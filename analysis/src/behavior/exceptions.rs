//! Exceptions of .NET: how often each type was thrown, and where.
//!
//! Needs the events of the CLR's runtime provider with the keyword Exception (0x8000) at level 2.
//!
//! ```no_run
//! use etl_analysis::behavior::exceptions::Exceptions;
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut exceptions = Exceptions::new();
//! let machine = Analysis::new().run(&mut recording, &mut exceptions)?;
//! for thrown in exceptions.list() {
//!     println!("{} times {}: {}", thrown.count, thrown.exception, thrown.message);
//! }
//! # drop(machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use etl_format::Ticks;
use std::collections::BTreeMap;

use etl_format::read::Record;
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::FieldReader;

use super::runtime_event;
use crate::keys::ProcessIndex;
use crate::machine::Machine;
use crate::machine::names::text;
use crate::observe::{EventRef, Joins, Observer};

/// Id of the event that an exception was thrown.
pub const THROWN: u16 = 80;

/// Exceptions of one type that were thrown at one place of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thrown {
    /// The process.
    pub process: ProcessIndex,
    /// The type, with its namespace.
    pub exception: Box<str>,
    /// Address of the code that threw it.
    pub address: u64,
    /// How many.
    pub count: u64,
    /// When the first was thrown, in ticks.
    pub first: Ticks,
    /// When the last was thrown, in ticks.
    pub last: Ticks,
    /// The message of the first.
    pub message: Box<str>,
}

/// Collects the exceptions of a recording.
#[derive(Clone, Debug)]
pub struct Exceptions {
    by_place: BTreeMap<(ProcessIndex, Vec<u8>, u64), Thrown>,
    thrown: FieldReader<3>,
}

impl Default for Exceptions {
    fn default() -> Self {
        Exceptions::new()
    }
}

impl Exceptions {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        let names = ["ExceptionType", "ExceptionMessage", "ExceptionEIP"];
        let thrown = FieldReader::of_event(CLR_RUNTIME, THROWN, names);
        Exceptions {
            by_place: BTreeMap::new(),
            thrown,
        }
    }

    /// The exceptions by process, type and address.
    pub fn list(&self) -> impl Iterator<Item = &Thrown> {
        self.by_place.values()
    }
}

impl Observer for Exceptions {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        if runtime_event(event) != Some(THROWN) {
            return;
        }
        let Some(process) = event.process else {
            return;
        };
        let Some(fields) = self.thrown.read(record) else {
            return;
        };
        let kind = fields.text(0).unwrap_or_default();
        let address = fields.uint(2).unwrap_or(0);
        let key = (process, kind.to_vec(), address);
        let thrown = self.by_place.entry(key).or_insert_with(|| Thrown {
            process,
            exception: text(kind).into(),
            address,
            count: 0,
            first: event.time,
            last: event.time,
            message: text(fields.text(1).unwrap_or_default()).into(),
        });
        thrown.count += 1;
        thrown.last = event.time;
    }

    fn restart(&mut self) {
        *self = Exceptions::new();
    }
}
