//! Extended data items of EVENT records.

use crate::Guid;
use crate::constants::ExtendedType;
use crate::error::Result;
use crate::write::put::{Put, overwrite, unwritable};

/// One extended data item.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Extended<'a> {
    /// The activity that this one was started from.
    RelatedActivity(Guid),
    /// The user, as a binary SID.
    Sid(&'a [u8]),
    /// The terminal session.
    TerminalSession(u32),
    /// An instance and its parent.
    InstanceInfo {
        /// Instance id.
        instance_id: u32,
        /// Instance id of the parent.
        parent_instance_id: u32,
        /// Class of the parent.
        parent_class: Guid,
    },
    /// A call stack of 32-bit addresses, innermost first.
    Stack32 {
        /// Joins the kernel and the user half; 0 when the stack is whole.
        match_id: u64,
        /// The addresses.
        addresses: &'a [u32],
    },
    /// A call stack of 64-bit addresses, innermost first.
    Stack64 {
        /// Joins the kernel and the user half; 0 when the stack is whole.
        match_id: u64,
        /// The addresses.
        addresses: &'a [u64],
    },
    /// Index of a precise-sampling record.
    PebsIndex(u64),
    /// Counters of the processor.
    Counters(&'a [u64]),
    /// Process-state-manager key.
    PsmKey(&'a [u8]),
    /// Key of the event.
    EventKey(u64),
    /// TraceLogging metadata: the bytes with their leading size.
    Schema(&'a [u8]),
    /// Name and traits of the provider: the bytes with their leading size.
    ProviderTraits(&'a [u8]),
    /// Start key of the process.
    ProcessStartKey(u64),
    /// GUID by which the provider is controlled.
    ControlGuid(Guid),
    /// Difference of the clock to the root partition's.
    QpcDelta(i64),
    /// Container that the event comes from.
    ContainerId(&'a [u8]),
    /// Key of a call stack of 32-bit addresses.
    StackKey32 {
        /// Joins the halves.
        match_id: u64,
        /// The key.
        key: u32,
    },
    /// Key of a call stack of 64-bit addresses.
    StackKey64 {
        /// Joins the halves.
        match_id: u64,
        /// The key.
        key: u64,
    },
    /// Any other item, or one whose bytes are already there.
    Other(ExtendedType, &'a [u8]),
}

impl Extended<'_> {
    /// The type under which the item is written.
    #[must_use]
    pub fn item_type(&self) -> ExtendedType {
        match self {
            Extended::RelatedActivity(_) => ExtendedType::RELATED_ACTIVITYID,
            Extended::Sid(_) => ExtendedType::SID,
            Extended::TerminalSession(_) => ExtendedType::TS_ID,
            Extended::InstanceInfo { .. } => ExtendedType::INSTANCE_INFO,
            Extended::Stack32 { .. } => ExtendedType::STACK_TRACE32,
            Extended::Stack64 { .. } => ExtendedType::STACK_TRACE64,
            Extended::PebsIndex(_) => ExtendedType::PEBS_INDEX,
            Extended::Counters(_) => ExtendedType::PMC_COUNTERS,
            Extended::PsmKey(_) => ExtendedType::PSM_KEY,
            Extended::EventKey(_) => ExtendedType::EVENT_KEY,
            Extended::Schema(_) => ExtendedType::EVENT_SCHEMA_TL,
            Extended::ProviderTraits(_) => ExtendedType::PROV_TRAITS,
            Extended::ProcessStartKey(_) => ExtendedType::PROCESS_START_KEY,
            Extended::ControlGuid(_) => ExtendedType::CONTROL_GUID,
            Extended::QpcDelta(_) => ExtendedType::QPC_DELTA,
            Extended::ContainerId(_) => ExtendedType::CONTAINER_ID,
            Extended::StackKey32 { .. } => ExtendedType::STACK_KEY32,
            Extended::StackKey64 { .. } => ExtendedType::STACK_KEY64,
            Extended::Other(kind, _) => *kind,
        }
    }

    /// Appends the item: u16 total size (rounded up to 8), u16 type, u16 linkage, u16 data size,
    /// the data, zeros up to the total size. `linked` says that another item follows.
    pub(super) fn encode(&self, linked: bool, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.put_u16(0);
        out.put_u16(self.item_type().0);
        out.put_u16(u16::from(linked));
        out.put_u16(0);
        self.data(out);
        let long = || unwritable("an extended item takes at most 65535 bytes");
        let size = u16::try_from(out.len() - start - 8).map_err(|_| long())?;
        let total = usize::from(size).next_multiple_of(8) + 8;
        out.resize(start + total, 0);
        let total = u16::try_from(total).map_err(|_| long())?;
        overwrite(out, start, &total.to_le_bytes());
        overwrite(out, start + 6, &size.to_le_bytes());
        Ok(())
    }

    fn data(&self, out: &mut Vec<u8>) {
        match *self {
            Extended::RelatedActivity(guid) | Extended::ControlGuid(guid) => out.put_guid(guid),
            Extended::TerminalSession(id) => out.put_u32(id),
            Extended::InstanceInfo { instance_id, parent_instance_id, parent_class } => {
                out.put_u32(instance_id);
                out.put_u32(parent_instance_id);
                out.put_guid(parent_class);
            }
            Extended::Stack32 { match_id, addresses } => {
                out.put_u64(match_id);
                addresses.iter().for_each(|a| out.put_u32(*a));
            }
            Extended::Stack64 { match_id, addresses } => {
                out.put_u64(match_id);
                addresses.iter().for_each(|a| out.put_u64(*a));
            }
            Extended::Counters(counters) => counters.iter().for_each(|c| out.put_u64(*c)),
            Extended::PebsIndex(v) | Extended::EventKey(v) | Extended::ProcessStartKey(v) => {
                out.put_u64(v);
            }
            Extended::QpcDelta(v) => out.put_i64(v),
            Extended::StackKey32 { match_id, key } => {
                out.put_u64(match_id);
                out.put_u32(key);
                out.put_u32(0);
            }
            Extended::StackKey64 { match_id, key } => {
                out.put_u64(match_id);
                out.put_u64(key);
            }
            Extended::Sid(bytes)
            | Extended::PsmKey(bytes)
            | Extended::Schema(bytes)
            | Extended::ProviderTraits(bytes)
            | Extended::ContainerId(bytes)
            | Extended::Other(_, bytes) => out.bytes(bytes),
        }
    }
}
