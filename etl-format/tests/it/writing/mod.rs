//! What the tests of the write half begin with.

#![allow(dead_code)] // Not every test file uses all of it.

pub mod naive;

use etl_format::write::record::Event;
use etl_format::{EventDescriptor, Guid};

/// When sessions start.
pub const START: i64 = 132_000_000_000_000_000;

/// An event whose thread numbers it.
pub fn event(number: u32, timestamp: i64, payload: &[u8]) -> Event<'_> {
    Event::new(
        Guid::new(1, 2, 3, [4; 8]),
        EventDescriptor {
            id: 1,
            ..EventDescriptor::default()
        },
        timestamp,
    )
    .process(4, number)
    .payload(payload)
}
