//! The trace that the examples read if none is named.

use etl_format::constants::{EventFlags, PointerSize};
use etl_format::write::Session;
use etl_format::write::record::Event;
use etl_format::{FileHeader, FileTime, Ticks};
use etl_schema::encode::PayloadBuilder;
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::tables::Registry;
use etl_schema::{EventSchema, Identity};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Two processes, 100 and 200, load a module from the home directory of the same user, compile a
/// method, and collect garbage twice.
pub fn trace() -> Outcome<Vec<u8>> {
    let header = FileHeader {
        timestamp: Ticks::new(1_000),
        perf_freq: 10_000_000,
        start_time: FileTime::new(132_000_000_000_000_000),
        ..FileHeader::new()
    };
    let mut session = Session::in_memory(header)?;
    let (module, method, collection) = (described(152, 2)?, described(143, 2)?, described(1, 2)?);
    for process in [100, 200] {
        let payload = PayloadBuilder::new(module)
            .set("ModuleID", 0x7ff8_0001_0000u64)
            .set("ModuleILPath", "C:\\Users\\anna\\Shop\\Shop.dll")
            .set("ClrInstanceID", 9u16)
            .encode(PointerSize::P8)?;
        session.write(0, &event(module, process, 2_000, &payload))?;
        let payload = PayloadBuilder::new(method)
            .set("MethodID", 0x7ff8_0001_0100u64)
            .set("ModuleID", 0x7ff8_0001_0000u64)
            .set("MethodStartAddress", 0x7ff8_0010_0000u64)
            .set("MethodSize", 64u32)
            .set("MethodNamespace", "Shop.Program")
            .set("MethodName", "Main")
            .set("ClrInstanceID", 9u16)
            .encode(PointerSize::P8)?;
        session.write(0, &event(method, process, 3_000, &payload))?;
    }
    for timestamp in [4_000, 5_000] {
        for process in [100, 200] {
            let payload = PayloadBuilder::new(collection)
                .set("ClrInstanceID", 9u16)
                .encode(PointerSize::P8)?;
            session.write(0, &event(collection, process, timestamp, &payload))?;
        }
    }
    Ok(session.finish()?)
}

/// An event of the runtime in the tables.
fn described(id: u16, version: u8) -> Outcome<&'static EventSchema> {
    let known = Registry::builtin().event(CLR_RUNTIME, Identity::Modern { id, version });
    let known = known.ok_or_else(|| format!("event {id} v{version} is not in the tables"))?;
    Ok(&known.schema)
}

/// An event of a process.
fn event<'a>(of: &EventSchema, process_id: u32, timestamp: i64, payload: &'a [u8]) -> Event<'a> {
    Event::new(CLR_RUNTIME, of.descriptor(), timestamp)
        .flags(EventFlags(0x40))
        .process(process_id, 8)
        .payload(payload)
}
