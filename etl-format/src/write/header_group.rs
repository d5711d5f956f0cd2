//! Payloads of the events of the header group, beside the header event itself.
//!
//! They go into SYSTEM records whose hook is [`HeaderGroup::hook`].

use crate::Guid;
use crate::constants::{PointerSize, SYSTEM_TRACE_VERSION, hook};

use super::put::Put;
use super::record::System;

/// An event that the session itself writes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderGroup<'a> {
    /// What a kernel session has enabled: eight group masks, and the kernel's version of its
    /// events.
    Extension {
        /// The masks.
        masks: [u32; 8],
        /// 0x2a Windows 8, 0x46 Windows 10 1903, 0x55 Windows 11 24H2.
        kernel_event_version: u32,
    },
    /// The same at the other end of the session.
    GroupMasksEnd {
        /// The masks.
        masks: [u32; 8],
        /// As in the extension.
        kernel_event_version: u32,
    },
    /// The kernel's rundown is complete.
    RundownComplete,
    /// A rundown begins.
    RundownBegin,
    /// A rundown ends.
    RundownEnd,
    /// PDB identity of a provider's binary.
    DbgIdRsds {
        /// GUID of the PDB.
        guid: Guid,
        /// Age of the PDB.
        age: u32,
        /// Name of the PDB, ANSI without NUL.
        name: &'a [u8],
    },
    /// Build string of the system, ANSI without NUL.
    BuildLab(&'a [u8]),
    /// Partition information in its form with two GUIDs: a root host has type 0, offset 0, and two
    /// empty ids, 48 bytes of zeros in all.
    Partition {
        /// Type of the partition.
        partition_type: u32,
        /// Offset of the counter from the root partition's.
        qpc_offset: i64,
        /// Two GUIDs.
        ids: [Guid; 2],
    },
    /// One word per processor; all zero on real files.
    ProcessorWords(&'a [u64]),
    /// Any other, by its hook and payload.
    Other(u16, &'a [u8]),
}

impl HeaderGroup<'_> {
    /// The hook of the record that carries it.
    #[must_use]
    pub const fn hook(&self) -> u16 {
        match self {
            HeaderGroup::Extension { .. } => hook::EXTENSION,
            HeaderGroup::GroupMasksEnd { .. } => hook::GROUP_MASKS_END,
            HeaderGroup::RundownComplete => hook::RUNDOWN_COMPLETE,
            HeaderGroup::RundownBegin => hook::RUNDOWN_BEGIN,
            HeaderGroup::RundownEnd => hook::RUNDOWN_END,
            HeaderGroup::DbgIdRsds { .. } => hook::DBGID_RSDS,
            HeaderGroup::BuildLab(_) => hook::BUILD_LAB,
            HeaderGroup::Partition { .. } => hook::PARTITION_INFO,
            HeaderGroup::ProcessorWords(_) => hook::PROCESSOR_WORDS,
            HeaderGroup::Other(hook, _) => *hook,
        }
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            HeaderGroup::Extension { masks, kernel_event_version }
            | HeaderGroup::GroupMasksEnd { masks, kernel_event_version } => {
                masks.iter().for_each(|m| out.put_u32(*m));
                out.put_u32(*kernel_event_version);
            }
            HeaderGroup::RundownComplete | HeaderGroup::RundownBegin | HeaderGroup::RundownEnd => {}
            HeaderGroup::DbgIdRsds { guid, age, name } => {
                out.put_guid(*guid);
                out.put_u32(*age);
                out.bytes(name);
                out.put_u8(0);
            }
            HeaderGroup::BuildLab(text) => {
                out.bytes(text);
                out.put_u8(0);
            }
            HeaderGroup::Partition { partition_type, qpc_offset, ids } => {
                out.put_u32(0);
                out.put_u32(*partition_type);
                out.put_i64(*qpc_offset);
                ids.iter().for_each(|id| out.put_guid(*id));
            }
            HeaderGroup::ProcessorWords(words) => {
                out.put_u32(u32::try_from(words.len()).unwrap_or(u32::MAX));
                out.put_u32(0);
                words.iter().for_each(|w| out.put_u64(*w));
            }
            HeaderGroup::Other(_, payload) => out.bytes(payload),
        }
    }

    /// The record around a payload made by [`HeaderGroup::encode`].
    #[must_use]
    pub fn record<'p>(
        &self,
        payload: &'p [u8],
        pointer_size: PointerSize,
        timestamp: i64,
        process_id: u32,
        thread_id: u32,
    ) -> System<'p> {
        System {
            pointer_size,
            version: SYSTEM_TRACE_VERSION.into(),
            hook: self.hook(),
            thread_id,
            process_id,
            timestamp,
            kernel_time: 0,
            user_time: 0,
            payload,
        }
    }
}
