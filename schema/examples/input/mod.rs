//! What the examples read: the trace that is named on the command line, or one of their own.

use etl_format::constants::PointerSize;
use etl_format::write::Session;
use etl_format::write::record::Event;
use etl_format::{FileHeader, FileTime, Ticks};
use etl_schema::Identity;
use etl_schema::encode::PayloadBuilder;
use etl_schema::tables::Registry;

/// The trace that the command line names, or [`trace`].
pub fn bytes() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    // Under test the command line is the test runner's.
    match std::env::args_os().nth(1).filter(|_| !cfg!(test)) {
        Some(path) => Ok(std::fs::read(path)?),
        None => trace(),
    }
}

/// A CLR logs that it compiled three methods. The payloads are encoded by the same tables that
/// describe them to decoders.
pub fn trace() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let runtime = Registry::builtin()
        .find("runtime")
        .ok_or("the runtime provider is described")?;
    let verbose = Identity::Modern {
        id: 143,
        version: 1,
    };
    let event = Registry::builtin()
        .event(runtime.guid, verbose)
        .ok_or("so is its event 143")?;
    let header = FileHeader {
        timestamp: Ticks::new(1_000),
        perf_freq: 10_000_000,
        start_time: FileTime::new(132_000_000_000_000_000),
        ..FileHeader::new()
    };
    let mut session = Session::in_memory(header)?;
    for (number, name) in (1u32..).zip(["Main", "Sort", "Compare"]) {
        let payload = PayloadBuilder::new(&event.schema)
            .set("MethodID", 0x7ff8_0000_1000 + u64::from(number))
            .set(
                "MethodStartAddress",
                0x7ff8_0010_0000 + u64::from(number) * 0x1000,
            )
            .set("MethodSize", 64 * number)
            .set("MethodNamespace", "Shop.Program")
            .set("MethodName", name)
            .set("ClrInstanceID", 9u16)
            .encode(PointerSize::P8)?;
        session.write(
            0,
            &Event::new(
                runtime.guid,
                event.schema.descriptor(),
                1_000 + i64::from(number) * 10_000,
            )
            .process(4, 8)
            .payload(&payload),
        )?;
    }
    Ok(session.finish()?)
}
