//! A small trace in memory, for examples and tests.

use std::error::Error;
use std::io::Cursor;

use etl_format::Guid;
use etl_format::constants::{EventFlags, EventProperties, PointerSize, hook};
use etl_format::write::record::{Event, EventDescriptor, Extended, System};
use etl_format::write::{File, FileHeader, Session, SessionConfig};
use etl_schema::encode::PayloadBuilder;
use etl_schema::providers::{CLR_RUNTIME, kernel_class};
use etl_schema::tables::Registry;
use etl_schema::{EventSchema, Identity};

/// The provider of the last event, which no table describes.
pub const UNKNOWN_PROVIDER: Guid = Guid::new(0x1234_5678, 1, 2, [3; 8]);

const PROCESS_ID: u32 = 100;
const THREAD_ID: u32 = 101;

/// A trace of one millisecond after another: `app.exe` starts, its runtime logs `GCStart_V1` with a
/// stack and `GCEnd_V1`, and an unknown provider logs text. Empty if it cannot be written.
#[must_use]
pub fn trace() -> Vec<u8> {
    write().unwrap_or_default()
}

fn write() -> Result<Vec<u8>, Box<dyn Error>> {
    let header = FileHeader {
        timestamp: 1_000,
        start_time: 133_000_000_000_000_000,
        end_time: 133_000_000_000_050_000,
        ..FileHeader::new()
    };
    let file = File::new(Cursor::new(Vec::new()));
    let mut session = Session::create(file, SessionConfig::new(header))?;
    let process = table(kernel_class::PROCESS, Identity::Classic { opcode: 1, version: 3 })?;
    let payload = PayloadBuilder::new(process)
        .set("ProcessId", PROCESS_ID)
        .set("ParentId", 4u32)
        .set("ImageFileName", "app.exe");
    let process = System {
        pointer_size: PointerSize::P8,
        version: 3,
        hook: hook::PROCESS_START,
        thread_id: 8,
        process_id: 4,
        timestamp: 2_000,
        cpu_times: Some((0, 0)),
        payload: &payload.encode(PointerSize::P8)?,
    };
    session.write(0, &process)?;

    let start = table(CLR_RUNTIME, Identity::Modern { id: 1, version: 1 })?;
    let payload = PayloadBuilder::new(start)
        .set("Count", 7u32)
        .set("Depth", 1u32)
        .set("ClrInstanceID", 9u16)
        .encode(PointerSize::P8)?;
    let stack = Extended::Stack64 { match_id: 0, addresses: &[0x7ff8_0000_1000, 0x7ff8_0000_2000] };
    let event = event(CLR_RUNTIME, start.descriptor(), 11_000, &payload);
    session.write(0, &Event { extended: &[stack], ..event })?;

    let end = table(CLR_RUNTIME, Identity::Modern { id: 2, version: 1 })?;
    let payload = PayloadBuilder::new(end)
        .set("Count", 7u32)
        .set("Depth", 1u32)
        .set("ClrInstanceID", 9u16)
        .encode(PointerSize::P8)?;
    session.write(0, &self::event(CLR_RUNTIME, end.descriptor(), 31_000, &payload))?;

    let descriptor = EventDescriptor { id: 5, level: 2, ..EventDescriptor::default() };
    let payload: Vec<u8> = "access denied\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    session.write(0, &self::event(UNKNOWN_PROVIDER, descriptor, 41_000, &payload))?;
    let (file, _) = session.close(None)?;
    Ok(file.into_inner().into_inner())
}

fn table(provider: Guid, identity: Identity) -> Result<&'static EventSchema, Box<dyn Error>> {
    let registry = match identity {
        Identity::Classic { .. } => Registry::classic(),
        _ => Registry::builtin(),
    };
    let event = registry.event(provider, identity);
    Ok(&event.ok_or("no table describes the event")?.schema)
}

fn event<'e>(
    provider: Guid,
    descriptor: EventDescriptor,
    timestamp: i64,
    payload: &'e [u8],
) -> Event<'e> {
    Event {
        pointer_size: PointerSize::P8,
        flags: EventFlags(0x40),
        properties: EventProperties(0),
        thread_id: THREAD_ID,
        process_id: PROCESS_ID,
        timestamp,
        provider,
        descriptor,
        kernel_time: 0,
        user_time: 0,
        activity: Guid::ZERO,
        extended: &[],
        payload,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_is_written() {
        assert!(!write().unwrap().is_empty());
    }
}
