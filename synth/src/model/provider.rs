//! Providers that a scenario declares.

use etl_format::Guid;
use etl_schema::EventSchema;
use etl_schema::encode::OwnedValue;

/// How a provider describes its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProviderKind {
    /// By a manifest that is not in the trace.
    #[default]
    Manifest,
    /// By metadata in each event.
    TraceLogging,
    /// By a manifest that it writes into the trace when it is enabled.
    EventSource,
    /// By MOF classes that are not in the trace: one session, events without id and keywords.
    Classic,
    /// By messages whose texts are in a TMF file, which is written next to the traces. Otherwise
    /// like a classic provider.
    Wpp,
    /// By a manifest of Windows, whose events the tables of etl-schema have.
    Windows,
}

impl ProviderKind {
    /// Whether the provider has one session and filters its events itself.
    #[must_use]
    pub const fn is_classic(self) -> bool {
        matches!(self, ProviderKind::Classic | ProviderKind::Wpp)
    }
}

/// A provider with its events.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderPlan {
    /// Its name.
    pub name: String,
    /// Its GUID; for a classic provider also the GUID of its class.
    pub guid: Guid,
    /// How it describes its events.
    pub kind: ProviderKind,
    /// Its events.
    pub events: Vec<EventSchema>,
}

/// A field by its name, and a value for it.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedValue<V> {
    /// The name of the field.
    pub name: String,
    /// The value.
    pub value: V,
}

/// The effect of an event on the activity of its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActivityWork {
    /// None: it belongs to the thread's activity, if there is one.
    #[default]
    None,
    /// It starts an activity within the thread's current one.
    Start,
    /// It is the last event of the thread's activity.
    Stop,
}

/// An event of a provider that the scenario declares.
#[derive(Clone, Debug, PartialEq)]
pub struct RaisePlan {
    /// Index of the provider in [`super::Scenario::providers`].
    pub provider: usize,
    /// Index of the event in the provider.
    pub event: usize,
    /// Values of fields by name. The others are random or, in an event of Windows, zero, empty, or
    /// the time and the user of the event.
    pub values: Vec<NamedValue<OwnedValue>>,
    /// Its effect on the activity of its thread.
    pub activity: ActivityWork,
    /// Index of the thread of the process that raises it.
    pub thread: usize,
}
