//! Problems of a trace in one form: notes and damage, with a code, an offset and a message.

use std::fmt;

use etl_format::read::{Damage, Note};
use serde::Serialize;

/// A fault of a trace, or something that its reader should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// A stable code, such as `events-lost` or `damage-bad-size`.
    pub code: String,
    /// File offset.
    pub offset: u64,
    /// The problem in words.
    pub message: String,
    /// The extent of damage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<Extent>,
}

/// How far damage goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Extent {
    /// File offset of its end.
    pub end: u64,
    /// Records before it.
    pub records_before: u64,
    /// Records after it.
    pub records_after: u64,
}

impl Problem {
    pub(crate) fn new(code: &str, offset: u64, message: String) -> Self {
        Problem {
            code: code.to_owned(),
            offset,
            message,
            damage: None,
        }
    }
}

impl From<&Note> for Problem {
    fn from(note: &Note) -> Self {
        Problem::new(note.code(), note.offset(), note.to_string())
    }
}

impl From<&Damage> for Problem {
    fn from(damage: &Damage) -> Self {
        Problem {
            code: format!("damage-{}", damage.error.code()),
            offset: damage.range.start,
            message: damage.error.kind.to_string(),
            damage: Some(Extent {
                end: damage.range.end,
                records_before: damage.records_before,
                records_after: damage.records_after,
            }),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}: {}", self.code, self.offset, self.message)?;
        let Some(damage) = &self.damage else {
            return Ok(());
        };
        write!(
            f,
            " (to {:#x}; {} records before, {} after)",
            damage.end, damage.records_before, damage.records_after
        )
    }
}
