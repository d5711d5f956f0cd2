//! An event that was raised, and what each session did with it.

use core::fmt;

use etl_format::constants::PointerSize;
use etl_format::{EventDescriptor, Guid, ProcessId, ThreadId, Ticks};
use etl_schema::EventSchema;
use etl_schema::encode::OwnedValue;
use serde::Serialize;

use crate::time::Nanos;

/// What a session did with an event.
///
/// ```
/// use etl_synth::truth::EventOutcome;
///
/// assert_eq!(EventOutcome::ClaimedByOtherSession.to_string(), "claimed_by_other_session");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventOutcome {
    /// The event is in a buffer of the session.
    Recorded,
    /// Not recorded: the level of the session is lower.
    Level,
    /// Not recorded: the keywords of the session do not match.
    Keyword,
    /// Not recorded: excluded by the event id filter of the session.
    Id,
    /// Not recorded: excluded by the process filter of the session.
    Process,
    /// Not recorded: another session enabled the classic provider later.
    ClaimedByOtherSession,
    /// Not recorded: no buffer was free, in this session or in another session that records the
    /// event.
    Lost,
    /// Not recorded: its record would have more than 64 KB (ERROR_ARITHMETIC_OVERFLOW). It is not
    /// counted as lost.
    TooLarge,
    /// Not recorded: no buffer of the session is large enough (ERROR_MORE_DATA). It is counted as
    /// lost.
    LargerThanBuffers,
    /// Not recorded: the session has disabled the provider or was stopped.
    Disabled,
    /// Not recorded and not counted: a fault removed it.
    Missing,
}

impl fmt::Display for EventOutcome {
    /// Formats the outcome as its code in `truth.jsonl`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The outcome of an event in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct SessionOutcome {
    /// The index of the session.
    pub session: usize,
    /// What it did with the event.
    pub outcome: EventOutcome,
}

impl SessionOutcome {
    pub(crate) const fn new(session: usize, outcome: EventOutcome) -> Self {
        SessionOutcome { session, outcome }
    }

    /// Whether the event is in a buffer of the session.
    #[must_use]
    pub fn is_recorded(self) -> bool {
        self.outcome == EventOutcome::Recorded
    }
}

/// The record format of an event.
///
/// ```
/// use etl_synth::truth::RecordFormat;
///
/// assert_eq!(RecordFormat::PerfInfo(0x0f2e).hook(), Some(0x0f2e));
/// assert_eq!(RecordFormat::Event.hook(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFormat {
    /// An EVENT record: manifest, TraceLogging and EventSource events.
    Event,
    /// A FULL record: classic events.
    Full,
    /// A SYSTEM record of the kernel with this hook.
    System(u16),
    /// A PERFINFO record of the kernel with this hook.
    PerfInfo(u16),
    /// A MESSAGE record: a WPP message with this number.
    Message(u16),
}

impl RecordFormat {
    /// The hook of a record of the kernel.
    #[must_use]
    pub const fn hook(self) -> Option<u16> {
        match self {
            RecordFormat::System(hook) | RecordFormat::PerfInfo(hook) => Some(hook),
            _ => None,
        }
    }

    /// Its name in `truth.jsonl`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            RecordFormat::Event => "event",
            RecordFormat::Full => "full",
            RecordFormat::System(_) => "system",
            RecordFormat::PerfInfo(_) => "perfinfo",
            RecordFormat::Message(_) => "message",
        }
    }
}

/// An event that was raised, with its fields and its outcome in every session.
#[derive(Debug)]
#[non_exhaustive]
pub struct RaisedEvent<'a> {
    /// Position in the order in which events are raised, from 0.
    pub number: u64,
    /// Simulated time.
    pub at: Nanos,
    /// The performance counter at that time.
    pub timestamp: Ticks,
    /// The processor.
    pub processor: u16,
    /// The process id.
    pub pid: ProcessId,
    /// The thread id.
    pub tid: ThreadId,
    /// The record format.
    pub format: RecordFormat,
    /// The provider, or the class of a classic event.
    pub provider: Guid,
    /// Id, version, level and so on. A classic event has its type as opcode.
    pub descriptor: EventDescriptor,
    /// The activity id, or zero.
    pub activity: Guid,
    /// The activity that started this one.
    pub related_activity: Option<Guid>,
    /// Name of the event; names and types of its fields.
    pub schema: &'a EventSchema,
    /// Values of the fields, in the order of the schema.
    pub values: &'a [OwnedValue],
    /// Width of pointers in the payload.
    pub pointer_size: PointerSize,
    /// The stack of the event, innermost frame first.
    pub stack: &'a [u64],
    /// Sessions whose record of the event contains the stack.
    pub stack_sessions: &'a [usize],
    /// The outcome in each session that enables, or has enabled, the provider.
    pub outcomes: &'a [SessionOutcome],
}
