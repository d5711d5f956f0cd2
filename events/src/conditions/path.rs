//! The path to the values that a condition compares: a field, a member of a structure, or an
//! element of an array.

use etl_schema::Field;
use etl_schema::decode::{Fields, Value};

/// The names of a field, of its member and so on. Each may have the index of an element:
/// `Heaps[0].Size`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// The whole text as one name: fields can have dots in their own names.
    whole: [Step; 1],
    /// Without the indices.
    members: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    name: String,
    /// The index of an element; `None` for any element.
    index: Option<usize>,
}

impl Step {
    fn new(word: &str) -> Self {
        if let Some(indexed) = word.strip_suffix(']')
            && let Some((name, index)) = indexed.rsplit_once('[')
            && let Ok(index) = index.parse()
        {
            return Step {
                name: name.to_owned(),
                index: Some(index),
            };
        }
        Step {
            name: word.to_owned(),
            index: None,
        }
    }
}

impl Path {
    pub(super) fn new(text: &str) -> Self {
        let steps: Vec<Step> = text.split('.').map(Step::new).collect();
        let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        let whole = [Step {
            name: text.to_owned(),
            index: None,
        }];
        Path {
            whole,
            members: names.join("."),
            steps,
        }
    }

    /// The names with dots between.
    pub(super) fn members(&self) -> &str {
        &self.members
    }

    /// Whether `is` holds for any value at the path. Case of names does not matter.
    pub(super) fn any(
        &self,
        fields: &Fields<'_>,
        is: &mut dyn FnMut(&Field, Value<'_>) -> bool,
    ) -> bool {
        let has_path = self.steps.len() > 1 || self.steps.iter().any(|step| step.index.is_some());
        any_of(fields.clone(), &self.whole, is)
            || has_path && any_of(fields.clone(), &self.steps, is)
    }
}

fn any_of(
    mut fields: Fields<'_>,
    steps: &[Step],
    is: &mut dyn FnMut(&Field, Value<'_>) -> bool,
) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        return false;
    };
    fields.any(|(field, value)| {
        field.name.eq_ignore_ascii_case(&step.name) && at_step(field, value, step.index, rest, is)
    })
}

fn at_step(
    field: &Field,
    value: Value<'_>,
    index: Option<usize>,
    rest: &[Step],
    is: &mut dyn FnMut(&Field, Value<'_>) -> bool,
) -> bool {
    match (value, index) {
        (Value::Array(items), Some(index)) => match items.iter().nth(index) {
            Some(item) => at_step(field, item, None, rest, is),
            None => false,
        },
        (_, Some(_)) => false,
        (Value::Array(items), None) if !rest.is_empty() => items
            .iter()
            .any(|item| at_step(field, item, None, rest, is)),
        (Value::Struct(members), None) if !rest.is_empty() => any_of(members.fields(), rest, is),
        (value, None) => rest.is_empty() && is(field, value),
    }
}

#[cfg(test)]
mod tests {
    use etl_format::Guid;
    use etl_format::constants::PointerSize;
    use etl_schema::decode::Decoder;
    use etl_schema::{Count, EventSchema, Identity, InType, SchemaSource};

    use super::*;

    /// Whether the number at a path of `Total`, `Heaps` (elements with `Size` and `Parts`) and
    /// `A.B` is one that is wanted.
    fn finds(path: &str, wanted: u64) -> bool {
        let id = Identity::Modern { id: 1, version: 0 };
        let mut schema = EventSchema::new(Guid::ZERO, id, SchemaSource::Table);
        let parts = Field::new("Parts", InType::UInt8).with_count(Count::Const(2));
        let members = vec![Field::new("Size", InType::UInt8), parts];
        schema.fields = vec![
            Field::new("Total", InType::UInt8),
            Field::structure("Heaps", members).with_count(Count::Const(2)),
            Field::new("A.B", InType::UInt8),
        ];
        let decoder = Decoder::new(schema.into());
        let fields = decoder.fields(&[9, 1, 2, 3, 4, 5, 6, 7], PointerSize::P8);
        let path = Path::new(path);
        path.any(&fields, &mut |_, value| match value {
            Value::Array(items) => items.iter().any(|item| item.as_u64() == Some(wanted)),
            value => value.as_u64() == Some(wanted),
        })
    }

    #[test]
    fn members_of_any_element_match_unless_an_index_is_given() {
        assert!(finds("total", 9) && !finds("Total[0]", 9) && !finds("Total.Size", 9));
        assert!(finds("Heaps.Size", 1) && finds("heaps.size", 4) && !finds("Heaps.Size", 9));
        assert!(finds("Heaps[1].Size", 4) && !finds("Heaps[0].Size", 4));
        assert!(!finds("Heaps[2].Size", 4) && !finds("Heaps", 1));
        assert!(finds("Heaps.Parts", 6) && finds("Heaps[0].Parts[1]", 3));
        assert!(!finds("Heaps.Parts[1]", 5) && finds("Heaps.Parts[1]", 6));
    }

    #[test]
    fn names_with_dots_are_names_first() {
        assert!(finds("A.B", 7) && !finds("A.C", 7));
        assert_eq!(Path::new("Heaps[0].Size").members(), "Heaps.Size");
    }
}
