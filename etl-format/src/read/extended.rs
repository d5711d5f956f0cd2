//! Extended data items: what an EVENT record carries between its header and its payload.

use crate::Guid;
use crate::constants::ExtendedType;
use crate::cursor::Bytes;

/// Bytes of an item's own header.
const ITEM_HEADER: usize = 8;

/// One extended data item, typed where its type is known.
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
    /// The activity that this one was started from.
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
        /// Joins the halves of a stack; 0 when it is whole.
        match_id: u64,
        /// The key.
        key: u64,
        /// Whether the addresses are 64 bits wide.
        wide: bool,
    },
    /// Index of a precise-sampling record.
    PebsIndex(u64),
    /// Counters of the processor, 64 bits each, little-endian.
    PmcCounters(&'a [u8]),
    /// Process-state-manager key: opaque.
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
    /// Difference of the clock to the root partition's.
    QpcDelta(i64),
    /// Container that the event comes from.
    ContainerId(Guid),
    /// An item whose type is not known, or whose data are too short for its type.
    Unknown {
        /// The type as stored.
        kind: ExtendedType,
        /// The data.
        data: &'a [u8],
    },
}

/// The addresses of a call stack as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackTrace<'a> {
    /// Joins the kernel and the user half of a stack; 0 when the stack is whole.
    pub match_id: u64,
    /// Whether addresses are 8 bytes; else 4.
    pub wide: bool,
    addresses: &'a [u8],
}

impl<'a> StackTrace<'a> {
    /// The addresses, innermost first. Bytes after the last whole address are ignored.
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        let wide = self.wide;
        self.addresses
            .chunks_exact(if wide { 8 } else { 4 })
            .map(move |a| {
                if wide {
                    a.u64_at(0).unwrap_or(0)
                } else {
                    a.u32_at(0).map_or(0, u64::from)
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
    at: usize,
    more: bool,
    broken: bool,
}

impl<'a> ExtendedItems<'a> {
    /// Items from `at` of the record, if the flags announce `some`.
    pub(crate) fn new(record: &'a [u8], at: usize, some: bool) -> Self {
        ExtendedItems {
            record,
            at,
            more: some,
            broken: false,
        }
    }

    /// Offset in the record after the items returned so far.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Whether the iteration ended at an item that did not fit into the record.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Type and data of the next item, without looking into it.
    pub fn next_raw(&mut self) -> Option<RawItem<'a>> {
        if !self.more {
            return None;
        }
        let item = self.item();
        if item.is_none() {
            self.more = false;
            self.broken = true;
        }
        item
    }

    fn item(&mut self) -> Option<RawItem<'a>> {
        let item = self.record.get(self.at..)?;
        let total = usize::from(item.u16_at(0)?);
        let kind = ExtendedType(item.u16_at(2)?);
        let linked = item.u16_at(4)? & 1 != 0;
        let len = usize::from(item.u16_at(6)?);
        // The stated total is 8 more than the data, rounded up to 8; it alone determines where the
        // next item begins, so it must cover the data and stay inside the record.
        if total < ITEM_HEADER + len || total > item.len() {
            return None;
        }
        let data = item.get(ITEM_HEADER..ITEM_HEADER + len)?;
        self.at += total;
        self.more = linked;
        Some(RawItem { kind, data })
    }
}

impl<'a> Iterator for ExtendedItems<'a> {
    type Item = ExtendedItem<'a>;

    fn next(&mut self) -> Option<ExtendedItem<'a>> {
        let RawItem { kind, data } = self.next_raw()?;
        Some(typed(kind, data).unwrap_or(ExtendedItem::Unknown { kind, data }))
    }
}

fn typed(kind: ExtendedType, data: &[u8]) -> Option<ExtendedItem<'_>> {
    let stack = |wide| {
        Some(ExtendedItem::Stack(StackTrace {
            match_id: data.u64_at(0)?,
            wide,
            addresses: data.get(8..)?,
        }))
    };
    Some(match kind {
        ExtendedType::RELATED_ACTIVITYID => ExtendedItem::RelatedActivity(data.guid_at(0)?),
        ExtendedType::SID => ExtendedItem::Sid(data),
        ExtendedType::TS_ID => ExtendedItem::TerminalSession(data.u32_at(0)?),
        ExtendedType::INSTANCE_INFO => ExtendedItem::Instance {
            id: data.u32_at(0)?,
            parent_id: data.u32_at(4)?,
            parent: data.guid_at(8)?,
        },
        ExtendedType::STACK_TRACE32 => return stack(false),
        ExtendedType::STACK_TRACE64 => return stack(true),
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
            key: data.u32_at(8)?.into(),
            wide: false,
        },
        ExtendedType::STACK_KEY64 => ExtendedItem::StackKey {
            match_id: data.u64_at(0)?,
            key: data.u64_at(8)?,
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
