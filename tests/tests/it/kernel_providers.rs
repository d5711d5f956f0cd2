//! The providers Kernel-Network, Kernel-File and Kernel-Disk state the same connections, files and
//! disks as the classic events of the kernel, when both record one simulated machine.

use std::collections::BTreeMap;

use etl_analysis::behavior::io::{Io, Operation};
use etl_analysis::behavior::network::{Connection, Network, Traffic};
use etl_analysis::{Analysis, Observer, Recording};
use etl_test_support::needs;
use etlkit::run_captured;
use serde_json::{Value, json};

use crate::packets::simulated;

/// A program that reads, writes, connects and sends while both sessions record; one system with
/// version 0 of the events of files and one with version 1.
const SCRIPT: &str = r#"
machine os="OS" processors=2 {
    disk "Virtual Disk" gb=128 { volume "C:" gb=100 }
    network-card "Ethernet" address="00155D7C5828" ip="10.0.0.5;fd00::5"
}
session "NT Kernel Logger" file="classic.etl" { kernel "processes disks files network" }
session "providers" file="providers.etl" {
    enable "Microsoft-Windows-Kernel-Network"
    enable "Microsoft-Windows-Kernel-File"
    enable "Microsoft-Windows-Kernel-Disk"
}
process "Backup.exe" pid=4000 {
    at "2s" {
        open-file "C:\\Data\\orders.db"
        read-file "C:\\Data\\orders.db" bytes=65536 offset=131072
        write-file "C:\\Data\\orders.db" bytes=700 offset=4096
        flush-file "C:\\Data\\orders.db"
        close-file "C:\\Data\\orders.db"
    }
}
process "Upload.exe" pid=5000 {
    at "2s" {
        connect "10.0.0.9:443"
        send "10.0.0.9:443" bytes=1400
        receive "10.0.0.9:443" bytes=512
        disconnect "10.0.0.9:443"
        connect "[2001:db8::9]:443"
        send "[2001:db8::9]:443" bytes=9
        accept "10.0.0.9:5000" port=80
        send "10.0.0.1:53" bytes=40 udp=#true
        receive "10.0.0.1:53" bytes=90 udp=#true
    }
}
at "3s" { stop "providers"; stop "NT Kernel Logger" }
"#;

/// Windows 7 and Windows 10.
const SYSTEMS: [&str; 2] = ["6.1.7601", "10.0.19045"];

/// Both traces of a system by name.
fn traces(system: &str) -> BTreeMap<String, Vec<u8>> {
    let files = simulated(&SCRIPT.replace("OS", system), None);
    files.into_iter().collect()
}

fn observe<T: Observer>(trace: &[u8], observer: &mut T) -> etl_analysis::Machine {
    let mut recording = Recording::open([(trace, "simulated.etl")]).unwrap();
    Analysis::new().run(&mut recording, observer).unwrap()
}

/// The traffic without its times.
fn counts(traffic: &Traffic) -> [u64; 7] {
    [
        traffic.sends,
        traffic.sent,
        traffic.receives,
        traffic.received,
        traffic.connects,
        traffic.accepts,
        traffic.disconnects,
    ]
}

fn connections(trace: &[u8]) -> BTreeMap<Connection, [u64; 7]> {
    let mut network = Network::new();
    observe(trace, &mut network);
    let mut out = BTreeMap::new();
    for (connection, traffic) in network.connections() {
        out.insert(*connection, counts(traffic));
    }
    out
}

/// How often each operation was done on a file, and its bytes.
fn operations(trace: &[u8]) -> BTreeMap<(String, Operation), [u64; 2]> {
    let mut io = Io::new();
    observe(trace, &mut io);
    let mut out = BTreeMap::new();
    for file in io.totals() {
        let path = file.path.unwrap_or_default().to_owned();
        let total = out.entry((path, file.operation)).or_insert([0; 2]);
        total[0] += file.total.count;
        total[1] += file.total.bytes;
    }
    out
}

#[test]
fn kernel_network_states_the_connections_of_the_kernel() {
    for system in SYSTEMS {
        let traces = traces(system);
        let classic = connections(&traces["classic.etl"]);
        // Two connections, one that was accepted, and datagrams.
        assert_eq!(classic.len(), 4, "{classic:?}");
        let sent: u64 = classic.values().map(|counts| counts[1]).sum();
        assert_eq!(sent, 1400 + 9 + 40);
        assert_eq!(connections(&traces["providers.etl"]), classic, "{system}");
    }
}

#[test]
fn kernel_file_and_disk_state_the_operations_of_the_kernel() {
    for system in SYSTEMS {
        let traces = traces(system);
        let classic = operations(&traces["classic.etl"]);
        let path = r"\Device\HarddiskVolume2\Data\orders.db".to_owned();
        assert_eq!(classic[&(path.clone(), Operation::FileRead)], [1, 65_536]);
        assert_eq!(classic[&(path.clone(), Operation::FileWrite)], [1, 700]);
        assert_eq!(classic[&(path, Operation::DiskRead)][1], 65_536);
        assert_eq!(operations(&traces["providers.etl"]), classic, "{system}");
    }
}

/// The events of files and disks in a trace of Perfetto: kind, time, processor and fields.
fn perfetto_events(trace: &[u8]) -> Vec<String> {
    let here = tempfile::tempdir().unwrap();
    let input = here.path().join("simulated.etl");
    let output = here.path().join("out.perfetto-trace");
    std::fs::write(&input, trace).unwrap();
    let words = ["etlkit", "export", "perfetto", "-o"].map(std::ffi::OsString::from);
    let paths = [output.clone().into(), input.into()];
    let words: Vec<_> = words.into_iter().chain(paths).collect();
    let said = run_captured(words);
    assert!(said.code < 2, "{}", String::from_utf8_lossy(&said.err));
    let found = &etl_test_support::foreign("perfetto_packets.py", &[output])[0];
    let mut events = Vec::new();
    for event in found["etw"].as_array().unwrap() {
        let mut fields = event[4].as_object().unwrap().clone();
        // Events of Kernel-Disk do not name the thread.
        fields.remove("issuing_thread_id");
        let fields = Value::from(fields);
        events.push(json!([event[0], event[1], event[2], fields]).to_string());
    }
    events.sort();
    events
}

#[needs(python)]
#[test]
fn perfetto_has_the_files_and_disks_of_the_providers() {
    let traces = traces(SYSTEMS[1]);
    let classic = perfetto_events(&traces["classic.etl"]);
    assert!(classic.len() > 10, "{classic:#?}");
    assert_eq!(perfetto_events(&traces["providers.etl"]), classic);
}
