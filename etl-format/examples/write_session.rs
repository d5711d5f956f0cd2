//! Writes a trace as a Windows session does: `cargo run --example write_session [OUT.etl]`.
//!
//! Each record goes into the buffer of its processor, and full buffers go to the file. Closing the
//! session writes the final counts into the file's header.

use etl_format::read::{Options, Order, Trace};
use etl_format::write::record::Event;
use etl_format::write::{Output, Session};
use etl_format::{EventDescriptor, FileHeader, FileTime, Guid};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The start is stated twice: as UTC, and in ticks of the session's clock.
    let header = FileHeader::starting_at(FileTime::new(132_000_000_000_000_000))
        .with_clock(10_000_000, 1_000)
        .with_processors(2)
        .with_logger_name("mine");
    if let Some(path) = std::env::args_os().nth(1).filter(|_| !cfg!(test)) {
        record(Session::create_file(path, header)?)?;
        return Ok(());
    }
    let bytes = record(Session::in_memory(header)?)?;
    println!("{} bytes", bytes.len());

    // The same trace, read again.
    let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
    assert_eq!(
        trace.header().buffers_written,
        3,
        "one for the header, one for each processor"
    );
    let mut records = trace.records(Order::Time)?;
    while let Some(record) = records.next_record()? {
        println!(
            "{} {} processor {}",
            record.timestamp(),
            record.kind(),
            record.processor()
        );
    }
    assert_eq!(records.count(), 5, "the header event and four of ours");
    Ok(())
}

/// Writes four events in turn on two processors.
fn record<O: Output>(mut session: Session<O>) -> etl_format::Result<O> {
    let provider = Guid::new(
        0x0f67_e49f,
        0xfe51,
        0x4e9f,
        [0xb4, 0x90, 0x6f, 0x29, 0x48, 0xcc, 0x60, 0x27],
    );
    let descriptor = EventDescriptor {
        id: 7,
        level: 4,
        keyword: 0x1,
        ..EventDescriptor::default()
    };
    for (processor, timestamp) in [(0, 2_000), (1, 2_500), (0, 3_000), (1, 3_500)] {
        let event = Event::new(provider, descriptor, timestamp).process(4, 8);
        session.write(processor, &event.payload(b"\x2a\0\0\0"))?;
    }
    let finished = session.close(None)?;
    let output = finished.output;
    let summary = finished.report;
    println!(
        "{} events in {} buffers",
        summary.events_written, summary.buffers_written
    );
    Ok(output)
}

#[test]
fn runs() {
    main().unwrap();
}
