//! A cache by provider and descriptor of events: where a kind of event is counted, its layout in
//! the tables, and whether its level and keywords are as in the tables.
//!
//! A trace has a few dozen kinds of events; the cache has one entry for each hash.

use etl_format::constants::PointerSize;
use etl_format::constants::offset::event::PROVIDER;
use etl_format::cursor::Bytes;
use etl_format::read::{EventHeader, Record};
use etl_schema::decode::{Decoder, StringLayout};
use etl_schema::providers::KERNEL_PROCESS;
use etl_schema::views::clr::{self, ClrProvider};
use etl_schema::views::count_texts;

use super::collections::Collectors;
use super::enablement::{Admission, MANIFEST};
use super::payload::{Layout, Payloads};

/// Provider and descriptor, as they follow each other in the header of an event.
type Key = [u8; 32];

/// The properties of all events with the same provider and descriptor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    key: Key,
    /// The index of its counter; `None` if too many kinds are counted.
    pub index: Option<u32>,
    /// Whether its events record how sessions enabled providers.
    pub records_enablement: bool,
    /// Whether its events are about garbage collections.
    pub is_of_collections: bool,
    /// Whether its provider is Microsoft-Windows-Kernel-Process, which any session can enable.
    pub is_of_processes: bool,
    /// The layout of its payloads.
    pub layout: Layout,
    /// Whether only the size of its payloads has to be checked.
    only_size: bool,
    /// Sizes of its payloads with pointers of 4 and of 8 bytes.
    sizes: [Size; 2],
    /// The size of an IL-to-native map.
    il_map: Option<clr::IlMapSize>,
}

/// The size of payloads.
#[derive(Clone, Copy, Debug)]
enum Size {
    /// It is always the same.
    Fixed(usize),
    /// Only strings vary.
    Texts(StringLayout),
    /// The fields have to be read.
    Other,
}

impl Size {
    fn of(decoder: &Decoder, pointers: PointerSize) -> Self {
        match (
            decoder.fixed_size(pointers),
            decoder.string_layout(pointers),
        ) {
            (Some(size), _) => Size::Fixed(size),
            (None, Some(layout)) => Size::Texts(layout),
            (None, None) => Size::Other,
        }
    }

    /// Whether a payload certainly has this size.
    #[inline(always)]
    fn is_of(self, payload: &[u8]) -> bool {
        match self {
            Size::Fixed(size) => size == payload.len(),
            Size::Texts(StringLayout {
                before,
                texts,
                after,
            }) => {
                let end = payload.len().checked_sub(after);
                let between = end.and_then(|end| payload.get(before..end));
                between.and_then(count_texts) == Some(texts)
            }
            Size::Other => false,
        }
    }
}

impl Kind {
    #[cold]
    #[inline(never)]
    fn new(key: Key, header: &EventHeader, admission: &mut Admission, payloads: &Payloads) -> Self {
        let provider = header.provider;
        let descriptor = header.descriptor;
        let index = admission.index(header);
        let layout = payloads.layout(provider, descriptor);
        let sizes = match layout.decoder {
            Some(decoder) => [PointerSize::P4, PointerSize::P8].map(|p| Size::of(decoder, p)),
            None => [Size::Other; 2],
        };
        let il_map = match ClrProvider::from_guid(provider) {
            Some(provider) if payloads.is_as_shipped() => {
                clr::il_map_size(provider, descriptor.id, descriptor.version)
            }
            _ => None,
        };
        Kind {
            key,
            index: index.and_then(|index| u32::try_from(index).ok()),
            records_enablement: Admission::is_enablement(header),
            is_of_collections: Collectors::is_about_collections(header),
            is_of_processes: provider == KERNEL_PROCESS,
            layout,
            only_size: layout.decoder.is_some()
                && !layout.wrong_descriptor
                && descriptor.id != MANIFEST,
            sizes,
            il_map,
        }
    }

    /// Whether an event without extended data and with this payload needs no further check.
    #[inline(always)]
    pub fn fits(&self, payload: &[u8], pointers: Option<PointerSize>) -> bool {
        let [size_32, size_64] = self.sizes;
        let size = match pointers {
            Some(PointerSize::P8) => size_64,
            _ => size_32,
        };
        self.only_size
            && (self.layout.sized_elsewhere
                || size.is_of(payload)
                || self.il_map.is_some_and(|size| size.is_exact(payload)))
    }
}

/// Kinds of recent events, by hash.
#[derive(Clone, Debug, Default)]
pub(super) struct Kinds {
    entries: Vec<Option<Kind>>,
}

impl Kinds {
    /// Entries; a power of two.
    const ENTRIES: usize = 256;

    /// The kind of an event; `None` if the record is shorter than an event's header.
    #[inline]
    pub fn of(
        &mut self,
        record: &Record<'_>,
        header: &EventHeader,
        admission: &mut Admission,
        payloads: &Payloads,
    ) -> Option<&Kind> {
        let key: &Key = record.bytes().get(PROVIDER..)?.first_chunk()?;
        let slot = Self::slot(key);
        if self
            .entries
            .get(slot)
            .and_then(Option::as_ref)
            .is_none_or(|kind| kind.key != *key)
        {
            let kind = Kind::new(*key, header, admission, payloads);
            self.insert(slot, kind);
        }
        self.entries.get(slot)?.as_ref()
    }

    /// The slot of a kind, by a hash of the first half of the GUID and the whole descriptor.
    #[inline(always)]
    fn slot(key: &Key) -> usize {
        let guid_start = key.u64_at(0).unwrap_or(0);
        let id_to_task = key.u64_at(16).unwrap_or(0);
        let keyword = key.u64_at(24).unwrap_or(0);
        let mixed = guid_start ^ id_to_task ^ keyword.rotate_left(32);
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & (Self::ENTRIES - 1)
    }

    #[cold]
    #[inline(never)]
    fn insert(&mut self, slot: usize, kind: Kind) {
        self.entries.resize(Self::ENTRIES, None);
        if let Some(entry) = self.entries.get_mut(slot) {
            *entry = Some(kind);
        }
    }
}
