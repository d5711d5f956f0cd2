//! The parts of traces that are not compared.

use std::collections::BTreeSet;

use etl_format::Guid;
use etl_schema::{Field, InType, OutType, providers};

/// The parts of traces that are not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignore {
    /// Times of events, and fields of the payload that are times.
    pub time: bool,
    /// Process and thread ids: of events, and in fields.
    pub ids: bool,
    /// Addresses: stacks, pointers, and 64-bit fields with an address or an id that is an address.
    pub addresses: bool,
    /// Processors.
    pub processor: bool,
    /// Activity ids.
    pub activity: bool,
    /// The header event.
    pub header: bool,
    /// Fields of the header event, by name.
    pub header_fields: BTreeSet<String>,
    /// Payload fields, by name in lower case.
    pub fields: BTreeSet<String>,
    /// Providers, whose events are left out.
    pub providers: BTreeSet<Guid>,
}

/// A name that [`Ignore::add`] does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a part of traces that can be ignored")]
pub struct UnknownIgnore;

impl Ignore {
    /// Adds a part by its name: `time`, `ids`, `addresses`, `processor`, `activity`, `header`,
    /// `header:NAME`, `field:NAME`, `provider:GUID` (or a name, as [`providers::find`] takes it).
    ///
    /// # Errors
    /// For any other text, and for a header field that does not exist.
    pub fn add(&mut self, what: &str) -> Result<(), UnknownIgnore> {
        match what.split_once(':') {
            Some(("header", name)) if super::file_header::is_field(name) => {
                self.header_fields.insert(name.to_owned());
            }
            Some(("field", name)) if !name.is_empty() => {
                self.fields.insert(name.to_lowercase());
            }
            Some(("provider", guid)) => {
                self.providers
                    .insert(providers::find(guid).ok_or(UnknownIgnore)?);
            }
            _ => {
                let flag = match what {
                    "time" => &mut self.time,
                    "ids" => &mut self.ids,
                    "addresses" => &mut self.addresses,
                    "processor" => &mut self.processor,
                    "activity" => &mut self.activity,
                    "header" => &mut self.header,
                    _ => return Err(UnknownIgnore),
                };
                *flag = true;
            }
        }
        Ok(())
    }

    /// Whether any field of a payload could be ignored, so that payloads have to be decoded.
    #[must_use]
    pub fn looks_into_payloads(&self) -> bool {
        self.time || self.ids || self.addresses || !self.fields.is_empty()
    }

    /// Whether a field of a payload is not compared.
    #[must_use]
    pub fn field(&self, field: &Field) -> bool {
        if !self.looks_into_payloads() {
            return false;
        }
        let name = field.name.to_lowercase();
        self.fields.contains(&name)
            || (self.time && is_time(field, &name))
            || (self.ids && is_id(field, &name))
            || (self.addresses && is_address(field, &name))
    }
}

fn is_time(field: &Field, name: &str) -> bool {
    matches!(field.in_type(), Some(InType::FileTime | InType::SystemTime))
        || field.out == OutType::DateTime
        || name.ends_with("timestamp")
}

fn is_id(field: &Field, name: &str) -> bool {
    const NAMES: [&str; 6] = [
        "processid",
        "threadid",
        "parentid",
        "parentprocessid",
        "pid",
        "tid",
    ];
    matches!(field.out, OutType::Pid | OutType::Tid)
        || NAMES
            .iter()
            .any(|n| name == *n || (n.len() > 3 && name.ends_with(n)))
}

fn is_address(field: &Field, name: &str) -> bool {
    // The CLR's ids of modules, methods and the like are addresses in 64-bit integers.
    const ENDS: [&str; 7] = ["address", "addr", "base", "id", "key", "object", "stack"];
    match field.in_type() {
        Some(InType::Pointer) => true,
        Some(InType::UInt64 | InType::HexInt64) => ENDS.iter().any(|end| name.ends_with(end)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn add_knows_its_names() {
        let mut ignore = Ignore::default();
        for good in [
            "time",
            "ids",
            "addresses",
            "processor",
            "activity",
            "header",
            "header:end_time",
            "field:Name",
            "provider:e13c0d23-ccbc-4e12-931b-d9cc2eee27e4",
        ] {
            assert_eq!(ignore.add(good), Ok(()), "{good}");
        }
        assert!(ignore.time && ignore.ids && ignore.header && ignore.fields.contains("name"));
        for bad in [
            "",
            "times",
            "header:nope",
            "field:",
            "provider:x",
            "other:y",
        ] {
            assert_eq!(ignore.add(bad), Err(UnknownIgnore), "{bad}");
        }
    }

    #[test]
    fn field_ignores_by_name_and_type() {
        let of = |what: &str, field: Field| {
            let mut ignore = Ignore::default();
            ignore.add(what).unwrap();
            ignore.field(&field)
        };
        assert!(of("time", Field::new("When", InType::FileTime)));
        assert!(!of("time", Field::new("Count", InType::UInt64)));
        assert!(of("ids", Field::new("OSThreadID", InType::UInt32)));
        assert!(!of("ids", Field::new("Paid", InType::UInt32)));
        assert!(of("addresses", Field::new("x", InType::Pointer)));
        assert!(of(
            "addresses",
            Field::new("MethodStartAddress", InType::UInt64)
        ));
        assert!(!of("addresses", Field::new("MethodSize", InType::UInt32)));
        assert!(of("field:count", Field::new("Count", InType::UInt64)));
    }
}
