//! Levels, opcodes, keywords and channels that Windows defines for every provider (winmeta).

use std::ops::RangeInclusive;

/// The namespace of the names that Windows defines.
pub(super) const WINMETA: &str = "http://manifests.microsoft.com/win/2004/08/windows/events";

/// Names that Windows reserves: `win:ReservedLevel6` and so on.
pub(super) struct Reserved {
    pub prefix: &'static str,
    pub numbers: RangeInclusive<u64>,
}

pub(super) const RESERVED_LEVELS: Reserved = Reserved {
    prefix: "win:ReservedLevel",
    numbers: 6..=15,
};
pub(super) const RESERVED_OPCODES: Reserved = Reserved {
    prefix: "win:ReservedOpcode",
    numbers: 241..=255,
};
/// The values of keywords are the bits with these numbers.
pub(super) const RESERVED_KEYWORDS: Reserved = Reserved {
    prefix: "win:ReservedKeyword",
    numbers: 56..=63,
};

pub(super) const LEVELS: &[(&str, u64)] = &[
    ("win:LogAlways", 0),
    ("win:Critical", 1),
    ("win:Error", 2),
    ("win:Warning", 3),
    ("win:Informational", 4),
    ("win:Verbose", 5),
];
pub(super) const OPCODES: &[(&str, u64)] = &[
    ("win:Info", 0),
    ("win:Start", 1),
    ("win:Stop", 2),
    ("win:DC_Start", 3),
    ("win:DC_Stop", 4),
    ("win:Extension", 5),
    ("win:Reply", 6),
    ("win:Resume", 7),
    ("win:Suspend", 8),
    ("win:Send", 9),
    ("win:Receive", 240),
];
pub(super) const TASKS: &[(&str, u64)] = &[("win:None", 0)];
pub(super) const KEYWORDS: &[(&str, u64)] = &[
    ("win:AnyKeyword", 0),
    ("win:ResponseTime", 1 << 48),
    ("win:WDIContext", 1 << 49),
    ("win:WDIDiag", 1 << 50),
    ("win:SQM", 1 << 51),
    ("win:AuditFailure", 1 << 52),
    ("win:AuditSuccess", 1 << 53),
    ("win:CorrelationHint", 1 << 54),
    ("win:EventlogClassic", 1 << 55),
];
pub(super) const CHANNELS: &[(&str, u64)] = &[
    ("TraceClassic", 0),
    ("System", 8),
    ("Application", 9),
    ("Security", 10),
    ("TraceLogging", 11),
    ("ProviderMetadata", 12),
];
