//! Writes a trace as a Windows session does: `cargo run --example write_session [OUT.etl]`.
//!
//! Each record goes into the buffer of its processor, and full buffers go to the file. Closing the
//! session writes the final counts into the file's header.

use std::io::{Cursor, Seek, Write};

use etl_format::Guid;
use etl_format::constants::{EventFlags, EventProperties, PointerSize};
use etl_format::read::{Options, Order, Trace};
use etl_format::write::record::{Event, EventDescriptor};
use etl_format::write::{File, FileHeader, Session, SessionConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(path) = std::env::args_os().nth(1).filter(|_| !cfg!(test)) {
        record(std::fs::File::create(path)?)?;
        return Ok(());
    }
    let bytes = record(Cursor::new(Vec::new()))?.into_inner();
    println!("{} bytes", bytes.len());

    // What was written, read again.
    let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
    assert_eq!(trace.header().buffers_written, 3, "one for the header, one for each processor");
    let mut records = trace.records(Order::Time)?;
    while let Some(record) = records.next_record()? {
        println!("{} {} processor {}", record.timestamp(), record.kind(), record.processor());
    }
    assert_eq!(records.count(), 5, "the header event and four of ours");
    Ok(())
}

fn record<W: Write + Seek>(out: W) -> etl_format::Result<W> {
    // `new` has the values that real files share. The two times state when the session began: in
    // ticks of its clock, and as UTC.
    let header = FileHeader {
        processors: 2,
        perf_freq: 10_000_000,
        timestamp: 1_000,
        start_time: 132_000_000_000_000_000,
        logger_name: "mine".encode_utf16().collect(),
        ..FileHeader::new()
    };
    let mut session = Session::create(File::new(out), SessionConfig::new(header))?;
    let provider =
        Guid::new(0x0f67_e49f, 0xfe51, 0x4e9f, [0xb4, 0x90, 0x6f, 0x29, 0x48, 0xcc, 0x60, 0x27]);
    for (processor, timestamp) in [(0, 2_000), (1, 2_500), (0, 3_000), (1, 3_500)] {
        session.write(
            processor,
            &Event {
                pointer_size: PointerSize::P8,
                flags: EventFlags(0),
                properties: EventProperties(0),
                thread_id: 8,
                process_id: 4,
                timestamp,
                provider,
                descriptor: EventDescriptor {
                    id: 7,
                    level: 4,
                    keyword: 0x1,
                    ..EventDescriptor::default()
                },
                kernel_time: 0,
                user_time: 0,
                activity: Guid::ZERO,
                extended: &[],
                payload: b"\x2a\0\0\0",
            },
        )?;
    }
    let (file, summary) = session.close(None)?;
    println!("{} events in {} buffers", summary.events_written, summary.buffers_written);
    Ok(file.into_inner())
}

#[test]
fn runs() {
    main().unwrap();
}
