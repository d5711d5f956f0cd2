//! The labels of version 6: what one event states in addition to its metadata.

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::guid::Guid;

/// A label of an event of version 6.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Label {
    /// The activity.
    Activity(Guid),
    /// The related activity.
    RelatedActivity(Guid),
    /// The trace of OpenTelemetry.
    TraceId([u8; 16]),
    /// The span of OpenTelemetry.
    SpanId(u64),
    /// A named text.
    Text {
        /// Its name.
        key: String,
        /// Its text.
        value: String,
    },
    /// A named number.
    Number {
        /// Its name.
        key: String,
        /// Its value.
        value: i64,
    },
    /// The opcode, instead of the opcode of the metadata.
    Opcode(u8),
    /// The keywords, instead of the keywords of the metadata.
    Keywords(u64),
    /// The level, instead of the level of the metadata.
    Level(u8),
    /// The version, instead of the version of the metadata.
    Version(u8),
}

impl Label {
    /// One list of labels: the last one is marked.
    pub(crate) fn read_list(cursor: &mut Cursor<'_>) -> Result<Vec<Label>> {
        const LAST: u8 = 0x80;
        const MAX_LABELS: usize = 1 << 16;
        let mut labels = Vec::new();
        loop {
            let start = cursor.offset();
            if labels.len() >= MAX_LABELS {
                let what = "the number of labels of a list";
                let found = labels.len() as u64 + 1;
                return Err(Error::invalid(start, what, found, "0x10000 or less"));
            }
            let kind = cursor.u8("the kind of a label")?;
            labels.push(Self::read(cursor, kind & !LAST, start)?);
            if kind & LAST != 0 {
                return Ok(labels);
            }
        }
    }

    fn read(cursor: &mut Cursor<'_>, kind: u8, start: u64) -> Result<Label> {
        Ok(match kind {
            1 => Label::Activity(cursor.guid("an activity id")?),
            2 => Label::RelatedActivity(cursor.guid("a related activity id")?),
            3 => Label::TraceId(cursor.array("a trace id")?),
            4 => Label::SpanId(cursor.u64("a span id")?),
            5 => Label::Text {
                key: cursor.utf8_text("the name of a label")?,
                value: cursor.utf8_text("the text of a label")?,
            },
            6 => Label::Number {
                key: cursor.utf8_text("the name of a label")?,
                value: cursor.zigzag("the number of a label")?,
            },
            7 => Label::Opcode(cursor.u8("the opcode of a label")?),
            8 => Label::Keywords(cursor.u64("the keywords of a label")?),
            9 => Label::Level(cursor.u8("the level of a label")?),
            10 => Label::Version(cursor.u8("the version of a label")?),
            other => {
                let what = "the kind of a label";
                return Err(Error::invalid(start, what, other.into(), "1 to 10"));
            }
        })
    }

    /// About how many bytes of memory labels take.
    pub(crate) fn size_in_memory(labels: &[Label]) -> usize {
        let mut size = size_of_val(labels);
        for label in labels {
            size += match label {
                Label::Text { key, value } => key.len() + value.len(),
                Label::Number { key, .. } => key.len(),
                _ => 0,
            };
        }
        size
    }
}
