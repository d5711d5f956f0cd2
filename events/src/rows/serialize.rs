//! Events by `serde::Serialize`.

use core::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, Serializer};

use super::{Format, RowWriter};
use crate::event::Event;

/// The members of a JSON line of `etlkit dump`.
///
/// ```
/// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
/// let mut events = trace.events().event("GCEnd*");
/// let event = events.next()?.ok_or("no event")?;
/// let value = serde_json::to_value(&event)?;
/// assert_eq!(value["event"], "GCEnd_V1");
/// assert_eq!(value["process"], "app.exe");
/// assert_eq!(value["fields"]["Count"], 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Serialize for Event<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The line is the definition of the members, so it is written and then read.
        let mut line = Vec::new();
        RowWriter::new(Format::JsonLines)
            .lossy()
            .write(&mut line, self);
        let json: Json = serde_json::from_slice(&line).map_err(S::Error::custom)?;
        json.serialize(serializer)
    }
}

/// A value of JSON. Unlike `serde_json::Value`, objects keep the order of their members and several
/// members of one name.
enum Json {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Null => serializer.serialize_unit(),
            Json::Bool(value) => serializer.serialize_bool(*value),
            Json::Unsigned(value) => serializer.serialize_u64(*value),
            Json::Signed(value) => serializer.serialize_i64(*value),
            Json::Float(value) => serializer.serialize_f64(*value),
            Json::Text(text) => serializer.serialize_str(text),
            Json::Array(items) => serializer.collect_seq(items),
            Json::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Signed(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = access.next_entry()? {
            members.push(member);
        }
        Ok(Json::Object(members))
    }
}
