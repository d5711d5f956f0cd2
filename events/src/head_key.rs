//! The part of a record's header that says which event it is, as a key for caches.

use etl_format::constants::RecordKind;
use etl_format::constants::offset::{event, full, kernel};
use etl_format::cursor::Bytes;
use etl_format::read::Record;

/// The part of a header that says which event a record is. Records with the same key have the same
/// [`HeaderFields`](crate::header_fields::HeaderFields); only their activities may differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadKey([u64; 5]);

impl HeadKey {
    /// The slots of a cache by keys: few traces have more different events. A power of two.
    pub const SLOTS: usize = 1 << 9;

    /// The key of a record; `None` for kinds that are rare.
    #[inline]
    pub fn of(record: &Record<'_>) -> Option<Self> {
        let kind = record.kind();
        let bytes = record.bytes();
        let [first, second, third, last] = match kind {
            RecordKind::EVENT32 | RecordKind::EVENT64 => {
                // The descriptor follows the provider.
                let words = bytes.array::<32>(event::PROVIDER)?;
                let words = words.as_slice();
                [
                    words.u64_at(0)?,
                    words.u64_at(8)?,
                    words.u64_at(16)?,
                    words.u64_at(24)?,
                ]
            }
            RecordKind::FULL32 | RecordKind::FULL64 => {
                let class = bytes.array::<16>(full::CLASS)?;
                let class = class.as_slice();
                let opcode = bytes.u32_at(full::OPCODE)?;
                [class.u64_at(0)?, class.u64_at(8)?, opcode.into(), 0]
            }
            _ if kind.is_kernel() => {
                let version = u64::from(bytes.u16_at(kernel::VERSION)?);
                let hook = u64::from(bytes.u16_at(kernel::HOOK)?);
                [0, 0, version | hook << 16, 0]
            }
            _ => return None,
        };
        Some(HeadKey([first, second, third, last, kind.0.into()]))
    }

    /// Its slot in a cache.
    #[inline]
    pub fn slot(&self) -> usize {
        let [first, _, third, last, kind] = self.0;
        let mixed = (first ^ last.rotate_left(17) ^ third.rotate_left(40) ^ kind)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as usize % Self::SLOTS
    }
}
