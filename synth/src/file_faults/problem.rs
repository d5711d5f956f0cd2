//! Why a file cannot be edited.

/// The reason, for an error message.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Problem(String);

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Problem(text)
    }
}

impl From<&str> for Problem {
    fn from(text: &str) -> Self {
        Problem(text.to_owned())
    }
}

impl From<etl_format::Error> for Problem {
    fn from(error: etl_format::Error) -> Self {
        Problem(error.to_string())
    }
}
