//! Methods that the CLR compiled at run time: how long it took, and with which optimisation.
//!
//! Needs the events of the CLR's runtime provider with the keywords Jit and NGen (0x30) at level 5.
//! Events of level 4 have no times.
//!
//! ```no_run
//! use etl_analysis::behavior::compilations::Compilations;
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut compilations = Compilations::new();
//! let machine = Analysis::new().run(&mut recording, &mut compilations)?;
//! for method in compilations.list() {
//!     println!("{} ({}): {} bytes of code", method.method, method.tier_name(), method.code_size);
//! }
//! # drop(machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use etl_format::read::Record;
use etl_format::{ThreadId, Ticks, TimeRange};
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::{FieldReader, clr};

use super::{runtime_event, ticks_since};
use crate::keys::ProcessIndex;
use crate::loss::Loss;
use crate::machine::Machine;
use crate::machine::names::{text, tier_name, tier_of};
use crate::observe::{EventRef, Joins, Observer};
use crate::{OpenOperations, Scope};

pub(super) const JITTING: u16 = 145;

/// A method that was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compilation {
    /// The process.
    pub process: ProcessIndex,
    /// The thread that compiled it.
    pub tid: Option<ThreadId>,
    /// Type with its namespace, and name.
    pub method: Box<str>,
    /// When it was done, in ticks.
    pub loaded: Ticks,
    /// Ticks for which it was compiled; `None` if the start was not recorded.
    pub duration: Option<u64>,
    /// Bytes of IL; `None` if the start was not recorded.
    pub il_size: Option<u32>,
    /// Bytes of code.
    pub code_size: u32,
    /// Number of the tier, 0 if no tier is stated.
    pub tier: u8,
}

impl Compilation {
    /// The name of the tier.
    #[must_use]
    pub fn tier_name(&self) -> &'static str {
        tier_name(self.tier)
    }
}

/// A method that a thread compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Compiling {
    process: ProcessIndex,
    tid: Option<ThreadId>,
    method: u64,
}

/// A compilation that has not ended: when it began, and bytes of IL.
#[derive(Clone, Copy, Debug)]
struct Started {
    at: Ticks,
    il_size: u32,
}

/// Collects the methods of a recording that were compiled at run time.
#[derive(Clone, Debug)]
pub struct Compilations {
    list: Vec<Compilation>,
    /// By process, thread and method.
    started: OpenOperations<Compiling, Started>,
    given_up: u64,
    range: TimeRange,
    jitting: FieldReader<2>,
}

impl Default for Compilations {
    fn default() -> Self {
        Compilations::new()
    }
}

impl Compilations {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        let jitting = FieldReader::of_event(CLR_RUNTIME, JITTING, ["MethodID", "MethodILSize"]);
        Compilations {
            list: Vec::new(),
            started: OpenOperations::default(),
            given_up: 0,
            range: TimeRange::default(),
            jitting,
        }
    }

    /// Lists only the methods whose code was loaded in a range of the recording's clock. Their
    /// compilations may have begun before.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        Compilations { range, ..self }
    }

    /// Compilations whose time is not known, as records are missing in which they may have ended.
    #[must_use]
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// The methods, in the order in which their code was loaded.
    #[must_use]
    pub fn list(&self) -> &[Compilation] {
        &self.list
    }

    /// Takes the methods out of the list, for programs that keep them elsewhere.
    pub fn take(&mut self) -> Vec<Compilation> {
        std::mem::take(&mut self.list)
    }

    fn loaded(&mut self, process: ProcessIndex, method: &clr::Method<'_>, event: &EventRef) {
        let started = self.started.end(&Compiling {
            process,
            tid: event.tid,
            method: method.id,
        });
        if !self.range.contains(event.time) {
            return;
        }
        let names = method.text().unwrap_or_default();
        let namespace = text(names.namespace);
        let name = text(names.name);
        let dot = if namespace.is_empty() { "" } else { "." };
        self.list.push(Compilation {
            process,
            tid: event.tid,
            method: format!("{namespace}{dot}{name}").into(),
            loaded: event.time,
            duration: started.map(|started| ticks_since(started.at, event.time)),
            il_size: started.map(|started| started.il_size),
            code_size: method.size,
            tier: tier_of(method.flags),
        });
    }
}

impl Observer for Compilations {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(id) = runtime_event(event) else {
            return;
        };
        let Some(process) = event.process else {
            return;
        };
        if id == JITTING {
            let Some(fields) = self.jitting.read(record) else {
                return;
            };
            let Some(method) = fields.uint(0) else {
                return;
            };
            let started = Started {
                at: event.time,
                il_size: fields.uint(1).unwrap_or(0) as u32,
            };
            let key = Compiling {
                process,
                tid: event.tid,
                method,
            };
            self.started
                .begin(key, Scope::session(event.session), started);
        } else if let Some(clr::Event::Method(clr::Change::Load, method)) =
            clr::decode(record).map(|decoded| decoded.event)
            && method.is_jitted()
        {
            self.loaded(process, &method, event);
        }
    }

    fn loss(&mut self, loss: &Loss) {
        self.given_up += self.started.give_up(loss) as u64;
    }

    fn restart(&mut self) {
        *self = Compilations {
            range: self.range,
            ..Compilations::new()
        };
    }
}
