//! Arguments with a list of possible words, each with its help and its value.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use etl_schema::tables::TableSet;

/// A possible word of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<T> {
    pub word: &'static str,
    /// Empty for a second word with the same value, which the help does not list.
    pub help: &'static str,
    pub value: T,
}

impl<T> Choice<T> {
    pub const fn new(word: &'static str, help: &'static str, value: T) -> Self {
        Choice { word, help, value }
    }
}

/// The words of `--event-tables`.
pub(crate) const EVENT_TABLES: &[Choice<TableSet>] = &[
    Choice::new("shipped", "As the runtimes write events", TableSet::Shipped),
    Choice::new(
        "documented",
        "As the reference pages describe events",
        TableSet::Documented,
    ),
];

/// An item of a list with commas, without blanks around it.
pub(crate) fn item(text: &str) -> Result<String, std::convert::Infallible> {
    Ok(text.trim().to_owned())
}

/// A parser of one of these words.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    choices: &'static [Choice<T>],
) -> impl TypedValueParser<Value = T> {
    let words = choices.iter().map(|choice| {
        let word = PossibleValue::new(choice.word);
        word.help(choice.help).hide(choice.help.is_empty())
    });
    PossibleValuesParser::new(words).try_map(|given| {
        match choices.iter().find(|choice| choice.word == given) {
            Some(choice) => Ok(choice.value),
            None => Err("not one of the words"),
        }
    })
}
