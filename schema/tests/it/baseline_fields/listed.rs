//! Differences between TraceEvent and the decoded fields, with their reasons.

/// Fields with another name in TraceEvent: part of the kind, its name, ours.
const RENAMED: &[(&str, &str, &str)] = &[
    (
        "Windows Kernel/Process",
        "PageDirectoryBase",
        "DirectoryTableBase",
    ),
    // Where version 2 has the start address, version 3 has the affinity; TraceEvent keeps the name.
    ("Windows Kernel/Thread", "StartAddr", "Affinity"),
    (
        "Windows Kernel/PerfInfo/Collection",
        "SampleSource",
        "Source",
    ),
    ("Windows Kernel/DiskIO", "FileKey", "FileObject"),
    ("Windows Kernel/Memory", "FileKey", "FileObject"),
    (
        "Windows Kernel/EventTrace",
        "LogFileName",
        "LogFileNameString",
    ),
    (
        "Windows Kernel/EventTrace",
        "SessionName",
        "SessionNameString",
    ),
    (
        "Windows Kernel/Process/PerfCtr",
        "MemoryCount",
        "PageFaultCount",
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/MarkWithType",
        "Promoted",
        "Bytes",
    ),
    ("Microsoft-Windows-Kernel-File", "IrpPtr", "Irp"),
    (
        "Microsoft-Windows-Kernel-File",
        "FileAttributes",
        "CreateAttributes",
    ),
];

/// Our name of a field, if TraceEvent has another one.
pub fn ours(kind: &str, name: &str) -> Option<&'static str> {
    let renamed = RENAMED
        .iter()
        .find(|(k, theirs, _)| kind.starts_with(k) && *theirs == name);
    renamed.map(|(_, _, ours)| *ours)
}

/// Names of values in TraceEvent only: the field has no map, or one with the documented names.
const NAMES: &[(&str, &str, u64)] = &[
    ("level", "Informational", 4),
    ("level", "Verbose", 5),
    ("keywords", "Process|Thread|Image...", 0x101_270f),
    ("stacks", "Process|Thread|Image...", 0x101_270f),
    ("ShareAccess", "ReadWrite, Delete", 7),
    ("AllocationKind", "Small", 0),
    ("Sku", "DesktopClr", 1),
    ("Sku", "CoreClr", 2),
    ("StartupMode", "None", 0),
    ("StartupMode", "ManagedExe", 1),
    ("Type", "SmallObjectHeap", 0),
    ("Type", "LargeObjectHeap", 1),
    ("Type", "NonConcurrentGC", 0),
    ("Reason", "SuspendForGC", 1),
    ("Reason", "AllocSmall", 0),
    ("ReasonCode", "START_BIND", 0),
    ("ReasonCode", "REJECT_IL_SIG", 9),
    ("BucketKind", "PlugsInCondemned", 1),
    // The highest bit says that it happened, the others by their places why.
    ("CompactMechanisms", "not_specified", 0),
    ("CompactMechanisms", "compact_high_frag", 0x8000_0002),
    ("CompactMechanisms", "compact_loh_forced", 0x8000_0008),
    ("ExpandMechanisms", "not_specified", 0),
    ("ModuleFlags", "DomainNeutral, Manif...", 9),
    ("BitSettings", "GCSettingsConcurrent...", 21),
    ("Flags", "QuickJit, QuickJitFo...", 11),
];

/// Whether TraceEvent has this name for the value of a field.
pub fn names(name: &str, text: &str, value: u64) -> bool {
    NAMES.contains(&(name, text, value))
}

/// Fields that are not compared: part of the kind, the field, the reason.
pub const REASONS: &[(&str, &str, &str)] = &[
    (
        "DotNETRuntimePrivate/GC/PerHeapHistory",
        "",
        "of the runtime's version 3 of the event",
    ),
    (
        "DotNETRuntimePrivate/GC/GlobalHeapHistory",
        "",
        "of the runtime's later versions",
    ),
    (
        "DotNETRuntime/GC/PerHeapHistory",
        "",
        "of versions before 3",
    ),
    (
        "KernelTraceControl/ImageID",
        "ProcessID",
        "TraceEvent takes the upper half of the 64-bit ImageSize for it",
    ),
    (
        "Windows Kernel/Thread",
        "ParentThreadID",
        "who wrote the event, known to TraceEvent from before",
    ),
    ("Windows Kernel/Thread", "ParentProcessID", "likewise"),
    (
        "Windows Kernel/UdpIp",
        "dsize",
        "of the old layout of UDP events, as is `context`",
    ),
    (
        "Windows Kernel/DiskIO",
        "FileName",
        "found by the key in the rundown of files, another event",
    ),
    ("Windows Kernel/Memory", "FileName", "likewise"),
    (
        "Windows Kernel/SystemConfig/Services",
        "ProcessName",
        "the process's name that TraceEvent knows",
    ),
    (
        "DotNETRuntime/GC/FinalizeObject",
        "TypeName",
        "found by the id in another event, BulkType",
    ),
    (
        "DotNETRuntime/GC/AllocationTick",
        "ObjectSize",
        "of version 4; the record is of version 3",
    ),
    (
        "DotNETRuntime/GC/Start",
        "ClientSequenceNumber",
        "of version 2; the record is of version 1",
    ),
    (
        "DotNETRuntime/GC/HeapStats",
        "GenerationSize4",
        "of version 2; the record is of version 1",
    ),
    (
        "DotNETRuntime/GC/HeapStats",
        "TotalPromotedSize4",
        "likewise",
    ),
    (
        "DotNETRuntime/GC/HeapStats",
        "Depth",
        "of the collection, known to TraceEvent from another event",
    ),
    (
        "DotNETRuntime/Method/",
        "ReJITID",
        "of version 2; the record is of version 1",
    ),
    (
        "DotNETRuntime/Method/",
        "OptimizationTier",
        "of version 2; the record is of version 1",
    ),
];

/// The reason why a field may differ. A field of a later version must be empty in TraceEvent.
pub fn reason(kind: &str, name: &str, text: &str) -> Option<usize> {
    REASONS.iter().position(|(k, field, why)| {
        let nothing = ["0", "", "Unknown"].contains(&text);
        kind.contains(k)
            && (field.is_empty() || *field == name)
            && (!why.contains("version") || nothing)
    })
}
