//! Flags of the kernel's events.

use etl_control::controller::GroupMasks;
use etl_format::constants::hook;

use crate::time::Nanos;

/// A kind of event of the simulated kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KernelEvent {
    /// A process starts.
    ProcessStart,
    /// A process ends.
    ProcessEnd,
    /// A thread starts.
    ThreadStart,
    /// A thread ends.
    ThreadEnd,
    /// An image is loaded.
    ImageLoad,
    /// An image is unloaded.
    ImageUnload,
    /// A processor goes from one thread to another.
    ContextSwitch,
    /// A thread that waited is ready to run.
    ReadyThread,
    /// A sample of a processor.
    Sample,
    /// A read from a disk has ended.
    DiskRead,
    /// A write to a disk has ended.
    DiskWrite,
    /// A flush of a disk has ended.
    DiskFlush,
    /// A read from a disk begins.
    DiskReadInit,
    /// A write to a disk begins.
    DiskWriteInit,
    /// A flush of a disk begins.
    DiskFlushInit,
    /// A file gets or loses the key by which disk events name it.
    FileName,
    /// A file is opened.
    FileCreate,
    /// The last handle of an open file is closed.
    FileCleanup,
    /// An open file is freed.
    FileClose,
    /// A part of a file is read.
    FileRead,
    /// A part of a file is written.
    FileWrite,
    /// A file is deleted.
    FileDelete,
    /// A file is flushed.
    FileFlush,
    /// An operation on a file has ended.
    FileOpEnd,
    /// Data is sent by TCP.
    TcpSend,
    /// Data is received by TCP.
    TcpReceive,
    /// A TCP connection is made.
    TcpConnect,
    /// A TCP connection ends.
    TcpDisconnect,
    /// A TCP connection is accepted.
    TcpAccept,
    /// Data is sent by UDP.
    UdpSend,
    /// Data is received by UDP.
    UdpReceive,
    /// A page was read from a disk that a thread waited for.
    HardFault,
    /// A service routine of an interrupt has returned.
    Isr,
    /// The same, of an interrupt by a message.
    MessageIsr,
    /// A deferred procedure call has returned.
    Dpc,
    /// A deferred procedure call of a timer has returned.
    TimerDpc,
    /// A deferred procedure call in a thread has returned.
    ThreadedDpc,
}

/// Hooks of files, TCP and UDP without the type of the event. The types of IPv6 are 16
/// higher than the types of IPv4.
const FILE_IO: u16 = hook::FILE_NAME;
const TCP_IP: u16 = 0x0600;
const UDP_IP: u16 = 0x0800;

/// Each kind with its name in `xperf -stackwalk`, if it has one there, its hook and its group.
const EVENTS: [(KernelEvent, &str, u16, u32); 37] = [
    (
        KernelEvent::ProcessStart,
        "ProcessCreate",
        hook::PROCESS_START,
        group::PROCESS,
    ),
    (
        KernelEvent::ProcessEnd,
        "ProcessDelete",
        hook::PROCESS_END,
        group::PROCESS,
    ),
    (
        KernelEvent::ThreadStart,
        "ThreadCreate",
        hook::THREAD_START,
        group::THREAD,
    ),
    (
        KernelEvent::ThreadEnd,
        "ThreadDelete",
        hook::THREAD_END,
        group::THREAD,
    ),
    (
        KernelEvent::ImageLoad,
        "ImageLoad",
        hook::IMAGE_LOAD,
        group::IMAGE,
    ),
    (
        KernelEvent::ImageUnload,
        "ImageUnload",
        hook::IMAGE_UNLOAD,
        group::IMAGE,
    ),
    (
        KernelEvent::ContextSwitch,
        "CSwitch",
        hook::CSWITCH,
        group::CONTEXT_SWITCH,
    ),
    (
        KernelEvent::ReadyThread,
        "ReadyThread",
        hook::READY_THREAD,
        group::DISPATCHER,
    ),
    (KernelEvent::Sample, "Profile", hook::SAMPLE, group::PROFILE),
    (KernelEvent::DiskRead, "", hook::DISK_READ, group::DISK_IO),
    (KernelEvent::DiskWrite, "", hook::DISK_WRITE, group::DISK_IO),
    (KernelEvent::DiskFlush, "", hook::DISK_FLUSH, group::DISK_IO),
    (
        KernelEvent::DiskReadInit,
        "DiskReadInit",
        hook::DISK_READ_INIT,
        group::DISK_IO_INIT,
    ),
    (
        KernelEvent::DiskWriteInit,
        "DiskWriteInit",
        hook::DISK_WRITE_INIT,
        group::DISK_IO_INIT,
    ),
    (
        KernelEvent::DiskFlushInit,
        "DiskFlushInit",
        hook::DISK_FLUSH_INIT,
        group::DISK_IO_INIT,
    ),
    (
        KernelEvent::FileName,
        "",
        hook::FILE_CREATE,
        group::FILE_NAME,
    ),
    (
        KernelEvent::FileCreate,
        "FileCreate",
        FILE_IO + 64,
        group::FILE_IO_INIT,
    ),
    (
        KernelEvent::FileCleanup,
        "FileCleanup",
        FILE_IO + 65,
        group::FILE_IO_INIT,
    ),
    (
        KernelEvent::FileClose,
        "FileClose",
        FILE_IO + 66,
        group::FILE_IO_INIT,
    ),
    (
        KernelEvent::FileRead,
        "FileRead",
        FILE_IO + 67,
        group::FILE_IO_INIT,
    ),
    (
        KernelEvent::FileWrite,
        "FileWrite",
        FILE_IO + 68,
        group::FILE_IO_INIT,
    ),
    (
        KernelEvent::FileDelete,
        "FileDelete",
        FILE_IO + 70,
        group::FILE_IO_INIT,
    ),
    (
        KernelEvent::FileFlush,
        "FileFlush",
        FILE_IO + 73,
        group::FILE_IO_INIT,
    ),
    (
        KernelEvent::FileOpEnd,
        "FileOpEnd",
        FILE_IO + 76,
        group::FILE_IO,
    ),
    (KernelEvent::TcpSend, "", TCP_IP + 10, group::NETWORK),
    (KernelEvent::TcpReceive, "", TCP_IP + 11, group::NETWORK),
    (KernelEvent::TcpConnect, "", TCP_IP + 12, group::NETWORK),
    (KernelEvent::TcpDisconnect, "", TCP_IP + 13, group::NETWORK),
    (KernelEvent::TcpAccept, "", TCP_IP + 15, group::NETWORK),
    (KernelEvent::UdpSend, "", UDP_IP + 10, group::NETWORK),
    (KernelEvent::UdpReceive, "", UDP_IP + 11, group::NETWORK),
    (
        KernelEvent::HardFault,
        "HardFault",
        hook::HARD_FAULT,
        group::HARD_FAULTS,
    ),
    (KernelEvent::Isr, "", hook::ISR, group::INTERRUPT),
    (KernelEvent::MessageIsr, "", hook::ISR_MSI, group::INTERRUPT),
    (KernelEvent::Dpc, "", hook::DPC, group::DPC),
    (KernelEvent::TimerDpc, "", hook::TIMER_DPC, group::DPC),
    (KernelEvent::ThreadedDpc, "", hook::THREADED_DPC, group::DPC),
];

impl KernelEvent {
    /// All of them.
    pub fn all() -> impl Iterator<Item = KernelEvent> {
        EVENTS.into_iter().map(|(event, ..)| event)
    }

    fn entry(self) -> (KernelEvent, &'static str, u16, u32) {
        EVENTS
            .get(self as usize)
            .copied()
            .unwrap_or((self, "", 0, 0))
    }

    /// Its name in `xperf -stackwalk`; empty if it has none there, and no stacks.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().1
    }

    /// The hook of its record.
    #[must_use]
    pub fn hook(self) -> u16 {
        self.entry().2
    }

    /// The group that enables it.
    #[must_use]
    pub fn group(self) -> u32 {
        self.entry().3
    }

    pub(crate) const fn bit(self) -> u64 {
        1 << self as u16
    }
}

/// Groups of kernel events that are simulated, as numbers of group masks.
pub mod group {
    /// Processes.
    pub const PROCESS: u32 = 0x1;
    /// Threads.
    pub const THREAD: u32 = 0x2;
    /// Images.
    pub const IMAGE: u32 = 0x4;
    /// Samples of the processors.
    pub const PROFILE: u32 = 0x2000_0002;
    /// Context switches.
    pub const CONTEXT_SWITCH: u32 = 0x2000_0004;
    /// Ready threads.
    pub const DISPATCHER: u32 = 0x2000_0200;
    /// No system configuration at the end of the session.
    pub const NO_SYSTEM_CONFIG: u32 = 0x1000_0000;

    /// Ends of reads, writes and flushes of disks.
    pub const DISK_IO: u32 = 0x100;
    /// Their begins.
    pub const DISK_IO_INIT: u32 = 0x400;
    /// Names of files.
    pub const FILE_NAME: u32 = 0x200;
    /// Ends of operations on files.
    pub const FILE_IO: u32 = 0x200_0000;
    /// Operations on files.
    pub const FILE_IO_INIT: u32 = 0x400_0000;
    /// TCP and UDP.
    pub const NETWORK: u32 = 0x1_0000;

    /// Page faults that read from a disk.
    pub const HARD_FAULTS: u32 = 0x2000;
    /// Deferred procedure calls.
    pub const DPC: u32 = 0x2000_0080;
    /// Interrupt service routines.
    pub const INTERRUPT: u32 = 0x2000_4000;

    /// All of them.
    pub const ALL: [u32; 16] = [
        PROCESS,
        THREAD,
        IMAGE,
        PROFILE,
        CONTEXT_SWITCH,
        DISPATCHER,
        NO_SYSTEM_CONFIG,
        DISK_IO,
        DISK_IO_INIT,
        FILE_NAME,
        FILE_IO,
        FILE_IO_INIT,
        NETWORK,
        HARD_FAULTS,
        DPC,
        INTERRUPT,
    ];
}

/// The kernel flags of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelFlags {
    /// All enabled groups, simulated or not.
    pub groups: GroupMasks,
    /// Events with a stack: a bit for each of [`KernelEvent::all`].
    stacks: u64,
    /// Names of events with a stack that are not simulated.
    pub other_stacks: Vec<String>,
}

impl KernelFlags {
    /// Flags with these groups, without stacks.
    #[must_use]
    pub fn of(groups: impl IntoIterator<Item = u32>) -> Self {
        KernelFlags {
            groups: GroupMasks::of(groups),
            ..KernelFlags::default()
        }
    }

    /// Whether nothing is enabled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == KernelFlags::default()
    }

    /// Whether events of a kind are logged.
    #[must_use]
    pub fn logs(&self, event: KernelEvent) -> bool {
        self.groups.has(event.group())
    }

    /// Logged kinds of events, a bit for each.
    pub(crate) fn logged_bits(&self) -> u64 {
        let logged = KernelEvent::all().filter(|event| self.logs(*event));
        logged.fold(0, |bits, event| bits | event.bit())
    }

    /// Logged kinds of events with a stack, a bit for each.
    pub(crate) fn stack_bits(&self) -> u64 {
        self.logged_bits() & self.stacks
    }

    /// Whether a stack is taken with each event of a kind that is logged.
    #[must_use]
    pub const fn takes_stack(&self, event: KernelEvent) -> bool {
        self.stacks & event.bit() != 0
    }

    /// Adds a stack to each event of a kind.
    #[must_use]
    pub const fn with_stack(mut self, event: KernelEvent) -> Self {
        self.stacks |= event.bit();
        self
    }

    /// Adds stacks to events, given by their names in `xperf -stackwalk` or by their hooks
    /// (`0x0524`).
    pub fn take_stacks(&mut self, names: &[String]) {
        for name in names {
            let digits = name.strip_prefix("0x").or_else(|| name.strip_prefix("0X"));
            let hook = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
            let mut with_stacks = KernelEvent::all().filter(|event| !event.name().is_empty());
            match with_stacks
                .find(|event| event.name().eq_ignore_ascii_case(name) || Some(event.hook()) == hook)
            {
                Some(event) => self.stacks |= event.bit(),
                None => self.other_stacks.push(name.clone()),
            }
        }
    }

    /// These flags and others.
    #[must_use]
    pub fn and(mut self, others: KernelFlags) -> Self {
        self.groups = self.groups.with(others.groups);
        self.stacks |= others.stacks;
        self.other_stacks.extend(others.other_stacks);
        self
    }

    /// Events with a stack.
    pub fn stacks(&self) -> impl Iterator<Item = KernelEvent> {
        let stacks = self.stacks;
        KernelEvent::all().filter(move |event| stacks & event.bit() != 0)
    }

    /// Names of the enabled flags whose events are simulated.
    pub fn simulated(&self) -> impl Iterator<Item = &'static str> {
        let known = GroupMasks::of(group::ALL);
        self.groups
            .flags()
            .filter(move |flag| flag.is_in(&known))
            .map(|flag| flag.name)
    }

    /// Names of the enabled flags whose events are not simulated. The group masks contain them.
    pub fn not_simulated(&self) -> impl Iterator<Item = &'static str> {
        let known = GroupMasks::of(group::ALL);
        self.groups
            .flags()
            .filter(move |flag| !flag.is_in(&known))
            .map(|flag| flag.name)
    }

    /// What is simulated, as text: flags, and events with stacks.
    #[must_use]
    pub fn simulated_text(&self) -> String {
        let mut text = self.simulated().collect::<Vec<_>>().join(", ");
        let stacks: Vec<&str> = self.stacks().map(KernelEvent::name).collect();
        if !stacks.is_empty() {
            text.push_str(&format!(", stacks of {}", stacks.join(", ")));
        }
        text
    }

    /// What is not simulated, as text: flags, and events with stacks. Empty if there is none.
    #[must_use]
    pub fn not_simulated_text(&self) -> String {
        let mut text = self.not_simulated().collect::<Vec<_>>().join(", ");
        if !self.other_stacks.is_empty() {
            let comma = if text.is_empty() { "" } else { ", " };
            text.push_str(&format!(
                "{comma}stacks of {}",
                self.other_stacks.join(", ")
            ));
        }
        text
    }
}

/// A change of the kernel flags of a running session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelChange {
    /// Added groups.
    pub added: GroupMasks,
    /// Removed groups.
    pub removed: GroupMasks,
    /// Whether only the added groups remain.
    pub only: bool,
    /// New events with a stack; unchanged if `None`. The groups of this value are ignored.
    pub stacks: Option<KernelFlags>,
    /// New time between two samples; unchanged if `None`.
    pub interval: Option<Nanos>,
}

impl KernelChange {
    /// A change to exactly these flags.
    #[must_use]
    pub fn to(flags: KernelFlags) -> Self {
        KernelChange {
            added: flags.groups,
            only: true,
            stacks: Some(flags),
            ..KernelChange::default()
        }
    }

    /// The flags after the change.
    #[must_use]
    pub fn of(&self, before: &KernelFlags) -> KernelFlags {
        let mut flags = self.stacks.clone().unwrap_or_else(|| before.clone());
        let kept = if self.only {
            GroupMasks::default()
        } else {
            before.groups
        };
        flags.groups = kept.without(self.removed).with(self.added);
        flags
    }
}

/// Words for groups in scripts, besides the names in the tools.
pub(crate) const WORDS: [(&str, &[u32]); 11] = [
    ("processes", &[group::PROCESS, group::THREAD]),
    ("threads", &[group::THREAD]),
    ("images", &[group::IMAGE]),
    ("profile", &[group::PROFILE]),
    ("switches", &[group::CONTEXT_SWITCH]),
    ("ready", &[group::DISPATCHER]),
    (
        "disks",
        &[group::DISK_IO, group::DISK_IO_INIT, group::FILE_NAME],
    ),
    (
        "files",
        &[group::FILE_NAME, group::FILE_IO, group::FILE_IO_INIT],
    ),
    ("network", &[group::NETWORK]),
    ("faults", &[group::HARD_FAULTS]),
    ("interrupts", &[group::DPC, group::INTERRUPT]),
];

#[cfg(test)]
mod tests {
    use etl_control::controller::kernel_flags;

    use super::*;

    #[test]
    fn texts_separate_simulated_groups_from_others() {
        for group in group::ALL {
            assert!(
                kernel_flags().iter().any(|f| f.group == group),
                "{group:#x}"
            );
        }
        let mut flags = KernelFlags::of([0x3, 0x2000_0004, 0x1000, 0x4000_0040]);
        flags.take_stacks(&["cswitch".into(), "0x0F2E".into(), "PagefaultHard".into()]);
        assert_eq!(
            flags.simulated_text(),
            "PROC_THREAD, CSWITCH, stacks of CSwitch, Profile"
        );
        assert_eq!(
            flags.not_simulated_text(),
            "SYSCALL, ALL_FAULTS, stacks of PagefaultHard"
        );
        assert!(flags.takes_stack(KernelEvent::ContextSwitch));
        assert!(!flags.takes_stack(KernelEvent::ReadyThread));
    }
}
