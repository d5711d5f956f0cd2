//! What the examples read where no trace is named: one of their own.

use etl_format::constants::{EventFlags, PointerSize};
use etl_format::write::Session;
use etl_format::write::record::Event;
use etl_format::{FileHeader, FileTime, Ticks};
use etl_schema::encode::PayloadBuilder;
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::tables::Registry;
use etl_schema::{EventSchema, Identity};

/// Where the code of the first method is; that of the others follows, a page later each.
const CODE: u64 = 0x7ff8_0010_0000;
const PAGE: u64 = 0x1000;
const MODULE: u64 = 0x7ff8_0001_0000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A process loads a module and compiles three methods, and is then seen `stacks` times: three
/// times of four in `Compare`, which `Sort` has called, else in `Sort` itself.
pub fn trace(stacks: u32) -> Outcome<Vec<u8>> {
    let header = FileHeader {
        timestamp: Ticks::new(1_000),
        perf_freq: 10_000_000,
        start_time: FileTime::new(132_000_000_000_000_000),
        ..FileHeader::new()
    };
    let mut session = Session::in_memory(header)?;
    let (module, method, stack) = (described(152, 2)?, described(143, 2)?, described(82, 0)?);

    let payload = PayloadBuilder::new(module)
        .set("ModuleID", MODULE)
        .set("ModuleILPath", "C:\\Shop\\Shop.dll")
        .set("ClrInstanceID", 9u16)
        .encode(PointerSize::P8)?;
    session.write(0, &event(module, 2_000, &payload))?;
    for (number, name) in (0u64..).zip(["Main", "Sort", "Compare"]) {
        let payload = PayloadBuilder::new(method)
            .set("MethodID", MODULE + 0x100 * (number + 1))
            .set("ModuleID", MODULE)
            .set("MethodStartAddress", CODE + number * PAGE)
            .set("MethodSize", 0x200u32)
            .set("MethodNamespace", "Shop.Program")
            .set("MethodName", name)
            .set("ClrInstanceID", 9u16)
            .encode(PointerSize::P8)?;
        session.write(0, &event(method, 3_000, &payload))?;
    }
    let (main, sort, compare) = (CODE + 0x40, CODE + PAGE + 0x20, CODE + 2 * PAGE + 0x10);
    let jitting = described(145, 1)?;
    let started = PayloadBuilder::new(jitting)
        .set("MethodID", 1u64)
        .encode(PointerSize::P8)?;
    for number in 0..stacks {
        let frames = if number % 4 == 3 {
            vec![sort, main]
        } else {
            vec![compare, sort, main]
        };
        // Each stack belongs to the event before it.
        session.write(0, &event(jitting, 4_000 + 2 * i64::from(number), &started))?;
        // The id of the CLR, two reserved bytes, the number of frames.
        let mut payload = vec![9, 0, 0, 0];
        payload.extend(u32::try_from(frames.len())?.to_le_bytes());
        payload.extend(frames.iter().flat_map(|frame| frame.to_le_bytes()));
        session.write(0, &event(stack, 4_001 + 2 * i64::from(number), &payload))?;
    }
    Ok(session.finish()?)
}

/// What the tables say of an event of the runtime.
fn described(id: u16, version: u8) -> Outcome<&'static EventSchema> {
    let known = Registry::builtin().event(CLR_RUNTIME, Identity::Modern { id, version });
    let known = known.ok_or_else(|| format!("event {id} v{version} is not described"))?;
    Ok(&known.schema)
}

/// An event of the process.
fn event<'a>(of: &EventSchema, timestamp: i64, payload: &'a [u8]) -> Event<'a> {
    Event::new(CLR_RUNTIME, of.descriptor(), timestamp)
        .flags(EventFlags(0x40))
        .process(4, 8)
        .payload(payload)
}
