//! The walk over the nodes of a script, which performs `param`, `repeat` and `include` wherever
//! they are, within limits.

use std::sync::Arc;

use kdl::{KdlDocument, KdlNode};
use miette::NamedSource;

use super::args::Args;
use super::nesting::too_deep;
use super::reader::Reader;

/// Nodes of a script after `repeat` and `include`.
const MAX_NODES: u64 = 1_000_000;
/// Rounds of all `repeat` of a script together.
const MAX_ROUNDS: u64 = 1_000_000;
/// Errors after which nothing is repeated.
const MAX_ERRORS_FOR_REPEAT: usize = 50;
/// Bytes of a script and of all that it includes.
pub(super) const MAX_INCLUDED: usize = 512 << 10;
/// Parameters and loop variables that are valid at one place.
const MAX_VARIABLES: usize = 1024;
/// Depth of scripts that include each other.
const MAX_INCLUDE_DEPTH: usize = 8;
/// Depth of braces and comments in each other, because parsing them needs stack.
const MAX_NESTING: usize = 64;

/// Called with each node of a list.
pub(super) type Each<'e> = &'e mut dyn FnMut(Args<'_, '_>);

/// Reads a whole script.
pub(super) fn script(reader: &mut Reader<'_>, each: Each<'_>) {
    let text = reader.script.text;
    if text.len() > MAX_INCLUDED {
        let help = format!("at most {} KiB", MAX_INCLUDED >> 10);
        reader.error(
            (0, 0).into(),
            "the script is too long",
            "its beginning",
            Some(&help),
        );
    } else if let Some(document) = parse(reader, text) {
        list(reader, document.nodes(), each);
    }
    unknown_settings(reader);
}

/// Parses a script or reports its errors.
fn parse(reader: &mut Reader<'_>, text: &str) -> Option<KdlDocument> {
    if let Some(at) = too_deep(text, MAX_NESTING) {
        let help = format!("at most {MAX_NESTING} braces or comments in each other");
        reader.error(
            (at, 1).into(),
            "nested too deeply",
            "one too many",
            Some(&help),
        );
        return None;
    }
    match KdlDocument::parse(text) {
        Ok(document) => Some(document),
        Err(error) => {
            report_syntax(reader, text, error);
            None
        }
    }
}

/// Reports what the parser of KDL found.
fn report_syntax(reader: &mut Reader<'_>, text: &str, error: kdl::KdlError) {
    // If two nodes are not separated, the parser's messages about them and about all before them
    // are misleading.
    let unseparated = error.diagnostics.iter().find(|diagnostic| {
        let before = text.get(..diagnostic.span.offset()).unwrap_or_default();
        diagnostic.message.as_deref() == Some("Expected end of document")
            && before.trim_end_matches([' ', '\t']).ends_with('}')
    });
    if let Some(diagnostic) = unseparated {
        let help = Some("; or a new line after the }");
        let message = "two nodes are not separated";
        return reader.error(diagnostic.span, message, "the second", help);
    }
    for diagnostic in error.diagnostics {
        let message = diagnostic.message.unwrap_or_else(|| "not KDL".to_owned());
        let label = diagnostic.label.unwrap_or_else(|| "here".to_owned());
        reader.error(diagnostic.span, message, label, diagnostic.help.as_deref());
    }
}

impl<'r, 's> Args<'r, 's> {
    /// Reports what was not read, and reads the nodes in braces.
    pub fn children(mut self, each: Each<'_>) -> &'r mut Reader<'s> {
        self.finish_entries();
        if let Some(children) = self.node.children() {
            list(self.reader, children.nodes(), each);
        }
        self.reader
    }
}

fn list(reader: &mut Reader<'_>, nodes: &[KdlNode], each: Each<'_>) {
    let variables = reader.variables.len();
    nodes.iter().for_each(|node| one(reader, node, each));
    // Variables are valid inside of their braces.
    reader.variables.truncate(variables);
}

fn one(reader: &mut Reader<'_>, node: &KdlNode, each: Each<'_>) {
    reader.used.nodes += 1;
    if reader.used.nodes == MAX_NODES + 1 {
        let limit = format!("at most {MAX_NODES} nodes in one script");
        reader.too_much(node.span(), "repeated too often", &limit);
    }
    if reader.used.nodes > MAX_NODES {
        return;
    }
    let args = Args::new(reader, node);
    match args.name() {
        // `(field)param 7` sets a field that is called `param`.
        _ if node.ty().is_some_and(|ty| ty.value() == "field") => each(args),
        "param" => param(args),
        "repeat" => repeat(args, each),
        "include" => include(args, each),
        _ => each(args),
    }
}

/// `param "name" value`: a value that can be set from outside.
fn param(mut args: Args<'_, '_>) {
    let name: String = args.next("the parameter's name").unwrap_or_default();
    let value = args.next("its value").unwrap_or_default();
    let reader = &mut *args.reader;
    let node = args.node;
    // If a setting is repeated, the last one is valid, as with properties.
    let mut set = reader.script.parameters.iter().rev();
    let set = set.find(|(n, _)| *n == name).map(|(_, v)| v.clone());
    if reader.variables.len() >= MAX_VARIABLES {
        let help = format!("at most {MAX_VARIABLES} are valid at one place");
        reader.error(
            node.span(),
            "too many parameters",
            "one too many",
            Some(&help),
        );
    } else {
        if !reader.declared.parameters.contains(&name) {
            reader.declared.parameters.push(name.clone());
        }
        reader.variables.push((name, set.unwrap_or(value)));
    }
    args.finish();
}

/// `repeat 3 as="n" { ... }`: the nodes in braces, with `{n}` from 1 to 3.
fn repeat(mut args: Args<'_, '_>, each: Each<'_>) {
    let count: u64 = args.next("how often").unwrap_or(0);
    let name: String = args.get("as").unwrap_or_else(|| "n".to_owned());
    args.finish_entries();
    let reader = args.reader;
    let node = args.node;
    for n in 1..=count {
        reader.used.rounds += 1;
        if reader.used.rounds == MAX_ROUNDS + 1 {
            let limit = format!("at most {MAX_ROUNDS} rounds in one script");
            reader.too_much(node.span(), "repeated too often", &limit);
        }
        if reader.used.rounds > MAX_ROUNDS
            || reader.used.nodes > MAX_NODES
            || reader.errors.len() > MAX_ERRORS_FOR_REPEAT
        {
            break;
        }
        reader.variables.push((name.clone(), n.to_string()));
        if let Some(children) = node.children() {
            list(reader, children.nodes(), each);
        }
        reader.variables.pop();
    }
}

/// `include "other.kdl"`: the nodes of another script. Its parameters are valid after it as well.
/// Files that it names are relative to its directory.
fn include(mut args: Args<'_, '_>, each: Each<'_>) {
    let name: Option<String> = args.next("the script's name");
    args.finish_entries();
    let reader = args.reader;
    let node = args.node;
    let Some(name) = name else { return };
    if reader.used.include_depth >= MAX_INCLUDE_DEPTH {
        let label = "scripts include each other too deeply";
        reader.error(node.span(), "too deep", label, None);
        return;
    }
    let name = reader.beside(&name);
    let text = match (reader.script.include)(&name) {
        Ok(text) => text,
        Err(error) => {
            reader.error(
                node.span(),
                format!("{name}: {error}"),
                "cannot be included",
                None,
            );
            return;
        }
    };
    reader.used.included = reader.used.included.saturating_add(text.len());
    if reader.used.included > MAX_INCLUDED {
        let limit = format!("at most {} KiB in all", MAX_INCLUDED >> 10);
        reader.too_much(node.span(), "included too often", &limit);
        return;
    }
    let source = Arc::new(NamedSource::new(&name, Arc::from(text.as_str())));
    let outer = std::mem::replace(&mut reader.source, source);
    let end = name.rfind(std::path::is_separator).map_or(0, |at| at + 1);
    let directory = name.get(..end).unwrap_or_default().to_owned();
    let outer_directory = std::mem::replace(&mut reader.directory, directory);
    reader.used.include_depth += 1;
    if let Some(document) = parse(reader, &text) {
        document
            .nodes()
            .iter()
            .for_each(|node| one(reader, node, each));
    }
    reader.used.include_depth -= 1;
    reader.source = outer;
    reader.directory = outer_directory;
}

/// Reports settings that are not parameters of the script.
fn unknown_settings(reader: &mut Reader<'_>) {
    let help = match &*reader.declared.parameters {
        [] => "the script has no parameters".to_owned(),
        names => format!("the script has {}", names.join(", ")),
    };
    for (name, _) in &reader.script.parameters {
        if !reader.declared.parameters.contains(name) {
            let message = format!("there is no parameter \"{name}\" to set");
            reader.error((0, 0).into(), message, "the script", Some(&help));
        }
    }
}
