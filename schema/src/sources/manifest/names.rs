//! Names and numbers of levels, tasks, opcodes, keywords and channels.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use roxmltree::Node;

use super::predefined::WINMETA;
use super::{number, unknown};
use crate::Error;
use crate::model::Text;

/// A number, and what people are shown for it.
#[derive(Clone)]
struct Known {
    value: u64,
    shown: Text,
}

/// Numbers by name, for what an event refers to.
#[derive(Default)]
pub(super) struct Names(HashMap<String, Known>);

impl Names {
    pub(super) fn with(standard: &[(&'static str, u64)]) -> Self {
        let known = |value, name| Known { value, shown: Text::Borrowed(name) };
        Names(standard.iter().map(|&(n, v)| (n.to_owned(), known(v, n))).collect())
    }

    /// With reserved names as well; `value` is that of a number.
    pub(super) fn reserve(
        mut self,
        (name, numbers): (&str, RangeInclusive<u64>),
        value: fn(u64) -> u64,
    ) -> Self {
        for number in numbers {
            let name = format!("{name}{number}");
            self.insert(&name, value(number), name.clone());
        }
        self
    }

    pub(super) fn insert(&mut self, name: &str, value: u64, shown: String) {
        self.0.insert(name.to_owned(), Known { value, shown: shown.into() });
    }

    /// The entry of a name. Names that Windows defines stand under the prefix `win:` here, whatever
    /// prefix the manifest has for their namespace.
    fn known(&self, event: Node<'_, '_>, name: &str) -> Option<&Known> {
        let predefined = || {
            let (prefix, local) = name.split_once(':')?;
            (event.lookup_namespace_uri(Some(prefix))? == WINMETA).then(|| format!("win:{local}"))
        };
        self.0.get(name).or_else(|| self.0.get(&predefined()?))
    }

    /// The number of a name, and what is shown for it.
    pub(super) fn get(&self, event: Node<'_, '_>, name: &str) -> Option<(u64, Text)> {
        self.known(event, name).map(|known| (known.value, known.shown.clone()))
    }

    /// What an event's attribute names, or the number that it is itself.
    pub(super) fn of(
        &self,
        event: Node<'_, '_>,
        attribute: &'static str,
    ) -> Result<(u64, Text), Error> {
        let Some(name) = event.attribute(attribute) else { return Ok((0, Text::Borrowed(""))) };
        let as_number = || number(name).map(|value| (value, name.to_owned().into()));
        self.get(event, name).or_else(as_number).ok_or_else(|| unknown(event, attribute, name))
    }
}
