//! Access to the words of a command line: switches, values, numbers, lists.

use std::ops::Range;

use etl_format::{Guid, parse_number};
use strsim::levenshtein;

use super::error::{Found, LineError};
use super::model::{Keywords, OtherOption, ProviderRef};
use super::tokens::{DASHES, Word};

/// The text of an error about an invalid GUID: what was expected.
pub(super) const GUID: &str = "a GUID of 8-4-4-4-12 hexadecimal digits";

/// The number of values of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    None,
    One,
    /// All words up to the next switch.
    Many,
}

/// The values of an option in a list of options: `NAME` has none, `NAME=1` one, `NAME=*` all up to
/// the next switch.
pub(super) fn values_of(options: &str, name: &str) -> Option<Values> {
    let mut options = options.split_ascii_whitespace();
    options.find_map(
        |option| match option.split_once('=').unwrap_or((option, "")) {
            (known, _) if known != name => None,
            (_, "") => Some(Values::None),
            (_, "1") => Some(Values::One),
            _ => Some(Values::Many),
        },
    )
}

/// A word of a command line that begins with a dash.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    /// Its name in lower case, without dash.
    pub name: String,
    /// Whether it has a second dash (`--rt`).
    pub negated: bool,
    /// Its position in the line.
    pub span: Range<usize>,
    /// The word as it is written.
    text: String,
}

/// The words of a command line that are not parsed yet.
pub(super) struct Args {
    words: std::iter::Peekable<std::vec::IntoIter<Word>>,
    end: usize,
}

impl Args {
    pub fn new(line: &str, words: Vec<Word>) -> Self {
        Args {
            words: words.into_iter().peekable(),
            end: line.len(),
        }
    }

    /// The next word as a switch, if it is one.
    pub fn switch(&mut self) -> Option<Switch> {
        let word = self.words.next_if(is_switch)?;
        let text = word.text.strip_prefix(DASHES).unwrap_or_default();
        let (negated, name) = match text.strip_prefix(DASHES) {
            Some(name) => (true, name),
            None => (false, text),
        };
        let name = name.to_ascii_lowercase();
        Some(Switch {
            name,
            negated,
            span: word.span.clone(),
            text: word.text,
        })
    }

    /// The next word, unless it is a switch.
    pub fn optional(&mut self) -> Option<Word> {
        self.words.next_if(|w| !is_switch(w))
    }

    /// The next word; an error if there is none or it is a switch.
    pub fn value(&mut self, expected: &str) -> Result<Word, LineError> {
        match self.optional() {
            Some(word) => Ok(word),
            None => Err(self.missing(expected)),
        }
    }

    /// The text of [`Args::value`].
    pub fn text(&mut self, expected: &str) -> Result<String, LineError> {
        self.value(expected).map(|word| word.text)
    }

    /// The next word as a number.
    pub fn number<T: TryFrom<u64>>(&mut self, expected: &str) -> Result<T, LineError> {
        let word = self.value(expected)?;
        parse_number(&word.text).ok_or_else(|| wrong(&word, expected))
    }

    /// A count of at most `max`, and that many numbers.
    pub fn counted<T: TryFrom<u64>>(
        &mut self,
        max: usize,
        expected: &str,
    ) -> Result<Vec<T>, LineError> {
        let word = self.value("how many follow")?;
        let count = parse_number::<usize>(&word.text).filter(|&count| count <= max);
        let count = count.ok_or_else(|| wrong(&word, &format!("a count of {max} at most")))?;
        (0..count).map(|_| self.number(expected)).collect()
    }

    /// The values of an option that is kept as it is written.
    pub fn other(&mut self, name: String, values: Values) -> Result<OtherOption, LineError> {
        let values = match values {
            Values::None => Vec::new(),
            Values::One => vec![self.text(&format!("the value of -{name}"))?],
            Values::Many => std::iter::from_fn(|| self.optional())
                .map(|w| w.text)
                .collect(),
        };
        Ok(OtherOption { name, values })
    }

    /// A list of names with a separator between them.
    pub fn names(&mut self, separator: char, expected: &str) -> Result<Vec<String>, LineError> {
        let word = self.value(expected)?;
        let names: Vec<String> = word
            .text
            .split(separator)
            .map(|n| n.trim().to_owned())
            .collect();
        if names.iter().any(String::is_empty) {
            return Err(wrong(
                &word,
                &format!("{expected} with {separator} between"),
            ));
        }
        Ok(names)
    }

    /// The value that a table has for the next word.
    pub fn choice<T: Copy>(&mut self, expected: &str, table: &[(&str, T)]) -> Result<T, LineError> {
        let word = self.value(expected)?;
        for (name, value) in table {
            if name.eq_ignore_ascii_case(&word.text) {
                return Ok(*value);
            }
        }
        Err(wrong(&word, expected))
    }

    /// All words that are left, switches included.
    pub fn rest(&mut self) -> Vec<String> {
        self.words.by_ref().map(|word| word.text).collect()
    }

    pub fn is_empty(&mut self) -> bool {
        self.words.peek().is_none()
    }

    /// An error at the next word: something is missing before it.
    pub fn missing(&mut self, expected: &str) -> LineError {
        match self.words.peek() {
            Some(word) => wrong(word, expected),
            None => LineError::new(self.end..self.end, expected, Found::End),
        }
    }
}

/// Whether a word is a switch. A word in quotation marks is not, so that files and sessions can
/// have any name.
pub(super) fn is_switch(word: &Word) -> bool {
    let mut chars = word.text.chars();
    !word.quoted
        && chars.next().is_some_and(|c| DASHES.contains(&c))
        && chars.next().is_some_and(|c| !c.is_ascii_digit())
}

pub(super) fn wrong(word: &Word, expected: &str) -> LineError {
    LineError::new(word.span.clone(), expected, Found::Text(word.text.clone()))
}

/// An error about an unknown switch, with a similar one of the `known` switches as a hint.
pub(super) fn unknown(switch: &Switch, expected: &str, known: &str) -> LineError {
    let found = Found::Text(switch.text.clone());
    let error = LineError::new(switch.span.clone(), expected, found);
    let distances = known
        .split_ascii_whitespace()
        .map(|k| (levenshtein(k, &switch.name), k));
    match distances.min() {
        Some((distance, name)) if distance <= 2 && distance < name.len() => {
            error.hint(format!("did you mean -{name}?"))
        }
        _ => error,
    }
}

/// A mask as a number.
pub(super) fn mask(text: &str) -> Option<Keywords> {
    parse_number(text).map(Keywords::Mask)
}

/// A provider by GUID or name.
pub(super) fn provider(text: &str) -> ProviderRef {
    match text.parse::<Guid>() {
        Ok(guid) => ProviderRef::Guid(guid),
        Err(_) => ProviderRef::Name(text.to_owned()),
    }
}

/// The word of a value in a table for [`Args::choice`].
pub(super) fn word<T: PartialEq>(table: &[(&'static str, T)], value: T) -> Option<&'static str> {
    table
        .iter()
        .find(|(_, known)| *known == value)
        .map(|(word, _)| *word)
}
