//! Single events with their threads and times: exceptions, waits for locks, loads of modules and of
//! images.
//!
//! Needs the events of the CLR's runtime provider with the keywords Exception (0x8000) at level 2,
//! Contention (0x4000) at level 4, Loader (0x8) at level 4, and the kernel's with the flag LOADER.
//!
//! ```no_run
//! use etl_analysis::behavior::occurrences::{Occurred, Occurrences};
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut occurrences = Occurrences::new();
//! let machine = Analysis::new().run(&mut recording, &mut occurrences)?;
//! for occurrence in occurrences.list() {
//!     if let Occurred::Exception { exception, .. } = occurrence.what {
//!         println!("{}: {}", occurrence.since, occurrences.text(exception));
//!     }
//! }
//! # drop(machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use etl_format::read::Record;
use etl_format::{ThreadId, Ticks};
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::{FieldReader, clr};
use foldhash::fast::RandomState;
use indexmap::IndexSet;

use super::contention::LockKey;
use super::{contention, exceptions, runtime_event};
use crate::keys::ProcessIndex;
use crate::loss::Loss;
use crate::machine::names::text;
use crate::machine::{Change, Life, Machine};
use crate::observe::{EventRef, Joins, Observer};
use crate::{OpenOperations, Scope};

/// A module was loaded.
const MODULE_LOADED: u16 = 152;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Occurred {
    /// An exception was thrown: the numbers of its type and of its message.
    Exception {
        /// The type, with its namespace.
        exception: u32,
        /// The message.
        message: u32,
    },
    /// A thread waited for a lock.
    LockWait {
        /// Whether it is a lock of the runtime itself.
        is_native: bool,
    },
    /// A module was loaded: the number of the path of its IL.
    Module(u32),
    /// An image was loaded: its index in the machine.
    Image(u64),
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Occurrence {
    /// The process.
    pub process: ProcessIndex,
    /// Its thread.
    pub tid: Option<ThreadId>,
    /// Number of the event with which it began, which may have a stack.
    pub number: u64,
    /// When it began, in ticks.
    pub since: Ticks,
    /// When it ended. What has no duration ended when it began.
    pub until: Ticks,
    /// What it is.
    pub what: Occurred,
}

/// The event with which something began.
#[derive(Clone, Copy, Debug)]
struct Begun {
    number: u64,
    time: Ticks,
}

impl Begun {
    fn with(event: &EventRef) -> Self {
        Begun {
            number: event.number,
            time: event.time,
        }
    }
}

/// Collects what happened; 56 bytes for each occurrence, and each text once.
#[derive(Clone, Debug)]
pub struct Occurrences {
    list: Vec<Occurrence>,
    texts: IndexSet<Box<str>, RandomState>,
    /// Waits that have not ended.
    waits: OpenOperations<LockKey, Begun>,
    thrown: FieldReader<2>,
    contention: FieldReader<1>,
}

impl Default for Occurrences {
    fn default() -> Self {
        Occurrences::new()
    }
}

impl Occurrences {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        let thrown = ["ExceptionType", "ExceptionMessage"];
        Occurrences {
            list: Vec::new(),
            texts: IndexSet::default(),
            waits: OpenOperations::default(),
            thrown: FieldReader::of_event(CLR_RUNTIME, exceptions::THROWN, thrown),
            contention: FieldReader::of_event(CLR_RUNTIME, contention::START, ["ContentionFlags"]),
        }
    }

    /// What happened, in the order in which it ended.
    #[must_use]
    pub fn list(&self) -> &[Occurrence] {
        &self.list
    }

    /// The text with a number.
    #[must_use]
    pub fn text(&self, number: u32) -> &str {
        self.texts
            .get_index(number as usize)
            .map_or("", |text| text)
    }

    fn number(&mut self, units: &[u8]) -> u32 {
        let text = text(units).into_boxed_str();
        u32::try_from(self.texts.insert_full(text).0).unwrap_or(u32::MAX)
    }

    /// Adds what ends with an event.
    fn add(&mut self, process: ProcessIndex, event: &EventRef, begun: Begun, what: Occurred) {
        self.list.push(Occurrence {
            process,
            tid: event.tid,
            number: begun.number,
            since: begun.time,
            until: event.time,
            what,
        });
    }

    fn contention(
        &mut self,
        id: u16,
        process: ProcessIndex,
        record: &Record<'_>,
        event: &EventRef,
    ) {
        let Some(tid) = event.tid else { return };
        let flags = self
            .contention
            .read(record)
            .and_then(|fields| fields.uint(0));
        let is_native = flags.unwrap_or(0) & contention::NATIVE != 0;
        let key = LockKey {
            process,
            tid,
            is_native,
        };
        if id == contention::START {
            self.waits
                .begin(key, Scope::session(event.session), Begun::with(event));
        } else if let Some(begun) = self.waits.end(&key) {
            self.add(process, event, begun, Occurred::LockWait { is_native });
        }
    }

    fn exception(&mut self, process: ProcessIndex, record: &Record<'_>, event: &EventRef) {
        let Some(fields) = self.thrown.read(record) else {
            return;
        };
        let exception = self.number(fields.text(0).unwrap_or_default());
        let message = self.number(fields.text(1).unwrap_or_default());
        let what = Occurred::Exception { exception, message };
        self.add(process, event, Begun::with(event), what);
    }
}

impl Observer for Occurrences {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(id) = runtime_event(event) else {
            return;
        };
        let Some(process) = event.process else {
            return;
        };
        match id {
            exceptions::THROWN => self.exception(process, record, event),
            contention::START | contention::STOP => self.contention(id, process, record, event),
            MODULE_LOADED => {
                let decoded = clr::decode(record).map(|decoded| decoded.event);
                if let Some(clr::Event::Module(_, module)) = decoded {
                    let path = self.number(module.text().il_path);
                    self.add(process, event, Begun::with(event), Occurred::Module(path));
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, _: &Machine, change: &Change, event: &EventRef) {
        if let Change::Image {
            life: Life::Begun,
            process,
            image,
        } = *change
        {
            self.add(process, event, Begun::with(event), Occurred::Image(image));
        }
    }

    fn loss(&mut self, loss: &Loss) {
        self.waits.give_up(loss);
    }

    fn restart(&mut self) {
        *self = Occurrences::new();
    }
}
