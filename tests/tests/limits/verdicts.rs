//! Traces that could make verifying slow or take much memory.

use etl_verify::{Format, Report, Verifier, render};

use crate::MIB;
use crate::common::event::Event;
use crate::common::records::{event, perfinfo, system};
use crate::common::{File, Out};
use crate::counting::peak;

fn verify(bytes: &[u8], name: &str) -> etl_verify::Result<Report> {
    Verifier::new().verify(bytes, name)
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// A trace of these records, in order.
fn trace(records: &[Vec<u8>]) -> Vec<u8> {
    let mut file = File::new(0x1_0000);
    let mut buffer = Vec::new();
    let mut len = 0;
    for record in records {
        if len + record.len() + 8 > 0xf000 {
            file = file.buffer(0, &std::mem::take(&mut buffer));
            len = 0;
        }
        len += record.len().next_multiple_of(8);
        buffer.push(record.clone());
    }
    file.buffer(0, &buffer).bytes()
}

/// Checks that verifying takes at most `each` bytes of memory for each byte of the trace, plus 8
/// MiB.
#[track_caller]
fn judged(records: &[Vec<u8>], each: usize) {
    let bytes = trace(records);
    let begin = std::time::Instant::now();
    let (report, most) = peak(|| verify(bytes.as_slice(), "crafted.etl").unwrap());
    assert!(
        most < 8 * MIB + each * bytes.len(),
        "{most} bytes for {}",
        bytes.len()
    );
    // Quadratic time would take minutes.
    assert!(
        begin.elapsed() < std::time::Duration::from_secs(60),
        "{:?}",
        begin.elapsed()
    );
    assert!(!report.text().is_empty());
    if std::env::var_os("ETLKIT_GROWTH").is_some() {
        print_growth(records);
    }
}

/// Prints how much longer twice as many records take: about two times if time is linear, four if it
/// is quadratic. Times are not asserted (`ETLKIT_GROWTH=1 cargo test --release -p etl-tests
/// --test limits verdicts -- --nocapture --test-threads 1`).
fn print_growth(records: &[Vec<u8>]) {
    let milliseconds = |bytes: &[u8]| {
        let once = |_| {
            let begin = std::time::Instant::now();
            verify(bytes, "crafted.etl").unwrap();
            begin.elapsed().as_secs_f64() * 1e3
        };
        (0..5).map(once).fold(f64::INFINITY, f64::min)
    };
    // Some records come in pairs, such as a load and its unload: every other pair is left out.
    let half: Vec<_> = records.chunks(2).step_by(2).flatten().cloned().collect();
    let (whole, half) = (milliseconds(&trace(records)), milliseconds(&trace(&half)));
    let thread = std::thread::current();
    let name = thread.name().unwrap_or_default();
    eprintln!(
        "growth: {name}: {} records {whole:.1} ms, half of them {half:.1} ms: {:.1} times",
        records.len(),
        whole / half
    );
}

/// An event of one of the CLR's providers.
fn clr(rundown: bool, id: u16, process: u32, timestamp: i64, payload: Vec<u8>) -> Vec<u8> {
    let provider = if rundown {
        *b"\x1c\x02\x69\xa6\x50\xc4\x09\x46\xa0\x35\x5a\xf5\x9a\xf4\xdf\x18"
    } else {
        *b"\x23\x0d\x3c\xe1\xbc\xcc\x12\x4e\x93\x1b\xd9\xcc\x2e\xee\x27\xe4"
    };
    Event {
        provider,
        id,
        version: 1,
        level: 4,
        process,
        timestamp,
        payload,
        ..Event::default()
    }
    .bytes()
}

/// MethodLoad and its like of version 1: id, module, address, size, token, flags, instance.
fn method(rundown: bool, id: u16, timestamp: i64, number: u64, start: u64, size: u32) -> Vec<u8> {
    method_of(0, rundown, id, timestamp, (number, start, size))
}

/// The same of one CLR of the process.
fn method_of(
    instance: u16,
    rundown: bool,
    id: u16,
    timestamp: i64,
    (number, start, size): (u64, u64, u32),
) -> Vec<u8> {
    let payload = Out::default()
        .u64(number)
        .u64(7)
        .u64(start)
        .u32(size)
        .u32(0x0600_0001);
    clr(rundown, id, 100, timestamp, payload.u32(8).u16(instance).0)
}

/// A kernel image: base, size, process, and what stands before its name.
fn image(timestamp: i64, process: u32, base: u64) -> Vec<u8> {
    let payload = [
        words(&[base, 0x100, process.into(), 0, 0, 0, 0]),
        b"a\0\0\0".to_vec(),
    ]
    .concat();
    system(true, 0x1403, timestamp, &payload)
}

#[test]
fn verify_bounds_memory_for_unmatched_rundowns() {
    let mut records = Vec::new();
    for i in 0..20_000 {
        // Ends without a beginning, and what they should enclose.
        records.push(clr(true, 146, 100, 1000 + i, vec![0, 0]));
        records.push(method(
            true,
            144,
            1000 + i,
            i as u64,
            0x1_0000 + 64 * i as u64,
            32,
        ));
    }
    judged(&records, 40);
}

#[test]
fn verify_bounds_memory_for_overlapping_methods() {
    let mut records = Vec::new();
    for i in 0..10_000u64 {
        records.push(method(
            false,
            141,
            1000 + i as i64,
            i,
            0x1_0000 + i,
            0x1_0000,
        ));
    }
    for i in 0..10_000u64 {
        records.push(method(
            false,
            142,
            90_000 + i as i64,
            i,
            0x1_0000 + i,
            0x1_0000,
        ));
    }
    // Addresses in all and in none of them, at another time.
    for i in 0..10_000u64 {
        let frames = words(&[200_000 + i, 100 << 32 | 100, 0x1_8000 + 7 * i]);
        records.push(system(true, 0x1820, 200_001 + i as i64, &frames));
    }
    judged(&records, 60);
}

#[test]
fn verify_bounds_memory_for_many_kernel_images() {
    let mut records = Vec::new();
    for i in 0..0x1_0000u64 {
        records.push(image(1000, 4, 0xffff_8000_0000_0000 + i * 0x1000));
    }
    for process in 10..1010u32 {
        records.push(system(
            true,
            0x0503,
            2000,
            &words(&[u64::from(process) << 32 | u64::from(process)]),
        ));
        let address = 0xffff_8000_0000_0000u64 + 0xffff * 0x1000 + 8;
        records.push(perfinfo(
            true,
            0x0f2e,
            3000,
            None,
            &[],
            &words(&[address, process.into()]),
        ));
    }
    judged(&records, 60);
}

#[test]
fn verify_bounds_memory_for_stack_keys() {
    let mut records = Vec::new();
    for process in 0..2_000u64 {
        records.push(system(
            true,
            0x1825,
            1000,
            &words(&[900, process | process << 32, 0x55]),
        ));
    }
    // Twice, since a process is looked for among those that used the key before.
    for process in 0..2_000u64 {
        records.push(system(
            true,
            0x1826,
            1500,
            &words(&[900, process | process << 32, 0x55]),
        ));
    }
    let frames: Vec<u64> = [0x55]
        .into_iter()
        .chain((0..4000).map(|i| 0x10_0000 + i * 8))
        .collect();
    records.push(system(true, 0x1823, 2000, &words(&frames)));
    let bytes = trace(&records);
    let (_, most) = peak(|| verify(bytes.as_slice(), "crafted.etl").unwrap());
    // Of four thousand frames, 512 count for each process.
    assert!(most < 400 * MIB, "{most}");
}

#[test]
fn verify_bounds_memory_for_new_identities() {
    let mut records = Vec::new();
    for i in 0..20_000u64 {
        let frames = words(&[1000 + i, i << 32 | i, i * 0x1000, i * 0x1000 + 0x800]);
        records.push(system(true, 0x1820, 1001 + i as i64, &frames));
        records.push(event(true, i as u16, 1001 + i as i64, b""));
    }
    judged(&records, 120);
}

#[test]
fn verify_bounds_number_of_rundowns() {
    let mut records = Vec::new();
    for i in 0..20_000 {
        // Each begins inside the one before, in another CLR; no rundown that is kept lists a
        // method.
        let instance = (i % 1000) as u16;
        records.push(clr(
            true,
            148,
            100,
            1000 + i,
            instance.to_le_bytes().to_vec(),
        ));
        records.push(method(
            true,
            144,
            1000 + i,
            i as u64,
            0x1_0000 + 64 * i as u64,
            32,
        ));
    }
    judged(&records, 60);
    let report = verify(trace(&records).as_slice(), "crafted.etl").unwrap();
    let process = report.processes.iter().find(|p| p.pid == 100).unwrap();
    assert_eq!(
        (process.rundowns.len(), process.clr_instances.len()),
        (4096, 257)
    );
    assert!(report.findings.iter().any(|f| f.rule == "rundown.endless"));
}

#[test]
fn verify_bounds_memory_for_reused_addresses() {
    let mut records = Vec::new();
    for i in 0..20_000u64 {
        let timestamp = 1000 + 10 * i as i64;
        records.push(method(false, 141, timestamp, i, 0x1_0000, 0x40));
        records.push(method(false, 142, timestamp + 5, i, 0x1_0000, 0x40));
        // The address has no method at that time.
        let frames = words(&[
            timestamp as u64 + 7,
            100 << 32 | 100,
            0x1_0008 + 8 * (i % 4),
        ]);
        records.push(system(true, 0x1820, timestamp + 7, &frames));
    }
    judged(&records, 60);
}

#[test]
fn verify_memory_does_not_grow_with_repeated_events() {
    let mut heads = Vec::new();
    for i in 0..500u64 {
        heads.push(method(false, 141, 1000, i, 0x1_0000 + 0x100 * i, 0x80));
    }
    let judge = |stacks: u64| {
        let mut records = heads.clone();
        for i in 0..stacks {
            let timestamp = 2000 + i;
            // Some addresses are in methods, some are not.
            let frames = (0..8).map(|n| 0x1_0000 + 0x40 * (i * 7 + n * 11) % 0x1_f400);
            let stack: Vec<u64> = [timestamp, 100 << 32 | 100]
                .into_iter()
                .chain(frames)
                .collect();
            records.push(system(true, 0x1820, timestamp as i64, &words(&stack)));
            let address = words(&[0x1_0000 + 0x40 * (i % 2000), 100]);
            records.push(perfinfo(
                true,
                0x0f2e,
                timestamp as i64,
                None,
                &[],
                &address,
            ));
            records.push(event(true, (i % 16) as u16, timestamp as i64, b""));
        }
        let bytes = trace(&records);
        let (report, most) = peak(|| verify(bytes.as_slice(), "long.etl").unwrap());
        assert_eq!(report.records, 1 + records.len() as u64);
        (bytes.len(), most)
    };
    // The built-in tables are loaded once in a process, and are not part of the measurement.
    judge(10);
    // The short trace fills the caches.
    let (short, little) = judge(20_000);
    let (long, much) = judge(240_000);
    assert!(long > 10 * short);
    // Only the list of buffers grows: some hundred bytes for each 64 KiB.
    let grown = much.saturating_sub(little);
    assert!(
        grown < (long - short) / 100,
        "{little} bytes for {short}, {much} for {long}"
    );
}

#[test]
fn verify_bounds_memory_for_many_runtimes() {
    // 250 CLRs in one process have 16 rundowns each. Each rundown lists 8 of 200 methods.
    const CLRS: u16 = 250;
    const METHODS: u64 = 200;
    let mut records = Vec::new();
    let mut timestamp = 1000;
    let place = |clr: u16, i: u64| 0x10_0000 * u64::from(clr) + 64 * i;
    for clr in 1..=CLRS {
        for i in 0..METHODS {
            timestamp += 1;
            let code = (u64::from(clr) << 32 | i, place(clr, i), 32);
            records.push(method_of(clr, false, 141, timestamp, code));
        }
    }
    for _ in 0..16 {
        for clr_instance in 1..=CLRS {
            let marker = |id, timestamp| {
                clr(
                    true,
                    id,
                    100,
                    timestamp,
                    clr_instance.to_le_bytes().to_vec(),
                )
            };
            records.push(marker(148, timestamp + 1));
            for i in 0..8 {
                let code = (
                    u64::from(clr_instance) << 32 | i,
                    place(clr_instance, i),
                    32,
                );
                records.push(method_of(clr_instance, true, 142, timestamp + 2, code));
            }
            records.push(marker(146, timestamp + 3));
            timestamp += 3;
        }
    }
    judged(&records, 40);
    let bytes = trace(&records);
    let report = verify(bytes.as_slice(), "crafted.etl").unwrap();
    let left_out = report
        .findings
        .iter()
        .filter(|f| f.rule == "rundown.incomplete");
    let messages: Vec<_> = left_out.map(|f| f.message.as_str()).collect();
    assert_eq!(messages.len(), usize::from(CLRS), "{messages:?}");
    for (message, clr) in messages.iter().zip(1..=CLRS) {
        let example = format!("of CLR {clr} and not unloaded, but it does not list them");
        assert!(message.starts_with("192 methods were there"), "{message}");
        assert!(message.contains(&example), "{message}");
        assert!(
            message.contains(&format!("(first: {:#x})", place(clr, 8))),
            "{message}"
        );
    }
}

#[test]
fn report_length_grows_with_the_trace() {
    let mut records = Vec::new();
    for i in 0..10_000 {
        // A new process with a rundown that does not end, and code without an event.
        records.push(clr(
            true,
            148,
            100 + i as u32,
            1000 + i,
            1u16.to_le_bytes().to_vec(),
        ));
        let frames = words(&[
            1000 + i as u64,
            (100 + i as u64) << 32 | (100 + i as u64),
            0x7000 * i as u64,
        ]);
        records.push(system(true, 0x1820, 1000 + i, &frames));
    }
    let bytes = trace(&records);
    let report = verify(bytes.as_slice(), "crafted.etl").unwrap();
    assert!(
        report.findings.len() > 100,
        "{} findings",
        report.findings.len()
    );
    let text = || report.text();
    let json = || serde_json::to_string(&report.json()).unwrap();
    let several = std::slice::from_ref(&report);
    let (html, sarif) = (
        || render(several, Format::Html),
        || render(several, Format::Sarif),
    );
    let (junit, github) = (
        || render(several, Format::Junit),
        || render(several, Format::Github),
    );
    let forms: [(&str, &dyn Fn() -> String); 6] = [
        ("text", &text),
        ("json", &json),
        ("html", &html),
        ("sarif", &sarif),
        ("junit", &junit),
        ("github", &github),
    ];
    for (form, make) in forms {
        let (made, most) = peak(make);
        assert!(
            made.len() < MIB + 40 * bytes.len(),
            "{form}: {} bytes for {}",
            made.len(),
            bytes.len()
        );
        assert!(
            most < MIB + 200 * bytes.len(),
            "{form}: {most} bytes for {}",
            bytes.len()
        );
    }
}
