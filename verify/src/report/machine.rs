//! The machine of the report.

use serde::Serialize;

use crate::checks::Facts;

/// The machine, as the header event states it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MachineReport {
    /// Name and version of Windows.
    pub windows: String,
    /// Number of processors.
    pub processors: u32,
    /// Speed of a processor in MHz.
    pub processor_mhz: u32,
    /// Bits of a pointer.
    pub pointer_bits: usize,
    /// Physical memory in MiB, if the kernel reported it.
    pub memory_mib: Option<u32>,
}

impl MachineReport {
    /// The machine of the first file with a header event.
    pub(super) fn new(facts: &Facts) -> Option<Self> {
        let header = facts
            .machine
            .files()
            .iter()
            .map(|file| &file.header)
            .find(|h| h.is_known())?;
        Some(MachineReport {
            windows: header.windows(),
            processors: header.processors,
            processor_mhz: header.cpu_mhz,
            pointer_bits: header.pointer_size.bytes().saturating_mul(8),
            memory_mib: facts.memory,
        })
    }

    /// The parts in words.
    pub(super) fn words(&self) -> Vec<String> {
        let processors = if self.processors == 1 {
            "processor"
        } else {
            "processors"
        };
        let mut out = vec![
            self.windows.clone(),
            format!(
                "{} {processors}, {} MHz",
                self.processors, self.processor_mhz
            ),
            format!("{} bits", self.pointer_bits),
        ];
        out.extend(self.memory_mib.map(|mib| format!("{mib} MiB of memory")));
        out
    }
}
