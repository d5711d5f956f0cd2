//! The error of this crate.

/// Why a trace was not verified, or settings could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read as a trace.
    #[error(transparent)]
    Trace(#[from] etl_analysis::Error),
    /// A process that was selected is not in the trace.
    #[error(transparent)]
    NoProcess(#[from] etl_analysis::UnknownProcess),
    /// The configuration is no TOML, or has unknown keys; the text names line and column.
    #[error("{0}")]
    Config(String),
    /// A name in the configuration is no rule and no family of rules.
    #[error("{0:?} is no rule and no family of rules")]
    UnknownRule(String),
    /// A percentage in the configuration is out of range.
    #[error("{key} is {value}, expected 0 to 100")]
    Percentage {
        /// The key.
        key: &'static str,
        /// Its value.
        value: f64,
    },
    /// A text is no baseline.
    #[error("{0}")]
    Baseline(String),
    /// A text does not state what a provider was enabled with.
    #[error("{text:?}: {reason}")]
    Enable {
        /// The text.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A line of a scenario's truth cannot be read.
    #[error("line {line}: {reason}")]
    Truth {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// The result of verifying a trace or of reading settings.
pub type Result<T, E = Error> = std::result::Result<T, E>;
