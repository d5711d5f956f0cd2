//! The error of a request.

use serde_json::json;

/// Why a request failed, in words, and what to do next.
#[derive(Debug, Default)]
pub struct Error {
    pub message: String,
    pub hint: Option<String>,
}

/// The result of a request.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(message: impl Into<String>) -> Self {
        Error {
            message: message.into(),
            hint: None,
        }
    }

    pub fn hint(self, hint: impl Into<String>) -> Self {
        Error {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// The error as a reply.
    pub fn json(&self) -> Vec<u8> {
        let value = json!({ "message": self.message, "hint": self.hint });
        value.to_string().into_bytes()
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        Error::new(error.to_string())
    }
}
