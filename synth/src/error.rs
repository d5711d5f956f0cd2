//! What can go wrong while a scenario runs.

/// Why a scenario could not be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The scenario asks for what cannot be, at this moment.
    #[error("at {}: {what}", crate::text::duration(*.at))]
    Impossible {
        /// Simulated nanoseconds.
        at: u64,
        /// What, and what would have been right.
        what: String,
        /// Where the script asks for it, if a script does.
        place: Option<crate::model::Place>,
    },
    /// A trace could not be written.
    #[error("{session}: {source}")]
    Trace {
        /// The session.
        session: String,
        /// Why.
        source: etl_format::Error,
    },
    /// A payload does not go with its event's schema: a mistake in a declared provider.
    #[error("event {event}: {source}")]
    Payload {
        /// The event.
        event: String,
        /// Why.
        source: etl_schema::encode::EncodeError,
    },
    /// The tables have no such event.
    #[error("the tables have no event {id} version {version} of {provider}")]
    NoEvent {
        /// The provider.
        provider: etl_format::Guid,
        /// Its id.
        id: u16,
        /// Its version.
        version: u8,
    },
    /// What is written beside the traces could not be written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Error {
    /// The same with the place of what asks for it, where there is none yet.
    pub(crate) fn asked_at(self, asked: Option<&crate::model::Place>) -> Self {
        match self {
            Error::Impossible { at, what, place: None } => {
                Error::Impossible { at, what, place: asked.cloned() }
            }
            other => other,
        }
    }
}

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = core::result::Result<T, E>;
