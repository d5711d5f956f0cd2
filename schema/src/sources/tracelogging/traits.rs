//! Provider traits: name, group and decode GUID of a TraceLogging provider.

use crate::decode::ansi_text;
use etl_format::Guid;
use etl_format::cursor::{Bytes, Cursor};
use std::borrow::Cow;

/// The trait with the group of the provider.
const GROUP: u8 = 1;
/// The trait with the GUID by which its events are decoded.
const DECODE_GUID: u8 = 2;

/// The contents of a `PROV_TRAITS` item.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProviderTraits<'a> {
    /// The provider's name.
    pub name: Cow<'a, str>,
    /// The provider group.
    pub group: Option<Guid>,
    /// The GUID by which events are decoded.
    pub decode_guid: Option<Guid>,
}

impl<'a> ProviderTraits<'a> {
    /// From an item's data. `None` if it has no name. Traits that are cut or unknown are left out.
    #[must_use]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let size = data.u16_at(0)?;
        let data = data.get(..usize::from(size)).unwrap_or(data);
        let mut c = Cursor::new(data);
        c.take(2)?;
        let name = ansi_text(c.ansiz()?);
        let mut traits = ProviderTraits {
            name,
            ..ProviderTraits::default()
        };
        while let Some(size) = c.u16() {
            let Some(body) = usize::from(size).checked_sub(2).and_then(|n| c.take(n)) else {
                break;
            };
            match (body.u8_at(0), body.guid_at(1)) {
                (Some(GROUP), Some(guid)) => traits.group = Some(guid),
                (Some(DECODE_GUID), Some(guid)) => traits.decode_guid = Some(guid),
                _ => {}
            }
        }
        Some(traits)
    }

    /// The data of a `PROV_TRAITS` item. The name is cut before a NUL, and if it would make the
    /// item too long.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        /// Longest name: the size, the NUL and two traits of 19 bytes have to fit as well.
        const MAX_LEN: usize = 0xffff - 2 - 1 - 2 * 19;
        let name = self.name.split('\0').next().unwrap_or_default();
        let name = name
            .get(..name.floor_char_boundary(MAX_LEN))
            .unwrap_or_default();
        let mut out = vec![0, 0];
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        for (kind, guid) in [(GROUP, self.group), (DECODE_GUID, self.decode_guid)] {
            if let Some(guid) = guid {
                out.extend_from_slice(&19u16.to_le_bytes());
                out.push(kind);
                out.extend_from_slice(&guid.to_bytes());
            }
        }
        let size = u16::try_from(out.len()).unwrap_or(u16::MAX);
        for (to, from) in out.iter_mut().zip(size.to_le_bytes()) {
            *to = from;
        }
        out
    }
}
