//! Kernel flags of `xperf -on`: groups and what is in them.
//!
//! Source: what the tool's `-help providers` lists.

/// The groups: name and flags.
pub const GROUPS: &[(&str, &[&str])] = &[
    (
        "Base",
        &["PROC_THREAD", "LOADER", "DISK_IO", "HARD_FAULTS", "PROFILE", "MEMINFO", "MEMINFO_WS"],
    ),
    (
        "Diag",
        &[
            "PROC_THREAD",
            "LOADER",
            "DISK_IO",
            "HARD_FAULTS",
            "DPC",
            "INTERRUPT",
            "CSWITCH",
            "PERF_COUNTER",
            "COMPACT_CSWITCH",
        ],
    ),
    (
        "DiagEasy",
        &[
            "PROC_THREAD",
            "LOADER",
            "DISK_IO",
            "HARD_FAULTS",
            "DPC",
            "INTERRUPT",
            "CSWITCH",
            "PERF_COUNTER",
        ],
    ),
    ("FileIO", &["PROC_THREAD", "LOADER", "DISK_IO", "HARD_FAULTS", "FILE_IO", "FILE_IO_INIT"]),
    ("IOTrace", &["PROC_THREAD", "LOADER", "DISK_IO", "HARD_FAULTS", "CSWITCH"]),
    (
        "Latency",
        &[
            "PROC_THREAD",
            "LOADER",
            "DISK_IO",
            "HARD_FAULTS",
            "DPC",
            "INTERRUPT",
            "CSWITCH",
            "PROFILE",
        ],
    ),
    ("Network", &["PROC_THREAD", "LOADER", "NETWORKTRACE"]),
    ("ResumeTrace", &["PROC_THREAD", "LOADER", "DISK_IO", "HARD_FAULTS", "PROFILE", "POWER"]),
    ("SysProf", &["PROC_THREAD", "LOADER", "PROFILE"]),
];

/// Flags with the groups among them taken apart; each flag once, in the order they come.
///
/// ```
/// let flags = ["SysProf".to_owned(), "DPC".to_owned(), "LOADER".to_owned()];
/// let all = etl_control::controller::expand_kernel_flags(&flags);
/// assert_eq!(all, ["PROC_THREAD", "LOADER", "PROFILE", "DPC"]);
/// ```
#[must_use]
pub fn expand_kernel_flags(flags: &[String]) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    let mut add = |flag| {
        if !out.iter().any(|known: &&str| known.eq_ignore_ascii_case(flag)) {
            out.push(flag);
        }
    };
    for flag in flags {
        match GROUPS.iter().find(|(group, _)| group.eq_ignore_ascii_case(flag)) {
            Some((_, members)) => members.iter().copied().for_each(&mut add),
            None => add(flag),
        }
    }
    out
}
