//! XML instrumentation manifests: from a file, or as an `EventSource` writes them into a trace.
//!
//! This reads providers with their channels, levels, tasks, opcodes, keywords, maps of values, bits
//! and patterns, templates and events, and the string and message tables that messages refer to.
//! The display message of an element, if it has one, is its name, as in Windows. Elements are
//! recognized by their local names; their namespace is ignored.

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
use names::{NamedNumber, Names};
use predefined::{
    CHANNELS, KEYWORDS, LEVELS, OPCODES, RESERVED_KEYWORDS, RESERVED_LEVELS, RESERVED_OPCODES,
    TASKS,
};
use template::Templates;
use text::Texts;

/// Elements and pieces of text of one manifest.
const MAX_NODES: u32 = 1 << 20;

/// Sets the line of an error, which is created with the offset of its element instead. To find a
/// line, the whole text before it has to be read, and lenient reading drops most errors.
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
    let options = ParsingOptions {
        nodes_limit: MAX_NODES,
        ..ParsingOptions::default()
    };
    let document =
        Document::parse_with_options(text, options).map_err(|e| Error::Xml(e.to_string()))?;
    let texts = Texts::read(&document);
    let mut budget = Budget::new(text.len());
    let mut out = Vec::new();
    let mut has_provider = false;
    for node in document
        .descendants()
        .filter(|n| is(n, "provider") && n.has_attribute("guid"))
    {
        has_provider = true;
        provider(node, &texts, source, &mut budget, &mut out)
            .map_err(|error| with_line(error, &document))?;
    }
    if has_provider {
        Ok(out)
    } else {
        Err(Error::NoProvider)
    }
}

fn is(node: &Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name
}

/// An error about an element, with its offset instead of its line: see [`with_line`].
fn wrong(node: Node<'_, '_>, problem: String) -> Error {
    Error::Element {
        line: u32::try_from(node.range().start).unwrap_or(u32::MAX),
        problem,
    }
}

/// An error: an attribute with this name is missing or cannot be read.
fn bad(node: Node<'_, '_>, attribute: &str) -> Error {
    wrong(
        node,
        format!(
            "<{}> needs a {attribute} that can be read",
            node.tag_name().name()
        ),
    )
}

/// An error: the element refers to something that does not exist.
fn unknown(node: Node<'_, '_>, what: &str, name: &str) -> Error {
    wrong(node, format!("there is no {what} {name:?}"))
}

fn need<T: TryFrom<u64>>(node: Node<'_, '_>, attribute: &'static str) -> Result<T, Error> {
    let value = node.attribute(attribute).and_then(number);
    value
        .and_then(|v| T::try_from(v).ok())
        .ok_or_else(|| bad(node, attribute))
}

fn need_text(node: Node<'_, '_>, attribute: &'static str) -> Result<Text, Error> {
    let text = node
        .attribute(attribute)
        .ok_or_else(|| bad(node, attribute))?;
    Ok(text.to_owned().into())
}

fn named<T: TryFrom<u64>>(
    event: Node<'_, '_>,
    attribute: &'static str,
    number: NamedNumber,
) -> Result<Named<T>, Error> {
    let value = T::try_from(number.value).map_err(|_| bad(event, attribute))?;
    Ok(Named {
        value,
        name: number.shown,
    })
}

/// The display message of an element, or else its name.
fn shown_name(texts: &Texts, node: Node<'_, '_>, name: &str) -> String {
    texts.message(node).unwrap_or_else(|| name.to_owned())
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
    let numbers = Numbers::read(node, texts)?;
    // A manifest that a source wrote at run time may have events that cannot be read.
    let lenient = source == SchemaSource::EventSource;
    let templates = Templates::read(node, &maps(node, texts, budget)?, lenient)?;
    for node in parts(node).filter(|n| is(n, "event") && n.has_attribute("value")) {
        match event(node, &numbers, &templates, texts, budget) {
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

/// All elements of a provider, except the XML form of events, which has elements with any name.
fn parts<'a, 'i>(provider: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    provider
        .descendants()
        .filter(|node| node.is_element() && !is_in_user_data(*node))
}

fn is_in_user_data(node: Node<'_, '_>) -> bool {
    node.ancestors()
        .skip(1)
        .any(|ancestor| is(&ancestor, "UserData"))
}

/// The numbers that events of a provider refer to by name.
struct Numbers {
    levels: Names,
    tasks: Names,
    opcodes: Names,
    /// Opcodes of one task, which only events of this task have.
    task_opcodes: HashMap<String, Names>,
    keywords: Names,
    channels: Names,
    /// The number of the next channel that has none.
    next_channel: u64,
}

impl Numbers {
    fn read(provider: Node<'_, '_>, texts: &Texts) -> Result<Self, Error> {
        let mut numbers = Numbers {
            levels: Names::with(LEVELS).reserve(RESERVED_LEVELS, |number| number),
            tasks: Names::with(TASKS),
            opcodes: Names::with(OPCODES).reserve(RESERVED_OPCODES, |number| number),
            task_opcodes: HashMap::new(),
            keywords: Names::with(KEYWORDS).reserve(RESERVED_KEYWORDS, |number| 1 << number),
            channels: Names::with(CHANNELS),
            next_channel: 16,
        };
        for node in parts(provider) {
            if let Some(name) = node.attribute("name") {
                numbers.add(node, name, texts)?;
            }
        }
        Ok(numbers)
    }

    fn add(&mut self, node: Node<'_, '_>, name: &str, texts: &Texts) -> Result<(), Error> {
        match node.tag_name().name() {
            "level" => {
                let value = need::<u8>(node, "value")?;
                self.levels
                    .insert(name, value.into(), shown_name(texts, node, name));
            }
            "task" => {
                let value = need::<u16>(node, "value")?;
                self.tasks
                    .insert(name, value.into(), shown_name(texts, node, name));
            }
            "keyword" => {
                let mask = need::<u64>(node, "mask")?;
                self.keywords
                    .insert(name, mask, shown_name(texts, node, name));
            }
            "opcode" => {
                let value = need::<u8>(node, "value")?;
                let task = node.ancestors().find(|ancestor| is(ancestor, "task"));
                let opcodes = match task.and_then(|task| task.attribute("name")) {
                    Some(task) => self.task_opcodes.entry(task.to_owned()).or_default(),
                    None => &mut self.opcodes,
                };
                opcodes.insert(name, value.into(), shown_name(texts, node, name));
            }
            "channel" | "importChannel" => self.add_channel(node, name),
            _ => {}
        }
        Ok(())
    }

    /// Channels without a number get one in order, from 16 on; imported channels of Windows have
    /// fixed numbers.
    fn add_channel(&mut self, node: Node<'_, '_>, name: &str) {
        let predefined = match CHANNELS.iter().find(|(channel, _)| *channel == name) {
            Some((_, value)) if is(&node, "importChannel") => Some(*value),
            _ => None,
        };
        let stated = node.attribute("value").and_then(number);
        let value = stated.or(predefined).unwrap_or(self.next_channel);
        if predefined.is_none() {
            self.next_channel = value.saturating_add(1);
        }
        // Events of the manifest refer to a channel by its `chid`; people only see its name.
        let id = node.attribute("chid").unwrap_or(name);
        self.channels.insert(id, value, name.to_owned());
        self.channels.insert(name, value, name.to_owned());
    }
}

/// The schema of one event, without its provider.
fn event(
    event: Node<'_, '_>,
    numbers: &Numbers,
    templates: &Templates,
    texts: &Texts,
    budget: &mut Budget,
) -> Result<EventSchema, Error> {
    let id = need::<u16>(event, "value")?;
    let version = match event.attribute("version") {
        Some(_) => need::<u8>(event, "version")?,
        None => 0,
    };
    let identity = Identity::Modern { id, version };
    let mut schema = EventSchema::new(Guid::ZERO, identity, SchemaSource::Manifest);
    schema.name = event
        .attribute("symbol")
        .unwrap_or_default()
        .to_owned()
        .into();
    schema.level = named(event, "level", numbers.levels.number_in(event, "level")?)?;
    schema.task = named(event, "task", numbers.tasks.number_in(event, "task")?)?;
    let task_opcodes = event
        .attribute("task")
        .and_then(|task| numbers.task_opcodes.get(task));
    let opcode = match task_opcodes.map(|opcodes| opcodes.number_in(event, "opcode")) {
        Some(Ok(opcode)) => opcode,
        _ => numbers.opcodes.number_in(event, "opcode")?,
    };
    schema.opcode = named(event, "opcode", opcode)?;
    schema.channel = named(
        event,
        "channel",
        numbers.channels.number_in(event, "channel")?,
    )?;
    for name in event
        .attribute("keywords")
        .unwrap_or_default()
        .split_whitespace()
    {
        let keyword = numbers
            .keywords
            .get(event, name)
            .ok_or_else(|| unknown(event, "keyword", name))?;
        budget.text(keyword.shown.len())?;
        schema.keywords |= keyword.value;
        schema.keyword_names.push(keyword.shown.clone());
    }
    schema.message = texts.message(event).map(Text::Owned);
    let named = [
        &schema.level.name,
        &schema.task.name,
        &schema.opcode.name,
        &schema.channel.name,
    ];
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
        let name = node
            .attribute("name")
            .ok_or_else(|| bad(node, "name"))?
            .to_owned();
        let entries = node.children().filter(|n| is(n, "map"));
        let map = if kind == MapKind::Patterns {
            let format = need_text(node, "format")?;
            let mut patterns = Vec::new();
            for entry in entries {
                let pattern = need_text(entry, "name")?;
                let text = need_text(entry, "value")?;
                patterns.push(Pattern { pattern, text });
            }
            ValueMap::of_patterns(name.clone(), format, patterns)
        } else {
            let mut named = Vec::new();
            for entry in entries {
                let value = need::<u64>(entry, "value")?;
                bounds::entries(named.len() + 1)?;
                if let Some(text) = texts.message(entry) {
                    budget.text(text.len())?;
                    named.push(MapEntry {
                        value,
                        name: text.into(),
                    });
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
