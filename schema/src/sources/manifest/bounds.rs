//! Limits of the memory and time that a manifest takes.
//!
//! A manifest may come from a trace, and a small one could ask for much.
//!
//! The parser of XML and the lookups here are linear only if elements do not nest deeply, have few
//! attributes, and declare few namespaces. That is checked on the text before it is parsed.
//! Templates and texts are copied into every event that names them; a [`Budget`] limits the memory
//! of all copies.

use crate::Error;

/// Elements within elements. Manifests nest some 12 deep.
const MAX_DEPTH: usize = 64;
/// Attributes of one element.
const MAX_ATTRIBUTES: usize = 64;
/// Declarations of namespaces in the whole of a manifest.
const MAX_NAMESPACES: usize = 256;

/// Fields and members of one template.
const MAX_TEMPLATE: usize = 4096;
/// Bytes of all names in one template.
const MAX_NAMES: usize = 1 << 16;
/// Fields and members of all events together. Those of Windows' own largest provider are some
/// 30,000.
const MAX_FIELDS: usize = 1 << 18;
/// Entries of one map.
const MAX_ENTRIES: usize = 1 << 14;

/// The most bytes of text of events, in addition to a multiple of the manifest's size.
const SPARE_TEXT: usize = 1 << 20;

/// Refuses text that would keep the parser busy for long. Walks over the tags and keeps nothing.
pub(super) fn check(text: &str) -> Result<(), Error> {
    if text.matches("xmlns").nth(MAX_NAMESPACES).is_some() {
        return Err(Error::TooBig("declarations of namespaces"));
    }
    let mut depth = 0usize;
    let mut rest = text;
    while let Some((_, tag)) = rest.split_once('<') {
        let next = if tag.starts_with("!--") {
            after(tag, "-->")
        } else if tag.starts_with("![CDATA[") {
            after(tag, "]]>")
        } else if tag.starts_with('?') {
            after(tag, "?>")
        } else if tag.starts_with('/') {
            depth = depth.saturating_sub(1);
            after(tag, ">")
        } else {
            let Some(end) = start_tag(tag)? else {
                return Ok(());
            };
            let empty = tag.get(..end).is_some_and(|tag| tag.ends_with('/'));
            depth += usize::from(!empty);
            if depth > MAX_DEPTH {
                return Err(Error::TooBig("elements within elements"));
            }
            tag.get(end..)
        };
        // A tag without an end is not XML; the parser reports it.
        let Some(next) = next else { return Ok(()) };
        rest = next;
    }
    Ok(())
}

/// The text after the first `end`.
fn after<'t>(text: &'t str, end: &str) -> Option<&'t str> {
    let (_, after) = text.split_once(end)?;
    Some(after)
}

/// The offset of the `>` that ends a tag. A `>` within a quoted value is skipped.
fn start_tag(tag: &str) -> Result<Option<usize>, Error> {
    let mut quote = None;
    let mut attributes = 0usize;
    for (offset, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'=') => {
                attributes += 1;
                if attributes > MAX_ATTRIBUTES {
                    return Err(Error::TooBig("attributes of an element"));
                }
            }
            (None, b'>') => return Ok(Some(offset)),
            (None, _) => {}
        }
    }
    Ok(None)
}

/// What the events of one manifest may still take.
#[derive(Debug)]
pub(super) struct Budget {
    fields: usize,
    text: usize,
}

impl Budget {
    /// For a manifest of so many bytes.
    pub fn new(len: usize) -> Self {
        Budget {
            fields: MAX_FIELDS,
            text: len.saturating_mul(4).saturating_add(SPARE_TEXT),
        }
    }

    /// Pays for a copy of a template.
    pub fn template(&mut self, weight: Weight) -> Result<(), Error> {
        let too_big = Error::TooBig("fields of all events");
        self.fields = self.fields.checked_sub(weight.fields).ok_or(too_big)?;
        self.text(weight.names)
    }

    /// Pays for a copy of a text.
    pub fn text(&mut self, len: usize) -> Result<(), Error> {
        let too_big = Error::TooBig("texts of all events");
        self.text = self.text.checked_sub(len).ok_or(too_big)?;
        Ok(())
    }
}

/// What one copy of a template takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    fields: usize,
    names: usize,
}

impl Weight {
    /// Adds a field with a name.
    pub fn add(&mut self, name: &str) -> Result<(), Error> {
        self.fields = self.fields.saturating_add(1);
        self.names = self.names.saturating_add(name.len());
        if self.fields > MAX_TEMPLATE || self.names > MAX_NAMES {
            return Err(Error::TooBig("fields of a template"));
        }
        Ok(())
    }
}

/// Refuses a map with more entries than `count`.
pub(super) fn entries(count: usize) -> Result<(), Error> {
    if count > MAX_ENTRIES {
        Err(Error::TooBig("entries of a map"))
    } else {
        Ok(())
    }
}
