//! The tables of the providers that Windows ships (crate `etl-providers`), and the choice of the
//! layout that fits a payload.
//!
//! Builds of Windows have different fields for the same version of an event, mostly further fields
//! at the end. If the layout of the newest build does not end exactly where the payload ends, the
//! first other layout that does is used.

use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use etl_format::Guid;
use etl_format::constants::PointerSize;

use super::{Provider, TableError, parse};
use crate::decode::Decoder;
use crate::model::{EventSchema, Field, Identity, Named, SchemaSource, Text};

/// The whole table of a provider; `None` if no events of it are known.
///
/// # Errors
/// There are none: a test reads all tables.
pub fn provider(guid: Guid) -> Option<Result<Provider, TableError>> {
    let packed = etl_providers::find(guid.to_bytes())?;
    if packed.event_count() == 0 {
        return None;
    }
    Some(parse::provider_of_windows(packed.table()))
}

/// The same, kept as long as the program runs.
#[must_use]
pub fn kept(guid: Guid) -> Option<&'static Provider> {
    static PROVIDERS: OnceLock<Vec<OnceLock<Option<Provider>>>> = OnceLock::new();
    let index = etl_providers::position(guid.to_bytes())?;
    let kept = PROVIDERS.get_or_init(one_for_each_provider).get(index)?;
    kept.get_or_init(|| provider(guid)?.ok()).as_ref()
}

/// An empty cell for each provider.
fn one_for_each_provider<T>() -> Vec<OnceLock<T>> {
    let mut cells = Vec::new();
    cells.resize_with(etl_providers::all().len(), OnceLock::new);
    cells
}

/// The provider with this name (case-insensitive) or GUID, or the unique provider whose name ends
/// with a hyphen and this text (`Kernel-Process`).
///
/// ```
/// use etl_schema::{providers, tables::windows};
///
/// assert_eq!(windows::find("kernel-process"), Some(providers::KERNEL_PROCESS));
/// assert_eq!(windows::find("kernel"), None);
/// ```
#[must_use]
pub fn find(text: &str) -> Option<Guid> {
    if let Ok(guid) = text.parse::<Guid>() {
        return etl_providers::find(guid.to_bytes()).map(|_| guid);
    }
    let ending = format!("-{text}").to_ascii_lowercase();
    let mut with_ending = Vec::new();
    for provider in etl_providers::all() {
        let guid = Guid::from_bytes(provider.guid());
        if provider.name().eq_ignore_ascii_case(text) {
            return Some(guid);
        }
        if provider.name().to_ascii_lowercase().ends_with(&ending) {
            with_ending.push(guid);
        }
    }
    match with_ending.as_slice() {
        [guid] => Some(*guid),
        _ => None,
    }
}

/// The names of all providers.
pub fn names() -> impl Iterator<Item = &'static str> {
    etl_providers::all().iter().map(|provider| provider.name())
}

/// The decoder of an event's payload: with the fields of the layout that fits exactly, else with
/// the fields of the newest layout. If no layout is known, the decoder has no fields.
///
/// If no table has the version, the layout of another version is used only if it fits exactly.
#[must_use]
pub fn decoder(
    provider: Guid,
    id: u16,
    version: u8,
    payload: &[u8],
    pointers: PointerSize,
) -> Option<&'static Decoder> {
    let table = Table::of(provider)?;
    let versions = table.with_id(id);
    let index = versions.partition_point(|event| event.version < version);
    if let Some(event) = versions.get(index)
        && event.version == version
    {
        return match event.layouts.as_slice() {
            // Some events come without any payload although they have fields.
            _ if payload.is_empty() => event.without_fields(table),
            [only] => event.decoder(table, only),
            layouts => match event.exact_decoder(table, payload, pointers) {
                Some(decoder) => Some(decoder),
                None => event.decoder(table, layouts.first()?),
            },
        };
    }
    // Older versions first, the nearest one before others.
    let (older, newer) = versions.split_at_checked(index)?;
    let mut others = older.iter().rev().chain(newer);
    let nearest = others.clone().next()?;
    if payload.is_empty() {
        return nearest.without_fields(table);
    }
    match others.find_map(|event| event.exact_decoder(table, payload, pointers)) {
        Some(decoder) => Some(decoder),
        None => nearest.without_fields(table),
    }
}

/// An event in the table of a provider: id, version and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEvent {
    /// Its id.
    pub id: u16,
    /// Its version.
    pub version: u8,
    /// Its name.
    pub name: Text,
}

/// The events of a provider, by id and version. Empty if none are known.
#[must_use]
pub fn events(provider: Guid) -> Vec<ListedEvent> {
    let Some(table) = Table::of(provider) else {
        return Vec::new();
    };
    let mut events = Vec::with_capacity(table.events.len());
    for event in &table.events {
        let name = event.name();
        events.push(ListedEvent {
            id: event.id,
            version: event.version,
            name,
        });
    }
    events
}

/// The fields of all versions and layouts of the events of a provider that have a name: by id and
/// version, the newest layout of a version first.
#[must_use]
pub(crate) fn layouts(provider: Guid, name: &str) -> Vec<&'static [Field]> {
    let mut layouts = Vec::new();
    let Some(table) = Table::of(provider) else {
        return layouts;
    };
    for event in &table.events {
        if &*event.name() != name {
            continue;
        }
        for layout in &event.layouts {
            if let Some(decoder) = event.decoder(table, layout) {
                layouts.push(decoder.schema().fields.as_slice());
            }
        }
    }
    layouts
}

/// The layout of an event in a build of Windows.
#[derive(Clone, Copy, Debug)]
pub struct BuildLayout {
    /// The event with its fields.
    pub schema: &'static EventSchema,
    /// Whether these are all fields: tables end before a field of unknown length.
    pub is_complete: bool,
}

/// The layout of an event in a build of Windows: the newest layout, unless the table has another
/// one for this build. If the tables do not have the build, the last known build before it is used.
/// `None` if the provider has no such event.
#[must_use]
pub fn in_build(provider: Guid, id: u16, version: u8, build: u32) -> Option<BuildLayout> {
    let table = Table::of(provider)?;
    let event = table
        .with_id(id)
        .iter()
        .find(|event| event.version == version)?;
    let build = last_known(table.builds(), build);
    let layout = match event
        .layouts
        .iter()
        .find(|layout| is_in(layout.builds, build))
    {
        Some(layout) => layout,
        None => event.layouts.first()?,
    };
    let schema = event.decoder(table, layout)?.schema();
    Some(BuildLayout {
        schema,
        is_complete: layout.is_complete(),
    })
}

/// The decoder of a classic event, without fields: the tables only have its name. If no table has
/// the version of a type, another version names it.
#[must_use]
pub fn class_event(class: Guid, opcode: u8, version: u16) -> Option<&'static Decoder> {
    let types = &Table::of(class)?.types;
    let mut versions = types.iter().filter(|ty| ty.opcode == opcode);
    let ty = match versions.clone().find(|ty| ty.version == version) {
        Some(ty) => ty,
        None => versions.next_back()?,
    };
    Some(ty.decoder.get_or_init(|| {
        let identity = Identity::Classic { opcode, version };
        let mut schema = EventSchema::new(class, identity, SchemaSource::Windows);
        let provider = etl_providers::find(class.to_bytes());
        schema.provider_name = provider.map_or("", |provider| provider.name()).into();
        schema.name = parse::name(ty.event);
        schema.opcode = Named::new(opcode, parse::name(ty.name));
        Decoder::new(Arc::new(schema))
    }))
}

/// The events of a provider, by id and version, and the types of a class.
struct Table {
    /// Lines before the first event: keywords and maps.
    head: &'static str,
    events: Vec<Event>,
    types: Vec<Type>,
}

/// A type of classic events: its names.
struct Type {
    opcode: u8,
    version: u16,
    event: &'static str,
    name: &'static str,
    decoder: OnceLock<Decoder>,
}

impl Type {
    /// `line` is what follows `type `.
    fn new(line: &'static str) -> Option<Type> {
        let mut words = line.split_ascii_whitespace();
        Some(Type {
            opcode: words.next()?.parse().ok()?,
            version: words.next()?.parse().ok()?,
            event: words.next()?,
            name: words.next()?,
            decoder: OnceLock::new(),
        })
    }
}

struct Event {
    id: u16,
    version: u8,
    /// Its lines but for the fields.
    head: &'static str,
    /// The newest first.
    layouts: Vec<Layout>,
    without_fields: OnceLock<Option<Decoder>>,
}

struct Layout {
    /// The builds of Windows that have it; empty for the newest layout.
    builds: &'static str,
    /// The lines of the fields.
    fields: &'static str,
    decoder: OnceLock<Option<Decoder>>,
}

impl Table {
    /// The table of a provider. The first call for a provider finds the lines of all its events.
    fn of(provider: Guid) -> Option<&'static Table> {
        static TABLES: OnceLock<Vec<OnceLock<Table>>> = OnceLock::new();
        let index = etl_providers::position(provider.to_bytes())?;
        let provider = etl_providers::all().get(index)?;
        let table = TABLES.get_or_init(one_for_each_provider).get(index)?;
        Some(table.get_or_init(|| Table::read(provider.table())))
    }

    fn read(text: &'static str) -> Table {
        let mut table = Table {
            head: text,
            events: Vec::new(),
            types: Vec::new(),
        };
        let mut rest = text;
        let mut start = 0;
        // Lines that are not indented begin an event or another layout of it.
        while !rest.is_empty() {
            let end = rest.find('\n').map_or(rest.len(), |newline| newline + 1);
            let next = end + indented(rest.get(end..).unwrap_or_default());
            let (part, after) = rest.split_at_checked(next).unwrap_or((rest, ""));
            let (first, lines) = part.split_at_checked(end).unwrap_or((part, ""));
            if let Some(event) = first.strip_prefix("event ") {
                if table.events.is_empty() {
                    table.head = text.get(..start).unwrap_or_default();
                }
                let fields = first.len() + lines.find("  field ").unwrap_or(lines.len());
                let (head, fields) = part.split_at_checked(fields).unwrap_or((part, ""));
                table.events.extend(Event::new(event, head, fields));
            } else if let Some(line) = first.strip_prefix("type ") {
                table.types.extend(Type::new(line));
            } else if let Some(builds) = first.strip_prefix("other ")
                && let Some(event) = table.events.last_mut()
            {
                event.layouts.push(Layout::new(builds.trim_end(), lines));
            }
            start += next;
            rest = after;
        }
        table.events.sort_by_key(|event| (event.id, event.version));
        table
    }

    /// The builds that the sources of the table had.
    fn builds(&self) -> &'static str {
        self.head
            .lines()
            .find_map(|line| line.strip_prefix("builds "))
            .unwrap_or_default()
    }

    fn with_id(&self, id: u16) -> &[Event] {
        let from = self.events.partition_point(|event| event.id < id);
        let to = self.events.partition_point(|event| event.id <= id);
        self.events.get(from..to).unwrap_or_default()
    }
}

impl Layout {
    fn new(builds: &'static str, fields: &'static str) -> Layout {
        Layout {
            builds,
            fields,
            decoder: OnceLock::new(),
        }
    }

    /// Whether all fields are known, not only those up to one of unknown length.
    fn is_complete(&self) -> bool {
        !self.fields.lines().any(has_unknown_length)
    }
}

/// Whether the line of a field has the option `unknown`.
fn has_unknown_length(line: &str) -> bool {
    line.split_ascii_whitespace()
        .skip(3)
        .any(|option| option == "unknown")
}

/// The ranges in a list of builds: `7600,10586-17134`.
fn ranges(builds: &str) -> impl Iterator<Item = RangeInclusive<u32>> {
    builds.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    })
}

fn is_in(builds: &str, build: u32) -> bool {
    ranges(builds).any(|range| range.contains(&build))
}

/// The build itself if it is in the list, else the last one before it, else the first one.
fn last_known(builds: &str, build: u32) -> u32 {
    if is_in(builds, build) {
        return build;
    }
    let earlier = ranges(builds)
        .map(|range| *range.end())
        .filter(|last| *last < build);
    if let Some(last) = earlier.max() {
        return last;
    }
    ranges(builds)
        .map(|range| *range.start())
        .min()
        .unwrap_or(build)
}

/// Bytes of the indented lines at the start of a text.
fn indented(text: &str) -> usize {
    text.split_inclusive('\n')
        .take_while(|line| line.starts_with(' '))
        .map(str::len)
        .sum()
}

impl Event {
    /// `line` is what follows `event `.
    fn new(line: &str, head: &'static str, fields: &'static str) -> Option<Event> {
        let mut words = line.split(' ');
        Some(Event {
            id: words.next()?.parse().ok()?,
            version: words.next()?.parse().ok()?,
            head,
            layouts: vec![Layout::new("", fields)],
            without_fields: OnceLock::new(),
        })
    }

    /// Its name, as its schema has it.
    fn name(&self) -> Text {
        parse::name_of_windows_event(self.head)
    }

    fn decoder(&self, table: &Table, layout: &'static Layout) -> Option<&'static Decoder> {
        layout
            .decoder
            .get_or_init(|| self.compile(table, layout.fields))
            .as_ref()
    }

    /// The decoder of the first layout that ends exactly where the payload ends.
    fn exact_decoder(
        &'static self,
        table: &Table,
        payload: &[u8],
        pointers: PointerSize,
    ) -> Option<&'static Decoder> {
        for layout in &self.layouts {
            if let Some(decoder) = self.decoder(table, layout)
                && decoder.check(payload, pointers).is_exact()
            {
                return Some(decoder);
            }
        }
        None
    }

    fn without_fields(&'static self, table: &Table) -> Option<&'static Decoder> {
        self.without_fields
            .get_or_init(|| self.compile(table, ""))
            .as_ref()
    }

    fn compile(&self, table: &Table, fields: &str) -> Option<Decoder> {
        let schema = parse::event_of_windows(table.head, self.head, fields)?;
        Some(Decoder::new(Arc::new(schema)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{OwnedValue, encode};

    const KERNEL_PROCESS: Guid = Guid::new(
        0x22fb_2cd6,
        0x0e7b,
        0x422b,
        [0xa0, 0xc7, 0x2f, 0xad, 0x1f, 0xd0, 0xe7, 0x16],
    );

    fn decode(
        provider: Guid,
        id: u16,
        version: u8,
        payload: &[u8],
    ) -> Option<(String, Vec<String>)> {
        let decoder = decoder(provider, id, version, payload, PointerSize::P8)?;
        let fields = decoder.fields(payload, PointerSize::P8);
        let names = fields.map(|(field, _)| field.name.to_string()).collect();
        Some((decoder.schema().name.to_string(), names))
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
    fn every_table_is_read() {
        let mut events = 0;
        for described in etl_providers::all().iter().filter(|p| p.event_count() > 0) {
            let guid = Guid::from_bytes(described.guid());
            let provider = provider(guid).unwrap().unwrap();
            assert_eq!(provider.name, described.name());
            assert_eq!(provider.events.len(), described.event_count() as usize);
            let table = Table::of(guid).unwrap();
            assert_eq!(
                table.events.len(),
                provider.events.len(),
                "{}",
                provider.name
            );
            for event in &table.events {
                for layout in &event.layouts {
                    let decoder = event.decoder(table, layout);
                    let schema = decoder.unwrap_or_else(|| panic!("{}", event.head)).schema();
                    let id = Identity::Modern {
                        id: event.id,
                        version: event.version,
                    };
                    assert_eq!(schema.identity, id);
                    // What is written by it is read by it.
                    let values = vec![OwnedValue::Auto; schema.fields.len()];
                    let payload = encode(schema, &values, PointerSize::P8).unwrap();
                    let fits =
                        decoder.is_some_and(|d| d.check(&payload, PointerSize::P8).is_exact());
                    assert!(fits, "{} {}", event.head, layout.fields);
                    events += 1;
                }
            }
        }
        assert_eq!(events, 73_203 + 1_922);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
    fn decoder_has_the_fields_of_the_event() {
        let payload = [
            &[7, 0, 0, 0][..],
            &[0; 8],
            &[8, 0, 0, 0, 1, 0, 0, 0],
            b"a\0\0\0",
        ]
        .concat();
        let (name, fields) = decode(KERNEL_PROCESS, 1, 0, &payload).unwrap();
        assert_eq!(name, "ProcessStart");
        assert_eq!(
            fields,
            [
                "ProcessID",
                "CreateTime",
                "ParentProcessID",
                "SessionID",
                "ImageName"
            ]
        );
    }

    #[test]
    fn class_event_names_types_of_classes() {
        let heap = "222962ab-6180-4b88-a825-346b75f2a24a".parse().unwrap();
        let named = |opcode, version| {
            let schema = class_event(heap, opcode, version)?.schema();
            Some((schema.provider_name.to_string(), schema.name.to_string()))
        };
        let alloc = ("Heap Trace Provider".to_owned(), "Heap_Alloc".to_owned());
        assert_eq!(
            (named(33, 2), named(33, 9)),
            (Some(alloc.clone()), Some(alloc))
        );
        assert_eq!(named(1, 2), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
    fn in_build_returns_the_layout_of_the_build() {
        let capture = "2ed6006e-4729-4609-b423-3ee7bcd678ef".parse().unwrap();
        let fields = |build| {
            in_build(capture, 1001, 0, build)
                .unwrap()
                .schema
                .fields
                .len()
        };
        assert_eq!([6002, 7600, 7601, 9600, 10_586, 17_134].map(fields), [4; 6]);
        assert_eq!([17_763, 19_045, 20_348, 30_000].map(fields), [6; 4]);
        assert!(in_build(capture, 1001, 0, 19_045).unwrap().is_complete);
        // The length of a structure in it is unknown.
        assert!(!in_build(capture, 1003, 0, 19_045).unwrap().is_complete);
        assert!(in_build(capture, 1001, 1, 19_045).is_none());
        let listed = events(capture);
        let rules = listed.iter().find(|event| event.id == 1011).unwrap();
        assert_eq!((rules.version, &*rules.name), (0, "Rules"));
        assert!(events(Guid::ZERO).is_empty());
    }

    #[test]
    fn find_takes_names_ends_of_names_and_guids() {
        for text in ["microsoft-windows-kernel-process", "Kernel-Process"] {
            assert_eq!(find(text), Some(KERNEL_PROCESS));
        }
        assert_eq!(find(&KERNEL_PROCESS.to_string()), Some(KERNEL_PROCESS));
        assert_eq!(find("no such provider"), None);
    }

    /// Items of an identifier list, each with its length before its bytes, as many as the depth.
    #[test]
    fn desktop_folders_have_as_many_items_as_their_depth() {
        let shell = find("Microsoft-Windows-Shell-Core").unwrap();
        let address = 0x1234u64.to_le_bytes();
        let depth = 2u32.to_le_bytes();
        let first = 3u32.to_le_bytes();
        let second = 1u32.to_le_bytes();
        let payload = [&address[..], &depth, &first, b"abc", &second, b"d"].concat();
        let decoder = decoder(shell, 19_503, 0, &payload, PointerSize::P8).unwrap();
        assert!(decoder.check(&payload, PointerSize::P8).is_exact());
        let cut = &payload[..payload.len() - 1];
        assert!(decoder.check(cut, PointerSize::P8).is_short());
        let mut text = Vec::new();
        let mut fields = decoder.fields(&payload, PointerSize::P8);
        crate::render::Renderer::new().text_fields(&mut text, &mut fields);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            " Address=0x1234 Depth=2 Children=[{ Length=3 Data=616263 },{ Length=1 Data=64 }]"
        );
    }

    /// Windows 11 24H2 added two fields to an event without a new version.
    #[test]
    #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
    fn another_layout_is_used_only_if_it_fits_the_payload_exactly() {
        let lsa = "199fe037-2b82-40a9-82ac-e1d46c792b99".parse().unwrap();
        let (_, exact) = decode(lsa, 6156, 0, &[0; 12]).unwrap();
        assert_eq!(exact, ["HardwareChecks", "ADDomainJoin", "AADDomainJoin"]);
        let table = Table::of(lsa).unwrap();
        let event = &table.with_id(6156)[0];
        let size = |at: usize| {
            event
                .decoder(table, &event.layouts[at])
                .unwrap()
                .fixed_size(PointerSize::P8)
        };
        assert_eq!((event.layouts.len(), size(1)), (2, Some(12)));
        // No layout has 13 bytes: the newest one is cut short or leaves a byte over.
        let chosen = decoder(lsa, 6156, 0, &[0; 13], PointerSize::P8).unwrap();
        assert_eq!(chosen.schema().fields.len(), 5);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
    fn unknown_version_has_fields_only_if_a_known_layout_fits() {
        let stop = |payload: &[u8]| decode(KERNEL_PROCESS, 5, 200, payload).unwrap();
        let known = decoder(KERNEL_PROCESS, 5, 0, &[0; 4], PointerSize::P8).unwrap();
        let image_load = [0; 36];
        assert_eq!(known.schema().name, "ImageLoad");
        assert_eq!(stop(&[0; 3]), ("ImageLoad".to_owned(), Vec::new()));
        let (name, fields) = stop(&[&image_load[..], b"a\0\0\0"].concat());
        assert_eq!(name, "ImageLoad");
        assert_eq!(fields.len(), 7);
        assert!(decoder(KERNEL_PROCESS, 9_999, 0, &[], PointerSize::P8).is_none());
    }

    #[test]
    fn network_addresses_and_ports_are_printed_as_such() {
        let network: Guid = find("Kernel-Network").unwrap();
        // A segment received by 10.0.0.2:49152 from 192.168.1.9:443.
        let ids = [7u32.to_le_bytes(), 60u32.to_le_bytes()].concat();
        let addresses = [[192, 168, 1, 9], [10, 0, 0, 2]].concat();
        let ports = [443u16.to_be_bytes(), 49152u16.to_be_bytes()].concat();
        let payload = [&ids[..], &addresses, &ports, &[0; 4], &[0; 8]].concat();
        let decoder = decoder(network, 11, 0, &payload, PointerSize::P8).unwrap();
        let mut text = Vec::new();
        crate::render::Renderer::new()
            .text_fields(&mut text, &mut decoder.fields(&payload, PointerSize::P8));
        assert_eq!(
            String::from_utf8(text).unwrap(),
            " PID=7 size=60 daddr=192.168.1.9 saddr=10.0.0.2 dport=443 sport=49152 seqnum=0 \
             connid=0x0"
        );
    }

    /// Symbols that consist of the names of task and opcode, the id and the version are noise.
    #[test]
    #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
    fn names_are_task_and_opcode_instead_of_made_symbols() {
        let name = |provider: &str, id: u16, version: u8| {
            let provider = find(provider).unwrap();
            let listed = events(provider);
            let listed = listed.iter().find(|e| e.id == id && e.version == version);
            let decoder = decoder(provider, id, version, b"", PointerSize::P8).unwrap();
            assert_eq!(listed.unwrap().name, decoder.schema().name);
            let whole = kept(provider).unwrap();
            let identity = Identity::Modern { id, version };
            let event = whole.events.iter().find(|e| e.schema.identity == identity);
            assert_eq!(event.unwrap().schema.name, decoder.schema().name);
            decoder.schema().name.to_string()
        };
        let shell = "Microsoft-Windows-PowerShell";
        assert_eq!(name(shell, 4104, 1), "StartingCommand/Oncreatecalls");
        assert_eq!(name(shell, 7937, 1), "EventID(7937)");
        assert_eq!(name(shell, 45_116, 1), "WorkflowExecution");
        let deployment = "Microsoft-Windows-AppXDeployment-Server";
        let task = "AppXDeployment.Task.Server.OSIM";
        assert_eq!(name(deployment, 3146, 0), format!("{task}/Start"));
        assert_eq!(name("Kernel-Process", 1, 0), "ProcessStart");
        assert_eq!(name("Kernel-Process", 5, 0), "ImageLoad");
    }

    #[test]
    fn events_without_a_symbol_are_called_by_their_task_or_number() {
        let winrm = find("Microsoft-Windows-WinRM").unwrap();
        let names = events(winrm);
        let name = |id| {
            names
                .iter()
                .find(|event| event.id == id)
                .map(|event| &*event.name)
        };
        assert_eq!(name(255), Some("EventID(255)"));
        let decoder = decoder(winrm, 255, 0, b"", PointerSize::P8).unwrap();
        assert_eq!(decoder.schema().name, "EventID(255)");
        assert!(names.iter().all(|event| !event.name.is_empty()));
    }
}
