//! Holds simulated events of disks, files and the network against those of a real trace of
//! Windows 8: records and sizes, begins and ends, keys and names, and the place of the list of
//! names. Fields are read here by their offsets, so that no table of ours takes part.

use etl_format::ThreadId;
use std::collections::{BTreeMap, BTreeSet};

use etl_format::read::{Options, Order, Trace};
use etl_synth::{MemoryFileSystem, Script, Simulation};
use etl_test_support::{needs, traces};

/// Records of these groups: DiskIo, FileIo, TcpIp, UdpIp.
const GROUPS: [u16; 4] = [0x01, 0x04, 0x06, 0x08];
/// Masks and the end of the rundown, in which the names are the last.
const MASKS_END: u16 = 0x0020;
const MASKS: u16 = 0x0005;
const COMPLETE: u16 = 0x0008;

/// A record with what is looked at.
struct Seen {
    hook: u16,
    version: u16,
    kind: String,
    timestamp: i64,
    tid: Option<u32>,
    payload: Vec<u8>,
}

impl Seen {
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.payload[at..at + 4].try_into().unwrap())
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.payload[at..at + 8].try_into().unwrap())
    }
}

fn records(bytes: &[u8]) -> Vec<Seen> {
    let mut trace = Trace::open(bytes, &Options::default()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut seen = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        let Some(hook) = record.hook() else { continue };
        if !GROUPS.contains(&(hook >> 8)) && ![MASKS_END, MASKS, COMPLETE].contains(&hook) {
            continue;
        }
        seen.push(Seen {
            hook,
            version: record.identity().version,
            kind: record.kind().to_string(),
            timestamp: record.timestamp().get(),
            tid: record.thread_id().map(ThreadId::get),
            payload: record.payload().to_vec(),
        });
    }
    seen
}

/// What a trace shows: each kind of event with its version, record and size (none for names).
type Kinds = BTreeSet<(u16, u16, String, Option<usize>)>;

/// Checks what holds for every trace of a kernel session of 64 bits.
fn check(records: &[Seen]) -> Kinds {
    let mut kinds = Kinds::new();
    let mut begun: BTreeMap<u64, &Seen> = BTreeMap::new();
    let (mut named, mut rundown, mut used) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    let mut deleted = BTreeSet::new();
    for record in records {
        let name = matches!(record.hook, 0x0420..=0x0424 | 0x0440);
        let size = (!name).then_some(record.payload.len());
        if GROUPS.contains(&(record.hook >> 8)) {
            kinds.insert((record.hook, record.version, record.kind.clone(), size));
        }
        match record.hook {
            0x010c | 0x010d | 0x010f => {
                let irp = record.u64(0);
                assert!(begun.insert(irp, record).is_none(), "{irp:#x} is in use");
                // Another thread, or an interrupt, can pass the request of a thread on to the disk.
                assert!(record.tid.is_some());
            }
            0x010a | 0x010b | 0x010e => {
                let flush = record.hook == 0x010e;
                let (irp, took, tid) = match flush {
                    true => (record.u64(16), record.u64(8), record.u32(24)),
                    false => (record.u64(32), record.u64(40), record.u32(48)),
                };
                let begin = begun
                    .remove(&irp)
                    .unwrap_or_else(|| panic!("{irp:#x} has not begun"));
                let init = match record.hook {
                    0x010e => 0x010f,
                    hook => hook + 2,
                };
                assert_eq!((begin.hook, begin.u32(8)), (init, tid));
                // The counter of the response time is read shortly before or after the timestamp.
                let between = record.timestamp - begin.timestamp;
                assert!((between - took as i64).abs() <= 200, "{between} {took}");
                if !flush {
                    assert_eq!((record.u32(8) % 512, record.u64(16) % 512), (0, 0));
                    used.insert(record.u64(24));
                }
            }
            0x0420 => {
                let key = record.u64(0);
                assert!(
                    named.insert(key, record.payload[8..].to_vec()).is_none(),
                    "{key:#x}"
                );
            }
            0x0423 => {
                let key = record.u64(0);
                deleted.insert(key);
                if let Some(name) = named.remove(&key) {
                    assert_eq!(name, record.payload[8..]);
                }
            }
            0x0424 => {
                // Real lists name a few files twice.
                rundown.insert(record.u64(0));
            }
            _ => {}
        }
    }
    assert!(begun.is_empty(), "{} requests did not end", begun.len());
    // Keys of disk events are those of files that are listed at the end, or were deleted.
    assert!(!used.is_empty() && !rundown.is_empty());
    assert!(
        used.iter()
            .all(|key| rundown.contains(key) || deleted.contains(key))
    );
    assert!(named.keys().all(|key| rundown.contains(key)));
    // The list is between the last masks and the end of the rundown, with nothing of these groups
    // after it.
    let place = |is: &dyn Fn(&Seen) -> bool| records.iter().rposition(is).unwrap();
    let first = records.iter().position(|r| r.hook == 0x0424).unwrap();
    let last = place(&|r| r.hook == 0x0424);
    assert!(place(&|r| r.hook == MASKS_END) < first);
    let after: Vec<u16> = records[last + 1..].iter().map(|r| r.hook).collect();
    assert_eq!(after, [MASKS, COMPLETE]);
    assert!(records[first..last].iter().all(|r| r.hook == 0x0424));
    kinds
}

const SCRIPT: &str = r#"
machine os="6.2.9200" processors=4 { disk "D" gb=100 { volume "C:" gb=90 } }
process "App.exe" threads=3 {
    every "5ms" from="1.1s" until="1.5s" {
        read-file "C:\\Data\\a.db" bytes=70000 offset=300; write-file "C:\\Data\\b.db" bytes=5000
    }
    at "1.3s" { flush-file "C:\\Data\\a.db"; delete-file "C:\\Data\\b.db" }
    at "1.2s" { connect "[2001:db8::9]:443"; send "[2001:db8::9]:443"; receive "[2001:db8::9]:443" }
    at "1.2s" { send "10.0.0.1:53" udp=#true; receive "10.0.0.1:53" udp=#true }
    at "1.2s" { send "[fe80::1]:53" udp=#true; receive "[fe80::1]:53" udp=#true }
}
at "1s" { run "xperf -on PROC_THREAD+LOADER+DISK_IO+DISK_IO_INIT+FILENAME+NETWORKTRACE -f k.etl" }
at "2s" { run "xperf -stop" }
"#;

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn disk_file_and_network_events_resemble_a_real_trace() {
    let real = std::fs::read(traces().join("perfview/net.4.5.2.x64.etl")).unwrap();
    let real = check(&records(&real));
    let scenario = Script::new("io", SCRIPT)
        .parse()
        .unwrap_or_else(|e| panic!("{e:#?}"));
    let mut files = MemoryFileSystem::default();
    Simulation::new(&scenario).run(&mut files).unwrap();
    let files = files
        .into_files()
        .into_iter()
        .map(|file| (file.name, file.bytes));
    let files: BTreeMap<_, _> = files.collect();
    let simulated = check(&records(&files["k.etl"]));
    // The real trace has no TCP connection that begins or ends.
    let hooks: BTreeSet<u16> = real.iter().map(|(hook, ..)| *hook).collect();
    let common: Kinds = simulated
        .iter()
        .filter(|kind| hooks.contains(&kind.0))
        .cloned()
        .collect();
    assert_eq!(common, real);
    let more: Vec<u16> = simulated
        .iter()
        .map(|kind| kind.0)
        .filter(|hook| !hooks.contains(hook))
        .collect();
    assert_eq!(more, [0x061c], "a connection");
}
