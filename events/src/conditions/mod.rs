//! Conditions on the name, the fields and the text of events.

mod comparison;
mod operand;
mod path;
mod pattern;

use etl_schema::Field;
use etl_schema::decode::Value;
use etl_schema::render::{Names, Renderer};

use crate::event::Event;
use comparison::Comparison;
use pattern::Pattern;

/// Selects events by their names, fields and text. The default selects all.
///
/// The example of [`Selection`](crate::Selection) uses it.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// One must match.
    events: Vec<Pattern>,
    /// All must hold.
    fields: Vec<Comparison>,
    /// Texts in lower case: a value of a field, the message or the readable text must contain one
    /// of them.
    texts: Vec<String>,
}

/// A condition on a field that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoCondition {
    /// It is not a field, an operator and a value.
    #[error(
        "{0:?} is not a condition: expected FIELD OP VALUE with =, !=, <, <=, >, >= or ~, such as \
         `ProcessId = 4`"
    )]
    Form(String),
    /// It asks for something less or greater than a value without an order.
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
            events: events
                .iter()
                .map(|name| Pattern::new(name.as_ref()))
                .collect(),
            fields: fields
                .iter()
                .map(|text| Comparison::parse(text.as_ref()))
                .collect::<Result<_, _>>()?,
            texts: texts
                .iter()
                .map(|text| text.as_ref().to_lowercase())
                .collect(),
        })
    }

    /// Selects events with this name; `*` is any text, `?` any character. If there are several
    /// names, one of them must match.
    ///
    /// ```
    /// use etl_events::conditions::Conditions;
    ///
    /// let conditions = Conditions::default().event("GCStart*");
    /// assert!(conditions.admit_name("GCStart_V1"));
    /// assert!(!conditions.admit_name("GCEnd_V1"));
    /// ```
    #[must_use]
    pub fn event(mut self, name: &str) -> Self {
        self.events.push(Pattern::new(name));
        self
    }

    /// Selects events by a field or a column: `ProcessId = 4`, `FileName ~ *.dll`, `level <= 3`.
    /// All conditions on fields must hold.
    ///
    /// # Errors
    /// For a condition that cannot be read, or that no value could fulfil.
    ///
    /// ```
    /// use etl_events::conditions::Conditions;
    ///
    /// let conditions = Conditions::default().field("Heaps[0].Size > 1000")?;
    /// assert_eq!(conditions.fields().collect::<Vec<_>>(), ["Heaps.Size"]);
    /// assert!(Conditions::default().field("Size larger 1000").is_err());
    /// # Ok::<(), etl_events::conditions::NoCondition>(())
    /// ```
    pub fn field(mut self, condition: &str) -> Result<Self, NoCondition> {
        self.fields.push(Comparison::parse(condition)?);
        Ok(self)
    }

    /// Selects events with this text in a value of a field, in the message, or in an undecoded
    /// payload, case-insensitively. If there are several texts, one is enough.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.texts.push(text.to_lowercase());
        self
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

    /// Whether an event fulfils all conditions.
    pub(crate) fn admits(&self, event: &Event<'_>) -> bool {
        if !self.admit_name(event.name()) {
            return false;
        }
        let mut scratch = Vec::new();
        self.fields
            .iter()
            .all(|condition| condition.admits(event, &mut scratch))
            && (self.texts.is_empty() || contains(event, &self.texts, &mut scratch))
    }
}

/// Whether the values of an event's fields, its message or its readable text contain one of these
/// texts, case-insensitively.
fn contains(event: &Event<'_>, texts: &[String], scratch: &mut Vec<u8>) -> bool {
    if contains_any(event.payload_text, texts) {
        return true;
    }
    if let Some(message) = event.write_message(scratch)
        && contains_any(message, texts)
    {
        return true;
    }
    let Some(fields) = event.fields() else {
        return false;
    };
    let names = event.names();
    let names = names.as_ref().map(|names| names as &dyn Names);
    let renderer = Renderer::new().names(names);
    let mut values = String::new();
    for (field, value) in fields {
        push_value(&mut values, renderer, field, value, scratch);
        // A text that is searched does not match across two values.
        values.push('\0');
    }
    contains_any(&values, texts)
}

/// Whether `shown` contains one of these texts, which are in lower case.
fn contains_any(shown: &str, texts: &[String]) -> bool {
    let shown = shown.to_lowercase();
    texts.iter().any(|text| shown.contains(text))
}

/// Appends a value as it is printed.
fn push_value(
    out: &mut String,
    renderer: Renderer<'_>,
    field: &Field,
    value: Value<'_>,
    scratch: &mut Vec<u8>,
) {
    renderer.chars(field, value, scratch, &mut |c| {
        out.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
    });
}
