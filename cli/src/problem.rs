//! What is wrong with a trace, as tools print it.

use std::fmt;

use etl_format::read::{Damage, Note};
use serde::Serialize;

use crate::escape::Printable;

/// Something wrong, or worth knowing.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    pub code: String,
    pub offset: u64,
    pub message: String,
    /// For damage: where it ends, and the records before and behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<Extent>,
}

/// How far damage goes.
#[derive(Debug, Serialize)]
pub(crate) struct Extent {
    pub end: u64,
    pub records_before: u64,
    pub records_after: u64,
}

impl Problem {
    /// Something about a sound trace that its reader should know.
    pub fn note(note: &Note) -> Self {
        Problem {
            code: note.code().to_owned(),
            offset: note.offset(),
            message: note.to_string(),
            damage: None,
        }
    }

    /// Bytes that could not be read.
    pub fn damage(damage: &Damage) -> Self {
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

/// Tells on standard error what of a trace could not be read.
pub(crate) fn warn(name: &str, damage: &[Damage]) {
    for d in damage {
        tell!("warning: {}: {} (to {:#x})", Printable(name), d.error, d.range.end);
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}: {}", self.code, self.offset, Printable(&self.message))?;
        match &self.damage {
            Some(d) => {
                let (before, after) = (d.records_before, d.records_after);
                write!(f, " (to {:#x}; {before} records before, {after} after)", d.end)
            }
            None => Ok(()),
        }
    }
}
