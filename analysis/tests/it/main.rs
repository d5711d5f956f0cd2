//! Stacks joined to their events, in traces made for it: each way in which a stack is recorded.
// Tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod lives;
mod numbers;

use etl_analysis::behavior::io::Io;
use etl_analysis::behavior::waits::Waits;
use etl_analysis::{
    Analysis, Change, EventKind, EventRef, Joins, Life, Machine, Observer, OwnerCounts,
    ProcessIndex, Recording, Sample, Stack,
};
use etl_format::constants::{BufferFlags, LogFileMode, PointerSize, group_guid};
use etl_format::read::Order;
use etl_format::write::Session;
use etl_format::write::record::{Full, PerfInfo, System};
use etl_format::{FileHeader, FileTime, ProcessId, ThreadId, Ticks};

const KERNEL: u64 = 0xffff_8000_0000_0000;
const PID: u32 = 400;
const TID: u32 = 8;

/// A trace of kernel events.
struct Trace {
    session: Session<Vec<u8>>,
}

impl Trace {
    fn new() -> Self {
        Trace::with_mode(LogFileMode::SEQUENTIAL)
    }

    fn with_mode(mode: LogFileMode) -> Self {
        let header = FileHeader {
            timestamp: Ticks::new(1_000),
            perf_freq: 10_000_000,
            start_time: FileTime::new(132_000_000_000_000_000),
            mode,
            maximum_file_size: 100,
            ..FileHeader::new()
        };
        Trace {
            session: Session::in_memory(header).unwrap(),
        }
    }

    fn event(&mut self, hook: u16, version: u8, timestamp: i64, parts: &[&[u8]]) {
        let payload = parts.concat();
        let record = PerfInfo::new(hook, timestamp)
            .version(version)
            .payload(&payload);
        self.session.write(0, &record).unwrap();
    }

    /// A thread of the process starts or ends.
    fn thread(&mut self, hook: u16, tid: u32, timestamp: i64) {
        let payload = [&PID.to_le_bytes()[..], &tid.to_le_bytes(), &[0; 64]].concat();
        let record = System::new(hook, timestamp)
            .version(3)
            .process(4, 4)
            .payload(&payload);
        self.session.write(0, &record).unwrap();
    }

    fn sample(&mut self, timestamp: i64, address: u64, tid: u32) {
        self.event(
            0x0f2e,
            2,
            timestamp,
            &[&address.to_le_bytes(), &tid.to_le_bytes(), &[0; 4]],
        );
    }

    /// The stack of an event at `of`: its addresses, or for the hooks of keys the key.
    fn stack(&mut self, hook: u16, timestamp: i64, of: i64, tid: u32, words: &[u64]) {
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let ids = [PID.to_le_bytes(), tid.to_le_bytes()].concat();
        self.event(hook, 2, timestamp, &[&of.to_le_bytes(), &ids, &words]);
    }

    /// What a key stands for; it goes out of use.
    fn definition(&mut self, timestamp: i64, words: &[u64]) {
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.event(0x1823, 2, timestamp, &[&words]);
    }

    /// A read of a file, by the packet of its request, and its end.
    fn read(&mut self, timestamp: i64, request: u64) {
        let [size, thread, key] = [100, TID, 7].map(u32::to_le_bytes);
        let (request, zero) = (request.to_le_bytes(), [0; 4]);
        let parts = [
            &[0; 8][..],
            &request,
            &[1; 8],
            &key,
            &zero,
            &thread,
            &size,
            &[0; 8],
        ];
        self.event(0x0443, 3, timestamp, &parts);
    }

    fn read_ended(&mut self, timestamp: i64, request: u64) {
        self.event(0x044c, 3, timestamp, &[&request.to_le_bytes(), &[0; 12]]);
    }

    fn finish(self) -> Vec<u8> {
        self.session.finish().unwrap()
    }

    fn analyze(self) -> (Machine, Seen) {
        self.analyze_for()
    }

    fn analyze_for<O: Observer + Default>(self) -> (Machine, O) {
        analyze_together([self])
    }
}

fn analyze_together<O: Observer + Default, const N: usize>(traces: [Trace; N]) -> (Machine, O) {
    let files = traces.map(Trace::finish);
    let mut observer = O::default();
    let named = files.iter().map(|bytes| (bytes.as_slice(), "made"));
    let mut recording = Recording::open(named).unwrap();
    let machine = Analysis::new()
        .with_names()
        .run(&mut recording, &mut observer)
        .unwrap();
    (machine, observer)
}

/// What an observer is shown.
#[derive(Debug, Default)]
struct Seen {
    samples: Vec<(i64, Option<u32>, u64)>,
    stacks: Vec<(i64, Vec<u64>, Vec<u64>, bool)>,
    changes: Vec<Change>,
    records: u64,
}

impl Observer for Seen {
    fn record(&mut self, _: &Machine, _: &etl_format::read::Record<'_>, event: &EventRef) {
        assert_eq!(event.number, self.records);
        self.records += 1;
    }

    fn change(&mut self, _: &Machine, change: &Change, _: &EventRef) {
        self.changes.push(*change);
    }

    fn sample(&mut self, machine: &Machine, sample: &Sample<'_>) {
        let pid = sample
            .event
            .process
            .map(|index| machine.process(index).unwrap().pid());
        self.samples.push((
            sample.event.time.get(),
            pid.map(ProcessId::get),
            sample.address,
        ));
        let (kernel, user) = (sample.frames.kernel.to_vec(), sample.frames.user.to_vec());
        self.stacks.push((
            sample.event.time.get(),
            kernel,
            user,
            sample.frames.is_partial,
        ));
    }

    fn stack(&mut self, _: &Machine, stack: &Stack<'_>) {
        assert!(matches!(stack.event.kind, EventKind::Kernel { .. }));
        let (kernel, user) = (stack.frames.kernel.to_vec(), stack.frames.user.to_vec());
        self.stacks.push((
            stack.event.time.get(),
            kernel,
            user,
            stack.frames.is_partial,
        ));
    }
}

/// What an observer of samples is shown.
#[derive(Debug, Default)]
struct SeenOfSamples(Seen);

impl Observer for SeenOfSamples {
    const JOINS: Joins = Joins::Samples;

    fn sample(&mut self, machine: &Machine, sample: &Sample<'_>) {
        self.0.sample(machine, sample);
    }

    fn stack(&mut self, machine: &Machine, stack: &Stack<'_>) {
        self.0.stack(machine, stack);
    }
}

/// A process of the kernel's list, or one that starts or ends.
fn process(
    trace: &mut Trace,
    hook: u16,
    timestamp: i64,
    (pid, parent): (u32, u32),
    name: impl AsRef<[u8]>,
) {
    let ids = [0, 0, pid, parent].map(u32::to_le_bytes).concat();
    let payload = [&ids[..], &[0; 20], name.as_ref(), b"\0", b"\0\0"].concat();
    let record = System::new(hook, timestamp)
        .version(3)
        .process(4, 4)
        .payload(&payload);
    trace.session.write(0, &record).unwrap();
}

#[test]
fn counting_by_owner_finds_the_processes_of_the_whole_analysis() {
    let mut trace = Trace::new();
    process(&mut trace, 0x0303, 2_000, (PID, 4), "first.exe");
    trace.thread(0x0503, TID, 2_001);
    trace.sample(2_002, KERNEL, TID);
    trace.stack(0x1820, 2_003, 2_002, TID, &[KERNEL]);
    trace.sample(2_004, KERNEL, 0);
    // Its thread is listed at the end only.
    trace.sample(2_005, KERNEL, 12);
    process(&mut trace, 0x0302, 2_010, (PID, 4), "first.exe");
    process(&mut trace, 0x0301, 2_020, (PID, 4), "second.exe");
    trace.thread(0x0501, TID, 2_021);
    trace.sample(2_022, KERNEL, TID);
    let name: Vec<u8> = "worker\0"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    trace.event(
        0x0548,
        2,
        2_023,
        &[&PID.to_le_bytes(), &TID.to_le_bytes(), &name],
    );
    trace.thread(0x0504, 12, 2_030);
    let bytes = trace.finish();

    let mut recording = Recording::open([(&bytes[..], "a.etl")]).unwrap();
    let mut counted = OwnerCounts::default();
    let mut records = recording.files_mut()[0].trace.records(Order::File).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        counted.add(&record);
    }
    let events = Analysis::new()
        .count_by_owner(&mut recording, counted)
        .unwrap();
    let machine = &events.machine;
    let found: Vec<_> = machine
        .indexed_processes()
        .map(|(index, process)| (process.pid().get(), process.name(), events.count(index)))
        .collect();
    // Those of process 4 are the records about processes and threads.
    // The header of the file names process 0, too.
    let ran = [
        (0, "Idle", 2),
        (PID, "first.exe", 2),
        (4, "System", 6),
        (PID, "second.exe", 2),
    ];
    assert_eq!(found, ran);

    let mut recording = Recording::open([(&bytes[..], "a.etl")]).unwrap();
    let whole = Analysis::new()
        .with_names()
        .run(&mut recording, &mut ())
        .unwrap();
    let lives = |machine: &Machine| -> Vec<_> {
        let all = machine
            .processes()
            .iter()
            .filter(|process| process.parent_pid().is_some());
        all.map(|p| (p.pid(), p.name().to_owned(), p.started(), p.ended()))
            .collect()
    };
    assert_eq!(lives(machine), lives(&whole));
    assert_eq!(machine.threads(), whole.threads());
    assert!(
        machine
            .threads()
            .iter()
            .any(|thread| &*thread.name == "worker")
    );
}

/// Some relogged traces have the kernel's events as classic ones. A program of 32 bits logs those
/// of a 64-bit machine as records of 32 bits.
#[test]
fn classic_events_of_the_kernel_describe_the_machine() {
    check_classic_events(PointerSize::P8);
    check_classic_events(PointerSize::P4);
}

fn check_classic_events(pointer_size: PointerSize) {
    let mut trace = Trace::new();
    let mut classic = |group: u8, opcode: u8, version, timestamp, payload: &[u8]| {
        let record = Full::new(group_guid(group).unwrap(), opcode, timestamp)
            .pointer_size(pointer_size)
            .version(version)
            .process(4, 4)
            .payload(payload);
        trace.session.write(0, &record).unwrap();
    };
    let ids = [0, 0, PID, 4].map(u32::to_le_bytes).concat();
    let process = [&ids[..], &[0; 20], b"app.exe\0\0\0"].concat();
    classic(0x03, 1, 3, 2_000, &process);
    let thread = [&PID.to_le_bytes()[..], &TID.to_le_bytes(), &[0; 64]].concat();
    classic(0x05, 1, 3, 2_001, &thread);
    // A load has the class of images, though not the hook of one.
    let path: Vec<u8> = "C:\\app.exe\0"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let place = [0x14_0000_u64, 0x1000].map(u64::to_le_bytes).concat();
    let image = [&place[..], &PID.to_le_bytes(), &[0; 36], &path].concat();
    classic(0x14, 10, 2, 2_002, &image);
    classic(0x03, 2, 3, 2_010, &process);
    let (machine, _) = trace.analyze();
    let process = machine
        .processes()
        .iter()
        .find(|process| process.pid() == PID)
        .unwrap();
    assert_eq!(
        (process.name(), process.parent_pid()),
        ("app.exe", Some(ProcessId::new(4)))
    );
    assert_eq!(
        (process.started(), process.ended()),
        (Some(Ticks::new(2_000)), Some(Ticks::new(2_010)))
    );
    assert!(
        machine
            .threads()
            .iter()
            .any(|thread| thread.tid == TID && thread.pid == PID)
    );
    let paths: Vec<_> = machine
        .image_lives()
        .map(|life| life.path.to_owned())
        .collect();
    assert_eq!(paths, ["C:\\app.exe"]);
}

#[test]
fn kernel_and_user_part_are_joined_in_time_order() {
    let mut trace = Trace::new();
    trace.thread(0x0501, TID, 2_000);
    trace.thread(0x0501, 12, 2_000);
    trace.sample(3_000, KERNEL + 1, TID);
    trace.stack(0x1820, 3_001, 3_000, TID, &[KERNEL + 1, KERNEL + 2]);
    // The next sample is complete before the first one returns to its process.
    trace.sample(3_100, 0x1000, 12);
    trace.stack(0x1820, 3_101, 3_100, 12, &[0x1000, 0x1010]);
    trace.stack(0x1820, 3_200, 3_000, TID, &[0x2000]);
    let (_, seen) = trace.analyze();
    assert_eq!(
        seen.samples,
        [(3_000, Some(PID), KERNEL + 1), (3_100, Some(PID), 0x1000)]
    );
    let first = (3_000, vec![KERNEL + 1, KERNEL + 2], vec![0x2000], false);
    assert_eq!(
        seen.stacks,
        [first, (3_100, vec![], vec![0x1000, 0x1010], false)]
    );
}

#[test]
fn keyed_parts_wait_for_their_definitions() {
    let mut trace = Trace::new();
    trace.thread(0x0501, TID, 2_000);
    trace.sample(3_000, KERNEL + 1, TID);
    trace.stack(0x1825, 3_001, 3_000, TID, &[77]);
    trace.stack(0x1826, 3_002, 3_000, TID, &[78]);
    trace.sample(3_100, KERNEL + 1, TID);
    trace.stack(0x1825, 3_101, 3_100, TID, &[77]);
    trace.definition(9_000, &[77, KERNEL + 1]);
    trace.definition(9_001, &[78, 0x2000, 0x2010]);
    // The key is another stack's from now on, and is never defined again.
    trace.sample(9_100, KERNEL + 5, TID);
    trace.stack(0x1825, 9_101, 9_100, TID, &[77]);
    let (_, seen) = trace.analyze();
    let whole = (3_000, vec![KERNEL + 1], vec![0x2000, 0x2010], false);
    let without_user = (3_100, vec![KERNEL + 1], vec![], true);
    assert_eq!(
        seen.stacks,
        [whole, without_user, (9_100, vec![], vec![], true)]
    );
}

#[test]
fn stacks_are_joined_across_the_files_of_one_session() {
    // Other sessions know nothing of each other's events and keys.
    for (mode, of_one) in [
        (LogFileMode::NEWFILE, true),
        (LogFileMode::SEQUENTIAL, false),
    ] {
        let mut files = [Trace::with_mode(mode), Trace::with_mode(mode)];
        files[0].thread(0x0501, TID, 2_000);
        files[0].sample(3_000, 0x1000, TID);
        files[0].sample(3_100, KERNEL + 1, TID);
        files[0].stack(0x1825, 3_101, 3_100, TID, &[77]);
        files[1].stack(0x1820, 3_200, 3_000, TID, &[0x1000, 0x2000]);
        files[1].definition(9_000, &[77, KERNEL + 1]);
        let (_, seen): (_, Seen) = analyze_together(files);
        let first = (3_000, vec![], vec![0x1000, 0x2000], false);
        let second = (3_100, vec![KERNEL + 1], vec![], true);
        assert_eq!(seen.samples.len(), 2);
        assert_eq!(seen.stacks == [first, second], of_one, "{:?}", seen.stacks);
    }
}

#[test]
fn losses_between_files_of_a_session_leave_operations_open() {
    for (mode, given_up) in [(LogFileMode::NEWFILE, 1), (LogFileMode::SEQUENTIAL, 0)] {
        let mut files = [Trace::with_mode(mode), Trace::with_mode(mode)];
        files[0].read(3_000, 5);
        files[1]
            .session
            .carry_losses(0, BufferFlags::BUFFER_LOST)
            .unwrap();
        files[1].sample(4_000, 0x1000, TID);
        files[1].read_ended(5_000, 5);
        let (_, io): (_, Io) = analyze_together(files);
        let ended: u64 = io.totals().map(|file| file.total.latency.count()).sum();
        assert_eq!((io.given_up(), ended), (given_up, 1 - given_up));
    }
}

#[test]
fn events_without_a_thread_are_found_by_time() {
    let mut trace = Trace::new();
    trace.thread(0x0501, TID, 2_000);
    trace.event(0x0f43, 2, 3_000, &[&[0; 24]]);
    trace.sample(3_000, 0x1000, 16);
    trace.stack(0x1820, 3_001, 3_000, TID, &[0x5000]);
    trace.stack(0x1820, 3_002, 2_999, TID, &[0x6000]);
    let (_, seen) = trace.analyze();
    // The stack of no event is dropped; the sample of the other thread has none.
    assert_eq!(seen.stacks.len(), 2);
    assert!(seen.stacks.contains(&(3_000, vec![], vec![0x5000], false)));
    assert_eq!(seen.samples, [(3_000, None, 0x1000)]);
}

/// The threads of events with stacks.
#[derive(Debug, Default)]
struct Threads(Vec<Option<u32>>);

impl Observer for Threads {
    const JOINS: Joins = Joins::Kernel;

    fn stack(&mut self, _: &Machine, stack: &Stack<'_>) {
        self.0.push(stack.event.tid.map(ThreadId::get));
    }
}

#[test]
fn events_without_a_thread_have_that_of_their_stack() {
    let mut trace = Trace::new();
    trace.thread(0x0501, TID, 2_000);
    trace.event(0x0f43, 2, 3_000, &[&[0; 24]]);
    // The parts of the stack of one thread; that of another one is no part of it.
    trace.stack(0x1820, 3_001, 3_000, TID, &[KERNEL]);
    trace.stack(0x1820, 3_002, 3_000, TID, &[0x5000]);
    trace.stack(0x1820, 3_003, 3_000, 16, &[0x6000]);
    let (_, Threads(threads)) = trace.analyze_for();
    assert_eq!(threads, [Some(TID)]);
}

#[test]
fn observer_of_samples_sees_no_stacks_of_simultaneous_events() {
    let mut trace = Trace::new();
    trace.thread(0x0501, TID, 2_000);
    trace.event(0x0f43, 2, 3_000, &[&[0; 24]]);
    trace.sample(3_000, 0x1000, 16);
    // This is the stack of the event without a thread; the sample has its own.
    trace.stack(0x1820, 3_001, 3_000, TID, &[0x5000]);
    trace.stack(0x1820, 3_002, 3_000, 16, &[0x6000]);
    let (_, SeenOfSamples(seen)) = trace.analyze_for();
    assert_eq!(seen.samples, [(3_000, None, 0x1000)]);
    assert_eq!(seen.stacks, [(3_000, vec![], vec![0x6000], false)]);
}

#[test]
fn thread_id_belongs_to_its_process_at_the_time() {
    let mut trace = Trace::new();
    trace.thread(0x0501, TID, 2_000);
    trace.thread(0x0502, TID, 4_000);
    trace.thread(0x0501, TID, 5_000);
    let (machine, seen) = trace.analyze();
    let spans: Vec<_> = machine
        .threads()
        .iter()
        .map(|t| (t.tid, t.started, t.ended))
        .collect();
    assert!(spans.ends_with(&[
        (
            ThreadId::new(TID),
            Some(Ticks::new(2_000)),
            Some(Ticks::new(4_000))
        ),
        (ThreadId::new(TID), Some(Ticks::new(5_000)), None)
    ]));
    assert_eq!(
        machine
            .thread_at(ThreadId::new(TID), Ticks::new(4_500))
            .unwrap()
            .started,
        Some(Ticks::new(2_000))
    );
    assert_eq!(
        machine
            .thread_at(ThreadId::new(TID), Ticks::new(5_500))
            .unwrap()
            .pid,
        PID
    );
    let tid = ThreadId::new(TID);
    let begun = Change::Thread {
        life: Life::Begun,
        tid,
    };
    let ended = Change::Thread {
        life: Life::Ended,
        tid,
    };
    assert_eq!(seen.changes, [begun, ended, begun]);
}

#[test]
fn stack_is_looked_for_among_the_last_events_of_its_time() {
    const COUNT: u32 = 5_000;
    let mut trace = Trace::new();
    let tids = (1..=COUNT).map(|n| 4 * n);
    tids.clone()
        .for_each(|tid| trace.sample(2_000, 0x1000, tid));
    trace.stack(0x1820, 2_001, 2_000, 4, &[0x5000]);
    trace.stack(0x1820, 2_002, 2_000, 4 * COUNT, &[0x6000]);
    let (_, seen) = trace.analyze();
    let found: Vec<u64> = seen
        .stacks
        .iter()
        .flat_map(|(_, _, user, _)| user)
        .copied()
        .collect();
    assert_eq!((seen.samples.len(), found), (COUNT as usize, vec![0x6000]));
}

#[test]
fn process_names_keep_bytes_that_are_no_utf8_apart() {
    let mut trace = Trace::new();
    process(&mut trace, 0x0301, 2_000, (PID, 4), b"notep\xe9d.exe");
    process(&mut trace, 0x0301, 2_001, (PID + 4, 4), "notepéd.exe");
    process(&mut trace, 0x0301, 2_002, (PID + 8, 4), b"notep\xead.exe");
    let (machine, _) = trace.analyze();
    let names: Vec<&str> = machine
        .processes()
        .iter()
        .map(|process| process.name())
        .collect();
    assert!(
        names.ends_with(&["notepéd.exe", "notepéd.exe", "notepêd.exe"]),
        "{names:?}"
    );
}

#[test]
fn reads_of_a_reused_packet_take_time_from_their_own_start() {
    // As many reads without an end as are awaited, or one less; then one of a millisecond.
    for requests in [(1 << 16) - 1, 1 << 16] {
        let mut trace = Trace::new();
        for request in 0..requests {
            trace.read(10_000_000, request);
        }
        trace.read(990_000_000, 5);
        trace.read_ended(990_010_000, 5);
        let (_, io): (_, Io) = trace.analyze_for();
        let times: Vec<u64> = io.totals().map(|file| file.total.latency.total()).collect();
        assert_eq!(times, [10_000]);
    }
}

/// A trace in which a thread reads, waits, is switched to and runs, and only the list at the end
/// names its process.
fn named_at_the_end() -> Trace {
    let mut trace = Trace::new();
    switch(&mut trace, 2_000, 0, TID);
    switch(&mut trace, 3_000, TID, 0);
    let zero = [0; 4];
    let parts = [
        &[0; 8][..],
        &5u64.to_le_bytes(),
        &[1; 8],
        &7u32.to_le_bytes(),
        &zero,
        &TID.to_le_bytes(),
    ];
    trace.event(
        0x0443,
        3,
        3_500,
        &[&parts.concat(), &100u32.to_le_bytes(), &[0; 8]],
    );
    switch(&mut trace, 5_000, 0, TID);
    process(&mut trace, 0x0304, 8_000, (PID, 4), b"App.exe");
    trace.thread(0x0504, TID, 9_000);
    trace
}

/// A processor switches from one thread, which waits then, to another one.
fn switch(trace: &mut Trace, timestamp: i64, old: u32, new: u32) {
    let (new, old) = (new.to_le_bytes(), old.to_le_bytes());
    // Priorities, reason 6, mode 0, state 5.
    trace.event(
        0x0524,
        2,
        timestamp,
        &[&new, &old, &[8, 8, 0, 0, 6, 0, 5, 0], &[0; 8]],
    );
}

#[test]
fn threads_named_at_the_end_have_their_processes_from_the_start() {
    let (machine, (waits, io)): (_, (Waits, Io)) = named_at_the_end().analyze_for();
    let pid = |index: Option<ProcessIndex>| machine.process(index.unwrap()).unwrap().pid();
    let threads: Vec<_> = waits
        .threads()
        .keys()
        .map(|key| (pid(key.process), key.tid))
        .collect();
    assert_eq!(threads, [(ProcessId::new(PID), ThreadId::new(TID))]);
    let operations: Vec<_> = io.totals().map(|file| pid(file.process)).collect();
    assert_eq!(operations, [PID]);
}

#[test]
fn threads_that_run_at_the_end_run_until_then() {
    let (_, waits): (_, Waits) = named_at_the_end().analyze_for();
    let times = waits.threads().values().next().unwrap();
    // From 2,000 to 3,000, and from 5,000 to the end at 9,000.
    assert_eq!((times.running, times.waits[&6].total()), (5_000, 2_000));
}
