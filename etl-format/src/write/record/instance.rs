//! INSTANCE records: classic events of an instance.

use byteorder::{LE, WriteBytesExt};

use super::{Full, Record};
use crate::constants::RecordKind;
use crate::error::Result;
use crate::write::put::sized;
use crate::{Guid, Ticks};

/// `EVENT_INSTANCE_GUID_HEADER`: the head of a FULL record, then at 0x30 the instance, at 0x34 its
/// parent, at 0x38 the parent's class, at 0x48 the payload.
///
/// ```
/// use etl_format::Guid;
/// use etl_format::write::record::{Full, Instance, Record};
///
/// let class = Guid::new(1, 2, 3, [4; 8]);
/// let event = Instance::new(Full::new(class, 1, 2_000).process(4, 8), 7).parent(class, 6);
/// let mut bytes = Vec::new();
/// event.encode(&mut bytes)?;
/// assert_eq!((bytes.len(), bytes[0x30], bytes[0x34]), (0x48, 7, 6));
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Instance<'a> {
    /// The part that is as in a FULL record, with the payload.
    full: Full<'a>,
    /// Instance id.
    instance_id: u32,
    /// Instance id of the parent.
    parent_instance_id: u32,
    /// Class of the parent.
    parent_class: Guid,
}

impl<'a> Instance<'a> {
    /// An event of an instance, with header and payload of `full`, without parent.
    #[must_use]
    pub fn new(full: Full<'a>, instance_id: u32) -> Self {
        Instance {
            full,
            instance_id,
            parent_instance_id: 0,
            parent_class: Guid::ZERO,
        }
    }

    /// Sets the parent: its class and its instance id.
    #[must_use]
    pub fn parent(mut self, class: Guid, instance_id: u32) -> Self {
        self.parent_class = class;
        self.parent_instance_id = instance_id;
        self
    }
}

impl Record for Instance<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let kind = self
            .full
            .pointer_size
            .choose(RecordKind::INSTANCE32, RecordKind::INSTANCE64);
        sized(out, 0, |out| {
            self.full.head(kind, out)?;
            out.write_u32::<LE>(self.instance_id)?;
            out.write_u32::<LE>(self.parent_instance_id)?;
            out.extend(self.parent_class.to_bytes());
            out.extend_from_slice(self.full.payload);
            Ok(())
        })
    }

    fn timestamp(&self) -> Option<Ticks> {
        Some(self.full.timestamp)
    }
}
