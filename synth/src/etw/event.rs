//! An event on its way from a provider to the sessions, and what became of it.

use core::fmt;

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::write::record::Descriptor;
use etl_schema::EventSchema;
use etl_schema::encode::OwnedValue;

use crate::machine::Nanos;

/// Where and when an event is raised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Origin {
    pub at: Nanos,
    pub processor: u16,
    pub pid: u32,
    pub tid: u32,
    pub pointer_size: PointerSize,
    /// The thread's activity.
    pub activity: Guid,
    pub user_time: u32,
}

/// What a session did with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Outcome {
    /// It is in a buffer of the session.
    Recorded,
    /// The session's level is lower.
    Level,
    /// The session's keywords do not ask for it.
    Keyword,
    /// The session's filter by id does not.
    Id,
    /// The session's filter by process does not.
    Process,
    /// Another session enabled the (classic) provider after this one.
    Taken,
    /// No buffer was free, here or in another session that would have got the event.
    Lost,
    /// The session has disabled the provider, or was stopped.
    Off,
    /// It is not there, and nobody counted it: a fault.
    Missing,
}

impl Outcome {
    /// One word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Recorded => "recorded",
            Outcome::Level => "level",
            Outcome::Keyword => "keyword",
            Outcome::Id => "id",
            Outcome::Process => "process",
            Outcome::Taken => "taken",
            Outcome::Lost => "lost",
            Outcome::Off => "off",
            Outcome::Missing => "missing",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How the record of an event is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An EVENT record: manifest, TraceLogging and EventSource events.
    Event,
    /// A FULL record: classic events.
    Full,
    /// A SYSTEM record of the kernel with this hook.
    System(u16),
    /// A PERFINFO record of the kernel with this hook.
    PerfInfo(u16),
    /// A MESSAGE record: a WPP message of this number.
    Message(u16),
}

/// An event that was raised, with all that is known of it.
#[derive(Debug)]
pub struct Raised<'a> {
    /// Counts from 0 in the order in which events are raised.
    pub number: u64,
    /// When.
    pub at: Nanos,
    /// The performance counter then.
    pub timestamp: i64,
    /// On which processor.
    pub processor: u16,
    /// In which process.
    pub pid: u32,
    /// In which thread.
    pub tid: u32,
    /// Width of pointers in the payload.
    pub pointer_size: PointerSize,
    /// The activity, or zero.
    pub activity: Guid,
    /// The activity that this one was started from.
    pub related: Option<Guid>,
    /// How its record is built.
    pub form: Form,
    /// The provider, or the class of a classic event.
    pub provider: Guid,
    /// Id, version, level and so on; a classic event has its type as opcode.
    pub descriptor: Descriptor,
    /// What its fields are called.
    pub schema: &'a EventSchema,
    /// Their values, in the order of the schema.
    pub values: &'a [OwnedValue],
    /// The stack that goes with it, innermost first.
    pub stack: &'a [u64],
    /// Sessions whose record of it holds that stack.
    pub stacked: &'a [usize],
    /// What each session that ever asked for it did.
    pub outcomes: &'a [(usize, Outcome)],
}
