//! Problems of a trace, as text and JSON.

use std::fmt;

use etl_format::read::{Damage, Note};
use serde::Serialize;

/// Damage of a trace, or a note about it.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    pub code: String,
    pub offset: u64,
    pub message: String,
    /// For damage: its end, and the records before and after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<Extent>,
}

/// The extent of damage.
#[derive(Debug, Serialize)]
pub(crate) struct Extent {
    pub end: u64,
    pub records_before: u64,
    pub records_after: u64,
}

impl Problem {
    /// A note about an intact trace.
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

/// Warns on standard error of each region that could not be read.
pub(crate) fn warn(name: &str, damage: &[Damage]) {
    for d in damage {
        stderr_line!("warning: {name}: {} (to {:#x})", d.error, d.range.end);
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}: {}", self.code, self.offset, self.message)?;
        match &self.damage {
            Some(d) => {
                let (before, after) = (d.records_before, d.records_after);
                write!(f, " (to {:#x}; {before} records before, {after} after)", d.end)
            }
            None => Ok(()),
        }
    }
}
