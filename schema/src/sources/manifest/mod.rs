//! XML instrumentation manifests: from a file, or as an `EventSource` writes them into a trace.
//!
//! Read are providers with their channels, levels, tasks, opcodes, keywords, maps of values, bits
//! and patterns, templates and events, and the string and message tables that messages refer to.
//! What has a display message is called by it, as Windows does it. Elements are known by their
//! local names, whatever their namespace.

use super::number;
use crate::Error;
use crate::model::{
    EventSchema, Identity, MapEntry, MapKind, Named, Pattern, SchemaSource, Text, ValueMap,
};
use etl_format::Guid;
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::HashMap;
use std::sync::Arc;

mod bounds;
mod names;
mod predefined;
mod template;
mod text;

use bounds::Budget;
use names::Names;
use predefined::{
    CHANNELS, KEYWORDS, LEVELS, OPCODES, RESERVED_KEYWORDS, RESERVED_LEVELS, RESERVED_OPCODES,
    TASKS,
};
use template::Templates;
use text::Texts;

/// Elements and pieces of text of one manifest.
const MAX_NODES: u32 = 1 << 20;

/// Errors are made with the place of their element, and get its line when they are given out: to
/// find a line takes a look at all of the text before it, and lenient reading drops most.
fn with_line(mut error: Error, document: &Document<'_>) -> Error {
    if let Error::Element { line, .. } = &mut error {
        *line = document.text_pos_at(*line as usize).row;
    }
    error
}

/// The schemas of all events of all providers of a manifest, in its order.
///
/// ```
/// use etl_schema::sources::manifest;
///
/// let text = r#"
/// <provider name="My-Provider" guid="{12345678-1234-1234-1234-123456789abc}">
///   <events><event value="1" symbol="Started" template="T"/></events>
///   <templates>
///     <template tid="T"><data name="Count" inType="win:UInt32"/></template>
///   </templates>
/// </provider>"#;
/// let schemas = manifest::parse(text)?;
/// assert_eq!(schemas[0].name, "Started");
/// assert_eq!(schemas[0].fields[0].name, "Count");
/// # Ok::<(), etl_schema::Error>(())
/// ```
///
/// # Errors
/// If the text is not a manifest, or an event or template in it is invalid.
pub fn parse(text: &str) -> Result<Vec<EventSchema>, Error> {
    parse_as(text, SchemaSource::Manifest)
}

/// The schemas of a manifest that an `EventSource` wrote at run time: events that cannot be read
/// are left out. Their source is [`SchemaSource::EventSource`].
///
/// ```
/// use etl_schema::sources::manifest;
///
/// let text = r#"
/// <provider name="My-Source" guid="{12345678-1234-1234-1234-123456789abc}">
///   <events><event value="1" symbol="Good"/><event value="2" template="missing"/></events>
/// </provider>"#;
/// assert!(manifest::parse(text).is_err());
/// assert_eq!(manifest::parse_lenient(text)?.len(), 1);
/// # Ok::<(), etl_schema::Error>(())
/// ```
///
/// # Errors
/// If the text is not a manifest.
pub fn parse_lenient(text: &str) -> Result<Vec<EventSchema>, Error> {
    parse_as(text, SchemaSource::EventSource)
}

fn parse_as(text: &str, source: SchemaSource) -> Result<Vec<EventSchema>, Error> {
    let text = text.trim_start_matches('\u{feff}').trim_end_matches('\0');
    bounds::check(text)?;
    let options = ParsingOptions { nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document =
        Document::parse_with_options(text, options).map_err(|e| Error::Xml(e.to_string()))?;
    let texts = Texts::read(&document);
    let mut budget = Budget::new(text.len());
    let mut out = Vec::new();
    let mut found = false;
    for node in document.descendants().filter(|n| is(n, "provider") && n.has_attribute("guid")) {
        found = true;
        provider(node, &texts, source, &mut budget, &mut out)
            .map_err(|e| with_line(e, &document))?;
    }
    if found { Ok(out) } else { Err(Error::NoProvider) }
}

fn is(node: &Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name
}

/// An error about an element; its place stands for its line, see [`with_line`].
fn wrong(node: Node<'_, '_>, problem: String) -> Error {
    Error::Element { line: u32::try_from(node.range().start).unwrap_or(u32::MAX), problem }
}

/// An attribute of this name is missing or cannot be read.
fn bad(node: Node<'_, '_>, attribute: &str) -> Error {
    wrong(node, format!("<{}> needs a {attribute} that can be read", node.tag_name().name()))
}

/// The element refers to something that is not there.
fn unknown(node: Node<'_, '_>, what: &str, name: &str) -> Error {
    wrong(node, format!("there is no {what} {name:?}"))
}

fn need<T: TryFrom<u64>>(node: Node<'_, '_>, attribute: &'static str) -> Result<T, Error> {
    let value = node.attribute(attribute).and_then(number);
    value.and_then(|v| T::try_from(v).ok()).ok_or_else(|| bad(node, attribute))
}

fn named<T: TryFrom<u64>>(
    event: Node<'_, '_>,
    attribute: &'static str,
    (value, name): (u64, Text),
) -> Result<Named<T>, Error> {
    let value = T::try_from(value).map_err(|_| bad(event, attribute))?;
    Ok(Named { value, name })
}

fn provider(
    node: Node<'_, '_>,
    texts: &Texts,
    source: SchemaSource,
    budget: &mut Budget,
    out: &mut Vec<EventSchema>,
) -> Result<(), Error> {
    let guid: Guid = node
        .attribute("guid")
        .and_then(|g| g.trim().parse().ok())
        .ok_or_else(|| bad(node, "guid"))?;
    let name: Text = node.attribute("name").unwrap_or_default().to_owned().into();
    let mut levels = Names::with(LEVELS).reserve(RESERVED_LEVELS, |n| n);
    let mut tasks = Names::with(TASKS);
    let mut opcodes = Names::with(OPCODES).reserve(RESERVED_OPCODES, |n| n);
    let mut keywords = Names::with(KEYWORDS).reserve(RESERVED_KEYWORDS, |n| 1 << n);
    let mut channels = Names::with(CHANNELS);
    // Opcodes of a task count for events of this task alone.
    let mut task_opcodes: HashMap<String, Names> = HashMap::new();
    let mut next_channel = 16;
    for child in parts(node) {
        let Some(name) = child.attribute("name").filter(|_| child.is_element()) else { continue };
        let shown = || texts.message(child).unwrap_or_else(|| name.to_owned());
        match child.tag_name().name() {
            "level" => levels.insert(name, need::<u8>(child, "value")?.into(), shown()),
            "task" => tasks.insert(name, need::<u16>(child, "value")?.into(), shown()),
            "keyword" => keywords.insert(name, need::<u64>(child, "mask")?, shown()),
            "opcode" => {
                let value = need::<u8>(child, "value")?.into();
                let task = child.ancestors().find(|n| is(n, "task"));
                let names = match task.and_then(|t| t.attribute("name")) {
                    Some(task) => task_opcodes.entry(task.to_owned()).or_default(),
                    None => &mut opcodes,
                };
                names.insert(name, value, shown());
            }
            "channel" | "importChannel" => {
                // Channels without a number get one in order, from 16 on; the channels of Windows
                // keep theirs.
                let windows = CHANNELS.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
                let windows = windows.filter(|_| is(&child, "importChannel"));
                let value = child.attribute("value").and_then(number).or(windows);
                let value = value.unwrap_or(next_channel);
                if windows.is_none() {
                    next_channel = value.saturating_add(1);
                }
                // A channel is called by its name everywhere but in the manifest.
                let id = child.attribute("chid").unwrap_or(name);
                channels.insert(id, value, name.to_owned());
                channels.insert(name, value, name.to_owned());
            }
            _ => {}
        }
    }
    // What a source wrote about itself at run time is taken as far as it goes.
    let lenient = source == SchemaSource::EventSource;
    let templates = Templates::read(node, &maps(node, texts, budget)?, lenient)?;
    let names = Numbers { levels, tasks, opcodes, task_opcodes, keywords, channels };
    for node in parts(node).filter(|n| is(n, "event") && n.has_attribute("value")) {
        match event(node, &names, &templates, texts, budget) {
            Ok(described) => {
                budget.text(name.len())?;
                let schema = EventSchema {
                    provider: guid,
                    provider_name: name.clone(),
                    source,
                    ..described
                };
                out.push(schema);
            }
            Err(_) if lenient => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// All elements of a provider, but for what an event looks like as XML: elements of any name.
fn parts<'a, 'i>(provider: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    let foreign = |n: &Node<'_, '_>| n.ancestors().skip(1).any(|a| is(&a, "UserData"));
    provider.descendants().filter(move |n| n.is_element() && !foreign(n))
}

/// Numbers of what events refer to by name.
struct Numbers {
    levels: Names,
    tasks: Names,
    opcodes: Names,
    task_opcodes: HashMap<String, Names>,
    keywords: Names,
    channels: Names,
}

/// What one event says; its provider is filled in by who asks.
fn event(
    event: Node<'_, '_>,
    names: &Numbers,
    templates: &Templates,
    texts: &Texts,
    budget: &mut Budget,
) -> Result<EventSchema, Error> {
    let Numbers { levels, tasks, opcodes, task_opcodes, keywords, channels } = names;
    let id = need::<u16>(event, "value")?;
    let version = match event.attribute("version") {
        Some(_) => need::<u8>(event, "version")?,
        None => 0,
    };
    let identity = Identity::Modern { id, version };
    let mut schema = EventSchema::new(Guid::ZERO, identity, SchemaSource::Manifest);
    schema.name = event.attribute("symbol").unwrap_or_default().to_owned().into();
    schema.level = named(event, "level", levels.of(event, "level")?)?;
    schema.task = named(event, "task", tasks.of(event, "task")?)?;
    let local = event.attribute("task").and_then(|t| task_opcodes.get(t));
    let opcode = match local.map(|names| names.of(event, "opcode")) {
        Some(Ok(opcode)) => opcode,
        _ => opcodes.of(event, "opcode")?,
    };
    schema.opcode = named(event, "opcode", opcode)?;
    schema.channel = named(event, "channel", channels.of(event, "channel")?)?;
    for keyword in event.attribute("keywords").unwrap_or_default().split_whitespace() {
        let (mask, shown) =
            keywords.get(event, keyword).ok_or_else(|| unknown(event, "keyword", keyword))?;
        budget.text(shown.len())?;
        schema.keywords |= mask;
        schema.keyword_names.push(shown);
    }
    schema.message = texts.message(event).map(Text::Owned);
    let named = [&schema.level.name, &schema.task.name, &schema.opcode.name, &schema.channel.name];
    for text in named.into_iter().chain(&schema.message) {
        budget.text(text.len())?;
    }
    if let Some(template) = event.attribute("template") {
        schema.fields = templates.get(template, event, budget)?;
    }
    Ok(schema)
}

/// The maps of values, bits and patterns, by name.
fn maps(
    provider: Node<'_, '_>,
    texts: &Texts,
    budget: &mut Budget,
) -> Result<HashMap<String, Arc<ValueMap>>, Error> {
    let mut out = HashMap::new();
    for node in parts(provider) {
        let kind = match node.tag_name().name() {
            "valueMap" => MapKind::Values,
            "bitMap" => MapKind::Bits,
            "patternMap" => MapKind::Patterns,
            _ => continue,
        };
        let name = node.attribute("name").ok_or_else(|| bad(node, "name"))?.to_owned();
        let entries = node.children().filter(|n| is(n, "map"));
        let map = if kind == MapKind::Patterns {
            let format = node.attribute("format").ok_or_else(|| bad(node, "format"))?.to_owned();
            let pattern = |entry: Node<'_, '_>| {
                let part = |what| entry.attribute(what).map(|text| Text::Owned(text.to_owned()));
                let pattern = part("name").ok_or_else(|| bad(entry, "name"))?;
                let text = part("value").ok_or_else(|| bad(entry, "value"))?;
                Ok(Pattern { pattern, text })
            };
            let patterns = entries.map(pattern).collect::<Result<_, Error>>()?;
            ValueMap::of_patterns(name.clone(), format, patterns)
        } else {
            let mut named = Vec::new();
            for entry in entries {
                let value = need::<u64>(entry, "value")?;
                bounds::entries(named.len() + 1)?;
                if let Some(text) = texts.message(entry) {
                    budget.text(text.len())?;
                    named.push(MapEntry { value, name: text.into() });
                }
            }
            ValueMap::new(name.clone(), kind, named)
        };
        out.insert(name, Arc::new(map));
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
