//! Extended data items of EVENT records.

use std::io;

use byteorder::{LE, WriteBytesExt};

use crate::Guid;
use crate::constants::ExtendedType;
use crate::error::Result;
use crate::write::put::unwritable;

/// Bytes of an item's own header.
const ITEM_HEADER: usize = 8;

/// One extended data item.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Extended<'a> {
    /// The activity that this one was started from.
    RelatedActivity(Guid),
    /// A call stack of 32-bit addresses, innermost first.
    Stack32 {
        /// The same number in the kernel and the user half; 0 if the stack is whole.
        match_id: u64,
        /// The addresses.
        addresses: &'a [u32],
    },
    /// A call stack of 64-bit addresses, innermost first.
    Stack64 {
        /// The same number in the kernel and the user half; 0 if the stack is whole.
        match_id: u64,
        /// The addresses.
        addresses: &'a [u64],
    },
    /// TraceLogging metadata: the bytes with their leading size.
    Schema(&'a [u8]),
    /// Name and traits of the provider: the bytes with their leading size.
    ProviderTraits(&'a [u8]),
    /// Any other item, from its encoded data.
    Other(ExtendedType, &'a [u8]),
}

impl Extended<'_> {
    fn kind(&self) -> ExtendedType {
        match *self {
            Extended::RelatedActivity(_) => ExtendedType::RELATED_ACTIVITYID,
            Extended::Stack32 { .. } => ExtendedType::STACK_TRACE32,
            Extended::Stack64 { .. } => ExtendedType::STACK_TRACE64,
            Extended::Schema(_) => ExtendedType::EVENT_SCHEMA_TL,
            Extended::ProviderTraits(_) => ExtendedType::PROV_TRAITS,
            Extended::Other(kind, _) => kind,
        }
    }

    /// Bytes of the data.
    fn data_len(&self) -> usize {
        match *self {
            Extended::RelatedActivity(_) => 16,
            Extended::Stack32 { addresses, .. } => 8 + 4 * addresses.len(),
            Extended::Stack64 { addresses, .. } => 8 + 8 * addresses.len(),
            Extended::Schema(bytes)
            | Extended::ProviderTraits(bytes)
            | Extended::Other(_, bytes) => bytes.len(),
        }
    }

    /// Bytes of the encoded item.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        ITEM_HEADER + self.data_len().next_multiple_of(8)
    }

    /// Appends the item: u16 total size (rounded up to 8), u16 type, u16 linkage, u16 data size,
    /// the data, zeros up to the total size. `linked` means that another item follows.
    pub(super) fn encode(&self, linked: bool, out: &mut Vec<u8>) -> Result<()> {
        let end = out.len() + self.encoded_len();
        let Ok(size) = u16::try_from(self.encoded_len()) else {
            return Err(unwritable("an extended item takes at most 65535 bytes"));
        };
        out.write_u16::<LE>(size)?;
        out.write_u16::<LE>(self.kind().0)?;
        out.write_u16::<LE>(linked.into())?;
        out.write_u16::<LE>(self.data_len() as u16)?;
        self.encode_data(out)?;
        out.resize(end, 0);
        Ok(())
    }

    fn encode_data(&self, out: &mut Vec<u8>) -> io::Result<()> {
        match *self {
            Extended::RelatedActivity(guid) => out.extend(guid.to_bytes()),
            Extended::Stack32 {
                match_id,
                addresses,
            } => {
                out.write_u64::<LE>(match_id)?;
                addresses
                    .iter()
                    .try_for_each(|address| out.write_u32::<LE>(*address))?;
            }
            Extended::Stack64 {
                match_id,
                addresses,
            } => {
                out.write_u64::<LE>(match_id)?;
                addresses
                    .iter()
                    .try_for_each(|address| out.write_u64::<LE>(*address))?;
            }
            Extended::Schema(bytes)
            | Extended::ProviderTraits(bytes)
            | Extended::Other(_, bytes) => out.extend_from_slice(bytes),
        }
        Ok(())
    }
}
