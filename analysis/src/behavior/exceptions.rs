//! Exceptions of .NET: how often each type was thrown, and where.
//!
//! Needs the events of the CLR's runtime provider with the keyword Exception (0x8000) at level 2.
//! Since .NET 10 these events have no address, and their stack shows where the exception was
//! thrown.
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

use etl_format::{ProcessId, ThreadId, Ticks};
use std::collections::BTreeMap;

use etl_format::read::{ExtendedItem, Record};
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::{FieldReader, clr};

use super::runtime_event;
use crate::keys::ProcessIndex;
use crate::machine::Machine;
use crate::machine::names::text;
use crate::observe::{EventRef, Joins, Observer};
use crate::symbols::{Symbol, Symbols};

/// Id of the event that an exception was thrown.
pub const THROWN: u16 = 80;
/// Id of the event with the stack of the event before it on its thread.
const STACK: u16 = 82;
/// Innermost addresses of a stack that are kept: the runtime's own frames are a few.
const MAX_FRAMES: usize = 16;
/// Threads whose exception waits for its stack.
const MAX_WAITING: usize = 1 << 16;
/// The namespace and type of the code that handles exceptions since .NET 10.
const HANDLING: &str = "System.Runtime.EH";

/// Exceptions of one type that were thrown at one place of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thrown {
    /// The process.
    pub process: ProcessIndex,
    /// The type, with its namespace.
    pub exception: Box<str>,
    /// Address of the code that threw it; 0 since .NET 10, whose events do not state it.
    pub address: u64,
    /// The innermost addresses of the stack if `address` is 0, innermost first; empty if no stack
    /// was recorded.
    pub stack: Box<[u64]>,
    /// How many.
    pub count: u64,
    /// When the first was thrown, in ticks.
    pub first: Ticks,
    /// When the last was thrown, in ticks.
    pub last: Ticks,
    /// The message of the first.
    pub message: Box<str>,
}

impl Thrown {
    /// No exception yet.
    fn of(place: &Place) -> Self {
        Thrown {
            process: place.process,
            exception: text(&place.exception).into(),
            address: place.address,
            stack: place.stack.as_slice().into(),
            count: 0,
            first: Ticks::MAX,
            last: Ticks::MIN,
            message: Box::default(),
        }
    }

    /// The code that threw it: the code at the stated address, or else the innermost managed method
    /// of the stack that does not belong to the handling of exceptions. `pid` is the id of the
    /// process.
    ///
    /// ```no_run
    /// # use etl_analysis::behavior::exceptions::Exceptions;
    /// # fn print(machine: &etl_analysis::Machine, exceptions: &Exceptions) {
    /// let symbols = machine.symbols();
    /// for thrown in exceptions.list() {
    ///     let pid = machine.process(thrown.process).map(|process| process.pid());
    ///     if let Some(thrower) = pid.and_then(|pid| thrown.thrower(&symbols, pid)) {
    ///         println!("{} in {thrower}", thrown.exception);
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn thrower<'a>(&self, symbols: &Symbols<'a>, pid: ProcessId) -> Option<Symbol<'a>> {
        if self.address != 0 {
            return symbols.at(pid, self.address, self.first);
        }
        for &address in &self.stack {
            let Some(symbol) = symbols.at(pid, address, self.first) else {
                continue;
            };
            if let Symbol::Method(method) = symbol
                && method.namespace != HANDLING
            {
                return Some(symbol);
            }
        }
        None
    }
}

/// What exceptions of one row have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    process: ProcessIndex,
    /// The type, as text of the event.
    exception: Vec<u8>,
    address: u64,
    stack: Vec<u64>,
}

/// An exception without an address, whose stack may follow on its thread.
#[derive(Clone, Debug)]
struct Waiting {
    process: ProcessIndex,
    exception: Vec<u8>,
    message: Box<str>,
    time: Ticks,
}

/// A thread of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SessionThread {
    session: usize,
    tid: ThreadId,
}

/// Collects the exceptions of a recording.
#[derive(Clone, Debug)]
pub struct Exceptions {
    by_place: BTreeMap<Place, Thrown>,
    thrown: FieldReader<3>,
    waiting: BTreeMap<SessionThread, Waiting>,
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
            waiting: BTreeMap::new(),
        }
    }

    /// Adds an exception that was thrown at a place.
    fn add(&mut self, place: Place, message: Box<str>, time: Ticks) {
        let thrown = self.by_place.entry(place).or_insert_with_key(Thrown::of);
        // Exceptions that waited for a stack come late.
        if time < thrown.first {
            thrown.first = time;
            thrown.message = message;
        }
        thrown.count += 1;
        thrown.last = thrown.last.max(time);
    }

    /// Adds an exception without an address, with the addresses of its stack.
    fn add_with_stack(&mut self, waiting: Waiting, stack: Vec<u64>) {
        let place = Place {
            process: waiting.process,
            exception: waiting.exception,
            address: 0,
            stack,
        };
        self.add(place, waiting.message, waiting.time);
    }

    /// Ends the wait of a thread, if an exception waits there for its stack.
    fn end_wait(&mut self, thread: SessionThread, stack: Vec<u64>) {
        if let Some(waiting) = self.waiting.remove(&thread) {
            self.add_with_stack(waiting, stack);
        }
    }

    /// Reads the event of an exception.
    fn exception(&mut self, process: ProcessIndex, record: &Record<'_>, event: &EventRef) {
        let Some(fields) = self.thrown.read(record) else {
            return;
        };
        let exception = fields.text(0).unwrap_or_default().to_vec();
        let message = text(fields.text(1).unwrap_or_default()).into();
        let address = fields.uint(2).unwrap_or(0);
        if address != 0 {
            let place = Place {
                process,
                exception,
                address,
                stack: Vec::new(),
            };
            return self.add(place, message, event.time);
        }
        let waiting = Waiting {
            process,
            exception,
            message,
            time: event.time,
        };
        let stack = extended_stack(record);
        match thread_of(record, event) {
            Some(thread) if stack.is_empty() && self.waiting.len() < MAX_WAITING => {
                self.waiting.insert(thread, waiting);
            }
            _ => self.add_with_stack(waiting, stack),
        }
    }

    /// The exceptions by process, type and place.
    pub fn list(&self) -> impl Iterator<Item = &Thrown> {
        self.by_place.values()
    }
}

impl Observer for Exceptions {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(id) = runtime_event(event) else {
            return;
        };
        // The stack of an event is the next event of its provider on the thread.
        if !self.waiting.is_empty()
            && let Some(thread) = thread_of(record, event)
        {
            let stack = match id {
                STACK => stack_event(record),
                _ => Vec::new(),
            };
            self.end_wait(thread, stack);
        }
        if let (THROWN, Some(process)) = (id, event.process) {
            self.exception(process, record, event);
        }
    }

    fn finish(&mut self, _: &Machine) {
        let threads: Vec<SessionThread> = self.waiting.keys().copied().collect();
        for thread in threads {
            self.end_wait(thread, Vec::new());
        }
    }

    fn restart(&mut self) {
        *self = Exceptions::new();
    }
}

fn thread_of(record: &Record<'_>, event: &EventRef) -> Option<SessionThread> {
    let tid = record.thread_id()?;
    Some(SessionThread {
        session: event.session,
        tid,
    })
}

/// The innermost addresses of the stack in the extended data of an event.
fn extended_stack(record: &Record<'_>) -> Vec<u64> {
    for item in record.extended() {
        if let ExtendedItem::Stack(stack) = item {
            return stack.addresses().take(MAX_FRAMES).collect();
        }
    }
    Vec::new()
}

/// The innermost addresses of an event with the stack of another one.
fn stack_event(record: &Record<'_>) -> Vec<u64> {
    match clr::decode(record).map(|decoded| decoded.event) {
        Some(clr::Event::Stack { frames, .. }) => frames.iter().take(MAX_FRAMES).collect(),
        _ => Vec::new(),
    }
}
