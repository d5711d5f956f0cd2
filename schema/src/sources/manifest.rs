//! XML instrumentation manifests: from a file, or as an `EventSource` writes them into a trace.
//!
//! Read are providers with their channels, levels, tasks, opcodes, keywords, maps, templates and
//! events, and the string tables that messages refer to. Elements are known by their local names,
//! whatever their namespace.

use crate::model::{EventSchema, Identity, MapEntry, MapKind, Named, SchemaSource, Text, ValueMap};
use etl_format::Guid;
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::HashMap;
use std::sync::Arc;

mod template;

use template::Templates;

/// Elements and attributes of one manifest.
const MAX_NODES: u32 = 1 << 20;

/// A manifest that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// Not XML.
    #[error("the manifest is no XML: {0}")]
    Xml(String),
    /// XML, but no provider in it.
    #[error("the manifest has no <provider>")]
    NoProvider,
    /// An attribute is missing or cannot be read.
    #[error("line {line}: <{element}> needs a {attribute} that can be read")]
    Attribute {
        /// Line of the element.
        line: u32,
        /// Name of the element.
        element: String,
        /// Name of the attribute.
        attribute: &'static str,
    },
    /// A template names a type, field or map that is not there.
    #[error("line {line}: there is no {what} {name:?}")]
    Unknown {
        /// Line of the element.
        line: u32,
        /// Kind of thing.
        what: &'static str,
        /// The name.
        name: String,
    },
}

/// The schemas of all events of all providers of a manifest, in its order.
///
/// # Errors
/// When the text is no manifest, or an event or template in it is unsound.
pub fn parse(text: &str, source: SchemaSource) -> Result<Vec<EventSchema>, ManifestError> {
    let text = text.trim_start_matches('\u{feff}').trim_end_matches('\0');
    let options = ParsingOptions { nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|e| ManifestError::Xml(e.to_string()))?;
    let strings = strings(&document);
    let mut out = Vec::new();
    let mut found = false;
    for node in document.descendants().filter(|n| is(n, "provider") && n.has_attribute("guid")) {
        found = true;
        provider(node, &strings, source, &mut out)?;
    }
    if found { Ok(out) } else { Err(ManifestError::NoProvider) }
}

fn is(node: &Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name
}

fn line(node: Node<'_, '_>) -> u32 {
    node.document().text_pos_at(node.range().start).row
}

fn bad(node: Node<'_, '_>, attribute: &'static str) -> ManifestError {
    let element = node.tag_name().name().to_owned();
    ManifestError::Attribute { line: line(node), element, attribute }
}

/// A number in decimal or, with `0x`, in hexadecimal.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn need<T: TryFrom<u64>>(node: Node<'_, '_>, attribute: &'static str) -> Result<T, ManifestError> {
    let value = node.attribute(attribute).and_then(number);
    value.and_then(|v| T::try_from(v).ok()).ok_or_else(|| bad(node, attribute))
}

/// Text by id: of the first string table in English, and of the others what that one lacks.
fn strings(document: &Document<'_>) -> HashMap<String, String> {
    let mut tables: Vec<_> = document.descendants().filter(|n| is(n, "resources")).collect();
    let english = |n: &Node<'_, '_>| n.attribute("culture").is_some_and(|c| c.starts_with("en"));
    tables.sort_by_key(|n| !english(n));
    let mut out = HashMap::new();
    for node in tables.iter().flat_map(|t| t.descendants()).filter(|n| is(n, "string")) {
        if let (Some(id), Some(value)) = (node.attribute("id"), node.attribute("value")) {
            out.entry(id.to_owned()).or_insert_with(|| value.to_owned());
        }
    }
    out
}

/// `$(string.ID)` replaced by the text it stands for.
fn message(node: Node<'_, '_>, strings: &HashMap<String, String>) -> Option<String> {
    let text = node.attribute("message")?;
    let id = text.strip_prefix("$(string.").and_then(|t| t.strip_suffix(')'));
    Some(match id {
        Some(id) => strings.get(id)?.clone(),
        None => text.to_owned(),
    })
}

/// Numbers by name, for what an event refers to.
#[derive(Default)]
struct Names(HashMap<String, u64>);

impl Names {
    fn with(standard: &[(&str, u64)]) -> Self {
        Names(standard.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect())
    }

    /// The number of a name. Those that Windows defines (winmeta) stand under the prefix `win:`
    /// here, whatever prefix the manifest gives their namespace.
    fn get(&self, event: Node<'_, '_>, name: &str) -> Option<u64> {
        let predefined = || {
            let (prefix, local) = name.split_once(':')?;
            (event.lookup_namespace_uri(Some(prefix))? == WINMETA).then(|| format!("win:{local}"))
        };
        let found = self.0.get(name).copied();
        found.or_else(|| self.0.get(&predefined()?).copied())
    }

    /// What an event's attribute names, or the number that it is itself.
    fn of(
        &self,
        event: Node<'_, '_>,
        attribute: &'static str,
    ) -> Result<(u64, Text), ManifestError> {
        let Some(name) = event.attribute(attribute) else { return Ok((0, Text::Borrowed(""))) };
        match self.get(event, name).or_else(|| number(name)) {
            Some(value) => Ok((value, name.to_owned().into())),
            None => Err(ManifestError::Unknown {
                line: line(event),
                what: attribute,
                name: name.to_owned(),
            }),
        }
    }
}

fn named<T: TryFrom<u64>>(
    event: Node<'_, '_>,
    attribute: &'static str,
    (value, name): (u64, Text),
) -> Result<Named<T>, ManifestError> {
    let value = T::try_from(value).map_err(|_| bad(event, attribute))?;
    Ok(Named { value, name })
}

/// The namespace of what Windows defines.
const WINMETA: &str = "http://manifests.microsoft.com/win/2004/08/windows/events";

const LEVELS: &[(&str, u64)] = &[
    ("win:LogAlways", 0),
    ("win:Critical", 1),
    ("win:Error", 2),
    ("win:Warning", 3),
    ("win:Informational", 4),
    ("win:Verbose", 5),
    ("win:ReservedLevel6", 6),
    ("win:ReservedLevel7", 7),
    ("win:ReservedLevel8", 8),
    ("win:ReservedLevel9", 9),
    ("win:ReservedLevel10", 10),
    ("win:ReservedLevel11", 11),
    ("win:ReservedLevel12", 12),
    ("win:ReservedLevel13", 13),
    ("win:ReservedLevel14", 14),
    ("win:ReservedLevel15", 15),
];
const OPCODES: &[(&str, u64)] = &[
    ("win:Info", 0),
    ("win:Start", 1),
    ("win:Stop", 2),
    ("win:DC_Start", 3),
    ("win:DC_Stop", 4),
    ("win:Extension", 5),
    ("win:Reply", 6),
    ("win:Resume", 7),
    ("win:Suspend", 8),
    ("win:Send", 9),
    ("win:Receive", 240),
    ("win:ReservedOpcode241", 241),
    ("win:ReservedOpcode242", 242),
    ("win:ReservedOpcode243", 243),
    ("win:ReservedOpcode244", 244),
    ("win:ReservedOpcode245", 245),
    ("win:ReservedOpcode246", 246),
    ("win:ReservedOpcode247", 247),
    ("win:ReservedOpcode248", 248),
    ("win:ReservedOpcode249", 249),
    ("win:ReservedOpcode250", 250),
    ("win:ReservedOpcode251", 251),
    ("win:ReservedOpcode252", 252),
    ("win:ReservedOpcode253", 253),
    ("win:ReservedOpcode254", 254),
    ("win:ReservedOpcode255", 255),
];
const TASKS: &[(&str, u64)] = &[("win:None", 0)];
const KEYWORDS: &[(&str, u64)] = &[
    ("win:AnyKeyword", 0),
    ("win:ResponseTime", 1 << 48),
    ("win:WDIContext", 1 << 49),
    ("win:WDIDiag", 1 << 50),
    ("win:SQM", 1 << 51),
    ("win:AuditFailure", 1 << 52),
    ("win:AuditSuccess", 1 << 53),
    ("win:CorrelationHint", 1 << 54),
    ("win:EventlogClassic", 1 << 55),
    ("win:ReservedKeyword56", 1 << 56),
    ("win:ReservedKeyword57", 1 << 57),
    ("win:ReservedKeyword58", 1 << 58),
    ("win:ReservedKeyword59", 1 << 59),
    ("win:ReservedKeyword60", 1 << 60),
    ("win:ReservedKeyword61", 1 << 61),
    ("win:ReservedKeyword62", 1 << 62),
    ("win:ReservedKeyword63", 1 << 63),
];
const CHANNELS: &[(&str, u64)] = &[
    ("TraceClassic", 0),
    ("System", 8),
    ("Application", 9),
    ("Security", 10),
    ("TraceLogging", 11),
    ("ProviderMetadata", 12),
];

fn provider(
    node: Node<'_, '_>,
    strings: &HashMap<String, String>,
    source: SchemaSource,
    out: &mut Vec<EventSchema>,
) -> Result<(), ManifestError> {
    let guid: Guid = node
        .attribute("guid")
        .and_then(|g| g.trim().parse().ok())
        .ok_or_else(|| bad(node, "guid"))?;
    let name: Text = node.attribute("name").unwrap_or_default().to_owned().into();
    let mut levels = Names::with(LEVELS);
    let mut tasks = Names::with(TASKS);
    let mut opcodes = Names::with(OPCODES);
    let mut keywords = Names::with(KEYWORDS);
    let mut channels = Names::with(CHANNELS);
    // Opcodes of a task count for events of this task alone.
    let mut task_opcodes: HashMap<String, Names> = HashMap::new();
    let mut next_channel = 16;
    for child in parts(node) {
        let Some(name) = child.attribute("name").filter(|_| child.is_element()) else { continue };
        let key = name.to_owned();
        match child.tag_name().name() {
            "level" => drop(levels.0.insert(key, need::<u8>(child, "value")?.into())),
            "task" => drop(tasks.0.insert(key, need::<u16>(child, "value")?.into())),
            "keyword" => drop(keywords.0.insert(key, need::<u64>(child, "mask")?)),
            "opcode" => {
                let value = need::<u8>(child, "value")?.into();
                let task = child.ancestors().find(|n| is(n, "task"));
                let names = match task.and_then(|t| t.attribute("name")) {
                    Some(task) => task_opcodes.entry(task.to_owned()).or_default(),
                    None => &mut opcodes,
                };
                names.0.insert(key, value);
            }
            "channel" | "importChannel" => {
                // Numbers that nobody gives are given out in order, from 16 on; the channels of
                // Windows keep theirs.
                let windows = CHANNELS.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
                let windows = windows.filter(|_| is(&child, "importChannel"));
                let value = child.attribute("value").and_then(number).or(windows);
                let value = value.unwrap_or(next_channel);
                if windows.is_none() {
                    next_channel = value.saturating_add(1);
                }
                channels.0.insert(child.attribute("chid").unwrap_or(name).to_owned(), value);
                channels.0.insert(key, value);
            }
            _ => {}
        }
    }
    // What a source wrote about itself at run time is taken as far as it goes.
    let lenient = source == SchemaSource::EventSource;
    let templates = Templates::read(node, &maps(node, strings)?, lenient)?;
    let names = Numbers { levels, tasks, opcodes, task_opcodes, keywords, channels };
    for node in parts(node).filter(|n| is(n, "event") && n.has_attribute("value")) {
        match event(node, &names, &templates, strings) {
            Ok(described) => {
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
    strings: &HashMap<String, String>,
) -> Result<EventSchema, ManifestError> {
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
        let mask = keywords.get(event, keyword).ok_or_else(|| ManifestError::Unknown {
            line: line(event),
            what: "keyword",
            name: keyword.to_owned(),
        })?;
        schema.keywords |= mask;
        schema.keyword_names.push(keyword.to_owned().into());
    }
    schema.message = message(event, strings).map(Text::Owned);
    if let Some(template) = event.attribute("template") {
        schema.fields = templates.get(template, event)?;
    }
    Ok(schema)
}

/// The value maps and bit maps by name.
fn maps(
    provider: Node<'_, '_>,
    strings: &HashMap<String, String>,
) -> Result<HashMap<String, Arc<ValueMap>>, ManifestError> {
    let mut out = HashMap::new();
    for node in parts(provider) {
        let kind = match node.tag_name().name() {
            "valueMap" => MapKind::Values,
            "bitMap" => MapKind::Bits,
            _ => continue,
        };
        let name = node.attribute("name").ok_or_else(|| bad(node, "name"))?;
        let mut entries = Vec::new();
        for entry in node.children().filter(|n| is(n, "map")) {
            let value = need::<u64>(entry, "value")?;
            if let Some(text) = message(entry, strings) {
                entries.push(MapEntry { value, name: text.into() });
            }
        }
        out.insert(name.to_owned(), Arc::new(ValueMap::new(name.to_owned(), kind, entries)));
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
