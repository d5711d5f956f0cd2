//! Packets in simulated traces: a reader of packets finds checksums, handshakes and names sound,
//! and captures that it writes are replayed with the same packets.

use std::collections::BTreeMap;
use std::path::Path;

use etl_schema::decode::Value;
use etl_synth::{MemoryFileSystem, Script, Simulation, corpus};
use etl_test_support::{foreign, needs, trace};
use serde_json::json;

pub const NDIS_CAPTURE: &str = "2ed6006e-4729-4609-b423-3ee7bcd678ef";
pub const PKTMON: &str = "4d4f80d9-c8bd-4d73-bb5b-19c90402c5ac";
/// Keywords of the first and the last part of a packet, and of packets that the machine sends.
const START: u64 = 0x4000_0000;
pub const END: u64 = 0x8000_0000;
const SEND: u64 = 0x1_0000_0000;

/// An event with a packet, or a part of one.
struct Part {
    id: u16,
    keyword: u64,
    processor: u32,
    /// 100 ns since 1601.
    time: i64,
    numbers: Vec<(String, u64)>,
    bytes: Vec<u8>,
}

impl Part {
    fn number(&self, name: &str) -> u64 {
        self.numbers
            .iter()
            .find(|(n, _)| n == name)
            .unwrap_or_else(|| panic!("{name}"))
            .1
    }
}

/// The events of a provider that have bytes, in the order of their times.
fn parts(bytes: &[u8], provider: &str) -> Vec<Part> {
    let mut trace = etl_events::from_bytes(bytes).unwrap();
    let mut events = trace.events().provider(provider);
    let mut out = Vec::new();
    while let Some(event) = events.next().unwrap() {
        let mut numbers = Vec::new();
        let mut data = None;
        for (field, value) in event.fields().unwrap() {
            match value {
                Value::UInt(n) => numbers.push((field.name.to_string(), n)),
                Value::Binary(bytes) => data = Some(bytes.to_vec()),
                _ => {}
            }
        }
        let Some(bytes) = data else { continue };
        out.push(Part {
            id: event.id().unwrap(),
            keyword: event.keyword().unwrap(),
            processor: event.cpu().into(),
            time: event.time().get(),
            numbers,
            bytes,
        });
    }
    out
}

/// The packets of the capture filter: whether each was sent, and its bytes.
pub fn captured(bytes: &[u8]) -> Vec<(bool, Vec<u8>)> {
    let mut out: Vec<(bool, Vec<u8>)> = Vec::new();
    // The packet that is not whole yet on each processor.
    let mut open: BTreeMap<u32, usize> = BTreeMap::new();
    for part in parts(bytes, NDIS_CAPTURE)
        .into_iter()
        .filter(|part| part.id == 1001)
    {
        assert_eq!(part.number("FragmentSize"), part.bytes.len() as u64);
        let sent = part.keyword & SEND != 0;
        let at = open.remove(&part.processor);
        assert_ne!(
            at.is_some(),
            part.keyword & START != 0,
            "a packet begins once"
        );
        let at = at.unwrap_or(out.len());
        match out.get_mut(at) {
            Some((_, packet)) => packet.extend(part.bytes),
            None => out.push((sent, part.bytes)),
        }
        if part.keyword & END == 0 {
            open.insert(part.processor, at);
        }
    }
    assert!(open.is_empty(), "a packet ends");
    out
}

/// The packets of the packet monitor: whether each was sent, its length, and its logged bytes.
pub fn monitored(bytes: &[u8]) -> Vec<(bool, u64, Vec<u8>)> {
    let parts = parts(bytes, PKTMON)
        .into_iter()
        .filter(|part| part.id == 160);
    let first = parts.filter(|part| part.number("AppearanceCount") == 1);
    first
        .map(|part| {
            let sent = part.number("DirTag") == 4;
            (sent, part.number("OriginalPayloadSize"), part.bytes)
        })
        .collect()
}

/// The files of a script.
pub fn simulated(text: &str, directory: Option<&Path>) -> Vec<(String, Vec<u8>)> {
    let files = |name: &str| std::fs::read(directory.unwrap_or(Path::new("")).join(name));
    let script = Script::new("packets.kdl", text)
        .include(&corpus::include)
        .files(&files);
    let scenario = script.parse().unwrap_or_else(|e| panic!("{e:#?}"));
    let mut files = MemoryFileSystem::default();
    Simulation::new(&scenario).run(&mut files).unwrap();
    files
        .into_files()
        .into_iter()
        .map(|file| (file.name, file.bytes))
        .collect()
}

pub fn of_corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    simulated(corpus_text(name), None)
}

pub fn corpus_text(name: &str) -> &'static str {
    let mut scripts = corpus::scripts();
    scripts.find(|script| script.name == name).unwrap().text
}

pub fn file<'f>(files: &'f [(String, Vec<u8>)], name: &str) -> &'f [u8] {
    &files.iter().find(|(known, _)| known == name).unwrap().1
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// What dpkt finds in packets.
fn judged(packets: &[(bool, Vec<u8>)]) -> serde_json::Value {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frames.txt");
    let lines: String = packets.iter().map(|(_, bytes)| hex(bytes) + "\n").collect();
    std::fs::write(&path, lines).unwrap();
    foreign("dpkt_frames.py", &[path]).remove(0)
}

#[needs(python)]
#[test]
fn dpkt_accepts_the_packets_of_conversations() {
    let files = of_corpus("packets");
    let packets = captured(file(&files, "nettrace.etl"));
    let found = judged(&packets);
    assert_eq!(found["wrong"], json!([]), "{found}");
    assert_eq!(found["frames"], packets.len());

    let connections = found["connections"].as_array().unwrap();
    let mut seen: Vec<_> = connections
        .iter()
        .map(|c| (&c["to"], &c["bytes"]))
        .collect();
    seen.sort_by_key(|(to, _)| to.to_string());
    let (web, mail, six) = (json!("192.0.2.7"), json!("192.0.2.9"), json!("2001:db8::1"));
    let (web_bytes, none, six_bytes) = (json!([517, 6000]), json!([0, 0]), json!([3000, 900]));
    let mut expected = vec![(&web, &web_bytes); 5];
    expected.extend([(&mail, &none), (&six, &six_bytes)]);
    assert_eq!(seen, expected);
    for connection in connections {
        let flags = connection["flags"].as_array().unwrap();
        assert!(
            flags.starts_with(&[json!(">S"), json!("<SA"), json!(">A")]),
            "{connection}"
        );
        assert!(
            flags.ends_with(&[json!(">FA"), json!("<FA"), json!(">A")]),
            "{connection}"
        );
    }

    let messages = found["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2 * 7);
    let of = |kind: &str, name: &str| -> Vec<&serde_json::Value> {
        messages
            .iter()
            .filter(|m| m[0] == kind && m[2] == name)
            .collect()
    };
    for (name, kind, code, answers) in [
        ("example.com", 1, 0, json!(["192.0.2.7", "192.0.2.8"])),
        ("six.example", 28, 0, json!(["2001:db8::1"])),
        ("missing.example", 1, 3, json!([])),
    ] {
        let (queries, responses) = (of("query", name), of("response", name));
        assert_eq!(queries.len(), responses.len(), "{name}");
        for (query, response) in queries.iter().zip(responses) {
            assert_eq!(
                (&query[1], &query[3]),
                (&response[1], &json!(kind)),
                "{name}"
            );
            assert_eq!(
                (&response[4], &response[5]),
                (&json!(code), &answers),
                "{name}"
            );
        }
    }
}

#[test]
fn both_drivers_see_the_same_packets() {
    let files = of_corpus("packets");
    let mut captured = captured(file(&files, "nettrace.etl"));
    let mut monitored = monitored(file(&files, "pktmon.etl"));
    captured.sort();
    monitored.sort_by(|a, b| (a.0, &a.2).cmp(&(b.0, &b.2)));
    assert_eq!(captured.len(), monitored.len());
    let cut = |packet: &[u8]| packet[..packet.len().min(128)].to_vec();
    let mut theirs: Vec<_> = captured
        .iter()
        .map(|(sent, bytes)| (*sent, bytes.len() as u64, cut(bytes)))
        .collect();
    let mut ours = monitored;
    theirs.sort();
    ours.sort();
    assert_eq!(ours, theirs);
    assert!(
        ours.iter()
            .any(|(_, length, bytes)| *length > 128 && bytes.len() == 128)
    );
}

/// The packets of the packet monitor with their times, with or without another session beside it.
#[test]
fn another_session_does_not_change_the_packets() {
    let script = corpus::scripts()
        .find(|script| script.name == "packets")
        .unwrap()
        .text;
    let lines = script.lines().filter(|line| !line.contains("NetTrace"));
    let without = lines
        .chain(["at \"3s\" { stop \"PktMon\" }"])
        .collect::<Vec<_>>()
        .join("\n");
    let seen = |files: &[(String, Vec<u8>)]| -> Vec<_> {
        let parts = parts(file(files, "pktmon.etl"), PKTMON).into_iter();
        parts
            .filter(|part| part.id == 160)
            .map(|part| (part.time, part.numbers, part.bytes))
            .collect()
    };
    let (alone, beside) = (
        seen(&simulated(&without, None)),
        seen(&of_corpus("packets")),
    );
    assert!(alone.len() > 400);
    assert_eq!(alone, beside);
}

#[needs(python)]
#[test]
fn packets_in_parts_are_whole_again() {
    let files = of_corpus("packets-in-parts");
    let bytes = file(&files, "nettrace.etl");
    let all = parts(bytes, NDIS_CAPTURE);
    let is = |part: &Part, bits| part.keyword & (START | END) == bits;
    for bits in [START | END, START, END] {
        assert!(all.iter().any(|part| is(part, bits)), "{bits:#x}");
    }
    assert!(all.iter().any(|part| is(part, 0)), "a part in the middle");
    let found = judged(&captured(bytes));
    assert_eq!(found["wrong"], json!([]), "{found}");
    assert_eq!(found["connections"][0]["bytes"], json!([300, 5000]));
}

/// Packets of a real trace, written by dpkt as captures.
#[needs(trace = "demikernel/PktMon.etl", python)]
#[test]
fn replayed_captures_have_their_packets_and_times() {
    let bytes = std::fs::read(trace("demikernel/PktMon.etl")).unwrap();
    // The last appearance of a sent packet has its addresses.
    let mut real: Vec<Part> = Vec::new();
    for part in parts(&bytes, PKTMON)
        .into_iter()
        .filter(|part| part.id == 160)
    {
        let group = |part: &Part| part.number("PktGroupId");
        match real.last_mut() {
            Some(last) if group(last) == group(&part) => last.bytes = part.bytes,
            _ => real.push(part),
        }
    }
    assert_eq!(real.len(), 38);
    let own = "00-22-48-7b-b3-80";
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let start = real[0].time;
    let line = |part: &Part| {
        // Whole microseconds, which both formats have.
        let micros = (part.time - start) / 10;
        format!(
            "{}.{:06} {}\n",
            1000 + micros / 1_000_000,
            micros % 1_000_000,
            hex(&part.bytes)
        )
    };
    std::fs::write(at("frames.txt"), real.iter().map(line).collect::<String>()).unwrap();
    let made = foreign(
        "dpkt_captures.py",
        &[at("frames.txt"), at("a.pcap"), at("b.pcapng")],
    );
    assert_eq!(made[0], real.len());
    for name in ["a.pcap", "b.pcapng"] {
        let script = format!(
            "machine os=\"10.0.22621\"\n\
             session \"p\" file=\"p.etl\" {{ enable \"{PKTMON}\" keywords=0x10 level=4 }}\n\
             session \"n\" file=\"n.etl\" {{ enable \"{NDIS_CAPTURE}\" }}\n\
             at \"1s\" {{ replay \"{name}\" address=\"{own}\" }}\nat \"60s\" {{ stop \"p\"; stop \"n\" }}"
        );
        let files = simulated(&script, Some(directory.path()));
        let seen = parts(file(&files, "p.etl"), PKTMON);
        let seen: Vec<&Part> = seen
            .iter()
            .filter(|p| p.number("AppearanceCount") == 1)
            .collect();
        assert_eq!(seen.len(), real.len(), "{name}");
        for (part, real) in seen.iter().zip(&real) {
            assert_eq!(part.bytes, real.bytes, "{name}");
            assert_eq!(part.number("DirTag"), real.number("DirTag"), "{name}");
            let (after, expected) = (part.time - seen[0].time, real.time - start);
            assert!((after - expected).abs() <= 30, "{name}: {after} {expected}");
        }
        let captured: Vec<Vec<u8>> = captured(file(&files, "n.etl"))
            .into_iter()
            .map(|(_, bytes)| bytes)
            .collect();
        assert_eq!(
            captured,
            real.iter()
                .map(|part| part.bytes.clone())
                .collect::<Vec<_>>()
        );
    }
}
