//! GUIDs of providers and of the kernel's event classes, each spelled once, and their names.

use std::sync::LazyLock;

use etl_format::Guid;
use etl_format::constants::{ExtendedType, group_guid, group_name};
use etl_format::read::{RawItem, Record};

use crate::tables::{Registry, windows};

/// `Microsoft-Windows-DotNETRuntime`.
pub const CLR_RUNTIME: Guid = Guid::new(
    0xe13c_0d23,
    0xccbc,
    0x4e12,
    [0x93, 0x1b, 0xd9, 0xcc, 0x2e, 0xee, 0x27, 0xe4],
);
/// `Microsoft-Windows-DotNETRuntimePrivate`.
pub const CLR_PRIVATE: Guid = Guid::new(
    0x763f_d754,
    0x7086,
    0x4dfe,
    [0x95, 0xeb, 0xc0, 0x1a, 0x46, 0xfa, 0xf4, 0xca],
);
/// `Microsoft-Windows-DotNETRuntimeRundown`.
pub const CLR_RUNDOWN: Guid = Guid::new(
    0xa669_021c,
    0xc450,
    0x4609,
    [0xa0, 0x35, 0x5a, 0xf5, 0x9a, 0xf4, 0xdf, 0x18],
);
/// `Windows Kernel Trace`: the provider of the kernel's classic events, and the session
/// `NT Kernel Logger` (`SystemTraceControlGuid`).
pub const KERNEL_TRACE: Guid = Guid::new(
    0x9e81_4aad,
    0x3204,
    0x11d2,
    [0x9a, 0x82, 0x00, 0x60, 0x08, 0xa8, 0x69, 0x39],
);
/// `Microsoft-Windows-Kernel-Process`.
pub const KERNEL_PROCESS: Guid = Guid::new(
    0x22fb_2cd6,
    0x0e7b,
    0x422b,
    [0xa0, 0xc7, 0x2f, 0xad, 0x1f, 0xd0, 0xe7, 0x16],
);
/// `Microsoft-Windows-Kernel-Network`: connections and datagrams, as the kernel's classic events.
pub const KERNEL_NETWORK: Guid = Guid::new(
    0x7dd4_2a49,
    0x5329,
    0x4832,
    [0x8d, 0xfd, 0x43, 0xd9, 0x79, 0x15, 0x3a, 0x88],
);
/// `Microsoft-Windows-Kernel-Disk`: reads, writes and flushes of disks.
pub const KERNEL_DISK: Guid = Guid::new(
    0xc7bd_e69a,
    0xe1e0,
    0x4177,
    [0xb6, 0xef, 0x28, 0x3a, 0xd1, 0x52, 0x52, 0x71],
);
/// `Microsoft-Windows-Kernel-File`: operations on files, and names of files.
pub const KERNEL_FILE: Guid = Guid::new(
    0xedd0_8927,
    0x9cc4,
    0x4e65,
    [0xb9, 0x70, 0xc2, 0x56, 0x0f, 0xb5, 0xc2, 0x89],
);
/// `Microsoft-Windows-DNS-Client`: names that programs looked up, and the answers.
pub const DNS_CLIENT: Guid = Guid::new(
    0x1c95_126e,
    0x7eea,
    0x49a9,
    [0xa3, 0xfe, 0xa3, 0x78, 0xb0, 0x3d, 0xdb, 0x4d],
);
/// `Microsoft-Windows-Kernel-EventTracing`.
pub const KERNEL_EVENT_TRACING: Guid = Guid::new(
    0xb675_ec37,
    0xbdb6,
    0x4648,
    [0xbc, 0x92, 0xf3, 0xfd, 0xc7, 0x4d, 0x3c, 0xa2],
);
/// `Microsoft-Windows-NDIS-PacketCapture`: packets of `netsh trace start capture=yes`.
pub const NDIS_PACKET_CAPTURE: Guid = Guid::new(
    0x2ed6_006e,
    0x4729,
    0x4609,
    [0xb4, 0x23, 0x3e, 0xe7, 0xbc, 0xd6, 0x78, 0xef],
);
/// `Microsoft-Windows-PktMon`: packets of `pktmon start --capture`.
pub const PKTMON: Guid = Guid::new(
    0x4d4f_80d9,
    0xc8bd,
    0x4d73,
    [0xbb, 0x5b, 0x19, 0xc9, 0x04, 0x02, 0xc5, 0xac],
);
/// `Microsoft-Windows-Ras-NdisWanPacketCapture`: packets of remote access.
pub const RAS_PACKET_CAPTURE: Guid = Guid::new(
    0xd845_21f7,
    0x2235,
    0x4237,
    [0xa7, 0xc0, 0x14, 0xe3, 0xa9, 0x67, 0x62, 0x86],
);
/// `KernelTraceControl/ImageID`: events that a merge adds to identify images.
pub const IMAGE_ID: Guid = Guid::new(
    0xb3e6_75d7,
    0x2554,
    0x4f18,
    [0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde],
);
/// `KernelTraceControl/EventMetadata`: events that a merge adds to describe the events of others
/// (`TRACE_EVENT_INFO` and maps).
pub const EVENT_METADATA: Guid = Guid::new(
    0xbbcc_f6c1,
    0x6cd1,
    0x48c4,
    [0x80, 0xff, 0x83, 0x94, 0x82, 0xe3, 0x76, 0x71],
);
/// `KernelTraceControl/SystemConfigEx`: events that a merge adds to describe the machine.
pub const SYSTEM_CONFIG_EX: Guid = Guid::new(
    0x9b79_ee91,
    0xb5fd,
    0x41c0,
    [0xa2, 0x43, 0x42, 0x48, 0xe2, 0x66, 0xe9, 0xd0],
);
/// `LostEvent`: classic events for the consumer of a real-time session that something was lost.
/// Types [`lost::EVENT`] to [`lost::FILE`].
pub const LOST_EVENT: Guid = Guid::new(
    0x6a39_9ae0,
    0x4bc6,
    0x4de9,
    [0x87, 0x0b, 0x36, 0x57, 0xf8, 0x94, 0x7e, 0x7e],
);
/// `PerfView`: the `EventSource` by which PerfView records what it enabled.
pub const PERFVIEW: Guid = Guid::new(
    0xa8a7_1ac1,
    0x040f,
    0x54a2,
    [0x07, 0xca, 0x00, 0xa8, 0x9b, 0x5a, 0xb7, 0x61],
);
/// `Microsoft-DotNETCore-SampleProfiler`: the sampling thread of .NET, in an EventPipe session.
pub const DOTNET_SAMPLE_PROFILER: Guid = Guid::new(
    0x84ad_50b1,
    0x22f8,
    0x59cd,
    [0x33, 0x3e, 0x71, 0x83, 0x71, 0xa1, 0x92, 0x5e],
);
/// `Microsoft-DotNETCore-EventPipe`: an EventPipe session itself.
pub const DOTNET_EVENT_PIPE: Guid = Guid::new(
    0x92f5_28a6,
    0xf5b8,
    0x5160,
    [0xa7, 0xee, 0xb3, 0x3d, 0xa7, 0x73, 0x9e, 0x29],
);
/// PerfTrack's manifests, which a merge adds: classic events with the manifests of providers.
pub const PERFTRACK_METADATA: Guid = Guid::new(
    0xbf6e_f1cb,
    0x89b5,
    0x0490,
    [0x80, 0xac, 0xb1, 0x80, 0xcf, 0xbc, 0xff, 0x0f],
);
/// `Universal.System`: processes, mappings and symbols that one_collect records on Linux.
pub const UNIVERSAL_SYSTEM: Guid = Guid::new(
    0x8c10_7b6c,
    0x79f8,
    0x5231,
    [0x4d, 0xe6, 0x2a, 0x0e, 0x20, 0xa3, 0xf5, 0x62],
);
/// `Universal.Events`: samples and context switches that one_collect records on Linux.
pub const UNIVERSAL_EVENTS: Guid = Guid::new(
    0xbc5e_5d63,
    0x9799,
    0x5873,
    [0x33, 0xd9, 0xfb, 0xa8, 0x31, 0x6c, 0xef, 0x71],
);

/// Types of the class [`LOST_EVENT`].
pub mod lost {
    /// Events were lost (`RTLostEvent`).
    pub const EVENT: u8 = 32;
    /// A buffer was lost (`RTLostBuffer`).
    pub const BUFFER: u8 = 33;
    /// A file of the session was lost (`RTLostFile`).
    pub const FILE: u8 = 34;
}

/// Classes of the kernel's classic events (MOF classes), by the names of the classes.
pub mod kernel_class {
    use super::{Guid, group_guid};

    /// `EventTrace`: headers and session information.
    pub const EVENT_TRACE: Guid = class(0x00);
    /// `DiskIo`.
    pub const DISK_IO: Guid = class(0x01);
    /// `PageFault`: page faults, and virtual memory.
    pub const PAGE_FAULT: Guid = class(0x02);
    /// `Process`.
    pub const PROCESS: Guid = class(0x03);
    /// `FileIo`.
    pub const FILE_IO: Guid = class(0x04);
    /// `Thread`.
    pub const THREAD: Guid = class(0x05);
    /// `TcpIp`.
    pub const TCP_IP: Guid = class(0x06);
    /// `UdpIp`.
    pub const UDP_IP: Guid = class(0x08);
    /// `SystemConfig`: hardware and settings of the machine.
    pub const SYSTEM_CONFIG: Guid = class(0x0b);
    /// `PerfInfo`: samples, interrupts and the like.
    pub const PERF_INFO: Guid = class(0x0f);
    /// `Image`: modules loaded into processes.
    pub const IMAGE: Guid = class(0x14);
    /// `StackWalk`.
    pub const STACK_WALK: Guid = class(0x18);

    /// The class of a group, zero for a group without a class.
    const fn class(group: u8) -> Guid {
        match group_guid(group) {
            Some(guid) => guid,
            None => Guid::ZERO,
        }
    }
}

/// Names of providers that have no table and whose events do not carry their name.
const WITHOUT_TABLE: [(Guid, &str); 6] = [
    (
        KERNEL_EVENT_TRACING,
        "Microsoft-Windows-Kernel-EventTracing",
    ),
    (KERNEL_PROCESS, "Microsoft-Windows-Kernel-Process"),
    (IMAGE_ID, "KernelTraceControl/ImageID"),
    (EVENT_METADATA, "KernelTraceControl/EventMetadata"),
    (SYSTEM_CONFIG_EX, "KernelTraceControl/SystemConfigEx"),
    (PERFTRACK_METADATA, "KernelTraceControl/PerfTrackMetadata"),
];

/// Classes of the kernel's groups, by group byte.
static KERNEL_GROUPS: LazyLock<[Option<Guid>; 256]> =
    LazyLock::new(|| std::array::from_fn(|group| group_guid(group as u8)));

/// The name of a provider or of a kernel event class, if a built-in table has it.
///
/// ```
/// use etl_schema::providers;
///
/// assert_eq!(providers::name(providers::CLR_RUNTIME), Some("Microsoft-Windows-DotNETRuntime"));
/// assert_eq!(providers::by_name("perfinfo"), Some(providers::kernel_class::PERF_INFO));
/// ```
#[must_use]
pub fn name(guid: Guid) -> Option<&'static str> {
    if let Some(provider) = Registry::builtin().provider(guid) {
        return Some(&provider.name);
    }
    if let Some((_, name)) = WITHOUT_TABLE.iter().find(|(g, _)| *g == guid) {
        return Some(name);
    }
    let group = KERNEL_GROUPS.iter().position(|g| *g == Some(guid));
    match group {
        Some(group) => group_name(u8::try_from(group).ok()?),
        None => etl_providers::find(guid.to_bytes()).map(|provider| provider.name()),
    }
}

/// The provider or kernel event class with this name in the built-in tables; case does not matter.
#[must_use]
pub fn by_name(name: &str) -> Option<Guid> {
    if let Some(provider) = Registry::builtin().find(name) {
        return Some(provider.guid);
    }
    if let Some((guid, _)) = WITHOUT_TABLE
        .iter()
        .find(|(_, n)| n.eq_ignore_ascii_case(name))
    {
        return Some(*guid);
    }
    for group in 0..=u8::MAX {
        if group_name(group).is_some_and(|class| class.eq_ignore_ascii_case(name)) {
            return group_guid(group);
        }
    }
    let mut providers = etl_providers::all().iter();
    let provider = providers.find(|provider| provider.name().eq_ignore_ascii_case(name))?;
    Some(Guid::from_bytes(provider.guid()))
}

/// The provider or kernel event class that a user means by a GUID (braces do not matter), a name
/// ([`by_name`]), or the end of a name after a hyphen that no other provider of Windows has.
///
/// ```
/// use etl_schema::providers;
///
/// assert_eq!(providers::find("Kernel-Process"), Some(providers::KERNEL_PROCESS));
/// assert_eq!(providers::find("rundown"), Some(providers::CLR_RUNDOWN));
/// ```
#[must_use]
pub fn find(text: &str) -> Option<Guid> {
    if text.is_empty() {
        return None;
    }
    let guid = text.trim_matches(['{', '}']).parse().ok();
    guid.or_else(|| by_name(text))
        .or_else(|| windows::find(text))
}

/// All providers and classes with this name in the built-in tables; case does not matter. Classes
/// of older providers of Windows have the name of their provider.
#[must_use]
pub fn all_by_name(name: &str) -> Vec<Guid> {
    let mut guids: Vec<Guid> = by_name(name).into_iter().collect();
    for provider in etl_providers::all()
        .iter()
        .filter(|p| p.name().eq_ignore_ascii_case(name))
    {
        let guid = Guid::from_bytes(provider.guid());
        if !guids.contains(&guid) {
            guids.push(guid);
        }
    }
    guids
}

/// The provider's name from the traits that the record itself carries.
#[must_use]
pub fn name_in_traits<'a>(record: &Record<'a>) -> Option<&'a str> {
    let mut items = record.extended();
    while let Some(RawItem { kind, data }) = items.next_raw() {
        if kind == ExtendedType::PROV_TRAITS {
            let name = data.get(2..)?;
            let end = name.iter().position(|&b| b == 0)?;
            return core::str::from_utf8(name.get(..end)?)
                .ok()
                .filter(|n| !n.is_empty());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_by_name_are_inverse() {
        for (guid, text) in WITHOUT_TABLE {
            assert_eq!(by_name(&text.to_lowercase()), Some(guid));
            assert_eq!(name(guid), Some(text));
        }
        assert_eq!(by_name("PerfInfo").and_then(name), Some("PerfInfo"));
        assert_eq!(by_name("no such provider"), None);
    }

    #[test]
    fn find_reads_guids_names_and_ends_of_names_that_are_unique() {
        let guid = "{22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716}";
        for text in [guid, "microsoft-windows-kernel-process", "kernel-process"] {
            assert_eq!(find(text), Some(KERNEL_PROCESS), "{text}");
        }
        assert_eq!(
            (find("runtime"), find("FileIo")),
            (Some(CLR_RUNTIME), Some(kernel_class::FILE_IO))
        );
        // Many providers have names that end so.
        for text in ["Client", "Kernel", "", "-"] {
            assert_eq!(find(text), None, "{text:?}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
    fn constants_match_the_tables() {
        let clr = [
            (CLR_RUNTIME, ""),
            (CLR_RUNDOWN, "Rundown"),
            (CLR_PRIVATE, "Private"),
        ];
        for (guid, suffix) in clr {
            assert_eq!(
                name(guid),
                Some(&*format!("Microsoft-Windows-DotNETRuntime{suffix}"))
            );
        }
        use kernel_class::{
            EVENT_TRACE, IMAGE, PAGE_FAULT, PERF_INFO, PROCESS, STACK_WALK, SYSTEM_CONFIG, THREAD,
        };
        let classes = [
            (EVENT_TRACE, "EventTrace"),
            (PAGE_FAULT, "PageFault"),
            (PROCESS, "Process"),
            (THREAD, "Thread"),
            (SYSTEM_CONFIG, "Config"),
            (PERF_INFO, "PerfInfo"),
            (IMAGE, "Image"),
            (STACK_WALK, "StackWalk"),
        ];
        for (guid, text) in classes {
            assert_eq!(name(guid), Some(text));
        }
    }
}
