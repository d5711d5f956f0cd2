//! What the tests of the write half begin with.

#![allow(dead_code)] // Not every test file uses all of it.

pub mod naive;

use std::io::Cursor;

use etl_format::Guid;
use etl_format::constants::{EventFlags, EventProperties, PointerSize};
use etl_format::write::File;
use etl_format::write::record::{Event, EventDescriptor};

/// When sessions start.
pub const START: i64 = 132_000_000_000_000_000;

/// An event whose thread numbers it.
pub fn event(number: u32, timestamp: i64, payload: &[u8]) -> Event<'_> {
    Event {
        pointer_size: PointerSize::P8,
        flags: EventFlags(0),
        properties: EventProperties(0),
        thread_id: number,
        process_id: 4,
        timestamp,
        provider: Guid::new(1, 2, 3, [4; 8]),
        descriptor: EventDescriptor { id: 1, ..EventDescriptor::default() },
        kernel_time: 0,
        user_time: 0,
        activity: Guid::ZERO,
        extended: &[],
        payload,
    }
}

/// A file in memory.
pub fn memory() -> File<Cursor<Vec<u8>>> {
    File::new(Cursor::new(Vec::new()))
}

/// What was written to it.
pub fn bytes(file: File<Cursor<Vec<u8>>>) -> Vec<u8> {
    file.into_inner().into_inner()
}
