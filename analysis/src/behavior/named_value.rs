//! Values of fields that have names.

use std::fmt;

/// A value of an enumeration in an event, with the name that Windows' tables give it.
///
/// It displays as its name, or as its number if newer Windows or .NET has values without a name.
///
/// ```
/// use etl_analysis::behavior::NamedValue;
///
/// assert_eq!(NamedValue::new(1, Some("Induced")).to_string(), "Induced");
/// assert_eq!(NamedValue::new(77, None).to_string(), "77");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedValue {
    value: u32,
    name: Option<&'static str>,
}

impl NamedValue {
    /// A value with its name, if it has one.
    #[must_use]
    pub const fn new(value: u32, name: Option<&'static str>) -> Self {
        NamedValue { value, name }
    }

    /// The number in the event.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.value
    }

    /// Its name; `None` if the tables have none.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        self.name
    }
}

impl fmt::Display for NamedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => f.pad(name),
            None => self.value.fmt(f),
        }
    }
}
