//! The input of the examples: the trace named on the command line, or one that is made here.

use std::io::Cursor;

use etl_format::Guid;
use etl_format::constants::{EventFlags, EventProperties, PointerSize};
use etl_format::write::record::{Event, EventDescriptor};
use etl_format::write::{File, FileHeader, Session, SessionConfig};

/// The trace that the command line names, or [`trace`].
pub fn bytes() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    // Under test the command line is the test runner's.
    match std::env::args_os().nth(1).filter(|_| !cfg!(test)) {
        Some(path) => Ok(std::fs::read(path)?),
        None => Ok(trace()?),
    }
}

/// Two processors take turns at 3,000 events, one every millisecond; each event holds its number.
pub fn trace() -> etl_format::Result<Vec<u8>> {
    let header = FileHeader {
        processors: 2,
        buffer_size: 0x4000,
        perf_freq: 10_000_000,
        timestamp: 1_000,
        start_time: 132_000_000_000_000_000,
        ..FileHeader::new()
    };
    let file = File::new(Cursor::new(Vec::new()));
    let mut session = Session::create(file, SessionConfig::new(header))?;
    for number in 0..3_000u32 {
        let event = Event {
            pointer_size: PointerSize::P8,
            flags: EventFlags(0),
            properties: EventProperties(0),
            thread_id: 8,
            process_id: 4,
            timestamp: 2_000 + i64::from(number) * 10_000,
            provider: PROVIDER,
            descriptor: EventDescriptor { id: 7, level: 4, ..EventDescriptor::default() },
            kernel_time: 0,
            user_time: 0,
            activity: Guid::ZERO,
            extended: &[],
            payload: &number.to_le_bytes(),
        };
        session.write((number % 2) as u16, &event)?;
    }
    let (file, _) = session.close(None)?;
    Ok(file.into_inner().into_inner())
}

/// The provider of the events.
pub const PROVIDER: Guid =
    Guid::new(0x0f67_e49f, 0xfe51, 0x4e9f, [0xb4, 0x90, 0x6f, 0x29, 0x48, 0xcc, 0x60, 0x27]);
