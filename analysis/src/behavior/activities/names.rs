//! Names of activities, and of the events that start and stop them.

use etl_format::Guid;
use etl_schema::EventSchema;

/// Ends of the names of events that start something.
const STARTS: [&str; 5] = ["Start", "Started", "Begin", "_start", "_begin"];
/// Ends of the names of events that stop something.
const STOPS: [&str; 9] = [
    "Stop",
    "Stopped",
    "End",
    "Finish",
    "Finished",
    "Complete",
    "Completed",
    "_stop",
    "_end",
];

/// What distinguishes start events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// An event of a manifest, or a classic one.
    Modern {
        provider: Guid,
        id: u16,
        version: u8,
    },
    /// A self-describing event.
    Named { provider: Guid, name: Box<str> },
}

impl Kind {
    pub fn provider(&self) -> Guid {
        match *self {
            Kind::Modern { provider, .. } | Kind::Named { provider, .. } => provider,
        }
    }
}

/// The name of an activity, from [`Activities::name`](super::Activities::name).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActivityName {
    /// Its provider: `Contoso-Orders`, or a GUID if no schema names the provider.
    pub provider: Box<str>,
    /// The activity: `Request` of the start event `RequestStart`, or `event 12` if no schema names
    /// the event.
    pub event: Box<str>,
}

/// The name of an event: that of its schema, or its task.
pub(super) fn event_name(schema: &EventSchema) -> &str {
    if schema.name.is_empty() {
        &schema.task.name
    } else {
        &schema.name
    }
}

/// The name of a start event without its end: `Request` of `RequestStart` and `Request/Start`.
pub(super) fn stem(name: &str) -> &str {
    match stem_of(name, &STARTS) {
        Some(stem) if !stem.is_empty() => stem,
        _ => name,
    }
}

/// The name of a stop event without its end: `Request` of `RequestStop` and `RequestCompleted`.
pub(super) fn stop_stem(name: &str) -> &str {
    stem_of(name, &STOPS).unwrap_or(name)
}

/// What the name of an event says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step<S> {
    /// It starts an activity.
    Start(S),
    /// It stops an activity.
    Stop(S),
    /// Neither.
    Other,
}

/// What a name says, with what a start and a stop of one activity have in common.
pub(super) fn step_of_name(name: &str) -> Step<&str> {
    if let Some(stem) = stem_of(name, &STARTS) {
        Step::Start(stem)
    } else if let Some(stem) = stem_of(name, &STOPS) {
        Step::Stop(stem)
    } else {
        Step::Other
    }
}

/// The name without one of these ends and what separates it: `/`, `_`, `.` or a space. `None` if it
/// has none of these ends.
fn stem_of<'n>(name: &'n str, ends: &[&str]) -> Option<&'n str> {
    let stem = ends.iter().find_map(|end| name.strip_suffix(end))?;
    Some(stem.trim_end_matches(['/', '_', '.', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stem_is_the_name_without_start() {
        for name in [
            "RequestStart",
            "Request/Start",
            "Request_start",
            "RequestBegin",
            "Request",
        ] {
            assert_eq!(stem(name), "Request", "{name}");
        }
        assert_eq!([stem("Start"), stem("")], ["Start", ""]);
        for name in ["RequestStop", "Request/End", "RequestCompleted", "Request"] {
            assert_eq!(stop_stem(name), "Request", "{name}");
        }
    }

    #[test]
    fn names_say_what_starts_and_stops() {
        assert_eq!(step_of_name("TargetStarted"), Step::Start("Target"));
        assert_eq!(step_of_name("TargetFinished"), Step::Stop("Target"));
        for name in ["Restart0", "Append", "Send", "Target", ""] {
            assert_eq!(step_of_name(name), Step::Other, "{name}");
        }
    }
}
