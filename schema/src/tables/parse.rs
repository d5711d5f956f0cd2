//! Parser of event tables; `schema/tables/README.md` describes the format.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use etl_format::Guid;

use crate::model::{
    Count, EventSchema, Field, FieldKind, FieldRef, Identity, InType, Length, MapEntry, MapKind,
    Named, OutType, SchemaSource, Text, ValueMap,
};

use super::error::{TableError, number};
use super::{Keyword, OlderEvent, Provider, TableEvent};

/// The part of a table about one provider or class.
#[derive(Clone, Debug)]
pub(super) struct Part<'t> {
    pub name: Text,
    pub guid: Guid,
    file: &'t str,
    /// Lines before it in the file.
    first: usize,
    text: &'t str,
}

impl Part<'_> {
    pub fn read(&self) -> Result<Provider, TableError> {
        lines_of(self.file, self.first, self.text.lines())
    }
}

/// The parts of a table: each ends before the line of the next provider or class. Lines before the
/// first part are comments.
pub(super) fn parts<'t>(file: &'t str, text: &'t str) -> Vec<Part<'t>> {
    let mut parts: Vec<Part<'t>> = Vec::new();
    let mut offset = 0;
    for (first, line) in text.split_inclusive('\n').enumerate() {
        let mut words = line.split_ascii_whitespace();
        if line.starts_with(['p', 'c'])
            && matches!(words.next(), Some("provider" | "class"))
            && let Some(name) = words.next()
            && let Some(guid) = words.next()
            && let Ok(guid) = guid.parse()
            && let Some(text) = text.get(offset..)
        {
            parts.push(Part {
                name: self::name(name),
                guid,
                file,
                first,
                text,
            });
            // The table of a provider is one part.
            if line.starts_with('p') {
                break;
            }
        }
        offset += line.len();
    }
    // Each part ends where the next one begins.
    let starts: Vec<_> = parts.iter().skip(1).map(|next| next.text.len()).collect();
    for (part, next) in parts.iter_mut().zip(starts) {
        part.text = part.text.get(..part.text.len() - next).unwrap_or_default();
    }
    parts
}

/// A table of classic events: a part for each class.
pub(super) fn classes(file: &str, text: &str) -> Result<Vec<Provider>, TableError> {
    parts(file, text).iter().map(Part::read).collect()
}

pub(super) fn provider(file: &str, text: &str) -> Result<Provider, TableError> {
    lines_of(file, 0, text.lines())
}

/// The event of one part of a table of Windows' providers; `head` has the lines before its events.
pub(super) fn event_of_windows(head: &str, event: &str, fields: &str) -> Option<EventSchema> {
    let mut table = Table {
        file: WINDOWS,
        source: SchemaSource::Windows,
        ..Table::default()
    };
    let lines = [head, event, fields].into_iter().flat_map(str::lines);
    table.lines(0, lines).ok()?;
    table.events.pop().map(|event| named(event.schema))
}

/// The name of an event from its lines in a table of Windows' providers, without the lines of the
/// provider.
pub(super) fn name_of_windows_event(head: &str) -> Text {
    let mut table = Table {
        file: WINDOWS,
        source: SchemaSource::Windows,
        provider: Some((Text::Borrowed(""), Guid::ZERO)),
        ..Table::default()
    };
    let lines = head.lines().filter(|line| {
        let word = line.split_ascii_whitespace().next();
        matches!(word, Some("event" | "task" | "opcode"))
    });
    // A test reads all tables.
    let _ = table.lines(0, lines);
    match table.events.pop() {
        Some(event) => named(event.schema).name,
        None => Text::Borrowed(""),
    }
}

/// Whether a symbol only consists of the id of the event. The sources of the tables of Windows name
/// events without a symbol in this way.
pub(super) fn is_number(symbol: &str, id: u16) -> bool {
    let Some(number) = symbol.strip_prefix("Event") else {
        return false;
    };
    let number = number.split("_V").next().unwrap_or(number);
    number.parse() == Ok(id)
}

/// The event with its name: its own symbol, else its task and opcode. Most symbols in the tables of
/// Windows are not the provider's but made of the names of task and opcode, with the id and the
/// version: `StartingCommandOncreatecalls_V1`, `NoneOpcode20_V1`.
fn named(mut schema: EventSchema) -> EventSchema {
    if is_made_of_names(&schema) {
        schema.name = Text::Borrowed("");
    }
    schema.complete_name();
    schema
}

/// Whether the name of an event consists of its task, opcode, id and version.
fn is_made_of_names(schema: &EventSchema) -> bool {
    let name = match schema.name.rsplit_once("_V") {
        Some((name, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => &*schema.name,
    };
    let task = squeezed(&schema.task.name);
    let rest = match name.strip_prefix(&*task) {
        Some(rest) if !task.is_empty() => rest,
        _ => match name.strip_prefix("Event") {
            Some(rest) => rest.trim_start_matches(|c: char| c.is_ascii_digit()),
            None => return false,
        },
    };
    let opcode = squeezed(&schema.opcode.name);
    let rest = match rest.strip_prefix(&*opcode) {
        Some(rest) if !opcode.is_empty() => rest,
        _ => rest.strip_prefix("Opcode").unwrap_or(rest),
    };
    rest.bytes().all(|byte| byte.is_ascii_digit())
}

/// The name of a task or opcode as symbols have it: without blanks and the prefix of Windows.
fn squeezed(name: &str) -> String {
    match name.strip_prefix("win:") {
        Some("Info" | "None") => String::new(),
        Some(name) => name.replace(' ', ""),
        None => name.replace(' ', ""),
    }
}

/// A whole table of Windows' providers.
pub(super) fn provider_of_windows(text: &str) -> Result<Provider, TableError> {
    let table = Table {
        file: WINDOWS,
        source: SchemaSource::Windows,
        ..Table::default()
    };
    let mut provider = table.read(0, text.lines())?;
    for event in &mut provider.events {
        let schema = EventSchema::clone(&event.schema);
        event.schema = named(schema);
    }
    Ok(provider)
}

/// The origin of an event in the tables of Windows' providers.
const WINDOWS: &str = "tables of Windows";

/// One provider or class; `first` lines are before it in the file.
fn lines_of<'a>(
    file: &str,
    first: usize,
    lines: impl Iterator<Item = &'a str>,
) -> Result<Provider, TableError> {
    Table {
        file,
        ..Table::default()
    }
    .read(first, lines)
}

/// The name in a word of a table, which has `%20` instead of a blank.
pub(super) fn name(word: &str) -> Text {
    if word.contains('%') {
        return word.replace("%20", " ").replace("%25", "%").into();
    }
    word.to_owned().into()
}

struct Table<'a> {
    file: &'a str,
    source: SchemaSource,
    provider: Option<(Text, Guid)>,
    keywords: Vec<Keyword>,
    maps: HashMap<String, Arc<ValueMap>>,
    /// The map whose values are being read.
    open_map: Option<(String, MapKind, Vec<MapEntry>)>,
    /// The groups of bits in that map: their mask, and the entry of a value.
    open_parts: Vec<(u64, MapEntry)>,
    events: Vec<TableEvent>,
    ids: HashSet<Identity>,
    /// Other events that share the layout which is being read: name and type.
    sharing: Vec<(String, Identity)>,
    /// Whether the following fields of this event are unknown, or belong to another layout.
    ended: bool,
}

impl Default for Table<'_> {
    fn default() -> Self {
        Table {
            file: "",
            source: SchemaSource::Table,
            provider: None,
            keywords: Vec::new(),
            maps: HashMap::new(),
            open_map: None,
            open_parts: Vec::new(),
            events: Vec::new(),
            ids: HashSet::new(),
            sharing: Vec::new(),
            ended: false,
        }
    }
}

impl Table<'_> {
    fn read<'t>(
        mut self,
        first: usize,
        lines: impl Iterator<Item = &'t str>,
    ) -> Result<Provider, TableError> {
        self.lines(first, lines)?;
        let Some((name, guid)) = self.provider else {
            let what = "expected a line `provider NAME GUID`".to_owned();
            return Err(TableError::new(self.file, 1, what));
        };
        let name = name.into_owned();
        Ok(Provider {
            name,
            guid,
            keywords: self.keywords,
            events: self.events,
        })
    }

    /// Reads lines; `first` lines are before them in the file.
    fn lines<'t>(
        &mut self,
        first: usize,
        lines: impl Iterator<Item = &'t str>,
    ) -> Result<(), TableError> {
        let mut words = Vec::new();
        for (n, line) in lines.enumerate() {
            words.clear();
            words.extend(line.split_ascii_whitespace());
            if words.first().is_some_and(|word| !word.starts_with('#')) {
                let indent = line.len() - line.trim_ascii_start().len();
                self.line(indent, &words)
                    .map_err(|what| TableError::new(self.file, first + n + 1, what))?;
            }
        }
        self.close_map();
        self.close_layout();
        Ok(())
    }

    fn line(&mut self, indent: usize, words: &[&str]) -> Result<(), String> {
        if indent == 0 {
            self.close_map();
            self.close_layout();
        }
        match (indent, words) {
            (0, ["provider" | "class", name, guid]) => {
                let guid = guid.parse().map_err(|e| format!("{e}"))?;
                self.provider = Some((self::name(name), guid));
            }
            (0, ["layout", version, events @ ..]) if !events.is_empty() => {
                self.layout(version, events)?;
            }
            (0, ["keyword", mask, name]) => {
                let mask = number(mask)?;
                self.keywords.push(Keyword {
                    mask,
                    name: self::name(name).into_owned(),
                });
            }
            // Properties of a provider of Windows that are not used here.
            (0, ["kind" | "guid" | "builds" | "also" | "of" | "type", ..]) => {}
            (0, ["other", _]) => self.ended = true,
            (0, [kind @ ("values" | "bits"), name]) => {
                if self.maps.contains_key(*name) {
                    return Err(format!("the map {name} is given twice"));
                }
                let kind = if *kind == "bits" {
                    MapKind::Bits
                } else {
                    MapKind::Values
                };
                self.open_map = Some(((*name).to_owned(), kind, Vec::new()));
            }
            (0, ["event", id, version, symbol]) => self.event(id, version, symbol)?,
            (indent, words) if indent > 0 && self.open_map.is_some() => self.value(words)?,
            (indent, words) if indent > 0 && !self.events.is_empty() => self.part(indent, words)?,
            _ => return Err("a line that means nothing here".to_owned()),
        }
        Ok(())
    }

    fn value(&mut self, words: &[&str]) -> Result<(), String> {
        let [value, name] = words else {
            return Err("expected a line `VALUE NAME`".to_owned());
        };
        if let Some((value, mask)) = value.split_once('/') {
            let entry = MapEntry {
                value: number(value)?,
                name: self::name(name),
            };
            self.open_parts.push((number(mask)?, entry));
            return Ok(());
        }
        let entry = MapEntry {
            value: number(value)?,
            name: self::name(name),
        };
        if let Some((.., entries)) = &mut self.open_map {
            entries.push(entry);
        }
        Ok(())
    }

    fn close_map(&mut self) {
        if let Some((name, kind, entries)) = self.open_map.take() {
            let parts = std::mem::take(&mut self.open_parts);
            let map = ValueMap::new(name.clone(), kind, entries).with_parts(parts);
            self.maps.insert(name, Arc::new(map));
        }
    }

    fn event(&mut self, id: &str, version: &str, symbol: &str) -> Result<(), String> {
        let key = Identity::Modern {
            id: number(id)?,
            version: number(version)?,
        };
        if !self.ids.insert(key) {
            return Err(format!("event {id} version {version} is given twice"));
        }
        self.begin(key, symbol)
    }

    /// `NAME=TYPE...`: classic events of one layout.
    fn layout(&mut self, version: &str, events: &[&str]) -> Result<(), String> {
        let version = number(version)?;
        for event in events {
            let (name, opcode) = event
                .split_once('=')
                .ok_or_else(|| format!("{event} is not NAME=TYPE"))?;
            let opcode = number(opcode)?;
            let key = Identity::Classic { opcode, version };
            if !self.ids.insert(key) {
                return Err(format!("type {opcode} version {version} is given twice"));
            }
            self.sharing.push((name.to_owned(), key));
        }
        // Only the first one is read; the others are copies of it.
        let (name, key) = self.sharing.remove(0);
        self.begin(key, &name)?;
        self.name_opcode(&name, key);
        Ok(())
    }

    fn name_opcode(&mut self, name: &str, key: Identity) {
        if let (Some(event), Identity::Classic { opcode, .. }) = (self.events.last_mut(), key) {
            event.schema.opcode = Named::new(opcode, name.to_owned());
        }
    }

    fn close_layout(&mut self) {
        for (name, key) in std::mem::take(&mut self.sharing) {
            let Some(mut event) = self.events.last().cloned() else {
                return;
            };
            event.schema.identity = key;
            event.schema.name = name.clone().into();
            self.events.push(event);
            self.name_opcode(&name, key);
        }
    }

    fn begin(&mut self, key: Identity, symbol: &str) -> Result<(), String> {
        let Some((provider_name, provider)) = &self.provider else {
            return Err("a line `provider NAME GUID` has to come first".to_owned());
        };
        let mut schema = EventSchema::new(*provider, key, self.source);
        schema.provider_name = provider_name.clone();
        schema.name = match key {
            Identity::Modern { id, .. }
                if self.source == SchemaSource::Windows && is_number(symbol, id) =>
            {
                Text::Borrowed("")
            }
            _ => name(symbol),
        };
        self.ended = false;
        self.events.push(TableEvent::new(schema, self.file));
        Ok(())
    }

    /// A line below an event.
    fn part(&mut self, indent: usize, words: &[&str]) -> Result<(), String> {
        match words {
            ["keywords", names @ ..] => {
                let mask = self.mask(names)?;
                let schema = &mut self.last()?.schema;
                schema.keywords = mask;
                schema.keyword_names = names.iter().map(|word| name(word)).collect();
            }
            ["was", "level", level, "keywords", names @ ..] => {
                let mask = self.mask(names)?;
                let older = OlderEvent {
                    level: number(level)?,
                    keywords: mask,
                };
                self.last()?.older = Some(older);
            }
            // The fields so far are another layout; the event's own layout follows.
            ["or"] => {
                let event = self.last()?;
                let fields = std::mem::take(&mut event.schema.fields);
                event.other_layouts.push(fields);
            }
            ["field", ..] if self.ended => {}
            // The length of the field is unknown, so that the rest of the payload is left over.
            ["field", _, _, options @ ..] if options.contains(&"unknown") => self.ended = true,
            ["field", name, kind, options @ ..] => self.field(indent, name, kind, options)?,
            ["task", value, words @ ..] => {
                self.last()?.schema.task = Named::new(number_or_0(value)?, name(&words.join(" ")));
            }
            ["opcode", value, words @ ..] => {
                self.last()?.schema.opcode =
                    Named::new(number_or_0(value)?, name(&words.join(" ")));
            }
            ["channel", channel] => self.last()?.schema.channel = Named::new(0, name(channel)),
            // Keywords with unknown masks.
            ["unmasked", ..] => {}
            ["level", value] => self.last()?.schema.level = Named::new(number(value)?, ""),
            ["stack"] => self.last()?.stack = true,
            ["shipped", id, version] => {
                let shipped = Identity::Modern {
                    id: number(id)?,
                    version: number(version)?,
                };
                self.last()?.shipped = Some(shipped);
            }
            ["errata", ids @ ..] => {
                if let Some(unknown) = ids.iter().find(|id| super::errata::erratum(id).is_none()) {
                    return Err(format!("no erratum is called {unknown}"));
                }
                self.last()?.errata = ids.iter().map(|id| (*id).to_owned()).collect();
            }
            ["source", text @ ..] => self.last()?.origin = text.join(" "),
            _ => return Err("a line that means nothing in an event".to_owned()),
        }
        Ok(())
    }

    fn last(&mut self) -> Result<&mut TableEvent, String> {
        self.events
            .last_mut()
            .ok_or_else(|| "a line outside every event".to_owned())
    }

    fn mask(&self, names: &[&str]) -> Result<u64, String> {
        names.iter().try_fold(0, |mask, name| {
            let wanted = self::name(name);
            match self.keywords.iter().find(|keyword| keyword.name == wanted) {
                Some(keyword) => Ok(mask | keyword.mask),
                None => Err(format!("no keyword is called {name}")),
            }
        })
    }

    /// Sets an option of a field; `fields` are the fields before it.
    fn set_option(
        &self,
        field: &mut Field,
        option: &str,
        value: &str,
        fields: &[Field],
    ) -> Result<(), String> {
        match option {
            "count" if value == "rest" => field.count = Count::Rest,
            "count" => {
                field.count = match value.parse() {
                    Ok(n) => Count::Const(n),
                    Err(_) => Count::Field(reference(value, fields)?),
                }
            }
            "length" if value == "rest" => field.length = Length::Rest,
            "length" => {
                field.length = match value.parse() {
                    Ok(n) => Length::Fixed(n),
                    Err(_) => Length::Field(reference(value, fields)?),
                }
            }
            "align" if value == "c" => field.aligned = true,
            "out" => {
                let out = OutType::from_name(value);
                field.out = out.ok_or_else(|| format!("no out-type is called {value}"))?;
            }
            "map" => {
                let map = self.maps.get(value);
                field.map = Some(
                    map.ok_or_else(|| format!("no map is called {value}"))?
                        .clone(),
                );
            }
            other => return Err(format!("a field has no {other}")),
        }
        Ok(())
    }

    fn field(
        &mut self,
        indent: usize,
        name: &str,
        kind: &str,
        options: &[&str],
    ) -> Result<(), String> {
        let nested = indent > 2;
        // Counts and lengths look among the fields of their own level.
        let all = self
            .events
            .last()
            .map(|e| e.schema.fields.as_slice())
            .unwrap_or_default();
        let fields = match all {
            [
                ..,
                Field {
                    kind: FieldKind::Struct(members),
                    ..
                },
            ] if nested => members,
            fields => fields,
        };
        let mut field = new_field(name, kind)?;
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let value = options
                .next()
                .ok_or_else(|| format!("{option} wants a value"))?;
            self.set_option(&mut field, option, value, fields)?;
        }
        if self.source == SchemaSource::Windows {
            super::out_by_name::complete(&mut field);
        }
        let event = self.last()?;
        match event.schema.fields.last_mut() {
            Some(Field {
                kind: FieldKind::Struct(members),
                ..
            }) if nested => members.push(field),
            _ if nested => {
                return Err("a field is nested below one that is not a Struct".to_owned());
            }
            _ => event.schema.fields.push(field),
        }
        Ok(())
    }
}

/// A field of a type, without options.
fn new_field(name: &str, kind: &str) -> Result<Field, String> {
    let name = name.to_owned();
    match kind {
        "Struct" => Ok(Field::structure(name, Vec::new())),
        "CountedUtf16String" => Ok(Field::new(name, InType::Utf16).with_length(Length::U16)),
        "CountedMbcsString" => Ok(Field::new(name, InType::Ansi).with_length(Length::U16)),
        other => match InType::from_name(other) {
            Some(ty) => Ok(Field::new(name, ty)),
            None => Err(format!("no type is called {other}")),
        },
    }
}

/// A reference to one of the fields before a field.
fn reference(name: &str, fields: &[Field]) -> Result<FieldRef, String> {
    let index = fields.iter().position(|field| field.name == name);
    match index.and_then(|index| u16::try_from(index).ok()) {
        Some(index) => Ok(FieldRef::Here(index)),
        None => Err(format!("no field before this one is called {name}")),
    }
}

/// A number; 0 for an unknown one (`?`).
fn number_or_0<T: TryFrom<u64> + Default>(text: &str) -> Result<T, String> {
    if text == "?" {
        Ok(T::default())
    } else {
        number(text)
    }
}
