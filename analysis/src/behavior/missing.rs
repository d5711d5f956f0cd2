//! Data that a recording lacks, and how it is recorded.
//!
//! ```
//! use etl_analysis::behavior::collections::Collections;
//! use etl_analysis::behavior::missing::MissingData;
//!
//! // A recording without events of collections.
//! let collections = Collections::new();
//! let missing = collections.missing([]);
//! assert_eq!(missing, [MissingData::Collections]);
//! assert_eq!(missing[0].data(), "events of collections");
//! assert!(missing[0].remedy().contains("keyword GC (0x1) at level 4"));
//! ```

use std::fmt;

use super::activities::Activities;
use super::allocations::Allocations;
use super::collections::{Collection, Collections};
use super::compilations::Compilations;
use super::contention::Contention;
use super::exceptions::Exceptions;
use super::interrupts::Interrupts;
use super::io::{HardFaults, Io};
use super::loads::Loads;
use super::network::Network;
use super::processors::ProcessorUse;
use super::waits::Waits;
use crate::machine::Machine;
use crate::profile::Profile;

/// Data that a recording lacks. `Display` prints [`data`](Self::data) and
/// [`remedy`](Self::remedy).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MissingData {
    /// Samples of the processors.
    Samples,
    /// Stacks of samples.
    SampleStacks,
    /// Frames of native code in stacks.
    NativeFrames,
    /// Context switches.
    Switches,
    /// Events of threads that become ready.
    ReadyThreads,
    /// Stacks of the threads that waited.
    WaitStacks,
    /// Stacks of the threads that ended waits.
    ReadyStacks,
    /// Deferred procedure calls and interrupt service routines.
    Interrupts,
    /// Page faults that read from disks.
    HardFaults,
    /// Reads and writes of disks.
    Disks,
    /// Reads and writes of files.
    Files,
    /// TCP and UDP.
    Network,
    /// Starts of processes.
    Processes,
    /// Images that are in memory.
    Images,
    /// Loads of images.
    ImageLoads,
    /// Loads of .NET assemblies and modules.
    ModuleLoads,
    /// Durations of loads of .NET assemblies.
    LoadDurations,
    /// Garbage collections.
    Collections,
    /// Allocations on the garbage collected heap.
    Allocations,
    /// Sizes of the garbage collected heap.
    HeapSizes,
    /// Methods that were compiled at run time.
    Compilations,
    /// Exceptions of .NET.
    Exceptions,
    /// Waits for locks of .NET.
    LockWaits,
    /// Stacks of waits for locks of .NET.
    LockWaitStacks,
    /// Changes of the number of threads in thread pools of .NET.
    PoolChanges,
    /// Work items of thread pools of .NET.
    WorkItems,
    /// Events that start and stop something.
    Activities,
    /// The ends of what was open when events or buffers were lost.
    LostEnds {
        /// What has no end.
        of: &'static str,
        /// How many.
        count: u64,
    },
}

impl MissingData {
    /// What is missing.
    #[must_use]
    pub const fn data(self) -> &'static str {
        match self {
            MissingData::Samples => "CPU samples",
            MissingData::SampleStacks => {
                "stacks of samples, so totals are those of the method itself"
            }
            MissingData::NativeFrames => {
                "frames of native code, so stacks have only methods of .NET"
            }
            MissingData::Switches => "context switches",
            MissingData::ReadyThreads => {
                "events of threads that become ready, so who ended a wait is not known"
            }
            MissingData::WaitStacks | MissingData::ReadyStacks => "stacks of waits",
            MissingData::Interrupts => "events of DPCs and ISRs",
            MissingData::HardFaults => "events of hard faults",
            MissingData::Disks => "events of disks",
            MissingData::Files => "reads and writes of files",
            MissingData::Network => "events of the network",
            MissingData::Processes => "events of processes",
            MissingData::Images => "events of images",
            MissingData::ImageLoads => "loads of images",
            MissingData::ModuleLoads => "loads of assemblies and modules of .NET, or their events",
            MissingData::LoadDurations => "how long loads of assemblies took",
            MissingData::Collections => "events of collections",
            MissingData::Allocations => "allocations",
            MissingData::HeapSizes => {
                "sizes of the heap before collections, free space, and sizes by heap"
            }
            MissingData::Compilations => "events of compiled methods",
            MissingData::Exceptions => "exceptions, or their events",
            MissingData::LockWaits => "waits for locks, or their events",
            MissingData::LockWaitStacks => "stacks of waits for locks",
            MissingData::PoolChanges => "changes of threads, or their events",
            MissingData::WorkItems => "work items, or their events",
            MissingData::Activities => "events that start and stop something",
            MissingData::LostEnds { .. } => {
                "the ends of what was open when events or buffers were lost"
            }
        }
    }

    /// How it is recorded. For [`LostEnds`](Self::LostEnds), what has no end.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            MissingData::Samples => {
                "record them with `xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk \
                 Profile`, or the WPR profile CPU"
            }
            MissingData::SampleStacks => "record them with `-stackwalk Profile`",
            MissingData::NativeFrames => {
                "EventPipe sessions of .NET record none; `dotnet-trace collect-linux` does"
            }
            MissingData::Switches => "record them with `xperf -on PROC_THREAD+CSWITCH+DISPATCHER`",
            MissingData::ReadyThreads => "record them with `xperf -on DISPATCHER`",
            MissingData::WaitStacks => {
                "record them with `xperf -on PROC_THREAD+LOADER+CSWITCH+DISPATCHER \
                 -stackwalk CSwitch`"
            }
            MissingData::ReadyStacks => {
                "record them with `xperf -on PROC_THREAD+LOADER+CSWITCH+DISPATCHER \
                 -stackwalk ReadyThread`"
            }
            MissingData::Interrupts => {
                "record them with `xperf -on PROC_THREAD+LOADER+DPC+INTERRUPT`"
            }
            MissingData::HardFaults => "record them with `xperf -on HARD_FAULTS+FILENAME`",
            MissingData::Disks => "record them with `xperf -on DISK_IO`",
            MissingData::Files => "record them with `xperf -on FILENAME+FILE_IO+FILE_IO_INIT`",
            MissingData::Network => "record them with `xperf -on NETWORKTRACE`",
            MissingData::Processes => {
                "record them with `xperf -on PROC_THREAD`, or with the provider \
                 Microsoft-Windows-Kernel-Process, keyword 0x10"
            }
            MissingData::Images | MissingData::ImageLoads => "record them with `xperf -on LOADER`",
            MissingData::Activities => {
                "enable a provider whose events have the opcodes Start and Stop, or such names"
            }
            MissingData::LostEnds { of, .. } => of,
            MissingData::ModuleLoads
            | MissingData::LoadDurations
            | MissingData::Collections
            | MissingData::Allocations
            | MissingData::HeapSizes
            | MissingData::Compilations
            | MissingData::Exceptions
            | MissingData::LockWaits
            | MissingData::LockWaitStacks
            | MissingData::PoolChanges
            | MissingData::WorkItems => self.runtime_remedy(),
        }
    }

    /// How the events of .NET are recorded.
    const fn runtime_remedy(self) -> &'static str {
        match self {
            MissingData::ModuleLoads => {
                "enable Microsoft-Windows-DotNETRuntime with the keyword Loader (0x8) at \
                 level 4"
            }
            MissingData::LoadDurations => {
                "enable Microsoft-Windows-DotNETRuntime with the keyword Fusion (0x4) at \
                 level 4, for .NET 5 and later"
            }
            MissingData::Collections => {
                "enable Microsoft-Windows-DotNETRuntime with the keyword GC (0x1) at level \
                 4, or at level 5 for allocations as well"
            }
            MissingData::Allocations => {
                "enable Microsoft-Windows-DotNETRuntime with the keyword GC (0x1) at level \
                 5"
            }
            MissingData::HeapSizes => {
                ".NET Framework 4.6, .NET Core and later state them with the keyword GC \
                 (0x1) at level 4"
            }
            MissingData::Compilations => {
                "enable Microsoft-Windows-DotNETRuntime with the keywords Jit and NGen \
                 (0x30) at level 5"
            }
            MissingData::Exceptions => {
                "enable Microsoft-Windows-DotNETRuntime with the keyword Exception \
                 (0x8000) at level 2"
            }
            MissingData::LockWaits => {
                "enable Microsoft-Windows-DotNETRuntime with the keyword Contention \
                 (0x4000) at level 4"
            }
            MissingData::LockWaitStacks => {
                "enable Microsoft-Windows-DotNETRuntime with the keywords Contention and \
                 Stack (0x40004000) at level 4"
            }
            MissingData::PoolChanges => {
                "enable Microsoft-Windows-DotNETRuntime with the keyword Threading \
                 (0x10000) at level 4"
            }
            MissingData::WorkItems => {
                "enable Microsoft-Windows-DotNETRuntime with the keyword Threading \
                 (0x10000) at level 5"
            }
            _ => "",
        }
    }

    /// Samples or their stacks, if a profile of samples lacks them.
    #[must_use]
    pub fn of_samples(profile: &Profile) -> Option<Self> {
        if profile.total().samples + profile.idle().samples == 0 {
            return Some(MissingData::Samples);
        }
        if profile.with_stack() == 0 {
            return Some(MissingData::SampleStacks);
        }
        None
    }

    /// Frames of native code, if the stacks of a profile have only managed code.
    #[must_use]
    pub fn of_stacks(machine: &Machine, profile: &Profile) -> Option<Self> {
        if machine.has_managed_stacks_only() && !profile.roots().is_empty() {
            Some(MissingData::NativeFrames)
        } else {
            None
        }
    }

    /// Events of processes, if no process has a name.
    #[must_use]
    pub fn of_processes(machine: &Machine) -> Option<Self> {
        let mut names = machine.processes().iter().map(|process| process.name());
        if names.all(str::is_empty) {
            Some(MissingData::Processes)
        } else {
            None
        }
    }

    /// Events of images, if there are none.
    #[must_use]
    pub fn of_images(machine: &Machine) -> Option<Self> {
        if machine.images().list().is_empty() {
            Some(MissingData::Images)
        } else {
            None
        }
    }

    /// What was open when events were lost, if there is anything.
    fn lost_ends(of: &'static str, count: u64) -> Option<Self> {
        if count == 0 {
            None
        } else {
            Some(MissingData::LostEnds { of, count })
        }
    }
}

impl fmt::Display for MissingData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.data(), self.remedy())?;
        match self {
            MissingData::LostEnds { count, .. } => write!(f, ": {count}"),
            _ => Ok(()),
        }
    }
}

impl Collections {
    /// The data that the recording lacks for a report of these collections.
    #[must_use]
    pub fn missing<'c>(
        &self,
        reported: impl IntoIterator<Item = &'c Collection>,
    ) -> Vec<MissingData> {
        let mut missing = Vec::new();
        if self.list().is_empty() {
            missing.push(MissingData::Collections);
        }
        missing.extend(MissingData::lost_ends(
            "suspensions without a time",
            self.given_up(),
        ));
        let mut is_any_reported = false;
        let mut has_allocations = false;
        let mut has_heaps = false;
        for collection in reported {
            is_any_reported = true;
            has_allocations |= self.allocated(collection).is_some();
            has_heaps |= !collection.heaps.is_empty();
        }
        if is_any_reported && !has_allocations {
            missing.push(MissingData::Allocations);
        }
        if is_any_reported && !has_heaps {
            missing.push(MissingData::HeapSizes);
        }
        missing
    }
}

impl Compilations {
    /// The data that the recording lacks.
    #[must_use]
    pub fn missing(&self) -> Vec<MissingData> {
        let mut missing = Vec::new();
        if self.list().is_empty() {
            missing.push(MissingData::Compilations);
        }
        missing.extend(MissingData::lost_ends(
            "compilations without a time",
            self.given_up(),
        ));
        missing
    }
}

impl Exceptions {
    /// The data that the recording lacks.
    #[must_use]
    pub fn missing(&self) -> Option<MissingData> {
        if self.list().next().is_none() {
            Some(MissingData::Exceptions)
        } else {
            None
        }
    }
}

impl Activities {
    /// The data that the recording lacks.
    #[must_use]
    pub fn missing(&self) -> Option<MissingData> {
        if self.list().is_empty() {
            Some(MissingData::Activities)
        } else {
            None
        }
    }
}

impl Allocations {
    /// The data that the recording lacks.
    #[must_use]
    pub fn missing(&self) -> Option<MissingData> {
        if self.by_type().is_empty() {
            Some(MissingData::Allocations)
        } else {
            None
        }
    }
}

impl Contention {
    /// The data that the recording lacks for a report of this number of waiting threads.
    #[must_use]
    pub fn missing(&self, reported_threads: usize) -> Vec<MissingData> {
        let of = "waits for locks that are not counted";
        let mut missing = Vec::from_iter(MissingData::lost_ends(of, self.given_up()));
        if reported_threads == 0 {
            missing.push(MissingData::LockWaits);
        }
        missing
    }
}

impl Io {
    /// The data that the recording lacks.
    #[must_use]
    pub fn missing(&self) -> Vec<MissingData> {
        let mut has_disks = false;
        let mut has_files = false;
        for file in self.totals() {
            match file.operation.is_of_disk() {
                true => has_disks = true,
                false => has_files = true,
            }
        }
        let mut missing = Vec::new();
        if !has_disks {
            missing.push(MissingData::Disks);
        }
        if !has_files {
            missing.push(MissingData::Files);
        }
        let of = "operations on files without a time";
        missing.extend(MissingData::lost_ends(of, self.given_up()));
        missing
    }
}

impl Interrupts {
    /// The data that the recording lacks.
    #[must_use]
    pub fn missing(&self) -> Option<MissingData> {
        if self.routines().is_empty() {
            Some(MissingData::Interrupts)
        } else {
            None
        }
    }
}

impl ProcessorUse {
    /// The data that the recording lacks: context switches, unless samples take their place, and
    /// calls.
    #[must_use]
    pub fn missing(&self) -> Vec<MissingData> {
        let mut missing = Vec::new();
        if self.list().values().all(|used| used.known == 0) {
            missing.push(MissingData::Switches);
        }
        if !self.has_calls() {
            missing.push(MissingData::Interrupts);
        }
        missing
    }
}

impl HardFaults {
    /// The data that the recording lacks.
    #[must_use]
    pub fn missing(&self) -> Option<MissingData> {
        if self.is_empty() {
            Some(MissingData::HardFaults)
        } else {
            None
        }
    }
}

impl Network {
    /// The data that the recording lacks.
    #[must_use]
    pub fn missing(&self) -> Option<MissingData> {
        if self.connections().is_empty() {
            Some(MissingData::Network)
        } else {
            None
        }
    }
}

impl Loads {
    /// The data that the recording lacks.
    #[must_use]
    pub fn missing(&self, machine: &Machine) -> Vec<MissingData> {
        let mut missing = Vec::new();
        if machine.image_lives().all(|image| image.loaded.is_none()) {
            missing.push(MissingData::ImageLoads);
        }
        if self.list().is_empty() {
            missing.push(MissingData::ModuleLoads);
        } else if self.list().iter().all(|load| load.duration.is_none()) {
            missing.push(MissingData::LoadDurations);
        }
        missing
    }
}

impl Waits {
    /// The data that the recording lacks.
    #[must_use]
    pub fn missing(&self) -> Vec<MissingData> {
        let of = "runs and waits of threads that are not counted";
        let mut missing = Vec::from_iter(MissingData::lost_ends(of, self.given_up()));
        if self.threads().is_empty() {
            missing.push(MissingData::Switches);
        } else if self.threads().values().all(|times| times.wakers.is_empty()) {
            missing.push(MissingData::ReadyThreads);
        }
        missing
    }
}
