//! Numbers of reports, on traces made by hand: what interrupts idle processors, locks of .NET
//! Framework, disks of Windows 7, and the kernel's providers.

use std::net::SocketAddr;

use etl_analysis::behavior::contention::Contention;
use etl_analysis::behavior::io::{Io, Operation};
use etl_analysis::behavior::network::Network;
use etl_analysis::behavior::occurrences::{Occurred, Occurrences};
use etl_analysis::profile::{Profile, ProfileOptions, SampleCollector};
use etl_analysis::{Analysis, Machine, Recording, Within};
use etl_format::write::record::{Event, System};
use etl_format::{EventDescriptor, Guid, ProcessId, ThreadId, Ticks, TimeRange};
use etl_schema::providers::{CLR_RUNTIME, DNS_CLIENT, KERNEL_DISK, KERNEL_FILE, KERNEL_NETWORK};

use super::{PID, TID, Trace};

impl Trace {
    /// A sample with its flags.
    fn sample_with(&mut self, timestamp: i64, tid: u32, flags: u8) {
        let address = 0xffff_8000_0000_1000u64.to_le_bytes();
        let rest = [1, 0, flags, 0];
        self.event(0x0f2e, 2, timestamp, &[&address, &tid.to_le_bytes(), &rest]);
    }

    /// An event of a provider, logged by a thread of the process.
    fn provider_event(
        &mut self,
        provider: Guid,
        id: u16,
        version: u8,
        timestamp: i64,
        payload: &[u8],
    ) {
        let descriptor = EventDescriptor {
            id,
            version,
            level: 4,
            ..EventDescriptor::default()
        };
        let record = Event::new(provider, descriptor, timestamp)
            .process(PID, TID)
            .payload(payload);
        self.session.write(0, &record).unwrap();
    }

    /// An event of the kernel, logged by a thread.
    fn by_thread(&mut self, hook: u16, version: u16, tid: u32, timestamp: i64, payload: &[u8]) {
        let record = System::new(hook, timestamp)
            .version(version)
            .process(PID, tid)
            .payload(payload);
        self.session.write(0, &record).unwrap();
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16()
        .chain([0])
        .flat_map(u16::to_le_bytes)
        .collect()
}

/// The profile of a trace, and the machine.
fn profile(trace: Trace, options: &ProfileOptions) -> Profile {
    let (machine, samples): (Machine, SampleCollector) = trace.analyze_for();
    samples.profile(&machine, options)
}

/// Samples of an idle processor: one idle, two in a DPC, one in an ISR; and one of a thread that a
/// DPC interrupts.
fn interrupted() -> Trace {
    let mut trace = Trace::new();
    trace.thread(0x0501, TID, 1_000);
    trace.sample_with(1_010, 0, 0x80);
    trace.sample_with(1_020, 0, 0x81);
    trace.sample_with(1_030, 0, 0x81);
    trace.sample_with(1_040, 0, 0x82);
    trace.sample_with(1_050, TID, 0x41);
    trace
}

#[test]
fn interrupts_of_idle_processors_are_work() {
    let profile = profile(interrupted(), &ProfileOptions::new());
    assert_eq!((profile.total().samples, profile.idle().samples), (4, 1));
    let mut rows = Vec::new();
    for root in profile.roots() {
        let samples = profile.nodes()[root.first].inclusive.samples;
        rows.push((root.process_label(), samples));
    }
    rows.sort();
    let expected = [
        ("? (400)".to_owned(), 1),
        ("DPC of processor 0".to_owned(), 2),
        ("ISR of processor 0".to_owned(), 1),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn interrupts_have_rows_apart_from_threads_and_idle_time() {
    let options = ProfileOptions::new().by_thread().with_idle();
    let profile = profile(interrupted(), &options);
    let mut labels = Vec::new();
    for root in profile.roots() {
        labels.push((root.interrupt.is_some(), root.tid.map(ThreadId::get)));
    }
    labels.sort();
    let threads = [
        (false, Some(0)),
        (false, Some(TID)),
        (true, None),
        (true, None),
    ];
    assert_eq!(labels, threads);
    assert_eq!(profile.total().samples, 5);
}

#[test]
fn only_version_2_of_samples_states_interrupts() {
    let mut trace = Trace::new();
    let address = 0xffff_8000_0000_1000u64.to_le_bytes();
    // The count of version 0 has 32 bits.
    let count = 0x0001_0001u32.to_le_bytes();
    trace.event(0x0f2e, 0, 1_010, &[&address, &[0; 4], &count]);
    let profile = profile(trace, &ProfileOptions::new());
    assert_eq!((profile.total().samples, profile.idle().samples), (0, 1));
}

/// Two waits of .NET Framework: its stop has fields in version 0, its start in version 1. The first
/// lock is one of native code.
fn lock_waits() -> Trace {
    let mut trace = Trace::new();
    trace.thread(0x0501, TID, 1_000);
    for (start, flags) in [(2_000, 1), (3_000, 0)] {
        let payload = [flags, 9, 0];
        trace.provider_event(CLR_RUNTIME, 81, 1, start, &payload);
        trace.provider_event(CLR_RUNTIME, 91, 0, start + 150, &payload);
    }
    trace
}

#[test]
fn waits_of_net_framework_end() {
    let (_, contention): (Machine, Contention) = lock_waits().analyze_for();
    let waits: Vec<_> = contention.threads().values().collect();
    assert_eq!(waits.len(), 1);
    assert_eq!(
        (waits[0].durations.as_slice(), waits[0].unended),
        (&[150, 150][..], 0)
    );
}

#[test]
fn occurrences_tell_native_locks_of_net_framework() {
    let (_, occurrences): (Machine, Occurrences) = lock_waits().analyze_for();
    let mut natives = Vec::new();
    for occurrence in occurrences.list() {
        if let Occurred::LockWait { is_native } = occurrence.what {
            natives.push(is_native);
        }
    }
    assert_eq!(natives, [true, false]);
}

/// A disk operation of Windows 7, which ends in the context of another thread.
fn transfer(request: u64, bytes: u32) -> Vec<u8> {
    let mut payload = Vec::new();
    for word in [0u32, 0, bytes, 0] {
        payload.extend(word.to_le_bytes());
    }
    for word in [0x2000u64, 0, request, 25] {
        payload.extend(word.to_le_bytes());
    }
    payload
}

fn kept_disks(trace: Trace) -> (Machine, Io) {
    let bytes = trace.finish();
    let mut recording = Recording::open([(bytes.as_slice(), "made")]).unwrap();
    let mut io = Io::new().keep_disk_operations();
    let machine = Analysis::new().run(&mut recording, &mut io).unwrap();
    (machine, io)
}

#[test]
fn disks_of_windows_7_have_the_process_of_their_request() {
    let mut trace = Trace::new();
    trace.thread(0x0501, TID, 1_000);
    trace.by_thread(0x010c, 2, TID, 2_000, &0x77u64.to_le_bytes());
    trace.event(0x010a, 2, 2_100, &[&transfer(0x77, 4096)]);
    // Nothing began this one.
    trace.event(0x010b, 2, 2_200, &[&transfer(0x78, 512)]);
    let (machine, io) = kept_disks(trace);
    let mut operations = Vec::new();
    for operation in io.disk_operations() {
        let process = operation.process().and_then(|index| machine.process(index));
        let pid = process.map(|process| process.pid());
        operations.push((operation.operation, operation.bytes, pid, operation.tid));
    }
    let pid = Some(ProcessId::new(PID));
    let tid = Some(ThreadId::new(TID));
    assert_eq!(
        operations,
        [
            (Operation::DiskRead, 4096, pid, tid),
            (Operation::DiskWrite, 512, None, None)
        ]
    );
}

#[test]
fn kernel_disk_feeds_disks_unless_the_kernel_does() {
    let mut trace = Trace::new();
    trace.provider_event(KERNEL_DISK, 10, 0, 2_000, &transfer(1, 4096));
    trace.provider_event(KERNEL_DISK, 11, 0, 2_100, &transfer(2, 512));
    let (_, io) = kept_disks(trace);
    let bytes: Vec<_> = io.disk_operations().iter().map(|one| one.bytes).collect();
    assert_eq!(bytes, [4096, 512]);
    // Both log the same operations.
    let mut trace = Trace::new();
    trace.provider_event(KERNEL_DISK, 10, 0, 2_000, &transfer(1, 4096));
    trace.event(0x010a, 2, 2_000, &[&transfer(1, 4096)]);
    trace.provider_event(KERNEL_DISK, 10, 0, 2_100, &transfer(2, 512));
    trace.event(0x010a, 2, 2_100, &[&transfer(2, 512)]);
    let (_, io) = kept_disks(trace);
    let total: u64 = io.totals().map(|file| file.total.bytes).sum();
    assert_eq!(total, 4608);
}

#[test]
fn kernel_file_names_reads_by_file_object() {
    let object = 0x5000u64.to_le_bytes();
    let key = 0x6000u64.to_le_bytes();
    let request = 0x77u64.to_le_bytes();
    let path = r"\Device\HarddiskVolume1\a.txt";
    let created = [
        &request[..],
        &object,
        &TID.to_le_bytes(),
        &[0; 12],
        &utf16(path),
    ]
    .concat();
    let size = 100u32.to_le_bytes();
    let read = [
        &[0; 8][..],
        &request,
        &object,
        &key,
        &TID.to_le_bytes(),
        &size,
        &[0; 8],
    ]
    .concat();
    let mut trace = Trace::new();
    trace.provider_event(KERNEL_FILE, 12, 1, 2_000, &created);
    trace.provider_event(KERNEL_FILE, 15, 1, 2_100, &read);
    trace.provider_event(
        KERNEL_FILE,
        24,
        0,
        2_400,
        &[&request[..], &[0; 12]].concat(),
    );
    let (machine, io): (Machine, Io) = trace.analyze_for();
    let by_path = io.by_path(&machine);
    let (file, total) = by_path.first_key_value().unwrap();
    assert_eq!((&*file.path, file.operation), (path, Operation::FileRead));
    assert_eq!(
        (total.count, total.bytes, total.latency.total()),
        (1, 100, 300)
    );
    let process = file
        .process
        .and_then(|index| machine.process(index))
        .unwrap();
    assert_eq!(process.pid(), PID);
}

/// Data that is sent from 192.0.2.1:5000 to 198.51.100.7:443.
fn sent(bytes: u32) -> Vec<u8> {
    let mut payload = PID.to_le_bytes().to_vec();
    payload.extend(bytes.to_le_bytes());
    payload.extend([198, 51, 100, 7]);
    payload.extend([192, 0, 2, 1]);
    payload.extend(443u16.to_be_bytes());
    payload.extend(5000u16.to_be_bytes());
    payload.extend([0; 20]);
    payload
}

#[test]
fn kernel_network_feeds_connections_with_names() {
    let answer = [
        utf16("www.example.org"),
        1u32.to_le_bytes().to_vec(),
        0u64.to_le_bytes().to_vec(),
        0u32.to_le_bytes().to_vec(),
        utf16("type:  5 edge.example.net;::ffff:198.51.100.7;"),
    ];
    let mut trace = Trace::new();
    trace.provider_event(DNS_CLIENT, 3008, 0, 1_900, &answer.concat());
    trace.provider_event(KERNEL_NETWORK, 10, 0, 2_000, &sent(1_000));
    trace.provider_event(KERNEL_NETWORK, 42, 0, 2_100, &sent(50));
    let (_, network): (Machine, Network) = trace.analyze_for();
    let mut rows = Vec::new();
    for (connection, traffic) in network.connections() {
        assert_eq!(connection.pid, PID);
        let name = network.name_of(connection.remote.ip());
        rows.push((connection.is_udp, connection.remote, traffic.sent, name));
    }
    let remote: SocketAddr = "198.51.100.7:443".parse().unwrap();
    let name = Some("www.example.org");
    assert_eq!(
        rows,
        [(false, remote, 1_000, name), (true, remote, 50, name)]
    );
}

/// The answer comes before the range, in a thread that is not selected.
#[test]
fn answers_before_the_range_name_connections() {
    let answer = [
        utf16("www.example.org"),
        1u32.to_le_bytes().to_vec(),
        0u64.to_le_bytes().to_vec(),
        0u32.to_le_bytes().to_vec(),
        utf16("198.51.100.7;"),
    ];
    let later = [&utf16("other.example.org")[..], &answer[1..].concat()].concat();
    let mut trace = Trace::new();
    trace.provider_event(DNS_CLIENT, 3008, 0, 1_900, &answer.concat());
    trace.provider_event(KERNEL_NETWORK, 10, 0, 2_000, &sent(1_000));
    trace.provider_event(KERNEL_NETWORK, 10, 0, 2_100, &sent(50));
    trace.provider_event(DNS_CLIENT, 3008, 0, 2_200, &later);
    let bytes = trace.finish();
    let mut recording = Recording::open([(bytes.as_slice(), "made")]).unwrap();
    let range = TimeRange::new(Some(Ticks::new(2_050)), Some(Ticks::new(2_150)));
    let mut network = Within::new(range, Network::new());
    Analysis::new().run(&mut recording, &mut network).unwrap();
    let network = network.observer;
    let (connection, traffic) = network.connections().first_key_value().unwrap();
    assert_eq!(traffic.sent, 50);
    let name = network.name_of(connection.remote.ip());
    assert_eq!(name, Some("www.example.org"));
}

#[test]
fn the_kernel_counts_connections_once() {
    let mut trace = Trace::new();
    trace.event(0x060a, 2, 2_000, &[&sent(1_000)]);
    trace.provider_event(KERNEL_NETWORK, 10, 0, 2_000, &sent(1_000));
    let (_, network): (Machine, Network) = trace.analyze_for();
    let sent: u64 = network
        .connections()
        .values()
        .map(|traffic| traffic.sent)
        .sum();
    assert_eq!(sent, 1_000);
}

#[test]
fn events_of_connections_and_disks_belong_to_their_payload() {
    let mut trace = Trace::new();
    trace.thread(0x0501, TID, 1_000);
    // Both interrupt a thread of another process.
    let connection = sent(10);
    let mut disk = transfer(1, 512);
    disk.extend(TID.to_le_bytes());
    for (hook, version, payload) in [(0x060a, 2, &connection), (0x010a, 3, &disk)] {
        let record = System::new(hook, 2_000)
            .version(version)
            .process(900, 904)
            .payload(payload);
        trace.session.write(0, &record).unwrap();
    }
    let bytes = trace.finish();
    let mut opened =
        etl_format::read::Trace::open(bytes.as_slice(), &etl_format::read::Options::default())
            .unwrap();
    let mut records = opened.records(etl_format::read::Order::Time).unwrap();
    let mut owners = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        if matches!(record.hook(), Some(0x060a | 0x010a)) {
            let owner = etl_analysis::owner(&record);
            owners.push((owner.process_id, owner.thread_id));
        }
    }
    let pid = Some(ProcessId::new(PID));
    let tid = Some(ThreadId::new(TID));
    assert_eq!(owners, [(pid, None), (None, tid)]);
}
