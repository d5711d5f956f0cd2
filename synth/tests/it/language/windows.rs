//! Events of providers that Windows ships: their bytes, defaults, layouts and filters.

use etl_format::read::{Options, Order, Trace};
use etl_synth::{MemoryFileSystem, SimulatedFile, Simulation};

use super::{outcome, parse};

/// Id, keywords and payload of each event of a provider that sessions recorded, by file.
fn recorded(script: &str, provider: &str) -> Vec<(String, u16, u64, Vec<u8>)> {
    let scenario = parse(script, &[]).unwrap_or_else(|e| panic!("{e:#?}"));
    let mut files = MemoryFileSystem::default();
    Simulation::new(&scenario).run(&mut files).unwrap();
    let mut out = Vec::new();
    for SimulatedFile { name, bytes } in files.into_files() {
        let mut trace = Trace::open(&bytes[..], &Options::default()).unwrap();
        let mut records = trace.records(Order::File).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            if record
                .provider()
                .is_some_and(|guid| guid.to_string() == provider)
            {
                let d = record.descriptor().unwrap();
                out.push((name.clone(), d.id, d.keyword, record.payload().to_vec()));
            }
        }
    }
    out
}

/// A script with work of a process, traced by a session that enables all of one provider.
fn script(provider: &str, work: &str) -> String {
    format!(
        "process \"App.exe\" user=\"system\" {{ at \"2s\" {{ {work} }} }}\n\
         session \"s\" file=\"s.etl\" {{ enable \"{provider}\" }}\nat \"3s\" {{ stop \"s\" }}"
    )
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16()
        .chain([0])
        .flat_map(u16::to_le_bytes)
        .collect()
}

const DNS_CLIENT: &str = "1c95126e-7eea-49a9-a3fe-a378b03ddb4d";

#[test]
fn raise_writes_the_fields_of_a_windows_event_in_order() {
    let work = "raise Microsoft-Windows-DNS-Client 3008 \
                { QueryResults \"::ffff:192.0.2.7;\"; QueryName \"example.com\"; QueryType 28 }";
    let script = script("Microsoft-Windows-DNS-Client", work);
    let expected = [
        utf16("example.com"),
        28u32.to_le_bytes().to_vec(),
        0u64.to_le_bytes().to_vec(),
        0u32.to_le_bytes().to_vec(),
        utf16("::ffff:192.0.2.7;"),
    ];
    assert_eq!(
        recorded(&script, DNS_CLIENT),
        [("s.etl".to_owned(), 3008, 0, expected.concat())]
    );
}

#[test]
fn raise_counts_arrays_and_structures() {
    let urls = script(
        "Bits-Client",
        "raise Microsoft-Windows-Bits-Client 17 { peerCacheEnabled #true; denyUrls \"a\" \"b\"; denyUrls \"c\" }",
    );
    let found = recorded(&urls, "ef1cc15b-46c1-414e-bb95-e76b077bd51e");
    let counted = [vec![3], utf16("a"), utf16("b"), utf16("c")].concat();
    assert!(found[0].3.starts_with(&[1, 0, 0, 0, 0]), "{found:?}");
    assert!(found[0].3.ends_with(&counted), "{found:?}");

    let rows = script(
        "Microsoft-Windows-Kernel-Boot",
        "raise Microsoft-Windows-Kernel-Boot 28 { SqmID 9; SqmStreamRowLength 2; \
         SqmStreamRow { SqmTypeEntry 1; SqmStringEntry \"x\" }; SqmStreamRow { SqmDWORDEntry 5 } }",
    );
    let found = recorded(&rows, "15ca44ff-4d7a-4baa-bba5-0998955e531e");
    let number = |n: u32| n.to_le_bytes().to_vec();
    let expected = [
        number(0),
        vec![0; 16],
        number(9),
        number(2),
        [number(1), number(0), utf16("x")].concat(),
        [number(0), number(5), utf16("")].concat(),
    ];
    assert_eq!(found[0].3, expected.concat());
}

#[test]
fn raise_takes_addresses_and_names_of_values() {
    let work = "raise Microsoft-Windows-PktMon 65 { IpAddress \"192.0.2.1\" }; \
                raise Microsoft-Windows-PktMon 66 { IpAddress \"2001:db8::1\" }; \
                raise Microsoft-Windows-PktMon 70 { Value \"00-15-5d-7c-58-28\" }; \
                raise Microsoft-Windows-NDIS-PacketCapture 1016 { RuleId \"Any IPv4 Address\" }";
    let both = format!(
        "{}\nat \"1s\" {{ enable \"NDIS-PacketCapture\" in=\"s\" }}",
        script("PktMon", work)
    );
    let found = recorded(&both, "4d4f80d9-c8bd-4d73-bb5b-19c90402c5ac");
    assert_eq!(found[0].3, [0, 0, 0, 0, 192, 0, 2, 1]);
    let ipv6 = [&[0; 4][..], &[0x20, 0x01, 0x0d, 0xb8], &[0; 11], &[1]].concat();
    assert_eq!(found[1].3, ipv6);
    assert_eq!(
        found[2].3,
        [0, 0, 0, 0, 6, 0, 0, 0, 0x00, 0x15, 0x5d, 0x7c, 0x58, 0x28]
    );
    let found = recorded(&both, "2ed6006e-4729-4609-b423-3ee7bcd678ef");
    assert_eq!(found[0].3, [12, 0, 0, 0]);
}

/// An event with an address and a port as a socket address, of the length that is counted.
#[test]
fn raise_takes_socket_addresses() {
    let work = "raise Microsoft-Windows-DNS-Client 1001 { Address \"192.0.2.1:443\" }";
    let found = recorded(&script("DNS-Client", work), DNS_CLIENT);
    let address = [2, 0, 1, 0xbb, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    assert!(
        found[0]
            .3
            .ends_with(&[&[16, 0, 0, 0][..], &address].concat()),
        "{found:?}"
    );
}

#[test]
fn unset_fields_are_zero_or_the_time_and_user_of_the_event() {
    let work = "raise Microsoft-Windows-Kernel-Process ProcessStart { ImageName \"a.exe\" }";
    let out = outcome(
        &format!(
            "machine start=\"2026-01-05T08:30:00Z\"\n{}",
            script("Microsoft-Windows-Kernel-Process", work)
        ),
        &[],
    )
    .unwrap();
    let event = out
        .lines()
        .find(|l| l.contains("\"kind\":\"event\""))
        .unwrap();
    assert!(event.contains("\"fields\":{\"ProcessID\":0,"), "{event}");
    // Two seconds after the start of the machine's clock, and a little.
    assert!(event.contains("\"CreateTime\":13412075402"), "{event}");
    assert!(event.contains("\"ImageName\":\"a.exe\""), "{event}");
}

#[test]
fn sessions_filter_by_the_level_and_keywords_of_the_tables() {
    let script = "
process \"App.exe\" { at \"2s\" {
    raise Microsoft-Windows-Kernel-Process ProcessStart
    raise Microsoft-Windows-Kernel-Process ImageLoad
    raise Microsoft-Windows-Kernel-Process ImageLoad keywords=\"WINEVENT_KEYWORD_PROCESS\"
    raise Microsoft-Windows-Kernel-Process ImageUnload level=5
} }
session \"a\" file=\"a.etl\" { enable \"Microsoft-Windows-Kernel-Process\" keywords=\"WINEVENT_KEYWORD_IMAGE\" level=4 }
at \"1s\" { run \"logman start b -p Microsoft-Windows-Kernel-Process (WINEVENT_KEYWORD_PROCESS) 5 -o b.etl -ets\" }
at \"3s\" { stop \"a\"; stop \"b\" }";
    let found = recorded(script, "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716");
    let seen: Vec<_> = found
        .iter()
        .map(|(file, id, mask, _)| (&**file, *id, *mask))
        .collect();
    // Bit 63 is that of the channel.
    let (process, image) = (0x10, 0x40);
    let of = |mask: u64| mask & 0xffff;
    let seen: Vec<_> = seen
        .into_iter()
        .map(|(f, id, mask)| (f, id, of(mask)))
        .collect();
    assert_eq!(
        seen,
        [
            ("a.etl", 5, image),
            ("b.etl", 1, process),
            ("b.etl", 5, process)
        ]
    );
}

#[test]
fn raise_uses_the_layout_of_the_build() {
    let capture = "2ed6006e-4729-4609-b423-3ee7bcd678ef";
    for (os, expected) in [("10.0.15063", 12 + 2), ("10.0.19045", 12 + 2 + 16)] {
        let raised = script(
            "NDIS-PacketCapture",
            "raise Microsoft-Windows-NDIS-PacketCapture 1001 { Fragment \"ABCD\" }",
        );
        let found = recorded(&format!("machine os=\"{os}\"\n{raised}"), capture);
        let payload = &found[0].3;
        assert_eq!(
            (payload.len(), &payload[8..14]),
            (expected, &[2, 0, 0, 0, 0xab, 0xcd][..])
        );
    }
}
