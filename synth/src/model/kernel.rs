//! What the kernel is asked to log.

use etl_control::controller::GroupMasks;

use crate::time::Nanos;

/// A kind of event that the simulated kernel raises of itself, and that a stack can be taken with.
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
}

impl KernelEvent {
    /// All of them.
    pub const ALL: [KernelEvent; 9] = [
        KernelEvent::ProcessStart,
        KernelEvent::ProcessEnd,
        KernelEvent::ThreadStart,
        KernelEvent::ThreadEnd,
        KernelEvent::ImageLoad,
        KernelEvent::ImageUnload,
        KernelEvent::ContextSwitch,
        KernelEvent::ReadyThread,
        KernelEvent::Sample,
    ];

    /// What `xperf -stackwalk` calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            KernelEvent::ProcessStart => "ProcessCreate",
            KernelEvent::ProcessEnd => "ProcessDelete",
            KernelEvent::ThreadStart => "ThreadCreate",
            KernelEvent::ThreadEnd => "ThreadDelete",
            KernelEvent::ImageLoad => "ImageLoad",
            KernelEvent::ImageUnload => "ImageUnload",
            KernelEvent::ContextSwitch => "CSwitch",
            KernelEvent::ReadyThread => "ReadyThread",
            KernelEvent::Sample => "Profile",
        }
    }

    /// The hook of its record.
    #[must_use]
    pub const fn hook(self) -> u16 {
        match self {
            KernelEvent::ProcessStart => 0x0301,
            KernelEvent::ProcessEnd => 0x0302,
            KernelEvent::ThreadStart => 0x0501,
            KernelEvent::ThreadEnd => 0x0502,
            // Loads stand in the group of processes.
            KernelEvent::ImageLoad => 0x030a,
            KernelEvent::ImageUnload => 0x1402,
            KernelEvent::ContextSwitch => 0x0524,
            KernelEvent::ReadyThread => 0x0532,
            KernelEvent::Sample => 0x0f2e,
        }
    }

    /// The group that it is logged with.
    #[must_use]
    pub const fn group(self) -> u32 {
        match self {
            KernelEvent::ProcessStart | KernelEvent::ProcessEnd => group::PROCESS,
            KernelEvent::ThreadStart | KernelEvent::ThreadEnd => group::THREAD,
            KernelEvent::ImageLoad | KernelEvent::ImageUnload => group::IMAGE,
            KernelEvent::ContextSwitch => group::CONTEXT_SWITCH,
            KernelEvent::ReadyThread => group::DISPATCHER,
            KernelEvent::Sample => group::PROFILE,
        }
    }

    pub(crate) const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Groups of the kernel's events that the simulation has a state for, as numbers of group masks.
pub mod group {
    /// Processes.
    pub const PROCESS: u32 = 0x1;
    /// Threads.
    pub const THREAD: u32 = 0x2;
    /// Images.
    pub const IMAGE: u32 = 0x4;
    /// Samples of what the processors do.
    pub const PROFILE: u32 = 0x2000_0002;
    /// Switches from one thread to another.
    pub const CONTEXT_SWITCH: u32 = 0x2000_0004;
    /// Threads that become ready.
    pub const DISPATCHER: u32 = 0x2000_0200;
    /// No configuration of the system is told at the end.
    pub const NO_SYSTEM_CONFIG: u32 = 0x1000_0000;

    /// All of them.
    pub const ALL: [u32; 7] =
        [PROCESS, THREAD, IMAGE, PROFILE, CONTEXT_SWITCH, DISPATCHER, NO_SYSTEM_CONFIG];
}

/// What the kernel is asked to log for a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelFlags {
    /// What is asked for, whether anything of it happens here or not.
    pub groups: GroupMasks,
    /// Events that a stack is taken with: a bit for each of [`KernelEvent::ALL`].
    stacks: u16,
    /// Names of other events that stacks are asked for: nothing of them happens here.
    pub other_stacks: Vec<String>,
}

impl KernelFlags {
    /// These groups, without stacks.
    #[must_use]
    pub fn of(groups: impl IntoIterator<Item = u32>) -> Self {
        KernelFlags { groups: GroupMasks::of(groups), ..KernelFlags::default() }
    }

    /// Whether the kernel is asked for anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == KernelFlags::default()
    }

    /// Whether events of a kind are logged.
    #[must_use]
    pub fn logs(&self, event: KernelEvent) -> bool {
        self.groups.has(event.group())
    }

    /// Kinds of events that are logged, a bit for each, and those of them that a stack is taken with.
    pub(crate) fn bits(&self) -> (u16, u16) {
        let logged = KernelEvent::ALL.into_iter().filter(|event| self.logs(*event));
        let logged = logged.fold(0, |bits, event| bits | event.bit());
        (logged, logged & self.stacks)
    }

    /// Whether a stack is taken with each event of a kind that is logged.
    #[must_use]
    pub const fn takes_stack(&self, event: KernelEvent) -> bool {
        self.stacks & event.bit() != 0
    }

    /// Has a stack taken with each event of a kind.
    #[must_use]
    pub const fn with_stack(mut self, event: KernelEvent) -> Self {
        self.stacks |= event.bit();
        self
    }

    /// Has stacks taken with events that are named as `xperf -stackwalk` names them, or by their hook
    /// (`0x0524`).
    pub fn take_stacks(&mut self, names: &[String]) {
        for name in names {
            let digits = name.strip_prefix("0x").or_else(|| name.strip_prefix("0X"));
            let hook = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
            let is =
                |e: &&KernelEvent| e.name().eq_ignore_ascii_case(name) || Some(e.hook()) == hook;
            match KernelEvent::ALL.iter().find(is) {
                Some(event) => self.stacks |= event.bit(),
                None => self.other_stacks.push(name.clone()),
            }
        }
    }

    /// These and others.
    #[must_use]
    pub fn and(mut self, others: KernelFlags) -> Self {
        self.groups = self.groups.with(others.groups);
        self.stacks |= others.stacks;
        self.other_stacks.extend(others.other_stacks);
        self
    }

    /// Events that stacks are taken with.
    pub fn stacks(&self) -> impl Iterator<Item = KernelEvent> {
        let stacks = self.stacks;
        KernelEvent::ALL.into_iter().filter(move |event| stacks & event.bit() != 0)
    }

    /// Names of the flags that are asked for, and whether the simulation has a state for them. Of the
    /// others no event comes, though the group masks say that they are asked for.
    pub fn names(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let known = GroupMasks::of(group::ALL);
        self.groups.flags().map(move |flag| (flag.name, flag.is_in(&known)))
    }

    /// Everything that is asked for, in words: what is logged, and what nothing comes of.
    #[must_use]
    pub fn in_words(&self) -> (String, String) {
        let list = |known: bool| {
            let names = self.names().filter(|(_, has)| *has == known).map(|(name, _)| name);
            names.collect::<Vec<_>>().join(", ")
        };
        let (mut logged, mut nothing) = (list(true), list(false));
        let stacks: Vec<&str> = self.stacks().map(KernelEvent::name).collect();
        if !stacks.is_empty() {
            logged.push_str(&format!(", stacks of {}", stacks.join(", ")));
        }
        if !self.other_stacks.is_empty() {
            let comma = if nothing.is_empty() { "" } else { ", " };
            nothing.push_str(&format!("{comma}stacks of {}", self.other_stacks.join(", ")));
        }
        (logged, nothing)
    }
}

/// How a session that runs changes what it asks the kernel for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelChange {
    /// Groups that are logged from now on.
    pub added: GroupMasks,
    /// Groups that are logged no more.
    pub removed: GroupMasks,
    /// Whether nothing is logged but what is added.
    pub only: bool,
    /// The events that stacks are taken with from now on; the same as before when `None`. Its groups
    /// mean nothing.
    pub stacks: Option<KernelFlags>,
    /// The time between two samples from now on; the same as before when `None`.
    pub interval: Option<Nanos>,
}

impl KernelChange {
    /// These flags, and nothing else any more.
    #[must_use]
    pub fn to(flags: KernelFlags) -> Self {
        KernelChange {
            added: flags.groups,
            only: true,
            stacks: Some(flags),
            ..KernelChange::default()
        }
    }

    /// What is asked for from now on, by what was asked for before.
    #[must_use]
    pub fn of(&self, before: &KernelFlags) -> KernelFlags {
        let mut flags = self.stacks.clone().unwrap_or_else(|| before.clone());
        let kept = if self.only { GroupMasks::default() } else { before.groups };
        flags.groups = kept.without(self.removed).with(self.added);
        flags
    }
}

/// Words of scripts for groups, beside the names that the tools have for them.
pub(crate) const WORDS: [(&str, &[u32]); 6] = [
    ("processes", &[group::PROCESS, group::THREAD]),
    ("threads", &[group::THREAD]),
    ("images", &[group::IMAGE]),
    ("profile", &[group::PROFILE]),
    ("switches", &[group::CONTEXT_SWITCH]),
    ("ready", &[group::DISPATCHER]),
];

#[cfg(test)]
mod tests {
    use etl_control::controller::KERNEL_FLAGS;

    use super::*;

    #[test]
    fn what_is_simulated_has_a_name_and_everything_else_is_told_as_nothing() {
        for group in group::ALL {
            assert!(KERNEL_FLAGS.iter().any(|f| f.group == group), "{group:#x}");
        }
        let mut flags = KernelFlags::of([0x3, 0x2000_0004, 0x100, 0x4000_0040]);
        flags.take_stacks(&["cswitch".into(), "0x0F2E".into(), "DiskReadInit".into()]);
        let (logged, nothing) = flags.in_words();
        assert_eq!(logged, "PROC_THREAD, CSWITCH, stacks of CSwitch, Profile");
        assert_eq!(nothing, "SYSCALL, DISK_IO, stacks of DiskReadInit");
        assert!(flags.takes_stack(KernelEvent::ContextSwitch));
        assert!(!flags.takes_stack(KernelEvent::ReadyThread));
    }
}
