//! Arguments that are one of several words, each with its help and its value.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use etl_schema::tables::TableSet;

/// A word, its help, and its value. A word without help is another one for the same.
pub(crate) type Choice<T> = (&'static str, &'static str, T);

/// The words of `--event-tables`.
pub(crate) const EVENT_TABLES: &[Choice<TableSet>] = &[
    ("shipped", "As the runtimes write events", TableSet::Shipped),
    (
        "documented",
        "As the reference pages describe events",
        TableSet::Documented,
    ),
];

/// An item of a list with commas: blanks around it do not count.
pub(crate) fn item(text: &str) -> Result<String, std::convert::Infallible> {
    Ok(text.trim().to_owned())
}

/// A parser of one of these words.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    choices: &'static [Choice<T>],
) -> impl TypedValueParser<Value = T> {
    let words = choices
        .iter()
        .map(|(word, help, _)| PossibleValue::new(*word).help(*help).hide(help.is_empty()));
    PossibleValuesParser::new(words).try_map(|given| {
        let value = choices
            .iter()
            .find(|(word, ..)| *word == given)
            .map(|(.., value)| *value);
        value.ok_or("not one of the words")
    })
}
