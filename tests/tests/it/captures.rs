//! Packets as pcapng: readers of captures that others made find them as they are in the trace.

use etl_format::ThreadId;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use etl_events::EventDecoder;
use etl_export::pcapng::{Interfaces, PacketOptions, PacketWriter, Written};

use etl_format::constants::FILETIME_UNIX_EPOCH;
use etl_format::read::{Options, Order, Trace};
use etl_format::write::record::Event;
use etl_format::write::{Session, SessionConfig};
use etl_format::{EventDescriptor, FileHeader, FileTime, Guid, Ticks};
use etl_schema::encode::OwnedValue;
use etl_schema::store::SchemaStore;
use etl_synth::truth::EventOutcome;
use etl_test_support::{foreign, needs, trace};
use etlkit::run_captured;

use crate::kinds::{Kind, kinds};
use crate::packets::{
    END, NDIS_CAPTURE, PKTMON, captured, corpus_text, file, monitored, of_corpus, simulated,
};
use crate::simulated::Simulated;

/// Writes a trace as pcapng; returns the file, and what was counted.
fn exported(bytes: &[u8], options: PacketOptions) -> (Vec<u8>, Written) {
    let mut trace = Trace::open(bytes, &Options::default()).unwrap();
    let mut decoder = EventDecoder::new(trace.clock(), SchemaStore::default());
    let mut interfaces = Interfaces::new();
    let mut records = trace.records(Order::File).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        interfaces.record(&mut decoder, &record);
    }
    let mut out = Vec::new();
    let mut writer = PacketWriter::new(&mut out, &interfaces, options).unwrap();
    let mut records = trace.records(Order::Time).unwrap().without_stale_records();
    while let Some(record) = records.next_record().unwrap() {
        writer.record(&mut decoder, &record).unwrap();
    }
    let written = writer.finish().unwrap();
    (out, written)
}

fn saved(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[needs(python)]
#[test]
fn dpkt_reads_the_packets_of_simulated_captures() {
    let directory = tempfile::tempdir().unwrap();
    let files = of_corpus("packets");
    let ndis: Vec<String> = captured(file(&files, "nettrace.etl"))
        .iter()
        .map(|(_, bytes)| hex(bytes))
        .collect();
    let pktmon: Vec<String> = monitored(file(&files, "pktmon.etl"))
        .iter()
        .map(|(_, _, bytes)| hex(bytes))
        .collect();
    let parts = of_corpus("packets-in-parts");
    let whole: Vec<String> = captured(file(&parts, "nettrace.etl"))
        .iter()
        .map(|(_, bytes)| hex(bytes))
        .collect();
    for (name, bytes, expected) in [
        ("ndis", file(&files, "nettrace.etl"), ndis),
        ("pktmon", file(&files, "pktmon.etl"), pktmon),
        ("parts", file(&parts, "nettrace.etl"), whole),
    ] {
        let (capture, written) = exported(bytes, PacketOptions::new());
        let path = saved(directory.path(), &format!("{name}.pcapng"), &capture);
        let found = foreign("dpkt_pcapng.py", &[path]).remove(0);
        let found = found.as_array().unwrap();
        let mut bytes: Vec<&str> = found.iter().map(|p| p[1].as_str().unwrap()).collect();
        // Parts end in another order than they begin.
        let mut expected = expected;
        bytes.sort_unstable();
        expected.sort_unstable();
        assert_eq!(bytes, expected, "{name}");
        assert_eq!(
            (written.packets, written.incomplete),
            (found.len() as u64, 0),
            "{name}"
        );
        let times: Vec<u64> = found.iter().map(|p| p[0].as_u64().unwrap()).collect();
        assert!(times.is_sorted(), "{name}");
    }
}

/// What tshark finds in a capture: a line for each packet, with these fields.
/// The bytes of the packets that a session recorded, by the truth.
fn recorded(simulated: &Simulated) -> Vec<String> {
    let session = simulated
        .truth
        .sessions
        .iter()
        .find(|s| s.name == "net")
        .unwrap()
        .index;
    let mut packets: Vec<String> = Vec::new();
    // The packet that is not whole yet on each processor.
    let mut open: BTreeMap<u16, usize> = BTreeMap::new();
    for event in &simulated.truth.events {
        let Some(OwnedValue::Binary(bytes)) = event.field("Fragment") else {
            continue;
        };
        assert_eq!(event.outcome(session), Some(EventOutcome::Recorded));
        let at = open.remove(&event.processor).unwrap_or_else(|| {
            packets.push(String::new());
            packets.len() - 1
        });
        packets[at] += &hex(bytes);
        if event.descriptor.keyword & END == 0 {
            open.insert(event.processor, at);
        }
    }
    packets
}

#[needs(python)]
#[test]
fn packets_are_those_of_the_truth() {
    let directory = tempfile::tempdir().unwrap();
    for Kind {
        name,
        simulated,
        files,
    } in kinds()
    {
        let out = directory.path().join("out.pcapng").into_os_string();
        let words = ["etlkit", "export", "pcapng", "--force", "-o"].map(Into::into);
        let files = files
            .iter()
            .map(|file| saved(directory.path(), file, &simulated.traces[*file]).into());
        let said = run_captured(words.into_iter().chain([out.clone()]).chain(files));
        assert_eq!(
            said.code,
            0,
            "{name}: {}",
            String::from_utf8_lossy(&said.err)
        );
        let found = foreign("dpkt_pcapng.py", &[out.into()]).remove(0);
        let found = found.as_array().unwrap().iter();
        let mut found: Vec<String> = found
            .map(|packet| packet[1].as_str().unwrap().to_owned())
            .collect();
        let mut expected = recorded(simulated);
        assert!(expected.len() > 50, "{name}");
        // Packets in parts end in another order than they begin.
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{name}");
    }
}

fn tshark(path: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command
        .arg("-r")
        .arg(path)
        .args(["-t", "e", "-T", "fields", "-E", "separator=/t"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect()
}

#[needs(trace = "demikernel/PktMon.etl", tshark)]
#[test]
fn tshark_reads_the_packets_of_a_real_trace() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(trace("demikernel/PktMon.etl")).unwrap();
    let monitored = monitored(&bytes);
    let (capture, written) = exported(&bytes, PacketOptions::new());
    let path = saved(directory.path(), "once.pcapng", &capture);
    let fields = [
        "frame.interface_name",
        "icmp.type",
        "icmp.seq",
        "frame.packet_flags_direction",
    ];
    let packets = tshark(&path, &fields);
    assert_eq!((packets.len(), monitored.len()), (38, 38));
    assert_eq!(
        (written.packets, written.repeated, written.events),
        (38, 76, 0)
    );
    for (number, (packet, (is_sent, ..))) in packets.iter().zip(&monitored).enumerate() {
        let [interface, kind, sequence, direction] = &packet[..] else {
            panic!("{packet:?}")
        };
        assert!(interface.starts_with("pktmon:"), "{interface}");
        // Requests and replies take turns.
        let expected = (["8", "0"][number % 2], (number / 2 + 1).to_string());
        assert_eq!((&**kind, sequence), (expected.0, &expected.1));
        assert_eq!(
            direction,
            ["0x00000001", "0x00000002"][usize::from(*is_sent)]
        );
    }

    let (all, written) = exported(&bytes, PacketOptions::new().all_layers().events());
    assert_eq!(
        (written.packets, written.repeated, written.events),
        (114, 0, 352)
    );
    let path = saved(directory.path(), "all.pcapng", &all);
    let fields = [
        "frame.interface_description",
        "frame.packet_id",
        "etw.provider_id",
    ];
    let packets = tshark(&path, &[&fields[..], &["frame.time_epoch"]].concat());
    assert_eq!(packets.len(), 466);
    let is_packet = |p: &&Vec<String>| !p[1].is_empty();
    let layers: Vec<&str> = packets.iter().filter(is_packet).map(|p| &*p[0]).collect();
    assert_eq!(layers.len(), 114);
    assert!(layers.contains(&"XDP Lightweight Filter"), "{layers:?}");
    // Each time as it is in the trace, to 100 ns.
    let mut trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
    let clock = trace.clock();
    let mut records = trace.records(Order::Time).unwrap().without_stale_records();
    let mut times = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        let unix = clock.time(record.timestamp()).get() - FILETIME_UNIX_EPOCH;
        times.push(format!("{}.{:07}00", unix / 10_000_000, unix % 10_000_000));
    }
    let found: Vec<&String> = packets.iter().map(|p| &p[3]).collect();
    assert_eq!(found, times.iter().collect::<Vec<_>>());
}

/// The packets in a pcapng file, without the other blocks: number of the interface, and bytes.
fn packets_in(capture: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let u32_at =
        |offset: usize| u32::from_le_bytes(capture[offset..offset + 4].try_into().unwrap());
    let mut packets = Vec::new();
    let mut offset = 0;
    while offset < capture.len() {
        if u32_at(offset) == 6 {
            let len = u32_at(offset + 20) as usize;
            let bytes = capture[offset + 28..][..len].to_vec();
            packets.push((u32_at(offset + 8), bytes));
        }
        offset += u32_at(offset + 4) as usize;
    }
    packets
}

/// `packets.kdl` on a build of Windows; the trace of the packet monitor.
fn monitored_on(os: &str) -> Vec<u8> {
    let text = corpus_text("packets").replace("10.0.22621", os);
    let files = simulated(&text, None);
    file(&files, "pktmon.etl").to_vec()
}

/// Builds 26100 and 26200 count no appearances, and number each appearance: then the packets at the
/// network card's driver are written.
#[test]
fn packets_without_counts_are_written_once_at_the_card() {
    let (before, counted) = exported(&monitored_on("10.0.22621"), PacketOptions::new());
    let (after, written) = exported(&monitored_on("10.0.26100"), PacketOptions::new());
    let bytes = |capture| {
        let mut bytes: Vec<Vec<u8>> = Vec::new();
        for (_, packet) in packets_in(capture) {
            bytes.push(packet);
        }
        // The layers of a packet that is sent are in another order.
        bytes.sort_unstable();
        bytes
    };
    assert_eq!(bytes(&after), bytes(&before));
    assert_eq!(written.packets, counted.packets);
    assert_eq!(written.repeated, 3 * written.packets);
    let interfaces: Vec<u32> = packets_in(&after).iter().map(|packet| packet.0).collect();
    assert!(interfaces.iter().all(|interface| *interface == 0));
    let (_, all) = exported(
        &monitored_on("10.0.26100"),
        PacketOptions::new().all_layers(),
    );
    assert_eq!(all.packets, 4 * written.packets);
}

/// Sets the type of each packet to Wi-Fi.
fn labelled_as_wifi(trace: &mut [u8]) {
    let provider = PKTMON.parse::<Guid>().unwrap().to_bytes();
    let mut offset = 0;
    while let Some(found) = trace[offset..].windows(16).position(|w| w == provider) {
        offset += found + 16;
        // The descriptor follows the provider, the payload begins 80 bytes after the record.
        let payload = offset - 40 + 80;
        let id = u16::from_le_bytes([trace[offset], trace[offset + 1]]);
        if id == 160 {
            trace[payload + 14..payload + 16].copy_from_slice(&[2, 0]);
        }
    }
}

/// npcap's upper edge on a Wi-Fi card: PktMon labels Ethernet frames as Wi-Fi.
#[test]
fn ethernet_frames_that_are_labelled_wifi_stay_as_they_are() {
    let trace = monitored_on("10.0.22621");
    let (expected, _) = exported(&trace, PacketOptions::new().all_layers());
    let mut labelled = trace;
    labelled_as_wifi(&mut labelled);
    let (capture, _) = exported(&labelled, PacketOptions::new().all_layers());
    assert!(packets_in(&expected).len() > 100);
    assert_eq!(packets_in(&capture), packets_in(&expected));
    // The link types of the interfaces are the same as well.
    assert_eq!(capture, expected);
}

/// The events of a real trace, with header, payload and text.
#[needs(trace = "perfview/gcevents.etl", tshark)]
#[test]
fn tshark_reads_the_events_of_a_real_trace() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(trace("perfview/gcevents.etl")).unwrap();
    let (capture, written) = exported(&bytes, PacketOptions::new().events());
    let path = saved(directory.path(), "events.pcapng", &capture);
    let fields = ["etw.descriptor.id", "etw.descriptor.opcode"];
    let more = [
        "etw.thread_id",
        "etw.user_data_length",
        "etw.provider_name",
        "etw.message",
    ];
    let events = tshark(&path, &[&fields[..], &more].concat());
    assert_eq!(events.len() as u64, written.events);
    let mut trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
    let mut records = trace.records(Order::Time).unwrap().without_stale_records();
    for event in &events {
        let record = records.next_record().unwrap().unwrap();
        let identity = record.identity();
        let expected = [identity.id.to_string(), identity.opcode.to_string()];
        assert_eq!(event[..2], expected, "{event:?}");
        assert_eq!(
            event[2].parse().ok(),
            record.thread_id().map(ThreadId::get),
            "{event:?}"
        );
        assert_eq!(
            event[3].parse().ok(),
            Some(record.payload().len()),
            "{event:?}"
        );
    }
    assert!(records.next_record().unwrap().is_none());
    let starts = |e: &&Vec<String>| e[4] == "Microsoft-Windows-DotNETRuntime" && e[0] == "1";
    let starts: Vec<_> = events.iter().filter(starts).collect();
    assert!(!starts.is_empty());
    assert!(
        starts
            .iter()
            .all(|e| e[5].starts_with("GCStart") && e[5].contains("Count="))
    );
}

#[test]
fn captures_need_packets() {
    let files = of_corpus("packets");
    let bytes = file(&files, "nettrace.etl");
    let mut trace = Trace::open(bytes, &Options::default()).unwrap();
    let store = SchemaStore::new().without_windows_tables();
    let mut decoder = EventDecoder::new(trace.clock(), store);
    let mut interfaces = Interfaces::new();
    let mut records = trace.records(Order::File).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        // Without the tables of Windows' providers no packet can be decoded.
        interfaces.record(&mut decoder, &record);
    }
    assert!(interfaces.is_empty());
}

/// A trace with these events of NDIS-PacketCapture: id, keyword and payload.
fn ndis_trace(events: &[(u16, u64, Vec<u8>)]) -> Vec<u8> {
    trace_of(NDIS_CAPTURE, events)
}

/// A trace with events of a provider: ids, keywords, payloads.
fn trace_of(provider: &str, events: &[(u16, u64, Vec<u8>)]) -> Vec<u8> {
    let header = FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(132_000_000_000_000_000),
        buffer_size: 0x4000,
        processors: 1,
        ..FileHeader::new()
    };
    let config = SessionConfig::new(header);
    let mut session = Session::in_memory(config).unwrap();
    for (number, (id, keyword, payload)) in events.iter().enumerate() {
        let event = Event::new(
            provider.parse::<Guid>().unwrap(),
            EventDescriptor {
                id: *id,
                level: 4,
                keyword: *keyword,
                ..EventDescriptor::default()
            },
            2_000 + number as i64,
        )
        .process(4, 8)
        .payload(payload);
        session.write(0, &event).unwrap();
    }
    session.finish().unwrap()
}

/// Numbers, texts and bytes with their length, as payloads have them.
fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

fn text(text: &str) -> Vec<u8> {
    text.encode_utf16()
        .chain([0])
        .flat_map(u16::to_le_bytes)
        .collect()
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    [&numbers(&[bytes.len() as u32]), bytes].concat()
}

/// Keywords of a whole packet, sent and received.
const SENT: u64 = 0x1_c000_0000;
const RECEIVED: u64 = 0x2_c000_0000;
const WIFI: u64 = 0x1_0000;

/// Windows takes VLAN tags out of packets of virtual switches, and logs them beside the packet.
#[needs(tshark)]
#[test]
fn tshark_finds_the_vlan_tags_of_virtual_switches() {
    // ARP between two hosts.
    let mut frame = vec![0xff; 6];
    frame.extend([
        2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1,
    ]);
    frame.extend([0, 0, 0, 0, 0, 0, 192, 0, 2, 2]);
    let packet = |tag: Option<u32>, destinations: u32| {
        let mut data = vec![0; 20 * 8];
        data[32..36].copy_from_slice(&tag.unwrap_or(0).to_le_bytes());
        let mut parts = vec![
            numbers(&[12, 13, 3]),
            text("port"),
            text("card"),
            text("external"),
        ];
        parts.push(numbers(&[destinations]));
        for number in 0..destinations {
            parts.extend([numbers(&[number]), text("p"), text("c"), text("synthetic")]);
        }
        parts.extend([sized(&frame), sized(&data)]);
        (1003, SENT, parts.concat())
    };
    // Priority 5, VLAN 100.
    let bytes = ndis_trace(&[
        packet(None, 0),
        packet(Some(100 << 4 | 5), 0),
        packet(Some(7 << 4), 2),
    ]);
    let directory = tempfile::tempdir().unwrap();
    let (capture, written) = exported(&bytes, PacketOptions::new());
    assert_eq!(written.packets, 3);
    let path = saved(directory.path(), "vlan.pcapng", &capture);
    let fields = [
        "frame.len",
        "vlan.id",
        "vlan.priority",
        "arp.dst.proto_ipv4",
    ];
    let more = ["frame.interface_name", "frame.interface_description"];
    let found = tshark(&path, &[&fields[..], &more].concat());
    let rest = ["192.0.2.2", "vswitch:12:13:3", "port card"];
    let (plain, tagged) = (frame.len().to_string(), (frame.len() + 4).to_string());
    let expected = [
        [&*plain, "", ""],
        [&tagged, "100", "5"],
        [&tagged, "7", "0"],
    ];
    assert_eq!(found, expected.map(|own| [own, rest].concat()));
}

/// Names of the reasons for which packets are dropped, as manifests of Windows and merged traces
/// define them.
const REASONS: &str = r#"<?xml version="1.0"?>
<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
 <instrumentation xmlns:win="http://manifests.microsoft.com/win/2004/08/windows/events"><events>
  <provider name="Microsoft-Windows-PktMon" guid="{4d4f80d9-c8bd-4d73-bb5b-19c90402c5ac}"
      symbol="PktMon" resourceFileName="x" messageFileName="x">
   <maps><valueMap name="Reasons"><map value="1" message="$(string.invalid)"/></valueMap></maps>
   <templates><template tid="Dropped">
    <data name="PktGroupId" inType="win:UInt64"/><data name="PktNumber" inType="win:UInt16"/>
    <data name="AppearanceCount" inType="win:UInt16"/><data name="DirTag" inType="win:UInt16"/>
    <data name="PacketType" inType="win:UInt16"/><data name="ComponentId" inType="win:UInt16"/>
    <data name="EdgeId" inType="win:UInt16"/><data name="FilterId" inType="win:UInt16"/>
    <data name="DropReason" inType="win:UInt32" map="Reasons"/>
    <data name="DropLocation" inType="win:UInt32"/>
    <data name="OriginalPayloadSize" inType="win:UInt16"/>
    <data name="LoggedPayloadSize" inType="win:UInt16"/>
    <data name="Payload" inType="win:Binary" length="LoggedPayloadSize"/>
   </template></templates>
   <events><event value="170" symbol="Dropped" template="Dropped"/></events>
  </provider></events></instrumentation>
 <localization><resources culture="en-US"><stringTable>
  <string id="invalid" value="Invalid data"/></stringTable></resources></localization>
</instrumentationManifest>"#;

#[needs(tshark)]
#[test]
fn tshark_finds_why_packets_were_dropped() {
    let frame = [[0xff; 6].as_slice(), &[2, 0, 0, 0, 0, 1, 8, 6], &[0; 28]].concat();
    let packet = |id: u16, reason: u32, direction: u16| {
        let shorts = |list: &[u16]| {
            list.iter()
                .flat_map(|n| n.to_le_bytes())
                .collect::<Vec<_>>()
        };
        let len = frame.len() as u16;
        // Number, appearance, direction, Ethernet, component, edge, filter.
        let head = shorts(&[u16::from(id == 170), 1, direction, 1, 59, 1, 0]);
        let group = 77u64.to_le_bytes().to_vec();
        let drop = numbers(&[reason, 0xe000_1234]);
        (
            id,
            0x10,
            [group, head, drop, shorts(&[len, len]), frame.clone()].concat(),
        )
    };
    let events = [
        packet(160, 0, 3),
        packet(170, 1, 4),
        packet(170, 0xffff_fff0, 0),
    ];
    let bytes = trace_of(PKTMON, &events);
    let directory = tempfile::tempdir().unwrap();
    let trace = saved(directory.path(), "dropped.etl", &bytes);
    let manifest = saved(directory.path(), "reasons.man", REASONS.as_bytes());
    let path = directory.path().join("dropped.pcapng");
    let words = ["etlkit", "export", "pcapng", "--manifest"]
        .map(Into::into)
        .into_iter();
    let said = run_captured(words.chain([
        manifest.into(),
        "-o".into(),
        path.clone().into(),
        trace.into_os_string(),
    ]));
    assert_eq!(said.code, 0, "{}", String::from_utf8_lossy(&said.err));
    let fields = [
        "frame.comment",
        "frame.packet_flags_direction",
        "frame.packet_id",
    ];
    let found = tshark(&path, &fields);
    let process = "PID=4 TID=8";
    let unknown = format!("{process} dropped: reason 4294967280, location 0xe0001234");
    let named = format!("{process} dropped: Invalid data (reason 1), location 0xe0001234");
    let expected = [
        (process, "0x00000001"),
        (&named, "0x00000002"),
        (&unknown, ""),
    ];
    let expected = expected.map(|(comment, flags)| [comment, flags, "77"].map(str::to_owned));
    assert_eq!(found, expected);
}

/// How a Wi-Fi packet was received stands in an event before it.
#[needs(tshark)]
#[test]
fn tshark_finds_how_wifi_packets_were_received() {
    let metadata = |frequency: u32, signal: i32, rate: u8| {
        // DOT11_EXTSTA_RECV_CONTEXT.
        let mut context = numbers(&[0x0030_0180, 0, 7, frequency, 1, signal.cast_unsigned()]);
        context.resize(48, 0);
        context[24] = rate;
        (
            1002,
            WIFI | RECEIVED,
            [numbers(&[12, 12]), sized(&context)].concat(),
        )
    };
    // A beacon: frame control, duration, three addresses, sequence, and 12 bytes of a body.
    let mut beacon = vec![0x80, 0x40, 0, 0];
    beacon.extend([0xff; 6]);
    beacon.extend([2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 7, 0x10, 0]);
    beacon.extend([0; 8]);
    beacon.extend([100, 0, 1, 0]);
    let packet = |keyword: u64| {
        (
            1001,
            WIFI | keyword,
            [numbers(&[12, 12]), sized(&beacon)].concat(),
        )
    };
    let bytes = ndis_trace(&[
        metadata(2437, -61, 108),
        packet(RECEIVED),
        packet(SENT),
        metadata(5180, -40, 12),
        packet(RECEIVED),
    ]);
    let directory = tempfile::tempdir().unwrap();
    let (capture, written) = exported(&bytes, PacketOptions::new());
    assert_eq!(written.packets, 3);
    let path = saved(directory.path(), "wifi.pcapng", &capture);
    let fields = [
        "radiotap.channel.freq",
        "radiotap.dbm_antsignal",
        "radiotap.datarate",
    ];
    let more = [
        "wlan.fc.type_subtype",
        "wlan.fc.protected",
        "frame.packet_flags_direction",
    ];
    let found = tshark(&path, &[&fields[..], &more].concat());
    let (inbound, outbound) = ("0x00000001", "0x00000002");
    assert_eq!(
        found,
        [
            ["2437", "-61", "54", "0x0008", "0", inbound],
            ["", "", "", "0x0008", "0", outbound],
            ["5180", "-40", "6", "0x0008", "0", inbound],
        ]
    );
    // Without such events packets are what they are.
    let (capture, _) = exported(&ndis_trace(&[packet(RECEIVED)]), PacketOptions::new());
    let path = saved(directory.path(), "plain.pcapng", &capture);
    assert_eq!(
        tshark(&path, &["frame.protocols", "frame.len"])[0],
        ["wlan", "36"]
    );
}
