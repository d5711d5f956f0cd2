//! A cache of what the provider and the descriptor of an event decide: where its kind is counted,
//! its layout in the tables, whether level and keywords are those of the tables.
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

/// What provider and descriptor of an event decide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    key: Key,
    /// Where the kind is counted; `None` if too many kinds are counted.
    pub index: Option<u32>,
    /// Whether its events record what sessions were enabled with.
    pub records_enablement: bool,
    /// Whether its events are about garbage collections.
    pub is_of_collections: bool,
    /// Whether its provider is the one that shows the kernel's processes to any session.
    pub is_of_processes: bool,
    /// What is known of its payloads.
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
    /// The fields have to be walked.
    Other,
}

impl Size {
    fn of(decoder: &Decoder, pointers: PointerSize) -> Self {
        match (
            decoder.fixed_size(pointers),
            decoder.string_layout(pointers),
        ) {
            (Some(size), _) => Size::Fixed(size),
            (None, Some(around)) => Size::Texts(around),
            (None, None) => Size::Other,
        }
    }

    /// Whether it is certainly that of a payload.
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
    /// Whether an event without extended data and with this payload needs no further check.
    #[inline(always)]
    pub fn fits(&self, payload: &[u8], pointers: Option<PointerSize>) -> bool {
        let [narrow, broad] = self.sizes;
        self.only_size
            && (self.layout.sized_elsewhere
                || (if pointers == Some(PointerSize::P8) {
                    broad
                } else {
                    narrow
                })
                .is_of(payload)
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
        let word = |at| key.u64_at(at).unwrap_or(0);
        // The first half of the GUID, and all of the descriptor.
        let mixed = word(0) ^ word(16) ^ word(24).rotate_left(32);
        let at = (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & (Self::ENTRIES - 1);
        if self
            .entries
            .get(at)
            .and_then(Option::as_ref)
            .is_none_or(|kind| kind.key != *key)
        {
            self.learn(at, *key, header, admission, payloads);
        }
        self.entries.get(at)?.as_ref()
    }

    #[cold]
    #[inline(never)]
    fn learn(
        &mut self,
        at: usize,
        key: Key,
        header: &EventHeader,
        admission: &mut Admission,
        payloads: &Payloads,
    ) {
        let index = admission
            .index(header)
            .and_then(|index| u32::try_from(index).ok());
        let records_enablement = Admission::is_enablement(header);
        let (provider, d) = (header.provider, header.descriptor);
        let layout = payloads.layout(provider, d);
        let decoder = layout.decoder;
        let size = |pointers| decoder.map_or(Size::Other, |decoder| Size::of(decoder, pointers));
        let il_map = ClrProvider::from_guid(provider)
            .and_then(|provider| clr::il_map_size(provider, d.id, d.version));
        self.entries.resize(Self::ENTRIES, None);
        if let Some(kind) = self.entries.get_mut(at) {
            *kind = Some(Kind {
                key,
                index,
                records_enablement,
                is_of_collections: Collectors::concern(header),
                is_of_processes: provider == KERNEL_PROCESS,
                layout,
                only_size: decoder.is_some() && !layout.wrong_descriptor && d.id != MANIFEST,
                sizes: [size(PointerSize::P4), size(PointerSize::P8)],
                il_map: il_map.filter(|_| payloads.is_as_shipped()),
            });
        }
    }
}
