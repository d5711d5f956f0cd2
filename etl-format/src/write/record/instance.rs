//! INSTANCE records: classic events of an instance.

use byteorder::{LE, WriteBytesExt};

use super::{Full, Record};
use crate::Guid;
use crate::constants::RecordKind;
use crate::error::Result;
use crate::write::put::sized;

/// `EVENT_INSTANCE_GUID_HEADER`: the head of a FULL record, then at 0x30 the instance, at 0x34 its
/// parent, at 0x38 the parent's class, at 0x48 the payload.
#[derive(Clone, Copy, Debug)]
pub struct Instance<'a> {
    /// The part that is as in a FULL record, with the payload.
    pub full: Full<'a>,
    /// Instance id.
    pub instance_id: u32,
    /// Instance id of the parent.
    pub parent_instance_id: u32,
    /// Class of the parent.
    pub parent_class: Guid,
}

impl Record for Instance<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let kind = self.full.pointer_size.choose(RecordKind::INSTANCE32, RecordKind::INSTANCE64);
        sized(out, 0, |out| {
            self.full.head(kind, out)?;
            out.write_u32::<LE>(self.instance_id)?;
            out.write_u32::<LE>(self.parent_instance_id)?;
            out.extend(self.parent_class.to_bytes());
            out.extend_from_slice(self.full.payload);
            Ok(())
        })
    }

    fn timestamp(&self) -> Option<i64> {
        Some(self.full.timestamp)
    }
}
