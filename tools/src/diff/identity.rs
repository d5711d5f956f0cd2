//! Providers and events in reports.

use std::fmt::Display;

use etl_events::header_fields::hook_as_text;
use etl_format::Guid;
use serde::{Serialize, Serializer};

/// A provider, a class, or a group of kernel events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProviderIdentity {
    /// The GUID of the provider, or of the class or group.
    #[serde(rename = "provider_guid", serialize_with = "as_text")]
    pub guid: Guid,
    /// The name, if a trace or a table defines it.
    #[serde(rename = "provider")]
    pub name: Option<String>,
}

/// An event of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EventIdentity {
    /// The name, if a trace or a table defines it.
    pub name: Option<String>,
    /// Group and type of a kernel event, in JSON hexadecimal.
    #[serde(serialize_with = "hook_as_text")]
    pub hook: Option<u16>,
    /// Event id, or number of a WPP message.
    pub id: u16,
    /// Opcode, or type of a classic event.
    pub opcode: u8,
}

fn as_text<S: Serializer>(value: &impl Display, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_str(value)
}
