//! Names and numbers of levels, tasks, opcodes, keywords and channels.

use std::collections::HashMap;

use roxmltree::Node;

use super::predefined::{Reserved, WINMETA};
use super::{number, unknown};
use crate::Error;
use crate::model::Text;

/// A number, and its name as it is shown to people.
#[derive(Clone)]
pub(super) struct NamedNumber {
    pub value: u64,
    pub shown: Text,
}

/// Numbers by the names that events use for them.
#[derive(Default)]
pub(super) struct Names(HashMap<String, NamedNumber>);

impl Names {
    pub(super) fn with(predefined: &[(&'static str, u64)]) -> Self {
        let mut names = Names::default();
        for &(name, value) in predefined {
            let number = NamedNumber {
                value,
                shown: Text::Borrowed(name),
            };
            names.0.insert(name.to_owned(), number);
        }
        names
    }

    /// Adds reserved names; `value` returns the value of the name with a number.
    pub(super) fn reserve(mut self, reserved: Reserved, value: fn(u64) -> u64) -> Self {
        for number in reserved.numbers {
            let name = format!("{}{number}", reserved.prefix);
            self.insert(&name, value(number), name.clone());
        }
        self
    }

    pub(super) fn insert(&mut self, name: &str, value: u64, shown: String) {
        self.0.insert(
            name.to_owned(),
            NamedNumber {
                value,
                shown: shown.into(),
            },
        );
    }

    /// The number of a name. Names that Windows defines have the prefix `win:` here; a manifest can
    /// use any other prefix for their namespace.
    pub(super) fn get(&self, event: Node<'_, '_>, name: &str) -> Option<&NamedNumber> {
        match self.0.get(name) {
            Some(number) => Some(number),
            None => self.0.get(&predefined_name(event, name)?),
        }
    }

    /// The number that an event's attribute names, or the number that it is itself. 0 without the
    /// attribute.
    pub(super) fn number_in(
        &self,
        event: Node<'_, '_>,
        attribute: &'static str,
    ) -> Result<NamedNumber, Error> {
        let Some(name) = event.attribute(attribute) else {
            return Ok(NamedNumber {
                value: 0,
                shown: Text::Borrowed(""),
            });
        };
        if let Some(number) = self.get(event, name) {
            return Ok(number.clone());
        }
        let value = number(name).ok_or_else(|| unknown(event, attribute, name))?;
        Ok(NamedNumber {
            value,
            shown: name.to_owned().into(),
        })
    }
}

/// A name that Windows defines, with the prefix `win:`; `None` for a name of another namespace.
fn predefined_name(event: Node<'_, '_>, name: &str) -> Option<String> {
    let (prefix, local) = name.split_once(':')?;
    let namespace = event.lookup_namespace_uri(Some(prefix))?;
    if namespace == WINMETA {
        Some(format!("win:{local}"))
    } else {
        None
    }
}
