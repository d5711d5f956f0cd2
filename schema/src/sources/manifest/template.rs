//! Templates of a manifest: the fields of events.

use super::bounds::{Budget, Weight};
use super::{bad, is, number, parts, unknown};
use crate::Error;
use crate::model::{Count, Field, FieldRef, InType, Length, OutType, ValueMap};
use crate::sources::tdh;
use roxmltree::Node;
use std::collections::HashMap;
use std::sync::Arc;

type Maps = HashMap<String, Arc<ValueMap>>;

/// The templates of a provider by id, each with the size of a copy.
pub(super) struct Templates(HashMap<String, (Vec<Field>, Weight)>);

/// The names of earlier fields in a list, with their indices.
type Names<'n> = HashMap<&'n str, u16>;

/// The fields to which a field can refer: earlier fields of its list, and of the list around its
/// struct.
struct Scope<'s, 'n> {
    here: &'s Names<'n>,
    top: Option<&'s Names<'n>>,
}

impl Scope<'_, '_> {
    fn find(&self, name: &str) -> Option<FieldRef> {
        if let Some(index) = self.here.get(name) {
            return Some(FieldRef::Here(*index));
        }
        let index = self.top?.get(name)?;
        Some(FieldRef::Top(*index))
    }
}

impl Templates {
    /// The templates of a provider; `lenient` leaves out invalid ones.
    pub(super) fn read(provider: Node<'_, '_>, maps: &Maps, lenient: bool) -> Result<Self, Error> {
        let mut out = HashMap::new();
        for node in parts(provider).filter(|n| is(n, "template")) {
            let id = node.attribute("tid").ok_or_else(|| bad(node, "tid"));
            let mut weight = Weight::default();
            match id.and_then(|id| Ok((id, fields(node, None, maps, &mut weight)?))) {
                Ok((id, fields)) => drop(out.insert(id.to_owned(), (fields, weight))),
                Err(_) if lenient => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Templates(out))
    }

    pub(super) fn get(
        &self,
        id: &str,
        event: Node<'_, '_>,
        budget: &mut Budget,
    ) -> Result<Vec<Field>, Error> {
        let (fields, weight) = self
            .0
            .get(id)
            .ok_or_else(|| unknown(event, "template", id))?;
        budget.template(*weight)?;
        Ok(fields.clone())
    }
}

/// The `data` and `struct` children; `top` are the names of the fields around a struct.
fn fields<'n>(
    parent: Node<'n, '_>,
    top: Option<&Names<'n>>,
    maps: &Maps,
    weight: &mut Weight,
) -> Result<Vec<Field>, Error> {
    let mut out: Vec<Field> = Vec::new();
    let mut names = Names::new();
    for node in parent.children().filter(Node::is_element) {
        let is_struct = match node.tag_name().name() {
            "data" => false,
            "struct" => true,
            // The XML form of an event is not part of the payload.
            _ => continue,
        };
        let name = node.attribute("name").unwrap_or_default();
        weight.add(name)?;
        let scope = Scope { here: &names, top };
        let count = match node.attribute("count") {
            None => Count::One,
            Some(text) => match number(text) {
                Some(n) => Count::Const(u16::try_from(n).map_err(|_| bad(node, "count"))?),
                None => {
                    let field = scope.find(text);
                    Count::Field(field.ok_or_else(|| unknown(node, "counting field", text))?)
                }
            },
        };
        let field = if is_struct && top.is_none() {
            Field::structure(name.to_owned(), fields(node, Some(&names), maps, weight)?)
        } else {
            data(node, name.to_owned(), &scope, maps)?
        };
        if let Ok(index) = u16::try_from(out.len()) {
            // If two fields have the same name, references are to the first one.
            names.entry(name).or_insert(index);
        }
        out.push(field.with_count(count));
    }
    Ok(out)
}

fn data(
    node: Node<'_, '_>,
    name: String,
    scope: &Scope<'_, '_>,
    maps: &Maps,
) -> Result<Field, Error> {
    let type_name = node.attribute("inType").unwrap_or_default();
    let (ty, usual, char_out) = tdh::in_number(type_name)
        .and_then(tdh::in_type)
        .ok_or_else(|| unknown(node, "type", type_name))?;
    let out = match node.attribute("outType").map(tdh::out_by_name) {
        None | Some(OutType::Default) => char_out,
        Some(out) => out,
    };
    let length = match node.attribute("length") {
        _ if !matches!(ty, InType::Utf16 | InType::Ansi | InType::Binary) => Length::Natural,
        None if ty == InType::Binary && out == OutType::Ipv6 => Length::Fixed(16),
        None => usual,
        Some(text) => match number(text) {
            Some(n) => Length::Fixed(u16::try_from(n).map_err(|_| bad(node, "length"))?),
            None => {
                let field = scope.find(text);
                Length::Field(field.ok_or_else(|| unknown(node, "field of length", text))?)
            }
        },
    };
    let mut field = Field::new(name, ty).with_length(length).with_out(out);
    if let Some(map) = node.attribute("map") {
        // An EventSource names maps of types that it does not describe.
        field.map = maps.get(map).cloned();
    }
    Ok(field)
}
