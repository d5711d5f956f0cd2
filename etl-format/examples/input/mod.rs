//! The input of the examples: the trace named on the command line, or one that is made here.

use etl_format::write::Session;
use etl_format::write::record::Event;
use etl_format::{EventDescriptor, FileHeader, FileTime, Guid};

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
        buffer_size: 0x4000,
        ..FileHeader::starting_at(FileTime::new(132_000_000_000_000_000))
            .with_clock(10_000_000, 1_000)
            .with_processors(2)
    };
    let mut session = Session::in_memory(header)?;
    let descriptor = EventDescriptor {
        id: 7,
        level: 4,
        ..EventDescriptor::default()
    };
    for number in 0..3_000u32 {
        let timestamp = 2_000 + i64::from(number) * 10_000;
        let payload = number.to_le_bytes();
        let event = Event::new(PROVIDER, descriptor, timestamp)
            .process(4, 8)
            .payload(&payload);
        session.write((number % 2) as u16, &event)?;
    }
    session.finish()
}

/// The provider of the events.
pub const PROVIDER: Guid = Guid::new(
    0x0f67_e49f,
    0xfe51,
    0x4e9f,
    [0xb4, 0x90, 0x6f, 0x29, 0x48, 0xcc, 0x60, 0x27],
);
