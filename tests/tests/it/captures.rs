//! Packets as pcapng: readers of captures that others made find them as they are in the trace.

use std::path::{Path, PathBuf};
use std::process::Command;

use etl_export::pcapng::{Interfaces, PacketOptions, PacketWriter, Written};
use etl_format::constants::FILETIME_UNIX_EPOCH;
use etl_format::read::{Options, Order, Trace};
use etl_schema::store::SchemaStore;
use etl_test_support::{needs, trace};
use etl_tests::foreign;

use crate::packets::{captured, file, monitored, of_corpus};

/// Writes a trace as pcapng; returns the file, and what was counted.
fn exported(bytes: &[u8], options: PacketOptions) -> (Vec<u8>, Written) {
    let mut trace = Trace::open(bytes, &Options::default()).unwrap();
    let (clock, mut store) = (trace.clock(), SchemaStore::default().with_windows_tables());
    let mut interfaces = Interfaces::new();
    let mut records = trace.records(Order::File).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        store.learn(&record);
        interfaces.record(&store, &record);
    }
    let mut out = Vec::new();
    let mut writer = PacketWriter::new(&mut out, &interfaces, options).unwrap();
    let mut records = trace.records(Order::Time).unwrap().without_stale_records();
    while let Some(record) = records.next_record().unwrap() {
        writer.record(&store, &clock, &record).unwrap();
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
    let ndis: Vec<String> =
        captured(file(&files, "nettrace.etl")).iter().map(|(_, bytes)| hex(bytes)).collect();
    let pktmon: Vec<String> =
        monitored(file(&files, "pktmon.etl")).iter().map(|(_, _, bytes)| hex(bytes)).collect();
    let parts = of_corpus("packets-in-parts");
    let whole: Vec<String> =
        captured(file(&parts, "nettrace.etl")).iter().map(|(_, bytes)| hex(bytes)).collect();
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
        assert_eq!((written.packets, written.incomplete), (found.len() as u64, 0), "{name}");
        let times: Vec<u64> = found.iter().map(|p| p[0].as_u64().unwrap()).collect();
        assert!(times.is_sorted(), "{name}");
    }
}

/// What tshark finds in a capture: a line for each packet, with these fields.
fn tshark(path: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(["-t", "e", "-T", "fields", "-E", "separator=/t"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[needs(trace = "demikernel/PktMon.etl", tshark)]
#[test]
fn tshark_reads_the_packets_of_a_real_trace() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(trace("demikernel/PktMon.etl")).unwrap();
    let monitored = monitored(&bytes);
    let (capture, written) = exported(&bytes, PacketOptions::new());
    let path = saved(directory.path(), "once.pcapng", &capture);
    let fields = ["frame.interface_name", "icmp.type", "icmp.seq", "frame.packet_flags_direction"];
    let packets = tshark(&path, &fields);
    assert_eq!((packets.len(), monitored.len()), (38, 38));
    assert_eq!((written.packets, written.repeated, written.events), (38, 76, 0));
    for (number, (packet, (is_sent, ..))) in packets.iter().zip(&monitored).enumerate() {
        let [interface, kind, sequence, direction] = &packet[..] else { panic!("{packet:?}") };
        assert!(interface.starts_with("pktmon:"), "{interface}");
        // Requests and replies take turns.
        let expected = (["8", "0"][number % 2], (number / 2 + 1).to_string());
        assert_eq!((&**kind, sequence), (expected.0, &expected.1));
        assert_eq!(direction, ["0x00000001", "0x00000002"][usize::from(*is_sent)]);
    }

    let (all, written) = exported(&bytes, PacketOptions::new().all_layers(true).events(true));
    assert_eq!((written.packets, written.repeated, written.events), (114, 0, 352));
    let path = saved(directory.path(), "all.pcapng", &all);
    let fields = ["frame.interface_description", "frame.packet_id", "etw.provider_id"];
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
        let unix = clock.filetime(record.timestamp()) - FILETIME_UNIX_EPOCH;
        times.push(format!("{}.{:07}00", unix / 10_000_000, unix % 10_000_000));
    }
    let found: Vec<&String> = packets.iter().map(|p| &p[3]).collect();
    assert_eq!(found, times.iter().collect::<Vec<_>>());
}

/// The events of a real trace, with header, payload and text.
#[needs(trace = "perfview/gcevents.etl", tshark)]
#[test]
fn tshark_reads_the_events_of_a_real_trace() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(trace("perfview/gcevents.etl")).unwrap();
    let (capture, written) = exported(&bytes, PacketOptions::new().events(true));
    let path = saved(directory.path(), "events.pcapng", &capture);
    let fields = ["etw.descriptor.id", "etw.descriptor.opcode"];
    let more = ["etw.thread_id", "etw.user_data_length", "etw.provider_name", "etw.message"];
    let events = tshark(&path, &[&fields[..], &more].concat());
    assert_eq!(events.len() as u64, written.events);
    let mut trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
    let mut records = trace.records(Order::Time).unwrap().without_stale_records();
    for event in &events {
        let record = records.next_record().unwrap().unwrap();
        let identity = record.identity();
        let expected = [identity.id.to_string(), identity.opcode.to_string()];
        assert_eq!(event[..2], expected, "{event:?}");
        assert_eq!(event[2].parse().ok(), record.thread_id(), "{event:?}");
        assert_eq!(event[3].parse().ok(), Some(record.payload().len()), "{event:?}");
    }
    assert!(records.next_record().unwrap().is_none());
    let starts = |e: &&Vec<String>| e[4] == "Microsoft-Windows-DotNETRuntime" && e[0] == "1";
    let starts: Vec<_> = events.iter().filter(starts).collect();
    assert!(!starts.is_empty());
    assert!(starts.iter().all(|e| e[5].starts_with("GCStart") && e[5].contains("Count=")));
}

#[test]
fn captures_need_packets() {
    let files = of_corpus("packets");
    let bytes = file(&files, "nettrace.etl");
    let mut trace = Trace::open(bytes, &Options::default()).unwrap();
    let store = SchemaStore::default();
    let mut interfaces = Interfaces::new();
    let mut records = trace.records(Order::File).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        // Without the tables of Windows' providers no packet can be decoded.
        interfaces.record(&store, &record);
    }
    assert!(interfaces.is_empty());
}
