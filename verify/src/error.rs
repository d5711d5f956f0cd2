//! The error of this crate.

/// Why a trace was not verified, or settings could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read as a trace.
    #[error(transparent)]
    Trace(#[from] etl_analysis::Error),
    /// A selected process is not in the trace.
    #[error(transparent)]
    NoProcess(#[from] etl_analysis::UnknownProcess),
    /// The configuration is not TOML, or has unknown keys; the text names line and column.
    #[error("{0}")]
    Config(String),
    /// A name is neither the id of a rule nor the name of a family of rules.
    #[error("{0:?} is neither a rule nor a family of rules")]
    UnknownRule(String),
    /// A percentage in the configuration is out of range.
    #[error("{key} is {value}, expected 0 to 100")]
    Percentage {
        /// The key, as in the configuration file.
        key: &'static str,
        /// The value, in percent.
        value: f64,
    },
    /// A text is not a baseline; the reason.
    #[error("{0}")]
    Baseline(String),
    /// A text does not state how a provider was enabled.
    #[error("{text:?}: {reason}")]
    Enable {
        /// The whole text.
        text: String,
        /// What is wrong in it.
        reason: String,
    },
    /// A line of `truth.jsonl` cannot be read.
    #[error("line {line}: {reason}")]
    Truth {
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong in it.
        reason: String,
    },
}

/// The result of verifying a trace or of reading settings.
pub type Result<T, E = Error> = std::result::Result<T, E>;
