//! What the members of a JSON object need, prepared once for each schema.

use crate::decode::{Fields, MAX_DEPTH, Value};
use crate::escape::json_text;
use crate::model::{Field, FieldKind, Shown};

/// A field as a member of a JSON object, and how its values are shown.
#[derive(Debug)]
pub(super) struct FieldPlan {
    /// What precedes its value: `,"Name":`.
    pub key: Box<[u8]>,
    /// What precedes the name of its value: `,"Name_name":`. Empty if a value never has a name.
    pub name_key: Box<[u8]>,
    /// Whether the keys contain a backslash.
    pub is_escaped: bool,
    pub shown: Shown,
    /// Whether values have names by a map, or as status codes.
    pub is_named: bool,
}

impl FieldPlan {
    fn new(field: &Field) -> Self {
        let shown = Shown::of(field);
        let is_named = field.map.is_some() || shown.status;
        let may_be_named = is_named || shown.meaning.is_some();
        let key = json_key(&field.name, "");
        let name_key = if may_be_named {
            json_key(&field.name, "_name")
        } else {
            Box::default()
        };
        let is_escaped = key.contains(&b'\\');
        FieldPlan {
            key,
            name_key,
            is_escaped,
            shown,
            is_named,
        }
    }
}

/// The key of a member with a comma before it: `,"Name":`.
fn json_key(name: &str, suffix: &str) -> Box<[u8]> {
    let mut key = b",\"".to_vec();
    json_text(&mut key, name);
    key.extend(suffix.as_bytes());
    key.extend(b"\":");
    key.into()
}

/// The plans of all fields of a schema, by the numbers of [`Fields::next_numbered`].
#[derive(Debug)]
struct SchemaPlan(Vec<FieldPlan>);

impl SchemaPlan {
    fn new(fields: &[Field]) -> Self {
        let mut plans = Vec::with_capacity(fields.len());
        add_fields(fields, 0, &mut plans);
        SchemaPlan(plans)
    }
}

fn add_fields(fields: &[Field], depth: usize, plans: &mut Vec<FieldPlan>) {
    for field in fields {
        plans.push(FieldPlan::new(field));
        if let FieldKind::Struct(members) = &field.kind
            && depth < MAX_DEPTH
        {
            add_fields(members, depth + 1, plans);
        }
    }
}

/// The plans for the fields of an event.
#[inline]
pub(super) fn plans_of_fields<'a>(fields: &Fields<'a>) -> &'a [FieldPlan] {
    fields.prepared(SchemaPlan::new).map_or(&[], |plan| &plan.0)
}

/// The plans for the members of a value. A value without members needs none.
pub(super) fn plans_of_value<'a>(value: &Value<'a>) -> &'a [FieldPlan] {
    match value {
        Value::Struct(members) => plans_of_fields(&members.fields()),
        Value::Array(items) => items.prepared(SchemaPlan::new).map_or(&[], |plan| &plan.0),
        _ => &[],
    }
}
