//! Taking KDL nodes apart: arguments and properties by what is expected, and a mistake for whatever
//! is missing, of another kind, or taken by nobody. `param`, `repeat` and `include` are understood
//! wherever nodes stand.

use std::sync::Arc;

use etl_format::Guid;
use etl_schema::tables::Registry;
use kdl::{KdlDocument, KdlEntry, KdlNode, KdlValue};
use miette::{NamedSource, SourceSpan};

use super::nesting::too_deep;
use super::{Mistake, Settings};
use crate::machine::{Distribution, Nanos};
use crate::model::Given;
use crate::text::parse_duration;

/// Nodes that one script may make by `repeat` and `include`.
const MOST_NODES: u64 = 1_000_000;
/// Rounds that all `repeat` of a script make together, whatever is in them.
const MOST_ROUNDS: u64 = 1_000_000;
/// Threads and methods of all processes of a script together: a number in it stands for as many of them.
const MOST_MADE: u64 = 1 << 22;
/// Mistakes that are told of one script.
const MOST_MISTAKES: usize = 1000;
/// Mistakes after which nothing is repeated any more.
const MOST_REPEATED: usize = 50;
/// Bytes of a script, and of all that it includes together.
const MOST_INCLUDED: usize = 512 << 10;
/// Parameters and loop variables that hold at one place.
const MOST_VARIABLES: usize = 1024;
/// How deep scripts include each other.
const DEEPEST_INCLUDE: usize = 8;
/// How deep braces and comments may stand in each other: reading them takes stack.
const DEEPEST_NESTING: usize = 64;
/// Longest text that filling in variables may make, in bytes.
const LONGEST_TEXT: usize = 1 << 16;
/// Bytes that all texts with variables filled in may take together.
const MOST_TEXT: usize = 64 << 20;

/// What to do with each node of a list.
pub(super) type Each<'e> = &'e mut dyn FnMut(&mut Reader<'_>, &KdlNode);

/// The state of reading.
pub(super) struct Reader<'s> {
    pub mistakes: Vec<Mistake>,
    source: NamedSource<Arc<str>>,
    settings: Settings<'s>,
    /// Parameters and loop variables that can be used here, the latest last.
    variables: Vec<(String, String)>,
    known_settings: Vec<String>,
    nodes: u64,
    rounds: u64,
    made: u64,
    /// Bytes of texts with variables filled in.
    text: usize,
    /// Bytes of scripts.
    included: usize,
    depth: usize,
    /// Providers that the script has declared so far.
    pub providers: Vec<(String, Guid)>,
    /// What command lines leave behind.
    pub controllers: super::controller::Controllers,
}

impl<'s> Reader<'s> {
    pub fn new(name: &str, text: &str, settings: Settings<'s>) -> Self {
        Reader {
            mistakes: Vec::new(),
            source: NamedSource::new(name, Arc::from(text)),
            settings,
            variables: Vec::new(),
            known_settings: Vec::new(),
            nodes: 0,
            rounds: 0,
            made: 0,
            text: 0,
            included: text.len(),
            depth: 0,
            providers: Vec::new(),
            controllers: super::controller::Controllers::default(),
        }
    }

    /// Whether so many threads or methods more are not too many; a mistake where they are.
    pub fn affords(&mut self, at: SourceSpan, many: u32) -> bool {
        self.made = self.made.saturating_add(many.into());
        let fits = self.made <= MOST_MADE;
        if !fits {
            let help = format!("at most {MOST_MADE} threads and methods in one script");
            self.wrong(
                at,
                "too much",
                "more threads or methods than a script may have",
                Some(help),
            );
        }
        fits
    }

    /// Notes a mistake.
    pub fn wrong(
        &mut self,
        at: SourceSpan,
        message: impl Into<String>,
        label: impl Into<String>,
        help: Option<String>,
    ) {
        if self.mistakes.len() >= MOST_MISTAKES {
            return;
        }
        self.mistakes.push(Mistake {
            message: message.into(),
            label: label.into(),
            help,
            at,
            source_code: self.source.clone(),
        });
    }

    /// Reads a whole script.
    pub fn whole(&mut self, text: &str, each: Each<'_>) {
        if text.len() > MOST_INCLUDED {
            let help = format!("at most {} KiB", MOST_INCLUDED >> 10);
            self.wrong((0, 0).into(), "the script is too long", "its beginning", Some(help));
            return;
        }
        if let Some(at) = too_deep(text, DEEPEST_NESTING) {
            let help = format!("at most {DEEPEST_NESTING} braces or comments in each other");
            self.wrong((at, 1).into(), "nested too deeply", "one too many", Some(help));
            return;
        }
        match KdlDocument::parse(text) {
            Ok(document) => self.list(document.nodes(), each),
            Err(error) => {
                for d in error.diagnostics {
                    let message = d.message.unwrap_or_else(|| "not KDL".to_owned());
                    let label = d.label.unwrap_or_else(|| "here".to_owned());
                    self.wrong(d.span, message, label, d.help);
                }
            }
        }
    }

    /// The nodes below a node.
    pub fn below(&mut self, node: &KdlNode, each: Each<'_>) {
        if let Some(children) = node.children() {
            self.list(children.nodes(), each);
        }
    }

    fn list(&mut self, nodes: &[KdlNode], each: Each<'_>) {
        let variables = self.variables.len();
        for node in nodes {
            self.nodes += 1;
            if self.nodes > MOST_NODES {
                if self.nodes == MOST_NODES + 1 {
                    let help = format!("at most {MOST_NODES} nodes come of one script");
                    self.wrong(node.span(), "too much", "repeated too often", Some(help));
                }
                return;
            }
            match node.name().value() {
                "param" => self.param(node),
                "repeat" => self.repeat(node, each),
                "include" => self.include(node, each),
                _ => each(self, node),
            }
        }
        // What is named inside braces goes with them.
        self.variables.truncate(variables);
    }

    /// `param "name" value`: a value that can be set from outside.
    fn param(&mut self, node: &KdlNode) {
        let mut args = Args::new(node);
        let name = args.text(self, "the parameter's name").unwrap_or_default();
        let value = args.text(self, "its value").unwrap_or_default();
        args.finish(self);
        let given = self.settings.set.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone());
        if self.variables.len() >= MOST_VARIABLES {
            let help = format!("at most {MOST_VARIABLES} hold at one place");
            self.wrong(node.span(), "too many parameters", "one too many", Some(help));
            return;
        }
        if !self.known_settings.contains(&name) {
            self.known_settings.push(name.clone());
        }
        self.variables.push((name, given.unwrap_or(value)));
    }

    /// `repeat 3 as="n" { ... }`: the nodes below, with `{n}` from 1 to 3.
    fn repeat(&mut self, node: &KdlNode, each: Each<'_>) {
        let mut args = Args::new(node);
        let count = args.number(self, "how often").unwrap_or(0);
        let name = args.opt_text(self, "as").unwrap_or_else(|| "n".to_owned());
        args.finish(self);
        for n in 1..=count {
            self.rounds += 1;
            if self.rounds > MOST_ROUNDS {
                if self.rounds == MOST_ROUNDS + 1 {
                    let help = format!("at most {MOST_ROUNDS} rounds in one script");
                    self.wrong(node.span(), "too much", "repeated too often", Some(help));
                }
                break;
            }
            if self.nodes > MOST_NODES || self.mistakes.len() > MOST_REPEATED {
                break;
            }
            self.variables.push((name.clone(), n.to_string()));
            self.below(node, each);
            self.variables.pop();
        }
    }

    /// `include "other.kdl"`: the nodes of another script.
    fn include(&mut self, node: &KdlNode, each: Each<'_>) {
        let mut args = Args::new(node);
        let name = args.text(self, "the script's name");
        args.finish(self);
        let Some(name) = name else { return };
        if self.depth >= DEEPEST_INCLUDE {
            let label = "scripts include each other too deeply";
            self.wrong(node.span(), "too deep", label, None);
            return;
        }
        match (self.settings.include)(&name) {
            Ok(text) => {
                self.included = self.included.saturating_add(text.len());
                if self.included > MOST_INCLUDED {
                    let help = format!("at most {} KiB in all", MOST_INCLUDED >> 10);
                    self.wrong(node.span(), "too much", "included too often", Some(help));
                    return;
                }
                let source = NamedSource::new(&name, Arc::from(text.as_str()));
                let outer = std::mem::replace(&mut self.source, source);
                self.depth += 1;
                let fine = too_deep(&text, DEEPEST_NESTING).is_none();
                match fine.then(|| KdlDocument::parse(&text)) {
                    Some(Ok(document)) => {
                        for inner in document.nodes() {
                            // Its parameters hold for what comes behind it as well.
                            match inner.name().value() {
                                "param" => self.param(inner),
                                _ => self.list(std::slice::from_ref(inner), each),
                            }
                        }
                    }
                    // Once more, for its mistakes.
                    _ => self.whole(&text, each),
                }
                self.depth -= 1;
                self.source = outer;
            }
            Err(why) => self.wrong(node.span(), why, "cannot be included", None),
        }
    }

    /// Settings from outside that no parameter takes.
    pub fn unknown_settings(&mut self) {
        for (name, _) in self.settings.set {
            if !self.known_settings.contains(name) {
                let known = match &*self.known_settings {
                    [] => "the script has no parameters".to_owned(),
                    names => format!("the script has {}", names.join(", ")),
                };
                let message = format!("there is no parameter \"{name}\" to set");
                self.wrong((0, 0).into(), message, "the script", Some(known));
            }
        }
    }

    /// A text with its `{variables}` filled in.
    fn filled(&mut self, text: &str, at: SourceSpan) -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            // A parameter may hold another one many times, and be held as often itself.
            if out.len() > LONGEST_TEXT || self.text > MOST_TEXT {
                let help = format!(
                    "at most {} KiB in one text, {} MiB in all",
                    LONGEST_TEXT >> 10,
                    MOST_TEXT >> 20
                );
                self.wrong(at, "too much", "too long with its variables", Some(help));
                return String::new();
            }
            out.push_str(before);
            let Some((name, after)) = behind.split_once('}') else {
                out.push('{');
                rest = behind;
                continue;
            };
            // A GUID in braces is a GUID.
            match self.variables.iter().rev().find(|(n, _)| n == name) {
                Some((_, value)) => out.push_str(value),
                None if name.parse::<Guid>().is_ok() => {
                    out.push('{');
                    out.push_str(name);
                    out.push('}');
                }
                None => {
                    let help = "a parameter, or the variable of a repeat around this".to_owned();
                    let message = format!("nothing is called {{{name}}} here");
                    self.wrong(at, message, "unknown", Some(help));
                }
            }
            rest = after;
        }
        out.push_str(rest);
        self.text = self.text.saturating_add(out.len());
        out
    }
}

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
        reader.wrong(
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
            reader.wrong(entry.span(), format!("{name} is too large"), value.to_string(), help);
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
    pub fn given(&mut self, reader: &mut Reader<'_>) -> Option<Given> {
        let Some(entry) = self.next() else {
            self.missing(reader, "a value");
            return None;
        };
        if let KdlValue::Integer(_) = entry.value() {
            return as_number(entry, reader, "a value").map(Given::Number);
        }
        Some(Given::Text(as_text(entry, reader)))
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
            reader.wrong(entry.span(), format!("{name} is yes or no"), "neither", help);
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
            reader.wrong(entry.span(), format!("{name} is no version"), "here", help);
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
            reader.wrong(entry.span(), format!("{name} is no range"), "here", Some(help.into()));
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
                    reader.wrong(entry.span(), message, "unknown", names);
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
                    reader.wrong(entry.span(), message, "unknown", Some(help));
                }
                None => {
                    let message = format!("too many arguments for {}", self.name());
                    reader.wrong(entry.span(), message, "one too many", None);
                }
            }
        }
        if !self.has_children
            && let Some(children) = self.node.children()
            && let Some(first) = children.nodes().first()
        {
            let message = format!("{} holds nothing", self.name());
            reader.wrong(first.name().span(), message, "not expected here", None);
        }
    }
}

/// A node that is not known here.
pub(super) fn unknown(reader: &mut Reader<'_>, node: &KdlNode, place: &str, known: &str) {
    let name = node.name().value();
    let message = format!("{place} has no {name}");
    reader.wrong(
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
        reader.wrong(entry.span(), format!("{what}: not a number"), "here", help);
    }
    value
}

fn as_provider(entry: &KdlEntry, reader: &mut Reader<'_>) -> Option<Guid> {
    let text = as_text(entry, reader);
    let declared = reader.providers.iter().find(|(name, _)| *name == text).map(|(_, g)| *g);
    let guid = declared
        .or_else(|| text.parse().ok())
        .or_else(|| Registry::builtin().find(&text).map(|p| p.guid));
    if guid.is_none() {
        let help = "a GUID, \"runtime\", \"rundown\", or a provider that the script declares";
        let message = format!("no provider is called \"{text}\"");
        reader.wrong(entry.span(), message, "unknown", Some(help.to_owned()));
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
        reader.wrong(entry.span(), "not a time", "here", Some(help.to_owned()));
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
        reader.wrong(at, format!("{what} cannot be \"{text}\""), "unknown", help);
    }
    found
}
