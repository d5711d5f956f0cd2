//! Tables of the events of one kind: a column for each field.
//!
//! The versions of an event share a table: a field that a version does not have is null. If a field
//! has different types in two versions, the column has the wider type, or text. A table has the
//! fields of all described versions, whether the trace has them or not: so the tables of two traces
//! have the same columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use etl_events::context::Context;
use etl_events::{Depth, Event, EventDecoder, Selection};
use etl_format::read::{Record, Records, Source};
use etl_format::{FileTime, Guid};
use etl_schema::decode::{SystemTime, Value};
use etl_schema::render::{self, Names, Renderer};
use etl_schema::{Count, EventSchema, Field, FieldKind, InType, OutType};
use foldhash::HashMap;

use crate::builder::{Bounds, Builder};
use crate::cell::Cell;
use crate::column::Kind;
use crate::events::{decoder, set_guid, set_keys, write_fields};
use crate::options::Options;
use crate::schema::{Slot, schema_of};
use crate::tables::EVENTS;
use crate::{Error, Result};

// The indices of columns: the columns of `events` up to the thread, two more, and the fields.
const VERSION: usize = crate::event_columns::KEYS;
const ACTIVITY: usize = VERSION + 1;
const FIRST_FIELD: usize = ACTIVITY + 1;

/// The most kinds of events that have tables of their own. Traces of whole machines have some
/// hundred kinds.
const MAX_KINDS: usize = 1 << 12;
/// The table of the events of further kinds. No event has this name: it has no dot.
const OTHER_EVENTS: &str = "other_events";
/// The columns of [`OTHER_EVENTS`] after the activity.
const OTHER_PROVIDER: usize = FIRST_FIELD;
const OTHER_EVENT: usize = FIRST_FIELD + 1;
const OTHER_FIELDS: usize = FIRST_FIELD + 2;
/// The most columns of a table.
const MAX_COLUMNS: usize = 1 << 10;
/// The most schemas whose tables are remembered. If there are more, tables are searched again.
const MAX_SCHEMAS: usize = 1 << 14;

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FieldKey {
    name: String,
    /// The number of fields with this name before it.
    before: usize,
}

/// The indices of the columns of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldColumns {
    /// The column of its value.
    value: Option<usize>,
    /// The column of the name of its value.
    name: Option<usize>,
}

/// The table of the events of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedTable {
    /// `Provider.Event`.
    pub name: String,
    pub(crate) slots: Vec<Slot>,
    /// The indices of the columns of values.
    values: BTreeMap<FieldKey, usize>,
    /// The indices of the columns of names of values.
    names: BTreeMap<FieldKey, usize>,
    /// Names of columns in lower case. The number is how many underscores after the name surely
    /// make names of other columns.
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
            values: BTreeMap::new(),
            names: BTreeMap::new(),
            used,
        }
    }

    /// The table of the events of further kinds: their fields are JSON.
    fn of_others() -> Self {
        let mut table = TypedTable::new(OTHER_EVENTS.to_owned());
        for (name, kind) in [
            ("provider", Kind::Word),
            ("event", Kind::Word),
            ("fields", Kind::Text),
        ] {
            table.add_column(name, kind);
        }
        table
    }

    fn is_of_others(&self) -> bool {
        self.name == OTHER_EVENTS
    }

    /// Its schema.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        schema_of(&self.slots)
    }

    /// Adds the fields of a version.
    fn add(&mut self, fields: &[Field]) {
        for (field, key) in fields.iter().zip(keys(fields)) {
            if is_named(field) && field.count == Count::One {
                self.add_value(key.clone(), field);
                self.add_name(key, field);
            } else {
                self.add_value(key, field);
            }
        }
    }

    /// Adds the column of the value of a field.
    fn add_value(&mut self, key: FieldKey, field: &Field) {
        let kind = kind_of(field);
        if let Some(&index) = self.values.get(&key) {
            self.widen(index, kind);
        } else if let Some(index) = self.add_column(&field.name, kind) {
            self.values.insert(key, index);
        }
    }

    /// Adds the column of the name of the value of a field.
    fn add_name(&mut self, key: FieldKey, field: &Field) {
        if let Some(&index) = self.names.get(&key) {
            self.widen(index, Kind::Word);
        } else if let Some(index) = self.add_column(&format!("{}_name", field.name), Kind::Word) {
            self.names.insert(key, index);
        }
    }

    /// Gives a column a type that also has the values of another type.
    fn widen(&mut self, index: usize, kind: Kind) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.kind = wider(slot.kind, kind);
        }
    }

    /// Adds a column. Its name gets as many underscores as make it unique. Returns its index, or
    /// `None` if there are too many columns.
    fn add_column(&mut self, name: &str, kind: Kind) -> Option<usize> {
        if self.slots.len() >= MAX_COLUMNS {
            return None;
        }
        let mut unique_name = name.to_owned();
        // SQL does not distinguish capital letters.
        let base = name.to_ascii_lowercase();
        let mut lower = base.clone();
        let mut added = 0;
        while let Some(&more) = self.used.get(&lower) {
            let underscores = "_".repeat(more);
            unique_name.push_str(&underscores);
            lower.push_str(&underscores);
            added += more;
        }
        self.used.insert(lower, 1);
        self.used.insert(base, added + 1);
        self.slots.push(Slot::of_field(&unique_name, kind));
        Some(self.slots.len() - 1)
    }

    /// The columns of the fields of a version.
    fn columns_of(&self, schema: &EventSchema) -> Vec<FieldColumns> {
        let mut columns = Vec::new();
        for key in keys(&schema.fields) {
            columns.push(FieldColumns {
                value: self.values.get(&key).copied(),
                name: self.names.get(&key).copied(),
            });
        }
        columns
    }
}

/// The keys of fields.
fn keys(fields: &[Field]) -> Vec<FieldKey> {
    let mut counts: HashMap<&str, usize> = HashMap::default();
    let mut keys = Vec::new();
    for field in fields {
        let count = counts.entry(&field.name).or_default();
        keys.push(FieldKey {
            name: field.name.to_string(),
            before: *count,
        });
        *count += 1;
    }
    keys
}

/// The type of the column of a field.
fn kind_of(field: &Field) -> Kind {
    use InType::{
        Binary, Boolean, Double, Float, HexInt32, HexInt64, Int8, Int16, Int32, Int64, Pointer,
        SizeT, UInt8, UInt16, UInt32, UInt64,
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
        (InType::FileTime | InType::SystemTime, _) => Kind::Time,
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

/// A provider, and the address of a schema. Providers may share a schema: the events that define
/// schemas have the same schema for all providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SchemaKey {
    provider: Option<Guid>,
    address: usize,
}

/// A cached value, with its schema: as long as that lives, no other schema has its address.
#[derive(Debug)]
struct Cached<T> {
    _schema: Arc<EventSchema>,
    value: T,
}

/// Values by provider and schema.
#[derive(Debug, Default)]
struct SchemaCache<T> {
    values: HashMap<SchemaKey, Cached<T>>,
}

impl<T> SchemaCache<T> {
    /// The value of a provider and schema; `find` finds a value that is not in the cache.
    fn get(
        &mut self,
        provider: Option<Guid>,
        schema: &Arc<EventSchema>,
        find: impl FnOnce() -> T,
    ) -> &T {
        if self.values.len() >= MAX_SCHEMAS {
            self.values.clear();
        }
        let key = SchemaKey {
            provider,
            address: Arc::as_ptr(schema).addr(),
        };
        let cached = self.values.entry(key).or_insert_with(|| Cached {
            _schema: Arc::clone(schema),
            value: find(),
        });
        &cached.value
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
    let mut added = SchemaCache::default();
    let mut has_others = false;
    while let Some(record) = records.next_record().map_err(Error::Trace)? {
        let Some(event) = select(&mut decoder, &record, &selection, options) else {
            continue;
        };
        let Some(schema) = event.schema() else {
            continue;
        };
        added.get(event.provider_guid(), schema, || {
            let name = table_name(&event, schema);
            if tables.len() < MAX_KINDS || tables.contains_key(&name) {
                let table = tables.entry(name).or_insert_with_key(|name| {
                    let mut table = TypedTable::new(name.clone());
                    if let Some(provider) = event.provider_guid() {
                        for fields in options.store.layouts(provider, &schema.name) {
                            table.add(fields);
                        }
                    }
                    table
                });
                table.add(&schema.fields);
            } else {
                has_others = true;
            }
        });
    }
    if has_others {
        tables.insert(OTHER_EVENTS.to_owned(), TypedTable::of_others());
    }
    Ok(tables)
}

/// A table that is being filled.
struct Filling<'t> {
    table: &'t TypedTable,
    builder: Builder,
    /// Whether the current row has a value, by the index of the column.
    set: Vec<bool>,
}

impl<'t> Filling<'t> {
    /// Begins to fill each of the tables.
    fn all(tables: &'t TypedTables, options: &Options) -> Result<Vec<Self>> {
        let bounds = shared_bounds(options.bounds, tables.len());
        let mut all = Vec::new();
        for table in tables.values() {
            let requested = options.requested_or_all(&table.name, &table.slots)?;
            all.push(Filling {
                table,
                builder: Builder::new(&table.slots, &requested, bounds),
                set: vec![false; table.slots.len()],
            });
        }
        Ok(all)
    }
}

/// The bounds of each table, if all tables share the memory of one.
fn shared_bounds(bounds: Bounds, tables: usize) -> Bounds {
    let tables = tables.max(1);
    Bounds {
        rows: (bounds.rows / tables).max(1 << 10).min(bounds.rows),
        bytes: (bounds.bytes / tables).max(1 << 16).min(bounds.bytes),
    }
}

/// Where the rows of a schema go.
#[derive(Debug)]
struct Target {
    /// The index of the table.
    table: usize,
    columns: Vec<FieldColumns>,
}

/// Passes the batches of some tables to `out`.
pub(crate) fn write<S: Source>(
    records: &mut Records<S>,
    context: Option<&Context<'_>>,
    tables: &TypedTables,
    options: &Options,
    out: &mut dyn FnMut(&TypedTable, RecordBatch) -> Result<()>,
) -> Result<()> {
    let mut fillings = Filling::all(tables, options)?;
    let mut indices: HashMap<&str, usize> = HashMap::default();
    for (index, name) in tables.keys().enumerate() {
        indices.insert(name, index);
    }
    let mut decoder = decoder(records.clock(), options, context).depth(Depth::Fields);
    let selection = Selection::default().filter(options.filter.clone());
    let mut targets = SchemaCache::<Option<Target>>::default();
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
        let target = targets.get(event.provider_guid(), schema, || {
            let index = match indices.get(table_name(&event, schema).as_str()) {
                Some(index) => *index,
                None => *indices.get(OTHER_EVENTS)?,
            };
            Some(Target {
                table: index,
                columns: fillings.get(index)?.table.columns_of(schema),
            })
        });
        let Some(target) = target else { continue };
        let Some(filling) = fillings.get_mut(target.table) else {
            continue;
        };
        set_keys(&mut filling.builder, &options.trace, number, &event);
        if filling.add_row(&event, &target.columns, &mut scratch) {
            out(filling.table, filling.builder.take()?)?;
        }
    }
    for mut filling in fillings {
        if filling.builder.len() > 0 {
            out(filling.table, filling.builder.take()?)?;
        }
    }
    Ok(())
}

impl Filling<'_> {
    /// Sets the columns after the keys of a row, and ends it; returns whether the batch is full.
    fn add_row(
        &mut self,
        event: &Event<'_>,
        columns: &[FieldColumns],
        scratch: &mut Vec<u8>,
    ) -> bool {
        self.builder.set(VERSION, Cell::int(event.version()));
        set_guid(&mut self.builder, ACTIVITY, event.activity());
        if self.table.is_of_others() {
            return self.add_other(event, scratch);
        }
        self.set.fill(false);
        let names = event.names();
        let names = names.as_ref().map(|names| names as &dyn Names);
        let fields = event.fields().into_iter().flatten();
        for ((field, value), columns) in fields.zip(columns) {
            if let Some(index) = columns.value
                && let Some(slot) = self.table.slots.get(index)
                && self.builder.wants(index)
            {
                scratch.clear();
                self.set(index, cell(slot.kind, field, value, names, scratch));
            }
            if let Some(index) = columns.name
                && self.builder.wants(index)
            {
                scratch.clear();
                if write_name(field, value, scratch) {
                    let name = str::from_utf8(scratch).unwrap_or_default();
                    self.set(index, Cell::text(name));
                }
            }
        }
        for (index, is_set) in self.set.iter().enumerate().skip(FIRST_FIELD) {
            if !is_set {
                self.builder.set(index, Cell::Null);
            }
        }
        self.builder.end_row()
    }

    /// Ends the row of an event whose kind has no table of its own.
    fn add_other(&mut self, event: &Event<'_>, scratch: &mut Vec<u8>) -> bool {
        self.builder
            .set(OTHER_PROVIDER, Cell::text(event.provider()));
        let name = event.schema().map_or("", |schema| &*schema.name);
        self.builder.set(OTHER_EVENT, Cell::text(name));
        match event.fields() {
            Some(mut fields) => {
                write_fields(scratch, event, &mut fields);
                self.builder.set(OTHER_FIELDS, Cell::Bytes(scratch));
            }
            None => self.builder.set(OTHER_FIELDS, Cell::Null),
        }
        self.builder.end_row()
    }

    fn set(&mut self, index: usize, cell: Cell<'_>) {
        self.builder.set(index, cell);
        if let Some(is_set) = self.set.get_mut(index) {
            *is_set = true;
        }
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

/// A value of a field as a value of a column of this type.
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
        (Kind::Time, Value::FileTime(units)) => match i64::try_from(units) {
            Ok(units) => Cell::Time(FileTime::new(units)),
            Err(_) => Cell::Null,
        },
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
    let mut scratch = Vec::new();
    let renderer = Renderer::new().names(names);
    renderer.chars(field, value, &mut scratch, &mut |c| {
        let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
    });
}

/// Microseconds since 1970; `None` if this is not a date.
fn system_time(SystemTime(parts): SystemTime) -> Option<i64> {
    let [year, month, _, day, hour, minute, second, milli] = parts.map(i64::from);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days of the civil calendar, with years that begin in March.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468;
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
        // Names that collide, in an irregular order.
        let mut number = 1u32;
        for before in 0..500 {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let begin = ["a", "A", "b", "Version"][(number >> 24) as usize % 4];
            let name = format!("{begin}{}", "_".repeat((number >> 16) as usize % 40));
            let mut free = name.clone();
            while expected.iter().any(|used| used.eq_ignore_ascii_case(&free)) {
                free.push('_');
            }
            expected.push(free);
            let field = Field::new(name.clone(), InType::Int64);
            table.add_value(FieldKey { name, before }, &field);
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
