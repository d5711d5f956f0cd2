//! Providers of the scenario's own.

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
    /// By classes known from elsewhere (MOF): one session, events without id and keywords.
    Classic,
    /// By messages whose texts are in a TMF file, which is written beside the traces: classic in all
    /// else.
    Wpp,
}

impl ProviderKind {
    /// Whether it is of the old kind: one session, and it filters by itself.
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
    /// Its GUID; for a classic provider that of its class as well.
    pub guid: Guid,
    /// How it describes its events.
    pub kind: ProviderKind,
    /// Its events.
    pub events: Vec<EventSchema>,
}

/// What an event does to the activity of its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActivityWork {
    /// Nothing: it belongs to the thread's activity, if there is one.
    #[default]
    None,
    /// It starts one, from the thread's activity until then.
    Start,
    /// It is the last of the thread's activity.
    Stop,
}

/// An event of a provider of the scenario's own is raised.
#[derive(Clone, Debug, PartialEq)]
pub struct RaisePlan {
    /// The provider, by its place in [`super::Scenario::providers`].
    pub provider: usize,
    /// The event, by its place in the provider.
    pub event: usize,
    /// Values of fields by name; the others are drawn.
    pub values: Vec<(String, OwnedValue)>,
    /// What it does to the thread's activity.
    pub activity: ActivityWork,
    /// The thread of the process that raises it, by its place.
    pub thread: usize,
}
