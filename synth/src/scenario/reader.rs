//! Going through the nodes of a script, with what they may cost, and keeping the mistakes. `param`,
//! `repeat` and `include` are understood wherever nodes stand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use etl_format::Guid;
use kdl::{KdlDocument, KdlNode};
use miette::{NamedSource, SourceSpan};

use super::args::Args;
use super::check::FaultedSession;
use super::nesting::too_deep;
use super::{Include, Script};
use crate::model::ScriptLocation;
use crate::script_error::ScriptError;

/// Nodes that one script may make by `repeat` and `include`.
const MAX_NODES: u64 = 1_000_000;
/// Rounds that all `repeat` of a script make together, whatever is in them.
const MAX_ROUNDS: u64 = 1_000_000;
/// Threads and methods of all processes of a script together: a number in it stands for as many of
/// them.
const MAX_MADE: u64 = 1 << 22;
/// ScriptErrors that are told of one script.
const MAX_ERRORS: usize = 1000;
/// ScriptErrors after which nothing is repeated any more.
const MAX_ERRORS_FOR_REPEAT: usize = 50;
/// Bytes of a script, and of all that it includes together.
const MAX_INCLUDED: usize = 512 << 10;
/// Parameters and loop variables that hold at one place.
const MAX_VARIABLES: usize = 1024;
/// How deep scripts include each other.
const MAX_INCLUDE_DEPTH: usize = 8;
/// How deep braces and comments may stand in each other: reading them takes stack.
const MAX_NESTING: usize = 64;
/// Longest text that filling in variables may make, in bytes.
const MAX_TEXT_LENGTH: usize = 1 << 16;
/// Bytes that all texts with variables filled in may take together.
const MAX_TEXT_TOTAL: usize = 64 << 20;

/// What to do with each node of a list.
pub(super) type Each<'e> = &'e mut dyn FnMut(&mut Reader<'_>, &KdlNode);

/// The state of reading.
pub(super) struct Reader<'s> {
    pub errors: Vec<ScriptError>,
    source: Arc<NamedSource<Arc<str>>>,
    parameters: &'s [(String, String)],
    include: Include<'s>,
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
    /// What they are called, in lower case, and their GUIDs: what a second one must not be.
    pub taken: BTreeSet<String>,
    /// Process ids that the script gives.
    pub pids: BTreeMap<u32, String>,
    /// Sessions that faults at the top are of.
    pub mentions: Vec<FaultedSession>,
    /// Processes that say that they are 64 bits wide, whatever the machine is.
    pub wide: Vec<ScriptLocation>,
    /// What command lines leave behind.
    pub controllers: super::controller::Controllers,
}

impl<'s> Reader<'s> {
    pub fn new(script: &'s Script<'s>) -> Self {
        let Script { name, text, .. } = script;
        Reader {
            errors: Vec::new(),
            source: Arc::new(NamedSource::new(name, Arc::from(*text))),
            parameters: &script.parameters,
            include: script.include,
            variables: Vec::new(),
            known_settings: Vec::new(),
            nodes: 0,
            rounds: 0,
            made: 0,
            text: 0,
            included: text.len(),
            depth: 0,
            providers: Vec::new(),
            taken: BTreeSet::new(),
            pids: BTreeMap::new(),
            mentions: Vec::new(),
            wide: Vec::new(),
            controllers: super::controller::Controllers::default(),
        }
    }

    /// Whether so many threads or methods more are not too many; a mistake where they are.
    pub fn charge(&mut self, at: SourceSpan, many: u32) -> bool {
        self.made = self.made.saturating_add(many.into());
        let fits = self.made <= MAX_MADE;
        if !fits {
            let help = format!("at most {MAX_MADE} threads and methods in one script");
            self.error(
                at,
                "too much",
                "more threads or methods than a script may have",
                Some(help),
            );
        }
        fits
    }

    /// Notes a mistake.
    pub fn error(
        &mut self,
        at: SourceSpan,
        message: impl Into<String>,
        label: impl Into<String>,
        help: Option<String>,
    ) {
        self.error_at(&self.location(at), message, label, help);
    }

    /// Notes a mistake at a place that was noted before.
    pub fn error_at(
        &mut self,
        place: &ScriptLocation,
        message: impl Into<String>,
        label: impl Into<String>,
        help: Option<String>,
    ) {
        if self.errors.len() >= MAX_ERRORS {
            return;
        }
        self.errors.push(ScriptError::new(place, message.into(), label.into(), help));
    }

    /// A place in the script that is read.
    pub fn location(&self, at: SourceSpan) -> ScriptLocation {
        ScriptLocation::new(Arc::clone(&self.source), at)
    }

    /// Reads a whole script.
    pub fn whole(&mut self, text: &str, each: Each<'_>) {
        if text.len() > MAX_INCLUDED {
            let help = format!("at most {} KiB", MAX_INCLUDED >> 10);
            self.error((0, 0).into(), "the script is too long", "its beginning", Some(help));
            return;
        }
        if let Some(at) = too_deep(text, MAX_NESTING) {
            let help = format!("at most {MAX_NESTING} braces or comments in each other");
            self.error((at, 1).into(), "nested too deeply", "one too many", Some(help));
            return;
        }
        match KdlDocument::parse(text) {
            Ok(document) => self.list(document.nodes(), each),
            Err(error) => {
                for d in error.diagnostics {
                    let message = d.message.unwrap_or_else(|| "not KDL".to_owned());
                    let label = d.label.unwrap_or_else(|| "here".to_owned());
                    self.error(d.span, message, label, d.help);
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
            if self.nodes > MAX_NODES {
                if self.nodes == MAX_NODES + 1 {
                    let help = format!("at most {MAX_NODES} nodes come of one script");
                    self.error(node.span(), "too much", "repeated too often", Some(help));
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
        let given = self.parameters.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone());
        if self.variables.len() >= MAX_VARIABLES {
            let help = format!("at most {MAX_VARIABLES} hold at one place");
            self.error(node.span(), "too many parameters", "one too many", Some(help));
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
            if self.rounds > MAX_ROUNDS {
                if self.rounds == MAX_ROUNDS + 1 {
                    let help = format!("at most {MAX_ROUNDS} rounds in one script");
                    self.error(node.span(), "too much", "repeated too often", Some(help));
                }
                break;
            }
            if self.nodes > MAX_NODES || self.errors.len() > MAX_ERRORS_FOR_REPEAT {
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
        if self.depth >= MAX_INCLUDE_DEPTH {
            let label = "scripts include each other too deeply";
            self.error(node.span(), "too deep", label, None);
            return;
        }
        match (self.include)(&name) {
            Ok(text) => {
                self.included = self.included.saturating_add(text.len());
                if self.included > MAX_INCLUDED {
                    let help = format!("at most {} KiB in all", MAX_INCLUDED >> 10);
                    self.error(node.span(), "too much", "included too often", Some(help));
                    return;
                }
                let source = Arc::new(NamedSource::new(&name, Arc::from(text.as_str())));
                let outer = std::mem::replace(&mut self.source, source);
                self.depth += 1;
                let fine = too_deep(&text, MAX_NESTING).is_none();
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
            Err(error) => {
                self.error(node.span(), format!("{name}: {error}"), "cannot be included", None);
            }
        }
    }

    /// The text of a file beside the script.
    pub fn beside(&self, name: &str) -> std::io::Result<String> {
        (self.include)(name)
    }

    /// The GUID of a provider that the script has declared so far.
    pub fn declared(&self, name: &str) -> Option<Guid> {
        self.providers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, guid)| *guid)
    }

    /// Settings from outside that no parameter takes.
    pub fn unknown_settings(&mut self) {
        for (name, _) in self.parameters {
            if !self.known_settings.contains(name) {
                let known = match &*self.known_settings {
                    [] => "the script has no parameters".to_owned(),
                    names => format!("the script has {}", names.join(", ")),
                };
                let message = format!("there is no parameter \"{name}\" to set");
                self.error((0, 0).into(), message, "the script", Some(known));
            }
        }
    }

    /// A text with its `{variables}` filled in.
    pub fn filled(&mut self, text: &str, at: SourceSpan) -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            // A parameter may hold another one many times, and be held as often itself.
            if out.len() > MAX_TEXT_LENGTH || self.text > MAX_TEXT_TOTAL {
                let help = format!(
                    "at most {} KiB in one text, {} MiB in all",
                    MAX_TEXT_LENGTH >> 10,
                    MAX_TEXT_TOTAL >> 20
                );
                self.error(at, "too much", "too long with its variables", Some(help));
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
                    self.error(at, message, "unknown", Some(help));
                }
            }
            rest = after;
        }
        out.push_str(rest);
        self.text = self.text.saturating_add(out.len());
        out
    }
}
