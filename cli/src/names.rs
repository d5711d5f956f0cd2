//! Names of providers.

use etl_format::constants::{ExtendedType, group_guid, group_name};
use etl_format::read::Record;
use etl_format::{Guid, constants};
use etl_schema::tables::Registry;

/// Providers that traces often hold, that have no table, and whose events do not tell their name.
const KNOWN: [(&str, &str); 5] = [
    ("b675ec37-bdb6-4648-bc92-f3fdc74d3ca2", "Microsoft-Windows-Kernel-EventTracing"),
    ("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716", "Microsoft-Windows-Kernel-Process"),
    ("b3e675d7-2554-4f18-830b-2762732560de", "KernelTraceControl/ImageID"),
    ("bbccf6c1-6cd1-48c4-80ff-839482e37671", "KernelTraceControl/EventMetadata"),
    ("9b79ee91-b5fd-41c0-a243-4248e266e9d0", "KernelTraceControl/SystemConfigEx"),
];

/// The name of a provider, where it is known beforehand.
pub(crate) fn provider(guid: Guid) -> Option<&'static str> {
    if let Some(provider) = Registry::builtin().provider(guid) {
        return Some(&provider.name);
    }
    let text = guid.to_ascii();
    if let Some((_, name)) = KNOWN.iter().find(|(g, _)| g.as_bytes() == text) {
        return Some(name);
    }
    let group = GROUPS.iter().position(|g| *g == Some(guid));
    group.and_then(|group| group_name(u8::try_from(group).ok()?))
}

/// What classic events of each group of the kernel's go by.
static GROUPS: [Option<Guid>; 256] = {
    let mut groups = [None; 256];
    let mut group = 0;
    while group < groups.len() {
        groups[group] = group_guid(group as u8);
        group += 1;
    }
    groups
};

/// The provider with this name.
pub(crate) fn by_name(name: &str) -> Option<Guid> {
    if let Some(provider) = Registry::builtin().find(name) {
        return Some(provider.guid);
    }
    if let Some((guid, _)) = KNOWN.iter().find(|(_, n)| n.eq_ignore_ascii_case(name)) {
        return guid.parse().ok();
    }
    let group =
        (0..=u8::MAX).find(|&g| group_name(g).is_some_and(|n| n.eq_ignore_ascii_case(name)))?;
    constants::group_guid(group)
}

/// The provider's name as the record itself tells it, in its traits.
pub(crate) fn from_traits<'a>(record: &Record<'a>) -> Option<&'a str> {
    let mut items = record.extended();
    while let Some((kind, data)) = items.next_raw() {
        if kind == ExtendedType::PROV_TRAITS {
            let name = data.get(2..)?;
            let end = name.iter().position(|&b| b == 0)?;
            return core::str::from_utf8(name.get(..end)?).ok().filter(|n| !n.is_empty());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_guids_are_each_others_inverse() {
        for (guid, name) in KNOWN {
            assert_eq!(by_name(&name.to_lowercase()), Some(guid.parse().unwrap()));
            assert_eq!(provider(guid.parse().unwrap()), Some(name));
        }
        assert_eq!(by_name("PerfInfo").and_then(provider), Some("PerfInfo"));
        assert_eq!(by_name("no such provider"), None);
    }
}
