//! Kernel flags by the names of the tools, and the bits of the group masks that they set.
//!
//! A group mask is one of eight words of 32 bits. A group is written as one number: the word in the
//! upper three bits, the bit (or bits) in the others.

use std::sync::LazyLock;

use etl_format::parse_number;

use super::error::Error;

/// A kind of events that the kernel can log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelFlag {
    /// Its name in `xperf -on`; if `xperf` has none, its name in the headers.
    pub name: &'static str,
    /// Its name in `logman`, in the parentheses after `"Windows Kernel Trace"`; empty if `logman`
    /// has none.
    pub logman: &'static str,
    /// Its groups: the word in the upper three bits, the bits of that word in the others.
    pub group: u32,
}

impl KernelFlag {
    /// Whether group masks have all of its bits.
    #[must_use]
    pub fn is_in(&self, masks: &GroupMasks) -> bool {
        masks.has(self.group)
    }

    /// Whether its bits are some, but not all, of the bits of another flag.
    fn is_part_of(&self, other: &KernelFlag) -> bool {
        let own = Group::new(self.group);
        let other = Group::new(other.group);
        own.word == other.word && own.bits != other.bits && own.bits & other.bits == own.bits
    }

    /// Whether a tool has this name for the flag (case does not matter).
    fn has_name(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
            || !self.logman.is_empty() && self.logman.eq_ignore_ascii_case(name)
    }
}

/// A group, decoded from its number.
struct Group {
    /// The index of the word in the group masks, from 0 to 7.
    word: usize,
    bits: u32,
}

impl Group {
    const fn new(number: u32) -> Self {
        Group {
            word: (number >> 29) as usize,
            bits: number & 0x1fff_ffff,
        }
    }
}

/// The eight words by which a session selects the events of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupMasks(pub [u32; 8]);

impl GroupMasks {
    /// Masks with these groups.
    ///
    /// ```
    /// use etl_control::controller::GroupMasks;
    ///
    /// let masks = GroupMasks::of([0x3, 0x2000_0002, 0x2000_0004]);
    /// assert_eq!(masks.0, [3, 6, 0, 0, 0, 0, 0, 0]);
    /// assert!(masks.has(0x2000_0004) && !masks.has(0x4));
    /// ```
    #[must_use]
    pub fn of(groups: impl IntoIterator<Item = u32>) -> Self {
        let mut masks = GroupMasks::default();
        for group in groups {
            masks.add(group);
        }
        masks
    }

    /// Adds a group.
    pub fn add(&mut self, group: u32) {
        let group = Group::new(group);
        if let Some(word) = self.0.get_mut(group.word) {
            *word |= group.bits;
        }
    }

    /// The groups of both.
    #[must_use]
    pub fn with(mut self, others: GroupMasks) -> Self {
        for (word, bits) in self.0.iter_mut().zip(others.0) {
            *word |= bits;
        }
        self
    }

    /// The groups without the groups of `others`.
    #[must_use]
    pub fn without(mut self, others: GroupMasks) -> Self {
        for (word, bits) in self.0.iter_mut().zip(others.0) {
            *word &= !bits;
        }
        self
    }

    /// Whether all bits of a group are set.
    #[must_use]
    pub fn has(&self, group: u32) -> bool {
        let group = Group::new(group);
        match self.0.get(group.word) {
            Some(word) => word & group.bits == group.bits,
            None => false,
        }
    }

    /// Whether no bit is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 8]
    }

    /// The flags that are set, in the order of [`kernel_flags`]. A flag that is part of another set
    /// flag is left out.
    pub fn flags(self) -> impl Iterator<Item = &'static KernelFlag> {
        kernel_flags()
            .iter()
            .filter(move |flag| flag.is_in(&self) && !self.has_larger_than(flag))
    }

    /// Whether another flag is set of which a flag is a part.
    fn has_larger_than(&self, flag: &KernelFlag) -> bool {
        kernel_flags()
            .iter()
            .any(|other| flag.is_part_of(other) && other.is_in(self))
    }
}

/// The table of flags and of groups of flags; its first lines describe it.
const TABLE: &str = include_str!("../../tables/kernel-flags.txt");

/// A row of the table.
struct Row {
    name: &'static str,
    /// The words after the name.
    words: std::str::SplitAsciiWhitespace<'static>,
}

/// The rows of one kind.
fn rows(kind: &str) -> impl Iterator<Item = Row> {
    TABLE.lines().filter_map(move |line| {
        let row = line.strip_prefix(kind)?.strip_prefix(' ')?;
        let mut words = row.split_ascii_whitespace();
        let name = words.next()?;
        Some(Row { name, words })
    })
}

/// All known flags.
#[must_use]
pub fn kernel_flags() -> &'static [KernelFlag] {
    static FLAGS: LazyLock<Vec<KernelFlag>> = LazyLock::new(|| {
        let mut flags = Vec::new();
        for Row { name, mut words } in rows("flag") {
            let Some(group) = words.next().and_then(parse_number) else {
                continue;
            };
            flags.push(KernelFlag {
                name,
                logman: words.next().unwrap_or_default(),
                group,
            });
        }
        flags
    });
    &FLAGS
}

/// The names of all flags, of every tool, and of the groups of flags.
pub fn kernel_flag_names() -> impl Iterator<Item = &'static str> {
    let flags = kernel_flags()
        .iter()
        .flat_map(|flag| [flag.name, flag.logman]);
    flags
        .filter(|name| !name.is_empty())
        .chain(rows("group").map(|row| row.name))
}

/// The names of the events for which `xperf -stackwalk` records stacks.
pub fn stack_events() -> impl Iterator<Item = &'static str> {
    rows("stack").flat_map(|row| std::iter::once(row.name).chain(row.words))
}

/// Replaces groups by their flags. Each flag is returned once, in the order of first appearance.
///
/// ```
/// let flags = ["SysProf".to_owned(), "DPC".to_owned(), "LOADER".to_owned()];
/// let all = etl_control::controller::expand_kernel_flags(&flags);
/// assert_eq!(all, ["PROC_THREAD", "LOADER", "PROFILE", "DPC"]);
/// ```
#[must_use]
pub fn expand_kernel_flags(flags: &[String]) -> Vec<&str> {
    let mut expanded: Vec<&str> = Vec::new();
    for flag in flags {
        let group = rows("group").find(|group| group.name.eq_ignore_ascii_case(flag));
        let members = match group {
            Some(group) => group.words.collect(),
            None => vec![flag.as_str()],
        };
        for member in members {
            let mut listed = expanded.iter();
            if !listed.any(|listed| listed.eq_ignore_ascii_case(member)) {
                expanded.push(member);
            }
        }
    }
    expanded
}

/// The groups that switches of `tracelog` turn on.
const TRACELOG: &[(&str, &[u32])] = &[
    ("cm", &[0x2_0000]),
    ("dpcisr", &[0x2000_0080, 0x2000_4000]),
    ("fio", &[0x200]),
    ("hf", &[0x2000]),
    ("img", &[0x4]),
    ("pf", &[0x1000]),
];

/// The groups that `tracelog` turns on by default, each with the switch that turns it off.
const TRACELOG_DEFAULTS: &[(&str, u32)] = &[
    ("noprocess", 0x1),
    ("nothread", 0x2),
    ("nodisk", 0x100),
    ("nonet", 0x1_0000),
];

/// The group masks of flags and groups of flags, by their names in `xperf -on`, in `logman` or in
/// the headers (case does not matter). A number has the `EVENT_TRACE_FLAG_*` bits.
///
/// ```
/// use etl_control::controller::kernel_groups;
///
/// let flags = ["SysProf".to_owned(), "cswitch".to_owned()];
/// assert_eq!(kernel_groups(&flags).map(|m| m.0), Ok([7, 6, 0, 0, 0, 0, 0, 0]));
/// assert!(kernel_groups(&["CSWICH".to_owned()]).is_err());
/// ```
///
/// # Errors
/// The first unknown name.
pub fn kernel_groups(flags: &[String]) -> Result<GroupMasks, Error> {
    let mut masks = GroupMasks::default();
    for name in expand_kernel_flags(flags) {
        match kernel_flags().iter().find(|flag| flag.has_name(name)) {
            Some(flag) => masks.add(flag.group),
            None => {
                let flags = parse_number(name);
                masks.add_flags(flags.ok_or_else(|| Error::UnknownKernelFlag(name.to_owned()))?);
            }
        }
    }
    Ok(masks)
}

/// The group masks of the switches of a `tracelog -start` of the kernel's session: processes,
/// threads, disk and network, except the groups that switches turn off, and the groups that they
/// turn on.
///
/// ```
/// use etl_control::controller::tracelog_groups;
///
/// let switches = ["nonet".to_owned(), "img".to_owned(), "eflag 2 0x2000 0x4".to_owned()];
/// assert_eq!(tracelog_groups(&switches).0, [0x2107, 0x4, 0, 0, 0, 0, 0, 0]);
/// ```
#[must_use]
pub fn tracelog_groups(switches: &[String]) -> GroupMasks {
    let changes = tracelog_changes(switches);
    let kept = GroupMasks::of(TRACELOG_DEFAULTS.iter().map(|(_, group)| *group));
    kept.without(changes.removed).with(changes.added)
}

/// The groups that a `tracelog -enable` turns on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TracelogChanges {
    /// The groups that it turns on.
    pub added: GroupMasks,
    /// The groups that it turns off.
    pub removed: GroupMasks,
}

/// The groups that the switches of a `tracelog -enable` of the kernel's session turn on, and the
/// groups that they turn off (`-noprocess` ...).
#[must_use]
pub fn tracelog_changes(switches: &[String]) -> TracelogChanges {
    let mut added = GroupMasks::default();
    let mut removed = GroupMasks::default();
    for switch in switches {
        for (name, groups) in TRACELOG {
            if switch.eq_ignore_ascii_case(name) {
                groups.iter().for_each(|group| added.add(*group));
            }
        }
        for (name, group) in TRACELOG_DEFAULTS {
            if switch.eq_ignore_ascii_case(name) {
                removed.add(*group);
            }
        }
        // `eflag n` and n words of group masks.
        let mut words = switch.split(' ').map(str::trim);
        if let Some(name) = words.next()
            && name.eq_ignore_ascii_case("eflag")
        {
            let masks = words.skip(1).filter_map(parse_number::<u32>);
            for (word, bits) in added.0.iter_mut().zip(masks) {
                *word |= bits;
            }
        }
    }
    TracelogChanges { added, removed }
}

impl GroupMasks {
    /// Adds `EVENT_TRACE_FLAG_*` bits. The kernel has some of them in another word than the first.
    ///
    /// ```
    /// use etl_control::controller::GroupMasks;
    ///
    /// let mut masks = GroupMasks::default();
    /// masks.add_flags(0x0100_0013);
    /// assert_eq!(masks.0, [3, 6, 0, 0, 0, 0, 0, 0]);
    /// ```
    pub fn add_flags(&mut self, flags: u32) {
        let mut rest = flags;
        for (bit, group) in MOVED {
            if flags & bit != 0 {
                rest &= !bit;
                self.add(*group);
            }
        }
        self.add(rest & 0x1fff_ffff);
    }
}

/// Bits of `EVENT_TRACE_FLAG_*` that the kernel has in another word, and their groups.
const MOVED: &[(u32, u32)] = &[
    (0x10, 0x2000_0004),
    (0x20, 0x2000_0080),
    (0x40, 0x2000_4000),
    (0x80, 0x4000_0040),
    (0x800, 0x2000_0200),
    (0x4000, 0x2000_8000),
    (0x80_0000, 0x2000_0010),
    (0x100_0000, 0x2000_0002),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_flags_have_unique_names_and_groups() {
        for (n, flag) in kernel_flags().iter().enumerate() {
            for other in kernel_flags().iter().skip(n + 1) {
                assert_ne!(flag.name, other.name);
                assert_ne!(flag.group, other.group, "{} and {}", flag.name, other.name);
                assert!(flag.logman.is_empty() || flag.logman != other.logman);
            }
            assert!(flag.group & 0x1fff_ffff != 0, "{}", flag.name);
        }
    }

    #[test]
    fn stack_events_are_read_from_every_row() {
        let mut names: Vec<_> = stack_events().map(str::to_ascii_lowercase).collect();
        for name in ["alpccloseport", "cswitch", "profile", "virtualfree"] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "each once");
    }

    #[test]
    fn kernel_groups_knows_every_flag_of_every_group() {
        for row in rows("group") {
            let masks = kernel_groups(&[row.name.to_owned()]).unwrap();
            assert!(
                masks.has(0x3),
                "{}: all have processes and threads",
                row.name
            );
        }
    }

    /// The masks in the header of a real trace that was recorded with processes, threads, images,
    /// process counters, disk, file names, hard faults, network and samples: 75535 and 2.
    #[test]
    fn kernel_groups_returns_the_masks_of_a_real_trace() {
        let flags: Vec<String> =
            "PROC_THREAD LOADER PERF_COUNTER DISK_IO FILENAME DISK_IO_INIT HARD_FAULTS NETWORKTRACE \
             PROFILE"
                .split_whitespace()
                .map(str::to_owned)
                .collect();
        let masks = kernel_groups(&flags).unwrap();
        assert_eq!(masks.0, [75_535, 2, 0, 0, 0, 0, 0, 0]);
        let names: Vec<&str> = masks.flags().map(|f| f.name).collect();
        let mut asked: Vec<&str> = flags.iter().map(String::as_str).collect();
        asked.sort_unstable();
        assert!(names.iter().all(|n| asked.contains(n)), "{names:?}");
        assert_eq!(names.len(), asked.len());
    }

    #[test]
    fn tracelog_groups_has_four_groups_by_default() {
        let of = |switches: &[&str]| {
            tracelog_groups(&switches.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()).0
        };
        assert_eq!(of(&[])[..3], [0x1_0103, 0, 0]);
        assert_eq!(of(&["img", "nodisk", "nonet"])[..3], [0x7, 0, 0]);
        assert_eq!(of(&["dpcisr"])[1], 0x4080);
    }
}
