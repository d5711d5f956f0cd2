//! Conditions on the name, the fields and the text of events.

mod comparison;
mod operand;
mod path;
mod pattern;

use etl_schema::render::{Names, Renderer};

use super::row::Row;
use comparison::Comparison;
use pattern::Pattern;

/// Selects events by their names, fields and text. The default selects all.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// One must match.
    events: Vec<Pattern>,
    /// All must hold.
    fields: Vec<Comparison>,
    /// What a value of a field, the message or the readable text must contain, in small letters.
    /// One of them is enough.
    texts: Vec<String>,
}

/// A condition on a field that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoCondition {
    /// It is not a field, an operator and a value.
    #[error(
        "{0:?} is no condition: expected FIELD OP VALUE with =, !=, <, <=, >, >= or ~, such as \
         `ProcessId = 4`"
    )]
    Form(String),
    /// Nothing is less or greater than its value.
    #[error(
        "{value:?} has no order: expected a number, a time (2020-07-29T00:07:01Z) or an IP \
         address after {operator}"
    )]
    NoOrder {
        /// The operator.
        operator: &'static str,
        /// The value as it was written.
        value: String,
    },
    /// It is several conditions in one.
    #[error(
        "{0:?} is more than one condition: give each by itself (all must hold), or put the value \
         in quotes"
    )]
    Several(String),
}

impl Conditions {
    /// Conditions from names of events (`GC*`), conditions on fields (`ProcessId = 4`), and texts:
    /// an event has to contain one of them.
    ///
    /// # Errors
    /// For a condition on a field that cannot be read, or that no value could fulfil.
    pub fn new<T: AsRef<str>>(
        events: &[T],
        fields: &[T],
        texts: &[T],
    ) -> Result<Self, NoCondition> {
        Ok(Conditions {
            events: events.iter().map(|name| Pattern::new(name.as_ref())).collect(),
            fields: fields
                .iter()
                .map(|text| Comparison::parse(text.as_ref()))
                .collect::<Result<_, _>>()?,
            texts: texts.iter().map(|text| text.as_ref().to_lowercase()).collect(),
        })
    }

    /// Whether it selects all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.fields.is_empty() && self.texts.is_empty()
    }

    /// Whether the name of an event is selected.
    #[must_use]
    pub fn admit_name(&self, name: &str) -> bool {
        self.events.is_empty() || self.events.iter().any(|pattern| pattern.matches(name))
    }

    /// The fields that conditions compare, members of structures as `Values.Size`; columns of rows
    /// left out.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().filter_map(Comparison::field)
    }

    pub(super) fn admit(&self, row: &Row<'_>, scratch: &mut Vec<u8>) -> bool {
        self.admit_name(&row.head.event_name)
            && self.fields.iter().all(|condition| condition.admits(row, scratch))
            && (self.texts.is_empty() || contains(row, &self.texts, scratch))
    }
}

/// Whether the values of a row's fields, its message or its readable text contain one of these
/// texts, whatever the case of its letters.
fn contains(row: &Row<'_>, texts: &[String], scratch: &mut Vec<u8>) -> bool {
    let has = |shown: &str| {
        let shown = shown.to_lowercase();
        texts.iter().any(|text| shown.contains(text))
    };
    if has(row.payload_text) || row.message(scratch).is_some_and(has) {
        return true;
    }
    let Some(fields) = &row.fields else { return false };
    let names = row.names();
    let names = names.as_ref().map(|names| names as &dyn Names);
    let mut shown = String::new();
    for (field, value) in fields.clone() {
        Renderer::new().names(names).chars(field, value, scratch, &mut |c| {
            shown.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
        });
        // No text of a value goes on in the next one.
        shown.push('\0');
    }
    has(&shown)
}
