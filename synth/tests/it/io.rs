//! Disks, files and the network: what processes do is in the events, exactly, and what is recorded
//! does not change it.

use std::collections::BTreeMap;

use etl_format::Guid;
use etl_schema::encode::OwnedValue;
use etl_schema::providers::kernel_class::{DISK_IO, FILE_IO, STACK_WALK, TCP_IP, THREAD, UDP_IP};
use etl_synth::model::Scenario;
use etl_synth::truth::{FileOperation, InMemoryTruth, IoReport, KnownEvent, NetworkOperation};
use etl_synth::{MemoryFileSystem, Script, Simulation};

/// All flags of disks, files and the network.
const ALL: &str = "processes images switches ready disks files network";

const WORK: &str = r#"
machine os="{os}" processors=2 {
    disk "One" gb=100 { volume "C:" gb=90 }
    disk "Two" gb=100 { volume "D:" gb=90 }
    network-card "Ethernet" ip="10.0.0.5; 2001:db8::5"
}
process "Native.exe" pid=100 threads=3 {
    at "1s" { open-file "C:\\Data\\orders.db" }
    every "7ms" from="2.1s" until="2.5s" {
        read-file "C:\\Data\\orders.db" offset=1000 bytes=20000
        read-file "D:\\Other\\large.bin" bytes=2500000
        write-file "C:\\Data\\log.txt" bytes=300 cached=#true
        write-file "D:\\Other\\new.bin" bytes=9000 offset=512
    }
    at "2.3s" { flush-file "C:\\Data\\orders.db"; delete-file "D:\\Other\\new.bin"; run "3ms" }
    at "2.6s" { close-file "C:\\Data\\orders.db" }
}
process "Managed.exe" pid=200 threads=2 exit="2.8s" {
    clr "core" version="8.0.0" { assembly "A" { module "C:\\A.dll" { methods 30 ready=10 } } }
    at "1.5s" { open-file "C:\\A.config"; connect "[2001:db8::9]:443"; accept "10.0.0.7:5000" port=80 }
    every "9ms" from="2s" until="2.6s" { jit 1; allocate 2 }
    every "80ms" from="2.1s" until="2.5s" {
        send "[2001:db8::9]:443" bytes=1400
        receive "[2001:db8::9]:443" bytes=600
        receive "10.0.0.7:5000" bytes=90
        send "10.0.0.1:53" bytes=40 udp=#true
        receive "10.0.0.1:53" bytes=120 udp=#true
        receive "10.0.0.3:4000" bytes=70 udp=#true port=1900
    }
    at "2.7s" { disconnect "10.0.0.7:5000" }
}
"#;

fn scenario(os: &str, kernel: &str) -> Scenario {
    let mut text = WORK.replace("{os}", os);
    if !kernel.is_empty() {
        text += &format!(
            r#"at "2s" {{ session "NT Kernel Logger" file="k.etl" buffers=100000 {{ kernel "{kernel}" stackwalk="DiskReadInit FileWrite" }} }}
at "3s" {{ stop "NT Kernel Logger" }}"#
        );
    }
    Script::new("io", &text)
        .parse()
        .unwrap_or_else(|e| panic!("{text}\n{e:#?}"))
}

fn run(os: &str, kernel: &str) -> InMemoryTruth {
    let mut truth = InMemoryTruth::default();
    let files = &mut MemoryFileSystem::default();
    Simulation::new(&scenario(os, kernel))
        .observer(&mut truth)
        .run(files)
        .unwrap();
    truth
}

fn field<'e>(event: &'e KnownEvent, name: &str) -> &'e OwnedValue {
    event
        .field(name)
        .unwrap_or_else(|| panic!("{} has no {name}", event.name))
}

fn number(event: &KnownEvent, name: &str) -> u64 {
    match field(event, name) {
        OwnedValue::UInt(n) | OwnedValue::Pointer(n) => *n,
        other => panic!("{name} is {other:?}"),
    }
}

fn of(truth: &InMemoryTruth, class: Guid, opcode: u8) -> Vec<&KnownEvent> {
    let is = |e: &&KnownEvent| (e.provider, e.descriptor.opcode) == (class, opcode);
    truth.recorded(0).filter(is).collect()
}

/// Events of the session are those after its start.
const FROM: u64 = 2_000_000_000;

#[test]
fn each_request_to_a_disk_has_its_begin_and_its_end() {
    let truth = run("10.0.19045", ALL);
    let mut seen = BTreeMap::new();
    for report in &truth.io {
        let IoReport::Disk {
            started_ns,
            ended_ns,
            tid,
            operation,
            file_key,
            irp,
            disk,
            offset,
            bytes,
            path,
            ..
        } = report
        else {
            continue;
        };
        if *started_ns < FROM {
            continue;
        }
        let opcode = match operation {
            FileOperation::Read => 10,
            FileOperation::Write => 11,
            _ => 14,
        };
        *seen.entry(opcode).or_insert(0) += 1;
        let begin = if opcode == 14 { 15 } else { opcode + 2 };
        let begins = of(&truth, DISK_IO, begin);
        let begins: Vec<_> = begins
            .iter()
            .filter(|e| e.at == *started_ns && number(e, "Irp") == *irp && e.tid == *tid)
            .collect();
        let [_] = begins[..] else {
            panic!("{report:?}: {begins:?}")
        };
        let ends = of(&truth, DISK_IO, opcode);
        let ends: Vec<_> = ends
            .iter()
            .filter(|e| e.at == *ended_ns && number(e, "Irp") == *irp)
            .collect();
        let [end] = ends[..] else {
            panic!("{report:?}: {ends:?}")
        };
        // The counter runs at 10 MHz.
        assert_eq!(
            number(end, "HighResResponseTime"),
            ended_ns / 100 - started_ns / 100
        );
        assert_eq!(number(end, "IssuingThreadId"), u64::from(tid.get()));
        assert_eq!(number(end, "DiskNumber"), u64::from(*disk));
        assert_eq!(*disk, u32::from(path.starts_with("D:")));
        if opcode != 14 {
            assert_eq!(number(end, "ByteOffset"), *offset);
            assert_eq!(number(end, "TransferSize"), *bytes);
            assert_eq!(number(end, "FileObject"), *file_key);
            assert_eq!((offset % 512, bytes % 512), (0, 0));
        }
    }
    // 58 rounds: one request of the database, three of the large file; one write.
    assert_eq!(seen, BTreeMap::from([(10, 58 * 4), (11, 58), (14, 1)]));
    for (opcode, count) in seen {
        assert_eq!(of(&truth, DISK_IO, opcode).len(), count);
    }
    // Each begin of a read has a stack, and no end of a request has one.
    let stacks = of(&truth, STACK_WALK, 32);
    let times: Vec<u64> = stacks.iter().map(|e| number(e, "EventTimeStamp")).collect();
    for event in of(&truth, DISK_IO, 12) {
        assert!(
            times.contains(&event.timestamp.get().cast_unsigned()),
            "{event:?}"
        );
    }
    let writes = of(&truth, FILE_IO, 68).len();
    assert_eq!(stacks.len(), of(&truth, DISK_IO, 12).len() + writes);
}

#[test]
fn each_operation_on_a_file_begins_and_ends() {
    let truth = run("10.0.19045", ALL);
    let mut open: BTreeMap<u64, &KnownEvent> = BTreeMap::new();
    let mut operations: BTreeMap<u8, Vec<(u64, u64, u64)>> = BTreeMap::new();
    // In the order of time, in which a request is one operation at a time.
    let mut events: Vec<_> = truth
        .recorded(0)
        .filter(|e| e.provider == FILE_IO)
        .collect();
    events.sort_by_key(|e| (e.at, e.descriptor.opcode != 76));
    for event in events {
        match event.descriptor.opcode {
            0 | 32 | 35 | 36 => {}
            76 => {
                let begin = open
                    .remove(&number(event, "IrpPtr"))
                    .expect("an end has a begin");
                assert!(
                    begin.at < event.at && begin.tid == event.tid,
                    "{begin:?} {event:?}"
                );
                let list = operations.entry(begin.descriptor.opcode).or_default();
                list.push((begin.at, event.at, number(begin, "FileObject")));
            }
            _ => {
                assert_eq!(number(event, "TTID"), u64::from(event.tid.get()));
                assert!(
                    open.insert(number(event, "IrpPtr"), event).is_none(),
                    "{event:?}"
                );
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for (operation, opcode) in [
        (FileOperation::Open, 64),
        (FileOperation::Read, 67),
        (FileOperation::Write, 68),
        (FileOperation::Delete, 70),
        (FileOperation::Flush, 73),
    ] {
        let done = truth.io.iter().filter_map(|report| match report {
            IoReport::File {
                started_ns,
                ended_ns,
                operation: o,
                file_object,
                ..
            } if *o == operation && *started_ns >= FROM => {
                Some((*started_ns, *ended_ns, *file_object))
            }
            _ => None,
        });
        let mut done: Vec<_> = done.collect();
        let mut found = operations.remove(&opcode).unwrap_or_default();
        done.sort_unstable();
        found.sort_unstable();
        assert!(
            !done.is_empty() && done == found,
            "{operation:?}: {done:?} {found:?}"
        );
    }
    // Each open file is cleaned up and closed; two were open before the session.
    let [opened, cleaned, closed] = [64, 65, 66].map(|opcode| of(&truth, FILE_IO, opcode).len());
    assert_eq!((opened + 2, opened + 2), (cleaned, closed));
}

#[test]
fn names_of_files_are_those_of_the_rundown() {
    let truth = run("10.0.19045", ALL);
    let mut keys: BTreeMap<u64, String> = BTreeMap::new();
    let mut rundown: BTreeMap<u64, String> = BTreeMap::new();
    for event in truth.recorded(0).filter(|e| e.provider == FILE_IO) {
        let OwnedValue::Text(name) = (match event.descriptor.opcode {
            32 | 35 | 36 => field(event, "FileName"),
            _ => continue,
        }) else {
            panic!("{event:?}")
        };
        let key = number(event, "FileObject");
        match event.descriptor.opcode {
            32 => assert_eq!(keys.insert(key, name.clone()), None, "{event:?}"),
            35 => assert_eq!(keys.remove(&key).as_ref(), Some(name)),
            _ => assert_eq!(rundown.insert(key, name.clone()), None, "each file once"),
        }
    }
    let has = |ending: &str| rundown.values().any(|name| name.ends_with(ending));
    // Images are files, and so is what was open before the session.
    assert!(
        has("\\ntdll.dll") && has("Volume2\\Data\\orders.db") && has("Volume3\\Other\\large.bin")
    );
    // Deleted, and created again by the next write, with the key of the first one.
    assert!(has("\\Other\\new.bin"));
    assert_eq!(
        (of(&truth, FILE_IO, 32).len(), of(&truth, FILE_IO, 35).len()),
        (4, 1)
    );
    assert!(
        keys.iter()
            .all(|(key, name)| rundown.get(key) == Some(name)),
        "{keys:?}"
    );
    // Every key in events of disks has a name at its time.
    for event in of(&truth, DISK_IO, 10)
        .iter()
        .chain(&of(&truth, DISK_IO, 11))
    {
        assert!(
            rundown.contains_key(&number(event, "FileObject")),
            "{event:?}"
        );
    }
    // The list is the last of the rundown.
    let last = truth
        .recorded(0)
        .filter(|e| e.provider == FILE_IO)
        .last()
        .unwrap()
        .number;
    let after: Vec<u8> = truth
        .recorded(0)
        .filter(|e| e.number > last)
        .map(|e| e.descriptor.opcode)
        .collect();
    assert_eq!(after, [5, 8]);
}

#[test]
fn messages_are_events_with_both_addresses() {
    let truth = run("10.0.19045", ALL);
    let mut kinds: BTreeMap<(Guid, u8), usize> = BTreeMap::new();
    for report in &truth.io {
        let IoReport::Network {
            at_ns,
            pid,
            operation,
            protocol,
            local,
            remote,
            bytes,
            ..
        } = report
        else {
            continue;
        };
        if *at_ns < FROM {
            continue;
        }
        let class = if *protocol == "udp" { UDP_IP } else { TCP_IP };
        let opcode = match operation {
            NetworkOperation::Send => 10,
            NetworkOperation::Receive => 11,
            NetworkOperation::Connect => 12,
            NetworkOperation::Disconnect => 13,
            _ => 15,
        } + if remote.is_ipv6() { 16 } else { 0 };
        *kinds.entry((class, opcode)).or_default() += 1;
        let found = of(&truth, class, opcode);
        let found: Vec<_> = found.iter().filter(|e| e.at == *at_ns).collect();
        let [event] = found[..] else {
            panic!("{report:?}: {found:?}")
        };
        assert_eq!(number(event, "PID"), u64::from(pid.get()));
        assert_eq!(number(event, "size"), u64::from(*bytes));
        // Packets by UDP have source and destination; TCP names the other side first.
        let received = *protocol == "udp" && *operation == NetworkOperation::Receive;
        let (to, from) = if received {
            (local, remote)
        } else {
            (remote, local)
        };
        assert_eq!(number(event, "dport"), u64::from(to.port()));
        assert_eq!(number(event, "sport"), u64::from(from.port()));
        let text = |name: &str| match field(event, name) {
            OwnedValue::Ipv4(ip) => ip.to_string(),
            OwnedValue::Ipv6(ip) => ip.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            (text("daddr"), text("saddr")),
            (to.ip().to_string(), from.ip().to_string())
        );
    }
    // 5 rounds; the connection by IPv6 ends with its process.
    let expected = [
        ((TCP_IP, 11), 5),
        ((TCP_IP, 13), 1),
        ((TCP_IP, 26), 5),
        ((TCP_IP, 27), 5),
        ((TCP_IP, 29), 1),
        ((UDP_IP, 10), 5),
        ((UDP_IP, 11), 10),
    ];
    assert_eq!(kinds, BTreeMap::from(expected));
    let ports: Vec<u64> = of(&truth, UDP_IP, 11)
        .iter()
        .map(|e| number(e, "dport"))
        .collect();
    assert_eq!(ports.iter().filter(|port| **port == 1900).count(), 5);
}

#[test]
fn thread_leaves_its_processor_while_it_waits() {
    let truth = run("10.0.19045", ALL);
    let switches: Vec<&KnownEvent> = of(&truth, THREAD, 36);
    let mut waits = 0;
    for report in &truth.io {
        let IoReport::Disk {
            started_ns,
            ended_ns,
            tid,
            ..
        } = report
        else {
            continue;
        };
        if *started_ns < FROM {
            continue;
        }
        let tid = u64::from(tid.get());
        let left = switches
            .iter()
            .filter(|e| (*started_ns..*ended_ns).contains(&e.at));
        let left: Vec<_> = left.filter(|e| number(e, "OldThreadId") == tid).collect();
        assert!(!left.is_empty(), "{report:?}");
        waits += 1;
        // A timer or an interrupt makes it ready after that, and it runs again.
        let back = switches
            .iter()
            .find(|e| e.at >= *ended_ns && number(e, "NewThreadId") == tid);
        assert!(back.is_some(), "{report:?}");
    }
    assert!(waits > 200, "{waits}");
}

#[test]
fn what_is_recorded_does_not_change_what_happens() {
    let nothing = run("10.0.19045", "");
    assert!(nothing.io.len() > 500, "{}", nothing.io.len());
    let all = run("10.0.19045", ALL);
    let said = |truth: &InMemoryTruth| -> Vec<_> {
        let of = |e: &KnownEvent| {
            (
                e.provider,
                e.descriptor.opcode,
                e.at,
                e.tid,
                e.fields.clone(),
            )
        };
        truth.recorded(0).map(of).collect()
    };
    let of_all = said(&all);
    for kernel in [
        "network",
        "DISK_IO",
        "DISK_IO+DISK_IO_INIT",
        "files",
        "FILE_IO",
        "disks network",
        ALL,
    ] {
        let some = run("10.0.19045", kernel);
        assert_eq!(nothing.io, some.io, "{kernel}");
        assert_eq!(nothing.inventory, some.inventory, "{kernel}");
        // What a session with fewer flags records is part of what one with more records. Its own
        // marks and the end of the session have other times.
        let mut rest = of_all.iter();
        let own = [DISK_IO, FILE_IO, TCP_IP, UDP_IP];
        for event in said(&some)
            .iter()
            .filter(|e| own.contains(&e.0) && e.1 != 36)
        {
            assert!(rest.any(|e| e == event), "{kernel}: {event:?}");
        }
    }
}

#[test]
fn windows_7_has_the_older_layouts() {
    let truth = run("6.1.7601", ALL);
    for (class, opcode, version) in [
        (DISK_IO, 10, 2),
        (DISK_IO, 12, 2),
        (DISK_IO, 14, 2),
        (FILE_IO, 64, 2),
        (FILE_IO, 67, 2),
        (FILE_IO, 70, 2),
        (FILE_IO, 76, 2),
        (FILE_IO, 36, 2),
        (TCP_IP, 26, 2),
    ] {
        let events = of(&truth, class, opcode);
        assert!(!events.is_empty(), "{class} {opcode}");
        assert!(
            events.iter().all(|e| e.descriptor.version == version),
            "{class} {opcode}"
        );
    }
    let thread = |e: &KnownEvent| e.field("IssuingThreadId").is_some();
    assert!(!of(&truth, DISK_IO, 10).into_iter().any(thread));
    assert!(
        of(&run("10.0.19045", ALL), DISK_IO, 10)
            .into_iter()
            .all(thread)
    );
}

#[test]
fn what_is_not_open_or_connected_cannot_be_used() {
    for (work, expected) in [
        ("close-file \"C:\\\\a\"", "has \"C:\\a\" not open"),
        (
            "open-file \"C:\\\\a\"; open-file \"c:\\\\A\"",
            "has \"c:\\A\" open",
        ),
        (
            "open-file \"C:\\\\a\"; delete-file \"C:\\\\a\"",
            "has \"C:\\a\" open",
        ),
        ("read-file \"X:\\\\a\"", "no volume for \"X:\\a\""),
        ("send \"10.0.0.9:1\"", "no connection with 10.0.0.9:1"),
        ("disconnect \"10.0.0.9:1\"", "no connection with 10.0.0.9:1"),
        (
            "connect \"10.0.0.9:1\"; connect \"10.0.0.9:1\"",
            "connection with 10.0.0.9:1 already",
        ),
    ] {
        let text = format!("process \"a.exe\" {{ at \"1s\" {{ {work} }} }}");
        let scenario = Script::new("io", &text)
            .parse()
            .unwrap_or_else(|e| panic!("{e:#?}"));
        let error = Simulation::new(&scenario)
            .run(&mut MemoryFileSystem::default())
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{work}: {error}");
    }
}

#[test]
fn another_thread_goes_on_with_the_files_of_one_that_has_ended() {
    let text = r#"
process "a.exe" threads=2 {
    at "1s" { open-file "C:\\a" }
    at "1.1s" { end-thread }
    at "1.2s" { read-file "C:\\a"; close-file "C:\\a" }
}"#;
    let scenario = Script::new("io", text)
        .parse()
        .unwrap_or_else(|e| panic!("{e:#?}"));
    let mut truth = InMemoryTruth::default();
    let files = &mut MemoryFileSystem::default();
    Simulation::new(&scenario)
        .observer(&mut truth)
        .run(files)
        .unwrap();
    let done: Vec<_> = truth
        .io
        .iter()
        .filter_map(|report| match report {
            IoReport::File { operation, tid, .. } => Some((*operation, *tid)),
            _ => None,
        })
        .collect();
    let [(opened, one), (read, other), (closed, last)] = done[..] else {
        panic!("{done:?}")
    };
    assert_eq!(
        (opened, read, closed),
        (
            FileOperation::Open,
            FileOperation::Read,
            FileOperation::Close
        )
    );
    assert!(one != other && other == last, "{done:?}");
}
