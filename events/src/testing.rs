//! A small trace in memory, for examples and tests.

use std::error::Error;

use etl_format::constants::{EventFlags, PointerSize, hook};
use etl_format::write::Session;
use etl_format::write::record::{Event, System};
use etl_format::{EventDescriptor, FileHeader, FileTime, Guid, Ticks};
use etl_schema::encode::PayloadBuilder;
use etl_schema::providers::{CLR_RUNTIME, kernel_class};
use etl_schema::tables::Registry;
use etl_schema::{EventSchema, Identity};

/// The provider of the last event, which no table describes.
pub const UNKNOWN_PROVIDER: Guid = Guid::new(0x1234_5678, 1, 2, [3; 8]);

const PROCESS_ID: u32 = 100;
const THREAD_ID: u32 = 101;

/// A trace of some milliseconds: `app.exe` starts, its runtime logs `GCStart_V1` with a stack and
/// `GCEnd_V1`, and an unknown provider logs text. Empty if it cannot be written.
#[must_use]
pub fn trace() -> Vec<u8> {
    write().unwrap_or_default()
}

fn write() -> Result<Vec<u8>, Box<dyn Error>> {
    let header = FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(133_000_000_000_000_000),
        end_time: FileTime::new(133_000_000_000_050_000),
        ..FileHeader::new()
    };
    let mut session = Session::in_memory(header)?;

    let process = table(
        kernel_class::PROCESS,
        Identity::Classic {
            opcode: 1,
            version: 3,
        },
    )?;
    let payload = PayloadBuilder::new(process)
        .set("ProcessId", PROCESS_ID)
        .set("ParentId", 4u32)
        .set("ImageFileName", "app.exe")
        .encode(PointerSize::P8)?;
    let process = System::new(hook::PROCESS_START, 2_000)
        .version(3)
        .process(4, 8);
    session.write(0, &process.payload(&payload))?;

    let start = table(CLR_RUNTIME, Identity::Modern { id: 1, version: 1 })?;
    let payload = collection(start)?;
    let event = event(CLR_RUNTIME, start.descriptor(), 11_000);
    session.write(
        0,
        &event
            .stack(&[0x7ff8_0000_1000, 0x7ff8_0000_2000])
            .payload(&payload),
    )?;

    let end = table(CLR_RUNTIME, Identity::Modern { id: 2, version: 1 })?;
    let payload = collection(end)?;
    let event = self::event(CLR_RUNTIME, end.descriptor(), 31_000);
    session.write(0, &event.payload(&payload))?;

    let descriptor = EventDescriptor {
        id: 5,
        level: 2,
        ..EventDescriptor::default()
    };
    let payload: Vec<u8> = "access denied\0"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let event = self::event(UNKNOWN_PROVIDER, descriptor, 41_000);
    session.write(0, &event.payload(&payload))?;
    Ok(session.finish()?)
}

fn table(provider: Guid, identity: Identity) -> Result<&'static EventSchema, Box<dyn Error>> {
    let registry = match identity {
        Identity::Classic { .. } => Registry::classic(),
        _ => Registry::builtin(),
    };
    let event = registry.event(provider, identity);
    Ok(&event.ok_or("no table describes the event")?.schema)
}

/// The fields of the start or the end of a collection.
fn collection(schema: &EventSchema) -> Result<Vec<u8>, Box<dyn Error>> {
    let payload = PayloadBuilder::new(schema)
        .set("Count", 7u32)
        .set("Depth", 1u32)
        .set("ClrInstanceID", 9u16)
        .encode(PointerSize::P8)?;
    Ok(payload)
}

fn event(provider: Guid, descriptor: EventDescriptor, timestamp: i64) -> Event<'static> {
    let event = Event::new(provider, descriptor, timestamp);
    event.flags(EventFlags(0x40)).process(PROCESS_ID, THREAD_ID)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_is_written() {
        assert!(!write().unwrap().is_empty());
    }
}
