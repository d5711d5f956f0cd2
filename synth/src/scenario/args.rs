//! The arguments and properties of a node, read by type, with an error for each that is missing, of
//! another type, or unknown.

use core::fmt::Display;
use core::ops::RangeInclusive;

use etl_format::{Guid, ProcessId, ThreadId, parse_number};
use etl_schema::tables::{Registry, windows};
use kdl::{KdlEntry, KdlNode, KdlValue};
use miette::SourceSpan;

use super::reader::Reader;
use crate::distribution::{Distribution, RandomRange};
use crate::model::{FieldValue, ScriptLocation};
use crate::time::{Nanos, parse_duration};

/// A node whose arguments and properties are read one after the other.
pub(super) struct Args<'r, 's> {
    pub reader: &'r mut Reader<'s>,
    pub node: &'r KdlNode,
    taken: Vec<bool>,
    names: Vec<&'static str>,
}

/// A value that an argument or a property can have.
pub(super) trait FromEntry: Sized {
    /// Reads the value or reports an error. `what` names the argument or property.
    fn from_entry(reader: &mut Reader<'_>, entry: &KdlEntry, what: &str) -> Option<Self>;
}

impl FromEntry for ProcessId {
    fn from_entry(reader: &mut Reader<'_>, entry: &KdlEntry, what: &str) -> Option<Self> {
        u32::from_entry(reader, entry, what).map(ProcessId::new)
    }
}

impl FromEntry for ThreadId {
    fn from_entry(reader: &mut Reader<'_>, entry: &KdlEntry, what: &str) -> Option<Self> {
        u32::from_entry(reader, entry, what).map(ThreadId::new)
    }
}

impl FromEntry for String {
    fn from_entry(reader: &mut Reader<'_>, entry: &KdlEntry, _: &str) -> Option<Self> {
        Some(as_text(reader, entry))
    }
}

impl FromEntry for u64 {
    fn from_entry(reader: &mut Reader<'_>, entry: &KdlEntry, what: &str) -> Option<Self> {
        let value = match entry.value() {
            KdlValue::Integer(n) => u64::try_from(*n).ok(),
            KdlValue::String(text) => parse_number(&reader.filled(text, entry.span())),
            _ => None,
        };
        if value.is_none() {
            let help = Some("a whole number from 0 on, decimal or 0x");
            reader.error(entry.span(), format!("{what}: not a number"), "here", help);
        }
        value
    }
}

impl FromEntry for i64 {
    fn from_entry(reader: &mut Reader<'_>, entry: &KdlEntry, what: &str) -> Option<Self> {
        match entry.value() {
            KdlValue::Integer(n) if i64::try_from(*n).is_ok() => i64::try_from(*n).ok(),
            _ => {
                let value = u64::from_entry(reader, entry, what)?;
                at_most(reader, entry, what, value, i64::MAX)
            }
        }
    }
}

/// The number as one of a smaller type, or an error that names the largest one.
fn at_most<T: TryFrom<u64> + Display>(
    reader: &mut Reader<'_>,
    entry: &KdlEntry,
    what: &str,
    value: u64,
    max: T,
) -> Option<T> {
    let small = T::try_from(value).ok();
    if small.is_none() {
        let help = format!("at most {max}");
        let message = format!("{what} is too large");
        reader.error(entry.span(), message, value.to_string(), Some(&help));
    }
    small
}

macro_rules! small_numbers {
    ($($type:ty),*) => { $(impl FromEntry for $type {
        fn from_entry(reader: &mut Reader<'_>, entry: &KdlEntry, what: &str) -> Option<Self> {
            let value = u64::from_entry(reader, entry, what)?;
            at_most(reader, entry, what, value, <$type>::MAX)
        }
    })* };
}
small_numbers!(u8, u16, u32, usize);

impl FromEntry for bool {
    fn from_entry(reader: &mut Reader<'_>, entry: &KdlEntry, what: &str) -> Option<Self> {
        // The value of a parameter is text.
        let value = match entry.value() {
            KdlValue::String(_) => as_text(reader, entry).parse().ok(),
            other => other.as_bool(),
        };
        if value.is_none() {
            let help = Some("#true or #false");
            reader.error(
                entry.span(),
                format!("{what} is yes or no"),
                "neither",
                help,
            );
        }
        value
    }
}

/// A number, or text.
impl FromEntry for FieldValue {
    fn from_entry(reader: &mut Reader<'_>, entry: &KdlEntry, what: &str) -> Option<Self> {
        match entry.value() {
            KdlValue::Integer(_) => u64::from_entry(reader, entry, what).map(FieldValue::Number),
            _ => Some(FieldValue::Text(as_text(reader, entry))),
        }
    }
}

/// A provider: its GUID, its name, or a word of its name.
impl FromEntry for Guid {
    fn from_entry(reader: &mut Reader<'_>, entry: &KdlEntry, _: &str) -> Option<Self> {
        let text = as_text(reader, entry);
        let guid = reader
            .declared(&text)
            .or_else(|| text.parse().ok())
            .or_else(|| Registry::builtin().find(&text).map(|p| p.guid))
            .or_else(|| windows::find(&text));
        if guid.is_none() {
            let help = "a GUID, \"runtime\", \"rundown\", a provider that the script declares, or one \
                        of Windows";
            let message = format!("no provider is called \"{text}\"");
            reader.error(entry.span(), message, "unknown", Some(help));
        }
        guid
    }
}

/// A duration, or a time since the start.
pub(super) struct Time(pub Nanos);

impl FromEntry for Time {
    fn from_entry(reader: &mut Reader<'_>, entry: &KdlEntry, _: &str) -> Option<Self> {
        let time = parse_duration(&as_text(reader, entry));
        if time.is_none() {
            let help = "a number with ns, us, ms, s, min or h: \"20ms\"; seconds without a unit";
            reader.error(entry.span(), "not a time", "here", Some(help));
        }
        time.map(Time)
    }
}

impl<'r, 's> Args<'r, 's> {
    pub fn new(reader: &'r mut Reader<'s>, node: &'r KdlNode) -> Self {
        Args {
            reader,
            node,
            taken: vec![false; node.entries().len()],
            names: Vec::new(),
        }
    }

    pub fn span(&self) -> SourceSpan {
        self.node.name().span()
    }

    pub fn name(&self) -> &'r str {
        self.node.name().value()
    }

    pub fn location(&self) -> ScriptLocation {
        self.reader.location(self.span())
    }

    /// Reports an error at the name of the node.
    pub fn error(
        &mut self,
        message: impl Into<String>,
        label: impl Into<String>,
        help: Option<&str>,
    ) {
        self.reader.error(self.span(), message, label, help);
    }

    /// Reports that `place` cannot contain this node.
    pub fn unknown(&mut self, place: &str, known: &str) {
        let message = format!("{place} has no {}", self.name());
        self.error(
            message,
            "unknown",
            Some(&format!("what it can have: {known}")),
        );
    }

    fn take(&mut self, at: usize) -> Option<&'r KdlEntry> {
        if let Some(taken) = self.taken.get_mut(at) {
            *taken = true;
        }
        self.node.entries().get(at)
    }

    fn entry(&mut self, name: &'static str) -> Option<&'r KdlEntry> {
        self.names.push(name);
        // If a property is repeated, the last one is valid, as in KDL.
        let mut value = None;
        for (at, entry) in self.node.entries().iter().enumerate() {
            if entry.name().is_some_and(|n| n.value() == name) {
                value = self.take(at);
            }
        }
        value
    }

    fn maybe_entry(&mut self) -> Option<&'r KdlEntry> {
        let mut entries = self.node.entries().iter().zip(&self.taken);
        let at = entries.position(|(entry, taken)| entry.name().is_none() && !taken)?;
        self.take(at)
    }

    fn next_entry(&mut self, what: &str) -> Option<&'r KdlEntry> {
        let entry = self.maybe_entry();
        if entry.is_none() {
            let message = format!("{} needs {what}", self.name());
            self.error(message, format!("{what} is missing"), None);
        }
        entry
    }

    /// The next argument, if there is one.
    pub fn maybe<T: FromEntry>(&mut self, what: &str) -> Option<T> {
        self.maybe_entry()
            .and_then(|entry| T::from_entry(self.reader, entry, what))
    }

    /// The next argument.
    pub fn next<T: FromEntry>(&mut self, what: &str) -> Option<T> {
        self.next_entry(what)
            .and_then(|entry| T::from_entry(self.reader, entry, what))
    }

    /// A property.
    pub fn get<T: FromEntry>(&mut self, name: &'static str) -> Option<T> {
        let entry = self.entry(name)?;
        T::from_entry(self.reader, entry, name)
    }

    /// Sets a value if the property exists.
    pub fn set<T: FromEntry>(&mut self, name: &'static str, value: &mut T) {
        if let Some(given) = self.get(name) {
            *value = given;
        }
    }

    /// A property that is yes or no; no without it.
    pub fn flag(&mut self, name: &'static str) -> bool {
        self.get(name).unwrap_or(false)
    }

    /// A property that is a time.
    pub fn time(&mut self, name: &'static str) -> Option<Nanos> {
        self.get(name).map(|Time(time)| time)
    }

    /// A property that is a number in a range. `message` states the range.
    pub fn within<T: FromEntry + PartialOrd + ToString>(
        &mut self,
        name: &'static str,
        range: RangeInclusive<T>,
        message: &str,
    ) -> Option<T> {
        let entry = self.entry(name)?;
        let value = T::from_entry(self.reader, entry, name)?;
        if range.contains(&value) {
            return Some(value);
        }
        self.reader
            .error(entry.span(), message, value.to_string(), None);
        None
    }

    /// A property that `parse` reads from its text. `message` states what it is not.
    pub fn parsed<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
        message: &str,
        help: Option<&str>,
    ) -> Option<T> {
        let entry = self.entry(name)?;
        let text = as_text(self.reader, entry);
        let value = parse(&text);
        if value.is_none() {
            self.reader.error(entry.span(), message, text, help);
        }
        value
    }

    /// A property that is a list of numbers.
    pub fn list<T: std::str::FromStr>(&mut self, name: &'static str, max: usize) -> Option<Vec<T>> {
        let bits = 8 * size_of::<T>();
        let message = format!("{name}: up to {max} numbers of {bits} bits");
        self.parsed(name, |text| numbers(text, max), &message, None)
    }

    /// A property that is text of a limited length.
    pub fn text(&mut self, name: &'static str, max: usize) -> Option<String> {
        let message = format!("{name} has at most {max} characters");
        self.parsed(name, |text| short(text, max), &message, None)
    }

    /// The next argument, which is text of a limited length.
    pub fn next_text(&mut self, what: &str, max: usize) -> Option<String> {
        let entry = self.next_entry(what)?;
        let text = as_text(self.reader, entry);
        let fits = short(&text, max);
        if fits.is_none() {
            let message = format!("{what} has at most {max} characters");
            self.reader.error(entry.span(), message, text, None);
        }
        Some(fits.unwrap_or_default())
    }

    /// A property that is one of some words.
    pub fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let entry = self.entry(name)?;
        let text = as_text(self.reader, entry);
        choose(&text, entry.span(), self.reader, name, choices)
    }

    /// The next argument, which is one of some words.
    pub fn next_choice<T: Copy>(&mut self, what: &str, choices: &[(&str, T)]) -> Option<T> {
        let entry = self.next_entry(what)?;
        let text = as_text(self.reader, entry);
        choose(&text, entry.span(), self.reader, what, choices)
    }

    /// A property that is a version: up to `N` numbers between dots.
    pub fn version<const N: usize>(&mut self, name: &'static str) -> Option<[u32; N]> {
        let help = format!("up to {N} numbers with dots between them");
        self.parsed(
            name,
            version,
            &format!("{name}: not a version"),
            Some(&help),
        )
    }

    /// A property that is a range and a distribution: `uniform 32..2048`.
    pub fn range(&mut self, name: &'static str) -> Option<RandomRange> {
        let entry = self.entry(name)?;
        let text = as_text(self.reader, entry);
        let (word, range) = text.trim().split_once(' ').unwrap_or(("", &text));
        let distribution = match word {
            "" => Distribution::default(),
            word => {
                let words = &Distribution::WORDS;
                choose(word, entry.span(), self.reader, "the spread", words)?
            }
        };
        let (low, high) = range.split_once("..").unwrap_or((range, range));
        if let (Ok(min), Ok(max)) = (low.trim().parse(), high.trim().parse())
            && min <= max
        {
            return Some(RandomRange::new(min, max, distribution));
        }
        let help = "a number, or minimum and maximum: \"32..2048\", \"uniform 32..2048\"";
        self.reader.error(
            entry.span(),
            format!("{name}: not a range"),
            "here",
            Some(help),
        );
        None
    }

    /// A property that is a mask: a number, or names of a provider's keywords.
    pub fn keywords(&mut self, name: &'static str, provider: Guid) -> Option<u64> {
        let entry = self.entry(name)?;
        if let KdlValue::Integer(_) = entry.value() {
            return u64::from_entry(self.reader, entry, name);
        }
        let text = as_text(self.reader, entry);
        if let Some(number) = parse_number(&text) {
            return Some(number);
        }
        let of_clr = Registry::builtin().provider(provider);
        let of_windows = match of_clr {
            Some(_) => None,
            None => windows::provider(provider).and_then(Result::ok),
        };
        let table = of_clr.or(of_windows.as_ref());
        let mut mask = 0;
        for word in text.split(['|', ' ', ',']).filter(|w| !w.is_empty()) {
            // Names as they are, without the usual end of the CLR's, or without a prefix.
            let forms = ["", "Keyword", "RundownKeyword"].map(|end| format!("{word}{end}"));
            let mut forms = forms.into_iter().chain([format!("ut:{word}")]);
            let bit = forms.find_map(|form| table?.keyword(&form));
            if bit.is_none() {
                let names = table.map(|t| t.keywords.iter().map(|k| k.name.as_str()));
                let names = names.map(|names| names.collect::<Vec<_>>().join(", "));
                let message = format!("the provider has no keyword \"{word}\"");
                self.reader
                    .error(entry.span(), message, "unknown", names.as_deref());
            }
            mask |= bit.unwrap_or(0);
        }
        Some(mask)
    }

    /// Reports the arguments and properties that were not read.
    pub(super) fn finish_entries(&mut self) {
        let name = self.name();
        for (entry, _) in self
            .node
            .entries()
            .iter()
            .zip(&self.taken)
            .filter(|(_, taken)| !**taken)
        {
            match entry.name() {
                Some(property) => {
                    let help = match &*self.names {
                        [] => format!("{name} has no properties"),
                        names => format!("{name} has {}", names.join(", ")),
                    };
                    let message = format!("{name} has no property {}", property.value());
                    self.reader
                        .error(entry.span(), message, "unknown", Some(&help));
                }
                None => {
                    let message = format!("too many arguments for {name}");
                    self.reader
                        .error(entry.span(), message, "one too many", None);
                }
            }
        }
    }

    /// Reports what was not read, and nodes in braces, which this node cannot have.
    pub fn finish(mut self) {
        self.finish_entries();
        if let Some(first) = self.node.children().and_then(|c| c.nodes().first()) {
            let message = format!("{} contains no nodes", self.name());
            self.reader
                .error(first.name().span(), message, "not expected here", None);
        }
    }
}

/// The value of an entry as text, with its variables filled in.
pub(super) fn as_text(reader: &mut Reader<'_>, entry: &KdlEntry) -> String {
    match entry.value() {
        KdlValue::String(text) => reader.filled(text, entry.span()),
        KdlValue::Integer(n) => n.to_string(),
        KdlValue::Float(n) => n.to_string(),
        KdlValue::Bool(b) => b.to_string(),
        KdlValue::Null => String::new(),
    }
}

/// Up to `max` numbers with spaces or commas between them.
fn numbers<T: std::str::FromStr>(text: &str, max: usize) -> Option<Vec<T>> {
    let mut numbers = Vec::new();
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        numbers.push(word.parse().ok()?);
    }
    (numbers.len() <= max).then_some(numbers)
}

/// Up to `N` numbers with dots between them; the others are 0.
fn version<const N: usize>(text: &str) -> Option<[u32; N]> {
    let mut version = [0; N];
    for (nth, part) in text.split('.').enumerate() {
        *version.get_mut(nth)? = part.parse().ok()?;
    }
    Some(version)
}

fn short(text: &str, max: usize) -> Option<String> {
    (text.encode_utf16().count() <= max).then(|| text.to_owned())
}

fn choose<T: Copy>(
    text: &str,
    at: SourceSpan,
    reader: &mut Reader<'_>,
    what: &str,
    choices: &[(&str, T)],
) -> Option<T> {
    let choice = choices
        .iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(text))
        .map(|(_, t)| *t);
    if choice.is_none() {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let help = format!("one of {}", words.join(", "));
        reader.error(
            at,
            format!("{what} cannot be \"{text}\""),
            "unknown",
            Some(&help),
        );
    }
    choice
}
