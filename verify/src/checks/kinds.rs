//! What is known of each kind of events, found by one look-up.
//!
//! A few dozen kinds make up a trace. What a provider and a descriptor decide (where the kind is counted, the
//! layout in the tables, whether level and keywords are the tables') is found out once, and then stands in a table
//! with one place for each hash.

use etl_analysis::events::{clr, whole_texts};
use etl_format::constants::PointerSize;
use etl_format::cursor::Bytes;
use etl_format::read::{EventHeader, Record};
use etl_schema::decode::{Decoder, StringLayout};

use super::enablement::{Admission, MANIFEST};
use super::payload::Payloads;
use super::sizes;

/// Provider and descriptor as the header of an event holds them, one behind the other.
type Key = [u8; 32];

/// Where they begin.
const KEY_AT: usize = 0x18;

/// What provider and descriptor of an event decide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    key: Key,
    /// Where the kind is counted; `None` when there is no room for one more.
    pub place: Option<u32>,
    /// Whether its events tell what sessions were enabled with.
    pub tells: bool,
    /// What the tables have for it.
    pub decoder: Option<&'static Decoder>,
    /// Whether the sizes of its payloads are looked at elsewhere: see [`sizes`].
    pub elsewhere: bool,
    /// Whether it is one of the CLR's whose level and keywords are not those of the tables.
    pub misfit: bool,
    /// Whether the tables have other versions of it and not this one.
    pub other_version: bool,
    /// Whether there is nothing to be said of its events but how large their payloads are.
    quick: bool,
    /// What is known of the sizes of its payloads with narrow and with wide pointers.
    sizes: [Size; 2],
    /// The version of a map from IL to code, whose size [`il_map_is_exact`] knows.
    il_map: Option<u8>,
}

/// What is known of the size of payloads.
#[derive(Clone, Copy, Debug)]
enum Size {
    /// It is always the same.
    Fixed(usize),
    /// Only texts make a difference.
    Texts(StringLayout),
    /// It takes a walk over the fields.
    Other,
}

impl Size {
    fn of(decoder: &Decoder, pointers: PointerSize) -> Self {
        match (decoder.fixed_size(pointers), decoder.string_layout(pointers)) {
            (Some(size), _) => Size::Fixed(size),
            (None, Some(around)) => Size::Texts(around),
            (None, None) => Size::Other,
        }
    }

    /// Whether it is known to be that of a payload.
    #[inline]
    fn is_of(self, payload: &[u8]) -> bool {
        match self {
            Size::Fixed(size) => size == payload.len(),
            Size::Texts(StringLayout { before, texts, behind }) => {
                let end = payload.len().checked_sub(behind);
                let between = end.and_then(|end| payload.get(before..end));
                between.and_then(whole_texts) == Some(texts)
            }
            Size::Other => false,
        }
    }
}

impl Kind {
    /// Whether there is nothing to be said of an event that has no extended data, its payload being this one.
    #[inline]
    pub fn fits(&self, payload: &[u8], pointers: Option<PointerSize>) -> bool {
        let [narrow, broad] = self.sizes;
        self.quick
            && (self.elsewhere
                || (if pointers == Some(PointerSize::P8) { broad } else { narrow }).is_of(payload)
                || self.il_map.is_some_and(|version| il_map_is_exact(version, payload)))
    }
}

/// Kinds of the last events, by a hash.
#[derive(Clone, Debug, Default)]
pub(super) struct Kinds {
    places: Vec<Option<Kind>>,
}

impl Kinds {
    /// Places; a power of two.
    const PLACES: usize = 256;

    /// The kind of an event; `None` for what is shorter than an event's header.
    #[inline]
    pub fn of(
        &mut self,
        record: &Record<'_>,
        header: &EventHeader,
        admission: &mut Admission,
        payloads: &Payloads,
    ) -> Option<&Kind> {
        let key: &Key = record.bytes().get(KEY_AT..)?.first_chunk()?;
        let word = |at| key.u64_at(at).unwrap_or(0);
        // The first half of the GUID, and all of the descriptor.
        let mixed = word(0) ^ word(16) ^ word(24).rotate_left(32);
        let at = (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & (Self::PLACES - 1);
        if self.places.get(at).and_then(Option::as_ref).is_none_or(|kind| kind.key != *key) {
            self.learn(at, *key, header, admission, payloads);
        }
        self.places.get(at)?.as_ref()
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
        let place = admission.place(header).and_then(|place| u32::try_from(place).ok());
        let tells = Admission::is_telling(header);
        let (provider, d) = (header.provider, header.descriptor);
        let decoder = payloads.table(provider, d);
        let misfit = decoder.is_some_and(|decoder| payloads.is_misfit(provider, d, decoder));
        let other_version = payloads.has_other_version(provider, d);
        let elsewhere = decoder.is_some_and(|decoder| sizes::is_one(provider, d.id, decoder));
        let size = |pointers| decoder.map_or(Size::Other, |decoder| Size::of(decoder, pointers));
        let is_map = clr::rundown_of(provider).is_some_and(|rundown| clr::is_il_map(rundown, d.id));
        self.places.resize(Self::PLACES, None);
        if let Some(kind) = self.places.get_mut(at) {
            *kind = Some(Kind {
                key,
                place,
                tells,
                decoder,
                elsewhere,
                misfit,
                other_version,
                quick: decoder.is_some() && !misfit && d.id != MANIFEST,
                sizes: [size(PointerSize::P4), size(PointerSize::P8)],
                il_map: (is_map && payloads.is_as_shipped()).then_some(d.version),
            });
        }
    }
}

/// Whether the payload of a map from IL to code, of this version of the event, ends where its fields do.
#[inline]
fn il_map_is_exact(version: u8, payload: &[u8]) -> bool {
    // The method, the id of a rejit, the part of the code, and two lists of as many offsets; then the
    // instance.
    let lists = payload.u16_at(17).map(|count| 8 * usize::from(count));
    version == 0 && lists.map(|lists| 19 + lists + 2) == Some(payload.len())
}
