//! The events of the header group (hooks `0x00xx`) besides the header event itself.

use crate::Guid;
use crate::constants::hook;
use crate::cursor::{Bytes, Cursor};

use super::record::Record;

/// An event of the header group, typed.
///
/// Unknown types, and payloads that are too short for their type, are [`HeaderGroupEvent::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderGroupEvent<'a> {
    /// The header event; see [`super::FileHeader`].
    Header,
    /// The enabled groups of a kernel session: set at its start, after a zero
    /// [`HeaderGroupEvent::EndExtension`]; zero at its end.
    Extension(GroupMasks),
    /// The counterpart of the extension: zero at the start, the masks at the end.
    EndExtension(GroupMasks),
    /// The kernel has recorded the state of the system.
    RundownComplete,
    /// A rundown begins.
    RundownBegin(&'a [u8]),
    /// A rundown ends.
    RundownEnd(&'a [u8]),
    /// Identity of the PDB of a provider's binary.
    Pdb {
        /// Signature.
        signature: Guid,
        /// Age.
        age: u32,
        /// Name, in an 8-bit encoding, without NUL.
        name: &'a [u8],
    },
    /// Build string of the system, in an 8-bit encoding, without NUL.
    BuildLab(&'a [u8]),
    /// Path of a provider's binary, as stored.
    BinaryPath(&'a [u8]),
    /// Partition of a virtual machine, and its clock's distance from the root's.
    Partition {
        /// Version of the event.
        version: u16,
        /// Type of the partition; 0 is the root.
        partition_type: u32,
        /// Performance-counter ticks to the root partition.
        qpc_offset: i64,
        /// What follows: two UTF-16 strings, or two GUIDs in version 0.
        names: &'a [u8],
    },
    /// One word per processor. Their meaning is not known; all are 0 in the files seen.
    ProcessorWords(&'a [u8]),
    /// Anything else, by its type byte.
    Other {
        /// The low byte of the hook.
        kind: u8,
        /// The payload.
        payload: &'a [u8],
    },
}

/// Which kernel groups a session records, and the version of the kernel's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupMasks {
    /// A group `g` is on when bit `g & 0x1fffffff` of word `g >> 29` is set.
    pub masks: [u32; 8],
    /// Version of the kernel's events.
    pub kernel_event_version: u32,
}

impl<'a> HeaderGroupEvent<'a> {
    /// The event in `record`, or `None` when it is not of the header group.
    #[must_use]
    pub fn parse(record: &Record<'a>) -> Option<Self> {
        let hook_id = record.hook()?;
        if hook_id >> 8 != u16::from(crate::constants::GROUP_HEADER) {
            return None;
        }
        let payload = record.payload();
        Some(
            Self::typed(hook_id, payload)
                .unwrap_or(HeaderGroupEvent::Other { kind: hook_id as u8, payload }),
        )
    }

    fn typed(hook_id: u16, payload: &'a [u8]) -> Option<Self> {
        Some(match hook_id {
            hook::HEADER => HeaderGroupEvent::Header,
            hook::EXTENSION => HeaderGroupEvent::Extension(masks(payload)?),
            hook::GROUP_MASKS_END => HeaderGroupEvent::EndExtension(masks(payload)?),
            hook::RUNDOWN_COMPLETE => HeaderGroupEvent::RundownComplete,
            hook::RUNDOWN_BEGIN => HeaderGroupEvent::RundownBegin(payload),
            hook::RUNDOWN_END => HeaderGroupEvent::RundownEnd(payload),
            hook::DBGID_RSDS => HeaderGroupEvent::Pdb {
                signature: payload.guid_at(0)?,
                age: payload.u32_at(0x10)?,
                name: until_nul(payload.get(0x14..)?),
            },
            hook::BUILD_LAB => HeaderGroupEvent::BuildLab(until_nul(payload)),
            hook::BINARY_PATH => HeaderGroupEvent::BinaryPath(payload),
            hook::PARTITION_INFO => HeaderGroupEvent::Partition {
                version: payload.u16_at(0)?,
                partition_type: payload.u32_at(4)?,
                qpc_offset: payload.i64_at(8)?,
                names: payload.get(0x10..)?,
            },
            hook::PROCESSOR_WORDS => {
                let count = usize::try_from(payload.u32_at(0)?).ok()?;
                HeaderGroupEvent::ProcessorWords(payload.get(8..)?.get(..count.checked_mul(8)?)?)
            }
            _ => return None,
        })
    }
}

fn masks(payload: &[u8]) -> Option<GroupMasks> {
    let mut c = Cursor::new(payload);
    let mut out = GroupMasks::default();
    for mask in &mut out.masks {
        *mask = c.u32()?;
    }
    out.kernel_event_version = c.u32()?;
    Some(out)
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or(bytes)
}
