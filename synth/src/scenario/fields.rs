//! The values of an event's fields: `Id 7`, several values for an array, members of a structure in
//! braces.

use etl_format::constants::PointerSize;
use etl_schema::encode::{EncodeError, OwnedValue, encode_into};
use etl_schema::{Count, Field, FieldKind, InType, Length};

use super::args::Args;
use super::nearest::nearest;
use super::value::value;
use crate::model::NamedValue;

/// Reads the nodes of an event. The fields that it sets, with values that can be encoded together.
pub(super) fn values(args: Args<'_, '_>, fields: &[Field]) -> Vec<NamedValue<OwnedValue>> {
    let at = args.location();
    let mut list = List::new(fields);
    let reader = args.children(&mut |args| list.one(args, "the event"));
    let all: Vec<OwnedValue> = list.values();
    if list.is_valid
        && let Err(error) = encode_into(fields, &all, PointerSize::P8, &mut Vec::new())
    {
        let message = format!("{} cannot have this value", error.field);
        reader.error_at(&at, message, error.problem.to_string(), None);
    }
    let mut set = Vec::new();
    for (field, value) in fields.iter().zip(list.set) {
        if let Some(value) = value {
            set.push(NamedValue {
                name: field.name.to_string(),
                value,
            });
        }
    }
    set
}

/// The fields of an event or of a structure, and the values of those that are set.
struct List<'f> {
    fields: &'f [Field],
    set: Vec<Option<OwnedValue>>,
    is_valid: bool,
}

impl<'f> List<'f> {
    fn new(fields: &'f [Field]) -> Self {
        List {
            fields,
            set: vec![None; fields.len()],
            is_valid: true,
        }
    }

    /// The values of all fields.
    fn values(&self) -> Vec<OwnedValue> {
        self.set
            .iter()
            .map(|value| value.clone().unwrap_or(OwnedValue::Auto))
            .collect()
    }

    /// A node: the value of one field. `place` is what the fields are in.
    fn one(&mut self, mut args: Args<'_, '_>, place: &str) {
        let name = args.name();
        let Some(at) = self.fields.iter().position(|f| f.name == name) else {
            self.is_valid = false;
            return unknown(args, place, self.fields);
        };
        let Some(field) = self.fields.get(at) else {
            return;
        };
        let Some(slot) = self.set.get_mut(at) else {
            return;
        };
        if slot.is_some() && field.count == Count::One {
            self.is_valid = false;
            return args.error(format!("{name} is set twice"), "the second", None);
        }
        let values = match &field.kind {
            FieldKind::Struct(members) => {
                let mut inner = List::new(members);
                args.children(&mut |args| inner.one(args, "the structure"));
                self.is_valid &= inner.is_valid;
                vec![OwnedValue::Struct(inner.values())]
            }
            FieldKind::Value(_) => {
                let errors = args.reader.errors.len();
                let values = given(&mut args, field);
                self.is_valid &= args.reader.errors.len() == errors;
                let is_encodable = values.iter().all(|value| match encodable(field, value) {
                    Ok(()) => true,
                    Err(error) => {
                        not_of_type(&mut args, field, &error.problem.to_string());
                        false
                    }
                });
                self.is_valid &= is_encodable;
                args.finish();
                values
            }
        };
        match (field.count, slot) {
            (Count::One, slot) => *slot = values.into_iter().next(),
            (_, Some(OwnedValue::Array(elements))) => elements.extend(values),
            (_, slot) => *slot = Some(OwnedValue::Array(values)),
        }
    }
}

/// The values of a node: one, or any number for an array.
fn given(args: &mut Args<'_, '_>, field: &Field) -> Vec<OwnedValue> {
    let entries = args
        .node
        .entries()
        .iter()
        .filter(|entry| entry.name().is_none());
    let most = if field.count == Count::One {
        1
    } else {
        usize::MAX
    };
    let mut out = Vec::new();
    for entry in entries.take(most) {
        let text = args.maybe("a value").unwrap_or_default();
        match value(field, entry.value(), text) {
            Some(value) => out.push(value),
            None => not_of_type(args, field, "malformed"),
        }
    }
    if field.count == Count::One && args.node.entries().is_empty() {
        args.next::<String>("a value");
        out.push(OwnedValue::Auto);
    }
    out
}

/// Reports a value that a field cannot have.
fn not_of_type(args: &mut Args<'_, '_>, field: &Field, why: &str) {
    let type_name = field.in_type().map_or("a structure", InType::name);
    let help = format!("{} is of type {type_name}", field.name);
    args.error(
        format!("{} cannot have this value", field.name),
        why,
        Some(&help),
    );
}

/// Whether a value fits its field, independently of other fields.
fn encodable(field: &Field, value: &OwnedValue) -> Result<(), EncodeError> {
    let mut alone = field.clone();
    alone.count = Count::One;
    if matches!(alone.length, Length::Field(_)) {
        alone.length = Length::Rest;
    }
    let fields = std::slice::from_ref(&alone);
    let values = std::slice::from_ref(value);
    encode_into(fields, values, PointerSize::P8, &mut Vec::new())
}

fn unknown(mut args: Args<'_, '_>, place: &str, fields: &[Field]) {
    let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
    let mut known = names.join(", ");
    let near = nearest(args.name(), names.iter().copied());
    if !near.is_empty() && fields.len() > near.len() {
        known = format!("{known}; nearest: {}", near.join(", "));
    }
    args.unknown(place, &known);
}
