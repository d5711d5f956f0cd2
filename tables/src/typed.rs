//! Tables of the events of one kind: a column for each field.
//!
//! The versions of an event share a table: a field that a version does not have is null. Where two
//! versions have a field in two types, the column has the wider one, or text.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use etl_events::context::Context;
use etl_events::{Depth, Event, EventDecoder, Selection};
use etl_format::Guid;
use etl_format::read::{Record, Records, Source};
use etl_schema::decode::{SystemTime, Value};
use etl_schema::render::{self, Names, Renderer};
use etl_schema::{Count, EventSchema, Field, FieldKind, InType, OutType};
use foldhash::HashMap;

use crate::builder::Builder;
use crate::cell::Cell;
use crate::column::Kind;
use crate::events::{decoder, set_guid, set_keys};
use crate::options::Options;
use crate::schema::{Slot, schema_of};
use crate::tables::EVENTS;
use crate::{Error, Result};

/// Columns before the fields: those of `events` up to the thread, and two more.
const VERSION: usize = crate::event_columns::KEYS;
const ACTIVITY: usize = VERSION + 1;
const FIRST: usize = ACTIVITY + 1;

/// Kinds of events that are kept apart; a machine has some thousand providers.
const MAX_KINDS: usize = 1 << 14;
/// Columns of a table.
const MAX_COLUMNS: usize = 1 << 10;
/// Schemas whose tables are remembered; after that they are looked up again.
const MAX_SCHEMAS: usize = 1 << 14;

/// The table of the events of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedTable {
    /// `Provider.Event`.
    pub name: String,
    pub(crate) slots: Vec<Slot>,
    /// The place of a field by its name, and of how many with that name before it.
    places: BTreeMap<(String, usize), usize>,
    /// Likewise the place of the name of its value.
    names: BTreeMap<(String, usize), usize>,
    /// Names of columns in lower case, and how many underscores after each are known to lead to
    /// names of other columns.
    used: BTreeMap<String, usize>,
}

impl TypedTable {
    fn new(name: String) -> Self {
        let mut slots = EVENTS.slots();
        slots.truncate(VERSION);
        slots.push(Slot::of_field("version", Kind::Int32));
        slots.push(Slot::of_field("activity", Kind::Text));
        let used = slots
            .iter()
            .map(|slot| (slot.name.to_ascii_lowercase(), 1))
            .collect();
        TypedTable {
            name,
            slots,
            places: BTreeMap::new(),
            names: BTreeMap::new(),
            used,
        }
    }

    /// Its schema.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        schema_of(&self.slots)
    }

    /// Adds the fields of a version.
    fn add(&mut self, schema: &EventSchema) {
        for (field, before) in numbered(&schema.fields) {
            let key = (field.name.to_string(), before);
            self.column(key.clone(), &field.name, kind_of(field), false);
            if is_named(field) && field.count == Count::One {
                self.column(key, &format!("{}_name", field.name), Kind::Word, true);
            }
        }
    }

    fn column(&mut self, key: (String, usize), name: &str, kind: Kind, is_name: bool) {
        let places = if is_name {
            &mut self.names
        } else {
            &mut self.places
        };
        if let Some(&at) = places.get(&key) {
            if let Some(slot) = self.slots.get_mut(at) {
                slot.kind = wider(slot.kind, kind);
            }
            return;
        }
        if self.slots.len() >= MAX_COLUMNS {
            return;
        }
        // SQL does not distinguish capital letters.
        let (mut name, wanted) = (name.to_owned(), name.to_ascii_lowercase());
        let (mut lower, mut added) = (wanted.clone(), 0);
        while let Some(&more) = self.used.get(&lower) {
            let underscores = "_".repeat(more);
            name.push_str(&underscores);
            lower.push_str(&underscores);
            added += more;
        }
        self.used.insert(lower, 1);
        self.used.insert(wanted, added + 1);
        places.insert(key, self.slots.len());
        self.slots.push(Slot::of_field(&name, kind));
    }

    /// The places of the fields of a version, and of the names of their values.
    fn places_of(&self, schema: &EventSchema) -> Vec<(Option<usize>, Option<usize>)> {
        let places = numbered(&schema.fields).map(|(field, before)| {
            let key = (field.name.to_string(), before);
            (
                self.places.get(&key).copied(),
                self.names.get(&key).copied(),
            )
        });
        places.collect()
    }
}

/// Fields, and how many of the same name come before each.
fn numbered(fields: &[Field]) -> impl Iterator<Item = (&Field, usize)> {
    let mut seen: HashMap<&str, usize> = HashMap::default();
    fields.iter().map(move |field| {
        let count = seen.entry(&field.name).or_default();
        let before = *count;
        *count += 1;
        (field, before)
    })
}

/// The type of the column of a field.
fn kind_of(field: &Field) -> Kind {
    use InType::{
        Binary, Boolean, Double, FileTime, Float, HexInt32, HexInt64, Int8, Int16, Int32, Int64,
        Pointer, SizeT, SystemTime, UInt8, UInt16, UInt32, UInt64,
    };
    let FieldKind::Value(ty) = &field.kind else {
        return Kind::Text;
    };
    if field.count != Count::One {
        return Kind::Text;
    }
    match (ty, field.out) {
        (Boolean, _) => Kind::Bool,
        (Int8 | UInt8 | Int16 | UInt16 | Int32 | UInt32, OutType::Boolean) => Kind::Bool,
        (Int8 | UInt8 | UInt16, OutType::String) => Kind::Text,
        (UInt32, OutType::Ipv4) => Kind::Text,
        (Int8 | UInt8 | Int16 | UInt16 | Int32, _) => Kind::Int32,
        (UInt32 | HexInt32 | Int64 | UInt64 | HexInt64 | Pointer | SizeT, _) => Kind::Int64,
        (Float | Double, _) => Kind::Float64,
        (FileTime | SystemTime, _) => Kind::Time,
        (Binary, OutType::Ipv6 | OutType::SocketAddress) => Kind::Text,
        (Binary, _) => Kind::Bytes,
        _ => Kind::Text,
    }
}

/// Whether values of a field may have names of their own.
fn is_named(field: &Field) -> bool {
    field.map.is_some() || field.is_status()
}

/// A type that has the values of both.
fn wider(a: Kind, b: Kind) -> Kind {
    match (a.min(b), a.max(b)) {
        (a, b) if a == b => a,
        (Kind::Bool, Kind::Int32) => Kind::Int32,
        (Kind::Bool | Kind::Int32, Kind::Int64) => Kind::Int64,
        (Kind::Bool | Kind::Int32, Kind::Float64) => Kind::Float64,
        (Kind::Text, Kind::Word) => Kind::Text,
        _ => Kind::Text,
    }
}

/// The tables of a trace, by name.
pub(crate) type TypedTables = BTreeMap<String, TypedTable>;

/// The name of the table of an event, as `provider` and `event` of `events` have its parts.
fn table_name(event: &Event<'_>, schema: &EventSchema) -> String {
    match event.provider_guid() {
        Some(_) => format!("{}.{}", event.provider(), schema.name),
        None => schema.name.to_string(),
    }
}

/// The tables of providers and schemas that were seen before.
#[derive(Debug, Default)]
struct Known<T> {
    /// Providers may share a schema: all that describe themselves share that of the description.
    /// The schema is kept, so that no other one can have its address.
    by_schema: HashMap<(Option<Guid>, usize), (Arc<EventSchema>, T)>,
}

impl<T> Known<T> {
    fn get(
        &mut self,
        provider: Option<Guid>,
        schema: &Arc<EventSchema>,
        find: impl FnOnce() -> T,
    ) -> &T {
        if self.by_schema.len() >= MAX_SCHEMAS {
            self.by_schema.clear();
        }
        let key = (provider, Arc::as_ptr(schema).addr());
        &self
            .by_schema
            .entry(key)
            .or_insert_with(|| (Arc::clone(schema), find()))
            .1
    }
}

/// The event of a record, if it is in a table: a schema describes it, and it is selected.
fn select<'a>(
    decoder: &'a mut EventDecoder<'_>,
    record: &Record<'a>,
    selection: &Selection,
    options: &Options,
) -> Option<Event<'a>> {
    let event = decoder.select(record, selection)?;
    let schema = event.schema()?;
    if options.events.admit_name(&schema.name) {
        Some(event)
    } else {
        None
    }
}

/// Finds the tables of the selected events.
pub(crate) fn tables_of<S: Source>(
    records: &mut Records<S>,
    context: Option<&Context<'_>>,
    options: &Options,
) -> Result<TypedTables> {
    let mut tables = TypedTables::new();
    let mut decoder = decoder(records.clock(), options, context).depth(Depth::Names);
    let selection = Selection::default().filter(options.filter.clone());
    let mut known = Known::default();
    while let Some(record) = records.next_record().map_err(Error::Trace)? {
        let Some(event) = select(&mut decoder, &record, &selection, options) else {
            continue;
        };
        let Some(schema) = event.schema() else {
            continue;
        };
        known.get(event.provider_guid(), schema, || {
            let name = table_name(&event, schema);
            if tables.len() < MAX_KINDS || tables.contains_key(&name) {
                let table = tables
                    .entry(name)
                    .or_insert_with_key(|n| TypedTable::new(n.clone()));
                table.add(schema);
            }
        });
    }
    Ok(tables)
}

/// A table that is being filled.
struct Open<'t> {
    table: &'t TypedTable,
    builder: Builder,
    /// Whether the current row has a value, by place.
    set: Vec<bool>,
}

/// Where the rows of a schema go: a table, and a place for each field and its name.
type Target = Option<(usize, Vec<(Option<usize>, Option<usize>)>)>;

/// Passes the batches of some tables to `out`.
pub(crate) fn write<S: Source>(
    records: &mut Records<S>,
    context: Option<&Context<'_>>,
    (tables, options): (&TypedTables, &Options),
    out: &mut dyn FnMut(&TypedTable, RecordBatch) -> Result<()>,
) -> Result<()> {
    // Many tables at a time share the memory of one.
    let mut bounds = options.bounds;
    bounds.rows = (bounds.rows / tables.len().max(1))
        .max(1 << 10)
        .min(bounds.rows);
    bounds.bytes = (bounds.bytes / tables.len().max(1))
        .max(1 << 16)
        .min(bounds.bytes);
    let mut open = Vec::new();
    for table in tables.values() {
        let wanted = options.places(&table.name, &table.slots)?;
        let builder = Builder::new(&table.slots, &wanted, bounds);
        open.push(Open {
            table,
            builder,
            set: vec![false; table.slots.len()],
        });
    }
    let index: HashMap<&str, usize> = tables
        .keys()
        .enumerate()
        .map(|(at, name)| (name.as_str(), at))
        .collect();
    let mut decoder = decoder(records.clock(), options, context).depth(Depth::Fields);
    let selection = Selection::default().filter(options.filter.clone());
    let mut known = Known::<Target>::default();
    let mut sequence = 0;
    let mut scratch = Vec::new();
    while let Some(record) = records.next_record().map_err(Error::Trace)? {
        let number = sequence;
        sequence += 1;
        let Some(event) = select(&mut decoder, &record, &selection, options) else {
            continue;
        };
        let Some(schema) = event.schema() else {
            continue;
        };
        let target = known.get(event.provider_guid(), schema, || {
            let at = *index.get(table_name(&event, schema).as_str())?;
            Some((at, open.get(at)?.table.places_of(schema)))
        });
        let Some((at, places)) = target else { continue };
        let Some(open) = open.get_mut(*at) else {
            continue;
        };
        set_keys(&mut open.builder, &options.trace, number, &event);
        if open.row(&event, places, &mut scratch) {
            out(open.table, open.builder.take()?)?;
        }
    }
    for mut open in open {
        if open.builder.len() > 0 {
            out(open.table, open.builder.take()?)?;
        }
    }
    Ok(())
}

impl Open<'_> {
    /// Sets what follows the head of a row, and ends it; returns whether the batch is full.
    fn row(
        &mut self,
        event: &Event<'_>,
        places: &[(Option<usize>, Option<usize>)],
        scratch: &mut Vec<u8>,
    ) -> bool {
        let Open {
            table,
            builder,
            set,
        } = self;
        builder.set(VERSION, Cell::int(event.version()));
        set_guid(builder, ACTIVITY, event.activity());
        set.fill(false);
        let names = event.names();
        let names = names.as_ref().map(|names| names as &dyn Names);
        let fields = event.fields().into_iter().flatten();
        for ((field, value), (place, name)) in fields.zip(places) {
            if let Some(place) = place
                && let Some(slot) = table.slots.get(*place)
                && builder.wants(*place)
            {
                scratch.clear();
                builder.set(*place, cell(slot.kind, field, value, names, scratch));
                set.get_mut(*place).into_iter().for_each(|set| *set = true);
            }
            if let Some(name) = name
                && builder.wants(*name)
            {
                scratch.clear();
                if write_name(field, value, scratch) {
                    builder.set(
                        *name,
                        Cell::text(str::from_utf8(scratch).unwrap_or_default()),
                    );
                    set.get_mut(*name).into_iter().for_each(|set| *set = true);
                }
            }
        }
        for (place, _) in set.iter().enumerate().skip(FIRST).filter(|(_, set)| !**set) {
            builder.set(place, Cell::Null);
        }
        builder.end_row()
    }
}

/// Writes the name of a value, or the names of its bits; returns whether there is one.
fn write_name(field: &Field, value: Value<'_>, out: &mut Vec<u8>) -> bool {
    let width = match field.in_type() {
        Some(InType::Int8 | InType::UInt8) => 1,
        Some(InType::Int16 | InType::UInt16) => 2,
        Some(InType::Int64 | InType::UInt64 | InType::HexInt64) => 8,
        _ => 4,
    };
    let Some(bits) = value.bits(width) else {
        return false;
    };
    let Some(map) = &field.map else {
        let name = render::status_name(field, bits);
        out.extend(name.unwrap_or_default().as_bytes());
        return name.is_some();
    };
    if let Some(name) = map.get(bits) {
        out.extend(name.as_bytes());
        return true;
    }
    if map.kind() != etl_schema::MapKind::Bits {
        return false;
    }
    for (i, name) in map.bits(bits).enumerate() {
        if i > 0 {
            out.push(b'|');
        }
        out.extend(name.as_bytes());
    }
    let rest = map.unnamed(bits);
    if rest != 0 && !out.is_empty() {
        out.push(b'|');
        render::hexadecimal(out, rest);
    }
    !out.is_empty()
}

/// A value as one of a column.
fn cell<'a>(
    kind: Kind,
    field: &Field,
    value: Value<'a>,
    names: Option<&dyn Names>,
    scratch: &'a mut Vec<u8>,
) -> Cell<'a> {
    match (kind, value) {
        (_, Value::Null) => Cell::Null,
        (Kind::Bool, Value::Bool(value)) => Cell::Bool(value),
        (Kind::Int32 | Kind::Int64, Value::Int(value)) => Cell::Int(value),
        (Kind::Int32 | Kind::Int64, Value::UInt(value) | Value::Pointer(value)) => {
            Cell::Int(value as i64)
        }
        (Kind::Int32 | Kind::Int64, Value::Bool(value)) => Cell::Int(value.into()),
        (Kind::Float64, Value::Float(value)) => Cell::Float(value.into()),
        (Kind::Float64, Value::Double(value)) => Cell::Float(value),
        (Kind::Float64, Value::Int(value)) => Cell::Float(value as f64),
        (Kind::Float64, Value::UInt(value)) => Cell::Float(value as f64),
        (Kind::Float64, Value::Bool(value)) => Cell::Float(f64::from(u8::from(value))),
        (Kind::Time, Value::FileTime(0)) => Cell::Null,
        (Kind::Time, Value::FileTime(ticks)) => i64::try_from(ticks).map_or(Cell::Null, Cell::Time),
        (Kind::Time, Value::SystemTime(time)) => system_time(time).map_or(Cell::Null, Cell::Int),
        (Kind::Bytes, Value::Binary(bytes)) => Cell::Bytes(bytes),
        (Kind::Text, value) => {
            write_text(field, value, names, scratch);
            Cell::Bytes(scratch)
        }
        _ => Cell::Null,
    }
}

/// Writes a value as text: arrays and structures as JSON, as in the column `fields` of `events`.
fn write_text(field: &Field, value: Value<'_>, names: Option<&dyn Names>, out: &mut Vec<u8>) {
    if matches!(value, Value::Array(_) | Value::Struct(_)) {
        let renderer = Renderer::new().names(names).hex().lossy();
        return renderer.json_value(out, field, value);
    }
    let mut own = Vec::new();
    Renderer::new()
        .names(names)
        .chars(field, value, &mut own, &mut |c| {
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            out.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
        });
}

/// Microseconds since 1970; `None` for what is no date.
fn system_time(SystemTime(parts): SystemTime) -> Option<i64> {
    let [year, month, _, day, hour, minute, second, milli] = parts.map(i64::from);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days of the civil calendar, with years that begin in March.
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + of_year - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * 1_000_000 + milli * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_times_are_microseconds_since_1970() {
        let time = |parts| system_time(SystemTime(parts));
        assert_eq!(time([1970, 1, 4, 1, 0, 0, 0, 0]), Some(0));
        // date -u -d '2024-02-29 12:34:56.789' +%s%6N
        assert_eq!(
            time([2024, 2, 4, 29, 12, 34, 56, 789]),
            Some(1_709_210_096_789_000)
        );
        assert_eq!(time([0; 8]), None);
    }

    #[test]
    fn columns_have_the_first_free_name_ignoring_case() {
        let mut table = TypedTable::new("A.B".to_owned());
        let mut expected: Vec<String> = table.slots.iter().map(|slot| slot.name.clone()).collect();
        // Names that meet each other, in an order without a rule.
        let mut number = 1u32;
        for at in 0..500 {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let begin = ["a", "A", "b", "Version"][(number >> 24) as usize % 4];
            let name = format!("{begin}{}", "_".repeat((number >> 16) as usize % 40));
            let mut free = name.clone();
            while expected
                .iter()
                .any(|known| known.eq_ignore_ascii_case(&free))
            {
                free.push('_');
            }
            expected.push(free);
            table.column((name.clone(), at), &name, Kind::Int64, false);
        }
        let names: Vec<_> = table.slots.iter().map(|slot| slot.name.clone()).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn types_that_clash_are_widened_or_become_text() {
        assert_eq!(wider(Kind::Int64, Kind::Int32), Kind::Int64);
        assert_eq!(wider(Kind::Bool, Kind::Int32), Kind::Int32);
        assert_eq!(wider(Kind::Int64, Kind::Float64), Kind::Text);
        assert_eq!(wider(Kind::Time, Kind::Int64), Kind::Text);
        assert_eq!(wider(Kind::Bytes, Kind::Text), Kind::Text);
    }
}
