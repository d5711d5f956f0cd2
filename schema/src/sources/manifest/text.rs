//! String tables and message table of a manifest.

use std::cell::Cell;
use std::collections::HashMap;

use roxmltree::{Document, Node};

use super::is;

/// Texts by what refers to them.
pub(super) struct Texts {
    /// By `$(string.ID)`: the texts of the first string table in English, and texts of other tables
    /// that are not in it.
    strings: HashMap<String, String>,
    /// By `$(mc.ID)`: the texts of the message table, whose messages have an id, a symbol and a
    /// number.
    messages: HashMap<String, String>,
    /// Bytes that may still be given out: many elements can refer to one long text, and a manifest
    /// may come from the trace.
    left: Cell<usize>,
}

fn is_english(resources: Node<'_, '_>) -> bool {
    resources
        .attribute("culture")
        .is_some_and(|culture| culture.starts_with("en"))
}

/// References within references that are followed: a message of the message table is one itself.
const MAX_DEPTH: usize = 2;
/// References of one message that are followed.
const MAX_REFERENCES: usize = 64;
/// Bytes of all messages of a manifest.
const MAX_BYTES: usize = 64 << 20;

impl Texts {
    pub(super) fn read(document: &Document<'_>) -> Self {
        let mut tables: Vec<_> = document
            .descendants()
            .filter(|n| is(n, "resources"))
            .collect();
        tables.sort_by_key(|table| !is_english(*table));
        let mut strings = HashMap::new();
        for node in tables
            .iter()
            .flat_map(|t| t.descendants())
            .filter(|n| is(n, "string"))
        {
            if let (Some(id), Some(value)) = (node.attribute("id"), node.attribute("value")) {
                strings
                    .entry(id.to_owned())
                    .or_insert_with(|| value.to_owned());
            }
        }
        let mut messages = HashMap::new();
        let tables = document.descendants().filter(|n| is(n, "messageTable"));
        for node in tables
            .flat_map(|t| t.descendants())
            .filter(|n| is(n, "message"))
        {
            let Some(text) = node.attribute("message") else {
                continue;
            };
            for name in ["mid", "symbol", "value"] {
                if let Some(id) = node.attribute(name) {
                    messages
                        .entry(id.to_owned())
                        .or_insert_with(|| text.to_owned());
                }
            }
        }
        Texts {
            strings,
            messages,
            left: Cell::new(MAX_BYTES),
        }
    }

    /// The `message` of an element, with its references resolved; `None` if it has none, or refers
    /// to a text that does not exist.
    pub(super) fn message(&self, node: Node<'_, '_>) -> Option<String> {
        self.resolve(node.attribute("message")?, MAX_DEPTH, &mut {
            MAX_REFERENCES
        })
    }

    fn resolve(&self, text: &str, depth: usize, references: &mut usize) -> Option<String> {
        self.left.set(self.left.get().checked_sub(text.len())?);
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("$(") {
            out.push_str(before);
            match self.reference(after) {
                Some(reference) => {
                    *references = references.checked_sub(1)?;
                    let text = reference.text?;
                    out.push_str(&self.resolve(text, depth.checked_sub(1)?, references)?);
                    rest = reference.after;
                }
                // `$(` that does not begin a reference is text.
                None => {
                    out.push_str("$(");
                    rest = after;
                }
            }
        }
        out.push_str(rest);
        Some(out)
    }

    /// The reference at the start of `text`, after its `$(`.
    fn reference<'t>(&'t self, text: &'t str) -> Option<Reference<'t>> {
        let (name, after) = text.split_once(')')?;
        let text = match name.split_once('.')? {
            ("string", id) => self.strings.get(id),
            ("mc", id) => self.messages.get(id),
            _ => return None,
        };
        Some(Reference {
            text: text.map(String::as_str),
            after,
        })
    }
}

/// A reference in a message.
struct Reference<'t> {
    /// The text that it refers to; `None` if there is no such text.
    text: Option<&'t str>,
    /// The text after the reference.
    after: &'t str,
}
