//! Errors of a simulation.

use crate::model::ScriptLocation;
use crate::script_error::{ScriptError, ScriptErrors};
use crate::time::{Nanos, format_duration};

/// Why a scenario could not be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The script has errors.
    #[error(transparent)]
    Script(#[from] ScriptErrors),
    /// The scenario requests something that is impossible at that time.
    #[error("at {}: {message}", format_duration(*.at))]
    #[non_exhaustive]
    Scenario {
        /// Simulated time.
        at: Nanos,
        /// What is impossible, and what would be right.
        message: String,
        /// The node of the script that requests it.
        location: Option<ScriptLocation>,
    },
    /// A trace could not be written.
    #[error("{session}: {source}")]
    #[non_exhaustive]
    Trace {
        /// The session.
        session: String,
        /// The cause.
        source: etl_format::Error,
    },
    /// The values of an event do not fit its schema, which a scenario declared.
    #[error("event {event}: {source}")]
    #[non_exhaustive]
    Payload {
        /// The event.
        event: String,
        /// The cause.
        source: etl_schema::encode::EncodeError,
    },
    /// The event tables have no such event.
    #[error("the tables have no event {id} version {version} of {provider}")]
    #[non_exhaustive]
    UnknownEvent {
        /// The provider.
        provider: etl_format::Guid,
        /// The id.
        id: u16,
        /// The version.
        version: u8,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Error {
    /// An impossible request at a simulated time.
    pub(crate) fn impossible(at: Nanos, message: String) -> Self {
        Error::Scenario {
            at,
            message,
            location: None,
        }
    }

    /// Adds the location of the node that made the request, if there is none yet.
    pub(crate) fn with_location(self, node: Option<&ScriptLocation>) -> Self {
        match self {
            Error::Scenario {
                at,
                message,
                location: None,
            } => Error::Scenario {
                at,
                message,
                location: node.cloned(),
            },
            other => other,
        }
    }

    /// The errors with their location in the script, to be shown like errors of the script.
    #[must_use]
    pub fn script_errors(&self) -> Option<ScriptErrors> {
        match self {
            Error::Script(errors) => Some(errors.clone()),
            Error::Scenario {
                at,
                message,
                location: Some(location),
            } => {
                let label = format!("at {}", format_duration(*at));
                Some(ScriptErrors::new(vec![ScriptError::new(
                    location,
                    message.clone(),
                    label,
                    None,
                )]))
            }
            _ => None,
        }
    }
}

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = core::result::Result<T, E>;
