//! Extended data items, which are between the header and the payload of an EVENT record.

use crate::Guid;
use crate::constants::ExtendedType;
use crate::cursor::Bytes;

/// Bytes of an item's header.
const ITEM_HEADER: usize = 8;

/// Offsets in the header of an item.
mod item_offset {
    /// Bytes of header and data, rounded up to 8.
    pub const TOTAL_SIZE: usize = 0;
    pub const TYPE: usize = 2;
    /// The lowest bit is set if another item follows.
    pub const LINKAGE: usize = 4;
    pub const DATA_SIZE: usize = 6;
}

/// Offset of the addresses or the key in the data of a stack item, after the match id.
const AFTER_MATCH_ID: usize = 8;

/// One extended data item.
///
/// ```
/// use etl_format::{EventDescriptor, FileHeader, Guid};
/// use etl_format::read::{ExtendedItem, Options, Order, Trace};
/// use etl_format::write::record::Event;
/// use etl_format::write::Session;
///
/// let mut session = Session::in_memory(FileHeader::new())?;
/// let descriptor = EventDescriptor { id: 7, level: 4, ..EventDescriptor::default() };
/// let provider = Guid::new(1, 2, 3, [4; 8]);
/// session.write(0, &Event::new(provider, descriptor, 2_000).stack(&[0x1000, 0x2000]))?;
/// let bytes = session.finish()?;
/// let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
/// let mut records = trace.records(Order::Time)?;
/// let mut addresses = Vec::new();
/// while let Some(record) = records.next_record()? {
///     for item in record.extended() {
///         if let ExtendedItem::Stack(stack) = item {
///             addresses.extend(stack.addresses());
///         }
///     }
/// }
/// assert_eq!(addresses, [0x1000, 0x2000]);
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtendedItem<'a> {
    /// The activity from which the activity of this event was started.
    RelatedActivity(Guid),
    /// The user, as a binary SID: revision, count, authority, sub-authorities.
    Sid(&'a [u8]),
    /// The terminal session.
    TerminalSession(u32),
    /// An instance and its parent.
    Instance {
        /// Instance id.
        id: u32,
        /// Parent instance id.
        parent_id: u32,
        /// Class of the parent.
        parent: Guid,
    },
    /// A call stack, innermost frame first.
    Stack(StackTrace<'a>),
    /// Key of a call stack that another record contains.
    StackKey {
        /// The same number in both halves of a stack; 0 if the stack is whole.
        match_id: u64,
        /// The key, by which a later record has the stack.
        key: u64,
        /// Whether the addresses are 64 bits wide.
        wide: bool,
    },
    /// Index of a precise-sampling record.
    PebsIndex(u64),
    /// Counters of the processor, 64 bits each, little-endian.
    PmcCounters(&'a [u8]),
    /// Process-state-manager key, in an unknown format.
    PsmKey(&'a [u8]),
    /// Key of the event.
    EventKey(u64),
    /// TraceLogging metadata: name and fields of the event.
    EventSchema(&'a [u8]),
    /// Name and traits of the provider.
    ProviderTraits(&'a [u8]),
    /// Start key of the process.
    ProcessStartKey(u64),
    /// GUID by which the provider is controlled.
    ControlGuid(Guid),
    /// Difference between the clock and the clock of the root partition.
    QpcDelta(i64),
    /// Container that the event comes from.
    ContainerId(Guid),
    /// An item of an unknown type, or whose data are too short for its type.
    Unknown {
        /// The type as stored.
        kind: ExtendedType,
        /// The data, without the header.
        data: &'a [u8],
    },
}

/// The addresses of a call stack as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackTrace<'a> {
    /// The same number in the kernel and the user half of a stack; 0 if the stack is whole.
    pub match_id: u64,
    /// Whether addresses have 8 bytes; otherwise they have 4.
    pub wide: bool,
    addresses: &'a [u8],
}

impl<'a> StackTrace<'a> {
    /// The addresses, innermost first. Bytes after the last whole address are ignored.
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        let wide = self.wide;
        self.addresses
            .chunks_exact(if wide { 8 } else { 4 })
            .map(move |address| {
                if wide {
                    address.u64_at(0).unwrap_or(0)
                } else {
                    address.u32_at(0).unwrap_or(0).into()
                }
            })
    }

    /// Frames in the stack.
    #[must_use]
    pub fn len(&self) -> usize {
        self.addresses.len() / if self.wide { 8 } else { 4 }
    }

    /// Whether there are no frames.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An item as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawItem<'a> {
    /// What it contains.
    pub kind: ExtendedType,
    /// Its data, without the header.
    pub data: &'a [u8],
}

/// Iterates over the items in stored order.
///
/// Stops at the first item that does not fit into the record; see [`ExtendedItems::is_broken`].
#[derive(Clone, Debug)]
pub struct ExtendedItems<'a> {
    record: &'a [u8],
    position: usize,
    has_more: bool,
    is_broken: bool,
}

impl<'a> ExtendedItems<'a> {
    /// The items of a record that begin at an offset; none if `has_items` is false.
    pub(crate) fn new(record: &'a [u8], position: usize, has_items: bool) -> Self {
        ExtendedItems {
            record,
            position,
            has_more: has_items,
            is_broken: false,
        }
    }

    /// Offset in the record after the items returned so far.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Whether the iteration ended at an item that does not fit into the record.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Type and data of the next item, without decoding the data.
    pub fn next_raw(&mut self) -> Option<RawItem<'a>> {
        if !self.has_more {
            return None;
        }
        let item = self.read_item();
        if item.is_none() {
            self.has_more = false;
            self.is_broken = true;
        }
        item
    }

    fn read_item(&mut self) -> Option<RawItem<'a>> {
        let item = self.record.get(self.position..)?;
        let total = usize::from(item.u16_at(item_offset::TOTAL_SIZE)?);
        let kind = ExtendedType(item.u16_at(item_offset::TYPE)?);
        let is_linked = item.u16_at(item_offset::LINKAGE)? & 1 != 0;
        let len = usize::from(item.u16_at(item_offset::DATA_SIZE)?);
        // The stated total is 8 more than the data, rounded up to 8; it alone determines where the
        // next item begins, so it must cover the data and stay inside the record.
        if total < ITEM_HEADER + len || total > item.len() {
            return None;
        }
        let data = item.get(ITEM_HEADER..ITEM_HEADER + len)?;
        self.position += total;
        self.has_more = is_linked;
        Some(RawItem { kind, data })
    }
}

impl<'a> Iterator for ExtendedItems<'a> {
    type Item = ExtendedItem<'a>;

    fn next(&mut self) -> Option<ExtendedItem<'a>> {
        let RawItem { kind, data } = self.next_raw()?;
        Some(decode(kind, data).unwrap_or(ExtendedItem::Unknown { kind, data }))
    }
}

/// Decodes the data of an item of a known type.
fn decode(kind: ExtendedType, data: &[u8]) -> Option<ExtendedItem<'_>> {
    Some(match kind {
        ExtendedType::RELATED_ACTIVITYID => ExtendedItem::RelatedActivity(data.guid_at(0)?),
        ExtendedType::SID => ExtendedItem::Sid(data),
        ExtendedType::TS_ID => ExtendedItem::TerminalSession(data.u32_at(0)?),
        ExtendedType::INSTANCE_INFO => ExtendedItem::Instance {
            id: data.u32_at(0)?,
            parent_id: data.u32_at(4)?,
            parent: data.guid_at(8)?,
        },
        ExtendedType::STACK_TRACE32 | ExtendedType::STACK_TRACE64 => {
            ExtendedItem::Stack(StackTrace {
                match_id: data.u64_at(0)?,
                wide: kind == ExtendedType::STACK_TRACE64,
                addresses: data.get(AFTER_MATCH_ID..)?,
            })
        }
        ExtendedType::PEBS_INDEX => ExtendedItem::PebsIndex(data.u64_at(0)?),
        ExtendedType::PMC_COUNTERS => ExtendedItem::PmcCounters(data),
        ExtendedType::PSM_KEY => ExtendedItem::PsmKey(data),
        ExtendedType::EVENT_KEY => ExtendedItem::EventKey(data.u64_at(0)?),
        ExtendedType::EVENT_SCHEMA_TL => ExtendedItem::EventSchema(data),
        ExtendedType::PROV_TRAITS => ExtendedItem::ProviderTraits(data),
        ExtendedType::PROCESS_START_KEY => ExtendedItem::ProcessStartKey(data.u64_at(0)?),
        ExtendedType::CONTROL_GUID => ExtendedItem::ControlGuid(data.guid_at(0)?),
        ExtendedType::QPC_DELTA => ExtendedItem::QpcDelta(data.i64_at(0)?),
        ExtendedType::CONTAINER_ID => ExtendedItem::ContainerId(data.guid_at(0)?),
        ExtendedType::STACK_KEY32 => ExtendedItem::StackKey {
            match_id: data.u64_at(0)?,
            key: data.u32_at(AFTER_MATCH_ID)?.into(),
            wide: false,
        },
        ExtendedType::STACK_KEY64 => ExtendedItem::StackKey {
            match_id: data.u64_at(0)?,
            key: data.u64_at(AFTER_MATCH_ID)?,
            wide: true,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(kind: u16, linked: bool, data: &[u8]) -> Vec<u8> {
        let total = 8 + data.len().next_multiple_of(8);
        let mut out = Vec::new();
        for word in [total as u16, kind, u16::from(linked), data.len() as u16] {
            out.extend(word.to_le_bytes());
        }
        out.extend(data);
        out.resize(total, 0);
        out
    }

    #[test]
    fn next_advances_by_the_total_size() {
        let mut bytes = item(0x0c, true, b"\x05\0ab\0");
        bytes.extend(item(3, false, &7u32.to_le_bytes()));
        bytes.extend(b"payload!");
        let mut items = ExtendedItems::new(&bytes, 0, true);
        assert_eq!(
            items.next(),
            Some(ExtendedItem::ProviderTraits(b"\x05\0ab\0"))
        );
        assert_eq!(items.next(), Some(ExtendedItem::TerminalSession(7)));
        assert_eq!(items.next(), None);
        assert!(!items.is_broken());
        assert_eq!(&bytes[items.position()..], b"payload!");
    }

    #[test]
    fn next_stops_at_an_item_beyond_the_record() {
        for total in [0u16, 7, 11, 100] {
            let mut bytes = item(3, true, &7u32.to_le_bytes());
            bytes[..2].copy_from_slice(&total.to_le_bytes());
            let mut items = ExtendedItems::new(&bytes, 0, true);
            assert_eq!(items.next(), None, "{total}");
            assert!(items.is_broken());
        }
        let mut cut = ExtendedItems::new(&[0; 4], 0, true);
        assert_eq!(cut.next(), None);
        assert!(cut.is_broken());
    }

    #[test]
    fn next_returns_short_data_as_unknown() {
        let bytes = item(1, false, &[1, 2, 3]);
        let first = ExtendedItems::new(&bytes, 0, true).next();
        let kind = ExtendedType::RELATED_ACTIVITYID;
        assert_eq!(
            first,
            Some(ExtendedItem::Unknown {
                kind,
                data: &[1, 2, 3]
            })
        );
    }

    #[test]
    fn stack_addresses_have_both_sizes() {
        let mut data = 9u64.to_le_bytes().to_vec();
        data.extend(0x1122_3344_5566_7788u64.to_le_bytes());
        for (kind, addresses) in [
            (6u16, vec![0x1122_3344_5566_7788u64]),
            (5, vec![0x5566_7788, 0x1122_3344]),
        ] {
            let bytes = item(kind, false, &data);
            let Some(ExtendedItem::Stack(stack)) = ExtendedItems::new(&bytes, 0, true).next()
            else {
                panic!("no stack");
            };
            assert_eq!(stack.match_id, 9);
            assert_eq!(stack.addresses().collect::<Vec<_>>(), addresses);
            assert_eq!(stack.len(), addresses.len());
        }
    }
}
