//! The arguments and properties of a node by what is expected of them, with a mistake for whatever
//! is missing, of another kind, or taken by nobody.

use etl_format::Guid;
use etl_schema::tables::Registry;
use kdl::{KdlEntry, KdlNode, KdlValue};
use miette::SourceSpan;

use super::reader::Reader;
use crate::distribution::Distribution;
use crate::model::FieldValue;
use crate::time::{Nanos, parse_duration};

/// The arguments and properties of a node, as they are taken.
pub(super) struct Args<'k> {
    pub node: &'k KdlNode,
    taken: Vec<bool>,
    names: Vec<&'static str>,
    has_children: bool,
}

impl<'k> Args<'k> {
    pub fn new(node: &'k KdlNode) -> Self {
        Args {
            node,
            taken: vec![false; node.entries().len()],
            names: Vec::new(),
            has_children: true,
        }
    }

    pub fn span(&self) -> SourceSpan {
        self.node.name().span()
    }

    pub fn name(&self) -> &'k str {
        self.node.name().value()
    }

    fn next(&mut self) -> Option<&'k KdlEntry> {
        let at = self
            .node
            .entries()
            .iter()
            .zip(&self.taken)
            .position(|(entry, taken)| entry.name().is_none() && !taken)?;
        self.take(at)
    }

    fn property(&mut self, name: &'static str) -> Option<&'k KdlEntry> {
        self.names.push(name);
        let named = |e: &KdlEntry| e.name().is_some_and(|n| n.value() == name);
        // Of two the last one counts, as KDL has it.
        let mut found = None;
        for (at, entry) in self.node.entries().iter().enumerate() {
            if named(entry) {
                found = self.take(at);
            }
        }
        found
    }

    fn take(&mut self, at: usize) -> Option<&'k KdlEntry> {
        if let Some(taken) = self.taken.get_mut(at) {
            *taken = true;
        }
        self.node.entries().get(at)
    }

    fn missing(&self, reader: &mut Reader<'_>, what: &str) {
        let name = self.name();
        reader.error(
            self.span(),
            format!("{name} needs {what}"),
            format!("{what} is missing"),
            None,
        );
    }

    /// The next argument as text.
    pub fn text(&mut self, reader: &mut Reader<'_>, what: &str) -> Option<String> {
        match self.next() {
            Some(entry) => Some(as_text(entry, reader)),
            None => {
                self.missing(reader, what);
                None
            }
        }
    }

    /// The next argument as a number.
    pub fn number(&mut self, reader: &mut Reader<'_>, what: &str) -> Option<u64> {
        match self.next() {
            Some(entry) => as_number(entry, reader, what),
            None => {
                self.missing(reader, what);
                None
            }
        }
    }

    /// The next argument as a number, if there is one.
    pub fn maybe_number(&mut self, reader: &mut Reader<'_>, what: &str) -> Option<u64> {
        self.next().and_then(|entry| as_number(entry, reader, what))
    }

    /// The next argument as a time.
    pub fn time(&mut self, reader: &mut Reader<'_>, what: &str) -> Option<Nanos> {
        match self.next() {
            Some(entry) => as_time(entry, reader),
            None => {
                self.missing(reader, what);
                None
            }
        }
    }

    pub fn opt_text(&mut self, reader: &mut Reader<'_>, name: &'static str) -> Option<String> {
        self.property(name).map(|entry| as_text(entry, reader))
    }

    pub fn opt_number(&mut self, reader: &mut Reader<'_>, name: &'static str) -> Option<u64> {
        self.property(name).and_then(|entry| as_number(entry, reader, name))
    }

    /// A property that is a number no larger than its field.
    pub fn opt_small<T: TryFrom<u64>>(
        &mut self,
        reader: &mut Reader<'_>,
        name: &'static str,
    ) -> Option<T> {
        let entry = self.property(name)?;
        let value = as_number(entry, reader, name)?;
        let small = T::try_from(value).ok();
        if small.is_none() {
            // All these fields are unsigned, but for one as wide as any number here.
            let bits = 8 * size_of::<T>() as u32;
            let most = u64::MAX.checked_shr(64_u32.saturating_sub(bits)).unwrap_or(u64::MAX);
            let help = Some(format!("at most {most}"));
            reader.error(entry.span(), format!("{name} is too large"), value.to_string(), help);
        }
        small
    }

    /// The next argument as a number that may be negative.
    pub fn signed(&mut self, reader: &mut Reader<'_>, what: &str) -> Option<i64> {
        match self.next() {
            Some(entry) => as_signed(entry, reader, what),
            None => {
                self.missing(reader, what);
                None
            }
        }
    }

    /// A property that is a number and may be negative.
    pub fn opt_signed(&mut self, reader: &mut Reader<'_>, name: &'static str) -> Option<i64> {
        self.property(name).and_then(|entry| as_signed(entry, reader, name))
    }

    /// The next argument as a value for a field: a number, or a text.
    pub fn given(&mut self, reader: &mut Reader<'_>) -> Option<FieldValue> {
        let Some(entry) = self.next() else {
            self.missing(reader, "a value");
            return None;
        };
        if let KdlValue::Integer(_) = entry.value() {
            return as_number(entry, reader, "a value").map(FieldValue::Number);
        }
        Some(FieldValue::Text(as_text(entry, reader)))
    }

    /// A property that is a provider, as [`Args::provider`].
    pub fn opt_provider(&mut self, reader: &mut Reader<'_>, name: &'static str) -> Option<Guid> {
        self.property(name).and_then(|entry| as_provider(entry, reader))
    }

    pub fn opt_time(&mut self, reader: &mut Reader<'_>, name: &'static str) -> Option<Nanos> {
        self.property(name).and_then(|entry| as_time(entry, reader))
    }

    pub fn opt_bool(&mut self, reader: &mut Reader<'_>, name: &'static str) -> Option<bool> {
        let entry = self.property(name)?;
        // A text may come of a parameter.
        let value = match entry.value() {
            KdlValue::String(_) => as_text(entry, reader).parse().ok(),
            other => other.as_bool(),
        };
        if value.is_none() {
            let help = Some("#true or #false".to_owned());
            reader.error(entry.span(), format!("{name} is yes or no"), "neither", help);
        }
        value
    }

    /// A property that is one of some words.
    pub fn opt_choice<T: Copy>(
        &mut self,
        reader: &mut Reader<'_>,
        name: &'static str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let entry = self.property(name)?;
        let text = as_text(entry, reader);
        choose(&text, entry.span(), reader, name, choices)
    }

    /// The next argument as one of some words.
    pub fn choice<T: Copy>(
        &mut self,
        reader: &mut Reader<'_>,
        what: &str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let Some(entry) = self.next() else {
            self.missing(reader, what);
            return None;
        };
        let text = as_text(entry, reader);
        choose(&text, entry.span(), reader, what, choices)
    }

    /// A property that is up to `N` numbers between dots: a version.
    pub fn opt_version<const N: usize>(
        &mut self,
        reader: &mut Reader<'_>,
        name: &'static str,
    ) -> Option<[u32; N]> {
        let entry = self.property(name)?;
        let text = as_text(entry, reader);
        let mut version = [0; N];
        let parts: Vec<Option<u32>> = text.split('.').map(|p| p.parse().ok()).collect();
        if parts.len() > N || parts.iter().any(Option::is_none) {
            let help = Some(format!("up to {N} numbers with dots between them"));
            reader.error(entry.span(), format!("{name} is no version"), "here", help);
            return None;
        }
        for (slot, part) in version.iter_mut().zip(parts.into_iter().flatten()) {
            *slot = part;
        }
        Some(version)
    }

    /// A property that is a range, and how numbers are spread in it: `uniform 32..2048`.
    pub fn opt_range(
        &mut self,
        reader: &mut Reader<'_>,
        name: &'static str,
    ) -> Option<(Distribution, (u32, u32))> {
        let entry = self.property(name)?;
        let text = as_text(entry, reader);
        let (spread, range) = match text.trim().split_once(' ') {
            Some((word, range)) => {
                let spread =
                    choose(word, entry.span(), reader, "the spread", &Distribution::WORDS)?;
                (spread, range.trim().to_owned())
            }
            None => (Distribution::default(), text),
        };
        let parsed = match range.split_once("..") {
            Some((low, high)) => low.trim().parse().ok().zip(high.trim().parse().ok()),
            None => range.parse().ok().map(|n: u32| (n, n)),
        };
        let fine = parsed.filter(|(low, high)| low <= high);
        if fine.is_none() {
            let help = "a number, or the least and the largest: \"32..2048\", \"uniform 32..2048\"";
            reader.error(entry.span(), format!("{name} is no range"), "here", Some(help.into()));
        }
        fine.map(|range| (spread, range))
    }

    /// A provider, by GUID, by name, or by a word of its name.
    pub fn provider(&mut self, reader: &mut Reader<'_>) -> Option<Guid> {
        let Some(entry) = self.next() else {
            self.missing(reader, "a provider");
            return None;
        };
        as_provider(entry, reader)
    }

    /// A property that is a mask: a number, or names of a provider's keywords.
    pub fn opt_keywords(
        &mut self,
        reader: &mut Reader<'_>,
        name: &'static str,
        provider: Guid,
    ) -> Option<u64> {
        let entry = self.property(name)?;
        if let KdlValue::Integer(_) = entry.value() {
            return as_number(entry, reader, name);
        }
        let text = as_text(entry, reader);
        if let Some(number) = parse_number(&text) {
            return Some(number);
        }
        let table = Registry::builtin().provider(provider);
        let mut mask = 0;
        for word in text.split(['|', ' ', ',']).filter(|w| !w.is_empty()) {
            let forms = ["", "Keyword", "RundownKeyword"];
            let bit = table.and_then(|t| {
                forms.iter().find_map(|ending| t.keyword(&format!("{word}{ending}")))
            });
            match bit {
                Some(bit) => mask |= bit,
                None => {
                    let names = table.map(|t| {
                        t.keywords.iter().map(|(_, n)| n.as_str()).collect::<Vec<_>>().join(", ")
                    });
                    let message = format!("the provider has no keyword \"{word}\"");
                    reader.error(entry.span(), message, "unknown", names);
                }
            }
        }
        Some(mask)
    }

    /// The node has nothing in braces.
    pub fn leaf(&mut self) {
        self.has_children = false;
    }

    /// What nobody took is a mistake.
    pub fn finish(self, reader: &mut Reader<'_>) {
        for (entry, taken) in self.node.entries().iter().zip(&self.taken) {
            if *taken {
                continue;
            }
            match entry.name() {
                Some(name) => {
                    let help = match &*self.names {
                        [] => format!("{} has no properties", self.name()),
                        names => format!("{} has {}", self.name(), names.join(", ")),
                    };
                    let message = format!("{} has no property {}", self.name(), name.value());
                    reader.error(entry.span(), message, "unknown", Some(help));
                }
                None => {
                    let message = format!("too many arguments for {}", self.name());
                    reader.error(entry.span(), message, "one too many", None);
                }
            }
        }
        if !self.has_children
            && let Some(children) = self.node.children()
            && let Some(first) = children.nodes().first()
        {
            let message = format!("{} holds nothing", self.name());
            reader.error(first.name().span(), message, "not expected here", None);
        }
    }
}

/// A node that is not known here.
pub(super) fn unknown(reader: &mut Reader<'_>, node: &KdlNode, place: &str, known: &str) {
    let name = node.name().value();
    let message = format!("{place} has no {name}");
    reader.error(
        node.name().span(),
        message,
        "unknown",
        Some(format!("what it can have: {known}")),
    );
}

fn as_text(entry: &KdlEntry, reader: &mut Reader<'_>) -> String {
    match entry.value() {
        KdlValue::String(text) => reader.filled(text, entry.span()),
        KdlValue::Integer(n) => n.to_string(),
        KdlValue::Float(n) => n.to_string(),
        KdlValue::Bool(b) => b.to_string(),
        KdlValue::Null => String::new(),
    }
}

fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn as_number(entry: &KdlEntry, reader: &mut Reader<'_>, what: &str) -> Option<u64> {
    let value = match entry.value() {
        KdlValue::Integer(n) => u64::try_from(*n).ok(),
        KdlValue::String(text) => {
            let text = reader.filled(text, entry.span());
            parse_number(&text)
        }
        _ => None,
    };
    if value.is_none() {
        let help = Some("a whole number from 0 on, decimal or 0x".to_owned());
        reader.error(entry.span(), format!("{what}: not a number"), "here", help);
    }
    value
}

fn as_provider(entry: &KdlEntry, reader: &mut Reader<'_>) -> Option<Guid> {
    let text = as_text(entry, reader);
    let guid = reader
        .declared(&text)
        .or_else(|| text.parse().ok())
        .or_else(|| Registry::builtin().find(&text).map(|p| p.guid));
    if guid.is_none() {
        let help = "a GUID, \"runtime\", \"rundown\", or a provider that the script declares";
        let message = format!("no provider is called \"{text}\"");
        reader.error(entry.span(), message, "unknown", Some(help.to_owned()));
    }
    guid
}

fn as_signed(entry: &KdlEntry, reader: &mut Reader<'_>, what: &str) -> Option<i64> {
    if let KdlValue::Integer(n) = entry.value()
        && let Ok(n) = i64::try_from(*n)
    {
        return Some(n);
    }
    as_number(entry, reader, what).and_then(|n| i64::try_from(n).ok())
}

fn as_time(entry: &KdlEntry, reader: &mut Reader<'_>) -> Option<Nanos> {
    let text = as_text(entry, reader);
    let time = parse_duration(&text);
    if time.is_none() {
        let help = "a number with ns, us, ms, s, min or h: \"20ms\"; seconds without a unit";
        reader.error(entry.span(), "not a time", "here", Some(help.to_owned()));
    }
    time
}

fn choose<T: Copy>(
    text: &str,
    at: SourceSpan,
    reader: &mut Reader<'_>,
    what: &str,
    choices: &[(&str, T)],
) -> Option<T> {
    let found = choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, t)| *t);
    if found.is_none() {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let help = Some(format!("one of {}", words.join(", ")));
        reader.error(at, format!("{what} cannot be \"{text}\""), "unknown", help);
    }
    found
}
