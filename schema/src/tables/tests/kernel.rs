//! The classic table against the known facts about the kernel's events: which types there are, and
//! how long they are.

use crate::model::Identity;
use crate::tables::Registry;
use etl_format::Guid;
use etl_format::constants::hook::has_fixed_layout;
use etl_format::constants::{PointerSize, group_guid, hook_class};

/// The types of the kernel's events that are named anywhere: by hook, the group in the high byte
/// and the type in the low one.
const HOOKS: &[u16] = &[
    // Of the trace itself.
    0x0000, 0x0005, 0x0008, 0x000a, 0x000b, 0x000c, 0x000d, 0x0020, 0x0030, 0x0031, 0x0040, 0x0041,
    0x0042, 0x0043, 0x0050, 0x0052, // Disks.
    0x010a, 0x010b, 0x010c, 0x010d, 0x010e, 0x010f, // Memory.
    0x020a, 0x020b, 0x020c, 0x020d, 0x020e, 0x020f, 0x0220, 0x0262, 0x0263, // Processes.
    0x0301, 0x0302, 0x0303, 0x0304, 0x030a, 0x030b, 0x0320, 0x0321, 0x0327, // Files.
    0x0400, 0x0420, 0x0423, 0x0424, 0x0440, 0x0441, 0x0442, 0x0443, 0x0444, 0x0445, 0x0446, 0x0447,
    0x0448, 0x0449, 0x044a, 0x044b, 0x044c, 0x044d, // Threads.
    0x0501, 0x0502, 0x0503, 0x0504, 0x0524, 0x0525, 0x0529, 0x0530, 0x0531, 0x0532, 0x0548,
    // TCP.
    0x060a, 0x060b, 0x060c, 0x060d, 0x060e, 0x060f, 0x061a, 0x061b, 0x061c, 0x061d, 0x061e, 0x061f,
    // UDP.
    0x080a, 0x080b, 0x081a, 0x081b, // The registry.
    0x090a, 0x090b, 0x090c, 0x090d, 0x090e, 0x090f, 0x0910, 0x0911, 0x0912, 0x0913, 0x0914, 0x0915,
    0x0916, 0x0917, 0x0918, 0x0919, 0x091a, 0x091b, // The machine.
    0x0b0a, 0x0b0b, 0x0b0c, 0x0b0d, 0x0b0e, 0x0b0f, 0x0b10, 0x0b15, 0x0b16, 0x0b17, 0x0b18, 0x0b19,
    0x0b1a, 0x0b1b, 0x0b1c, 0x0b1d, 0x0b1e, // Pool.
    0x0e20, 0x0e21, 0x0e22, 0x0e23, // Samples and interrupts.
    0x0f2e, 0x0f2f, 0x0f32, 0x0f33, 0x0f34, 0x0f42, 0x0f43, 0x0f44, 0x0f45, 0x0f48, 0x0f49, 0x0f4a,
    0x0f56, // Images.
    0x1402, 0x1403, 0x1404, 0x1421, 0x1422, // Stacks.
    0x1820, 0x1822, 0x1823, 0x1824, 0x1825, 0x1826, // ALPC.
    0x1a21, 0x1a22, 0x1a23, 0x1a24, 0x1a25, // Split transfers.
    0x1b20,
];

/// Those that a merge adds: class and types.
const MERGED: &[(&str, &[u8])] = &[
    (
        "b3e675d7-2554-4f18-830b-2762732560de",
        &[0, 32, 36, 37, 38, 40, 64],
    ),
    ("9b79ee91-b5fd-41c0-a243-4248e266e9d0", &[32, 33, 34, 35]),
];

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn classic_table_describes_every_named_type() {
    let classes: Vec<_> = Registry::classic().providers().collect();
    let has = |class: Guid, opcode: u8| {
        let events = classes
            .iter()
            .filter(|c| c.guid == class)
            .flat_map(|c| &c.events);
        events.clone().any(
            |e| matches!(e.schema.identity, Identity::Classic { opcode: is, .. } if is == opcode),
        )
    };
    for hook in HOOKS {
        assert!(
            has(hook_class(*hook).unwrap(), *hook as u8),
            "{hook:#06x} is not described"
        );
    }
    for (class, opcodes) in MERGED {
        for opcode in *opcodes {
            assert!(
                has(class.parse().unwrap(), *opcode),
                "{class} {opcode} is not described"
            );
        }
    }
}

/// Hook, version, and bytes of an event whose texts and lists are empty: of 32 bits and of 64. From
/// real traces and the structures of public headers and MOF classes.
const SIZES: &[(u16, u16, usize, usize)] = &[
    // Process: a real Idle has 28 bytes of SID rather than 4, and 4 more of its name: 67 and 75.
    (0x0301, 1, 4 + 16 + 4 + 1, 8 + 16 + 4 + 1),
    (0x0301, 2, 4 + 16 + 4 + 1 + 2, 8 + 16 + 4 + 1 + 2),
    (0x0303, 3, 4 + 16 + 4 + 4 + 1 + 2, 67 - 24 - 4),
    (0x0303, 4, 4 + 16 + 4 + 4 + 4 + 1 + 6, 75 - 24 - 4),
    (0x0327, 5, 4 + 16 + 4 + 4 + 4 + 1 + 6 + 8, 75 - 24 - 4 + 8),
    (0x030b, 2, 4, 4),
    (0x0320, 2, 16 + 11 * 4, 16 + 11 * 8),
    (0x030a, 2, 44 + 2, 56 + 2),
    (0x1402, 0, 4 + 4 + 2, 8 + 4 + 2),
    (0x1403, 2, 44 + 2, 56 + 2),
    (0x1403, 3, 44 + 2, 56 + 2),
    (0x1421, 0, 4, 8),
    (0x0501, 0, 8, 8),
    (0x0501, 1, 8 + 6 * 4 + 1, 8 + 6 * 8 + 1),
    (0x0502, 1, 8, 8),
    (0x0504, 1, 8 + 6 * 4 + 1, 8 + 6 * 8 + 1),
    (0x0501, 2, 8 + 7 * 4 + 4, 8 + 7 * 8 + 4),
    (0x0503, 3, 8 + 7 * 4 + 8, 72),
    (0x0524, 2, 24, 24),
    (0x0524, 3, 24, 24),
    (0x0524, 4, 24, 24),
    (0x0529, 0, 8 + 16 + 16 + 8, 56),
    (0x0530, 0, 8, 8),
    (0x0532, 0, 8, 8),
    (0x0539, 0, 4 + 8 + 4, 4 + 8 + 8),
    (0x010a, 2, 24 + 2 * 4 + 8, 48),
    (0x010a, 3, 24 + 2 * 4 + 8 + 4, 52),
    (0x010c, 2, 4, 8),
    (0x010c, 3, 8, 12),
    (0x010e, 2, 16 + 4, 24),
    (0x010e, 3, 16 + 4 + 4, 28),
    (0x0122, 2, 8 + 3 * 4 + 4, 8 + 3 * 8 + 4),
    (0x0134, 0, 4 + 4 + 4, 8 + 8 + 4),
    (0x020a, 0, 8, 16),
    (0x0220, 0, 16 + 2 * 4 + 8, 40),
    (0x0262, 0, 16, 24),
    (0x0264, 0, 4 + 12, 8 + 12),
    (0x0264, 3, 4 + 16, 8 + 16),
    (0x0264, 4, 4 + 12 + 8, 8 + 12 + 8),
    (0x0269, 0, 4 + 4 + 4, 8 + 4 + 4),
    (0x0400, 0, 4 + 2, 8 + 2),
    (0x0425, 2, 4 + 4 + 8 + 4 + 4, 8 + 8 + 8 + 8 + 4),
    (0x0440, 2, 3 * 4 + 12 + 2, 3 * 8 + 12 + 2),
    (0x0440, 3, 2 * 4 + 16 + 2, 2 * 8 + 16 + 2),
    (0x0441, 2, 4 * 4, 4 * 8),
    (0x0441, 3, 3 * 4 + 4, 3 * 8 + 4),
    (0x0443, 2, 8 + 4 * 4 + 8, 8 + 4 * 8 + 8),
    (0x0443, 3, 8 + 3 * 4 + 12, 8 + 3 * 8 + 12),
    (0x0445, 2, 5 * 4 + 4, 5 * 8 + 4),
    (0x0445, 3, 4 * 4 + 8, 4 * 8 + 8),
    (0x0448, 2, 4 * 4 + 12 + 2, 4 * 8 + 12 + 2),
    (0x0448, 3, 3 * 4 + 16 + 2, 3 * 8 + 16 + 2),
    (0x044c, 2, 4 + 4 + 4, 8 + 8 + 4),
    (0x060a, 0, 20, 20),
    (0x060a, 1, 20, 20),
    (0x060a, 2, 32 + 4, 40),
    (0x060b, 2, 24 + 4, 32),
    (0x060c, 2, 40 + 4, 48),
    (0x0611, 2, 4, 4),
    (0x061a, 2, 56 + 4, 64),
    (0x061b, 2, 48 + 4, 56),
    (0x061c, 2, 64 + 4, 72),
    (0x080a, 1, 20, 20),
    (0x080a, 2, 24 + 4, 32),
    (0x081a, 2, 48 + 4, 56),
    (0x090a, 0, 4 + 4 + 8 + 2, 8 + 8 + 8 + 2),
    (0x090a, 1, 4 + 4 + 8 + 4 + 2, 8 + 8 + 8 + 4 + 2),
    (0x090a, 2, 16 + 4 + 2, 16 + 8 + 2),
    (0x0b0a, 2, 20 + 512 + 268 + 4, 808),
    (0x0b0a, 3, 20 + 512 + 268 + 4 + 4 + 12, 828),
    (
        0x0b0b,
        2,
        40 + 512 + 4 + 2 + 6 + 4,
        40 + 512 + 4 + 2 + 6 + 4,
    ),
    (0x0b0e, 0, 20 + 5 * 512 + 4, 20 + 5 * 512 + 4),
    (0x0b10, 2, 8, 8),
    (0x0b11, 2, 16, 16),
    (0x0b15, 3, 20 + 2, 20 + 2),
    (0x0b1c, 2, 8, 8),
    (0x0e20, 0, 8 + 2 * 4, 8 + 2 * 8),
    (0x0e20, 2, 8 + 2 * 4, 8 + 2 * 8),
    (0x0e21, 2, 8 + 2 * 4 + 4, 8 + 2 * 8 + 4),
    (0x0e23, 2, 8 + 2 * 4 + 4, 8 + 2 * 8 + 4),
    (0x0f2e, 0, 12, 16),
    (0x0f2e, 2, 12, 16),
    (0x0f2f, 0, 12, 16),
    (0x0f32, 0, 8 + 4 + 8, 8 + 8 + 8),
    (0x0f33, 0, 4, 8),
    (0x0f34, 0, 4, 4),
    (0x0f43, 1, 8 + 4 + 4, 8 + 8 + 4),
    (0x0f43, 2, 8 + 4 + 4, 8 + 8 + 4),
    (0x0f5f, 2, 8 + 4 + 4, 8 + 8 + 4),
    (0x0f68, 2, 3 * 8 + 3 * 4 + 1, 3 * 8 + 3 * 8 + 1),
    (0x0f6b, 2, 3 * 4 + 1, 3 * 8 + 1),
    (0x0f7a, 2, 17 * 8, 17 * 8),
    (0x0f7b, 2, 4 + 33 * 8, 4 + 33 * 8),
    (0x0f44, 0, 8 + 4, 8 + 8),
    (0x0f48, 3, 12 + 2, 12 + 2),
    (0x1820, 0, 16, 16),
    (0x1822, 0, 4, 8),
    (0x1825, 0, 16 + 4, 24),
    (0x1a21, 0, 4, 4),
    (0x1a24, 0, 4 + 1, 4 + 1),
    (0x1b20, 0, 8, 16),
];

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn classic_layouts_have_the_lengths_of_the_structures() {
    let registry = Registry::classic();
    for &(hook, version, narrow, wide) in SIZES {
        let opcode = hook as u8;
        let class = hook_class(hook).unwrap();
        // A newer version than any layout takes the nearest older one.
        let decoder = (0..=version)
            .rev()
            .find_map(|version| registry.decoder(class, Identity::Classic { opcode, version }));
        let decoder = decoder.unwrap_or_else(|| panic!("{hook:#06x} {version} is not described"));
        for (pointers, size) in [(PointerSize::P4, narrow), (PointerSize::P8, wide)] {
            let exact = |size: usize| decoder.check(&vec![0; size], pointers).is_exact();
            let least = (0..3000).find(|&size| exact(size));
            assert_eq!(
                least,
                Some(size),
                "{hook:#06x} version {version}, {pointers:?}"
            );
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn switches_have_the_flags_of_their_version() {
    let class = group_guid(0x05).unwrap();
    let text = |version, reason: u8, flags: u8, state: u8| {
        let identity = Identity::Classic {
            opcode: 0x24,
            version,
        };
        let decoder = Registry::classic().decoder(class, identity).unwrap();
        let mut payload = [0; 24];
        payload[12..15].copy_from_slice(&[reason, flags, state]);
        let mut text = Vec::new();
        crate::render::Renderer::new()
            .text_fields(&mut text, &mut decoder.fields(&payload, PointerSize::P8));
        let text = String::from_utf8(text).unwrap();
        let shown = text.split(' ').filter(|field| {
            field.starts_with("OldThreadWaitR")
                || field.contains("Mode")
                || field.contains("Flags")
                || field.contains("State=")
        });
        shown
            .filter(|field| !field.starts_with("Previous"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        text(2, 6, 1, 5),
        "OldThreadWaitReason=6(UserRequest) OldThreadWaitMode=1(UserMode) OldThreadState=5(Waiting)"
    );
    assert_eq!(
        text(3, 37, 0x33, 9),
        "OldThreadWaitReason=37(WrAlertByThreadId) ThreadFlags=0x33(UserMode|0x32) \
         OldThreadState=9(WaitingForProcessInSwap)"
    );
}

/// Events of the machine's configuration that no trace at hand has, or that few do, put together by
/// the structures: text of all fields.
#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn rare_configuration_events_are_decoded_by_their_structures() {
    let wide = |text: &str| -> Vec<u8> {
        text.encode_utf16()
            .chain([0])
            .flat_map(u16::to_le_bytes)
            .collect()
    };
    let numbers =
        |values: &[u32]| -> Vec<u8> { values.iter().flat_map(|v| v.to_le_bytes()).collect() };
    let device = [
        wide("ROOT\\A"),
        wide("A device"),
        wide("A"),
        wide("\\Device\\1"),
    ]
    .concat();
    // Windows 7: the name of the device object follows the three texts of version 2.
    let third = [numbers(&[7, 9, 2]), device.clone()].concat();
    // Windows 10: status and problem follow the counts.
    let rest = [wide("svc"), wide("up"), wide("low1"), wide("low2")].concat();
    let fifth = [vec![0; 16], numbers(&[1, 2, 0x180_200a, 28]), device, rest].concat();
    // GROUP_AFFINITY: the mask is as wide as a pointer; group and three reserved words follow.
    let node = |mask: &[u8], group: u16| [mask, &group.to_le_bytes()[..], &[0; 6]].concat();
    let wide_nodes = [
        node(&0xffu64.to_le_bytes(), 0),
        node(&0xff00_0000_0000u64.to_le_bytes(), 1),
    ]
    .concat();
    let narrow_nodes = [
        node(&0xfu32.to_le_bytes(), 0),
        node(&0xf0u32.to_le_bytes(), 1),
    ]
    .concat();
    let tail = "DeviceID=\"ROOT\\A\" DeviceDescription=\"A device\" FriendlyName=\"A\" \
                PdoName=\"\\Device\\1\"";
    let third_text = format!(" IDLength=7 DescriptionLength=9 FriendlyNameLength=2 {tail}");
    let fifth_text = format!(
        " ClassGuid=00000000-0000-0000-0000-000000000000 UpperFiltersCount=1 LowerFiltersCount=2 \
         DevStatus=0x180200a DevProblem=28 {tail} ServiceName=\"svc\" UpperFilters=[\"up\"] \
         LowerFilters=[\"low1\",\"low2\"]"
    );
    let nodes_text = |first: &str, second: &str| {
        let rest = "Reserved1=0 Reserved2=0 Reserved3=0";
        format!(
            " NodeCount=2 NodeMap=[{{ Mask={first} Group=0 {rest} }},{{ Mask={second} Group=1 \
             {rest} }}]"
        )
    };
    let numa = |nodes: Vec<u8>| [numbers(&[2]), nodes].concat();
    let (p4, p8) = (PointerSize::P4, PointerSize::P8);
    for (hook, version, pointers, payload, expected) in [
        (0x0b16u16, 3, p8, third, third_text),
        (0x0b16, 5, p8, fifth, fifth_text),
        (
            0x0b18,
            2,
            p8,
            numa(wide_nodes),
            nodes_text("0xff", "0xff0000000000"),
        ),
        (0x0b18, 2, p4, numa(narrow_nodes), nodes_text("0xf", "0xf0")),
    ] {
        let [group, opcode] = hook.to_be_bytes();
        let class = group_guid(group).unwrap();
        let decoder = Registry::classic().decoder(class, Identity::Classic { opcode, version });
        let mut fields = decoder.unwrap().fields(&payload, pointers);
        let mut text = Vec::new();
        crate::render::Renderer::new().text_fields(&mut text, &mut fields);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            expected,
            "{hook:#06x} v{version}"
        );
        assert!(
            fields.note().is_exact(),
            "{hook:#06x} v{version}: {:?}",
            fields.note()
        );
    }
}

/// The reader of records relies on it: see `hook::has_fixed_layout`.
#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn fixed_layouts_of_the_kernel_are_short() {
    let mut layouts = 0;
    for class in Registry::classic().providers() {
        for event in &class.events {
            let Identity::Classic { opcode, version } = event.schema.identity else {
                continue;
            };
            let group = (0..=u8::MAX).find(|group| group_guid(*group) == Some(class.guid));
            let Some(group) = group else { continue };
            let hook = u16::from_be_bytes([group, opcode]);
            if !has_fixed_layout(hook) {
                continue;
            }
            layouts += 1;
            let decoder = Registry::classic()
                .decoder(class.guid, event.schema.identity)
                .expect("a decoder of the table");
            for pointers in [PointerSize::P4, PointerSize::P8] {
                let size = decoder.fixed_size(pointers);
                assert!(
                    size.is_some_and(|size| size < 128),
                    "hook {hook:#x}, version {version}: {size:?}"
                );
            }
        }
    }
    assert!(layouts > 30, "{layouts}");
}
