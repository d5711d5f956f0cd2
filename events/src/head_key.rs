//! The part of a record's header that says which event it is, as a key for caches.

use etl_format::constants::RecordKind;
use etl_format::constants::offset::{event, full, kernel};
use etl_format::cursor::Bytes;
use etl_format::read::Record;

/// The part of a header that says which event a record is: of two records with the same one all
/// that [`HeaderFields`](crate::header_fields::HeaderFields) has is the same, but the activity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadKey([u64; 5]);

impl HeadKey {
    /// Slots that a cache of what records have in common needs: few traces have more events. A
    /// power of two.
    pub const SLOTS: usize = 1 << 9;

    /// The key of a record; `None` for kinds that are rare.
    #[inline]
    pub fn of(record: &Record<'_>) -> Option<Self> {
        let (kind, bytes) = (record.kind(), record.bytes());
        let [first, second, third, last] = match kind {
            RecordKind::EVENT32 | RecordKind::EVENT64 => {
                // The descriptor follows the provider.
                let words = bytes.array::<32>(event::PROVIDER)?;
                let [a, b, c, d] = [0, 8, 16, 24].map(|at| words.as_slice().u64_at(at));
                [a?, b?, c?, d?]
            }
            RecordKind::FULL32 | RecordKind::FULL64 => {
                let class = bytes.array::<16>(full::CLASS)?;
                let [a, b] = [0, 8].map(|at| class.as_slice().u64_at(at));
                [a?, b?, bytes.u32_at(full::OPCODE)?.into(), 0]
            }
            _ if kind.is_kernel() => {
                let (version, hook) = (bytes.u16_at(kernel::VERSION)?, bytes.u16_at(kernel::HOOK)?);
                [0, 0, u64::from(version) | u64::from(hook) << 16, 0]
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
