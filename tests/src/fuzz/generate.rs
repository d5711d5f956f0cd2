//! Traces of any records, written and read again.

use arbitrary::{Result, Unstructured};
use etl_format::compress::Effort;
use etl_format::constants::{
    CompressionFormat, EventFlags, ExtendedType, LogFileMode, MessageFlags, PointerSize,
};
use etl_format::read::{Mode, Options, Order, OrderCheck, Trace};
use etl_format::write::record::{
    Event, Extended, Full, Instance, Message, MessageMarker, PerfInfo, System,
};
use etl_format::write::{BufferCompressor, Session, SessionConfig};
use etl_format::{EventDescriptor, FileHeader, FileTime, Guid, Ticks};

use super::{format, mutate};

/// Writes a trace of records that the bytes choose, reads it, damages it, and reads it again.
pub(super) fn run(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let Ok((mut bytes, written)) = trace(&mut u) else {
        return;
    };
    let strict = Options {
        mode: Mode::Strict,
        order_check: OrderCheck::Scan,
        ..Options::default()
    };
    let mut trace = Trace::open(bytes.as_slice(), &strict).expect("the writer writes traces");
    let mut records = trace.records(Order::Time).expect("in time order");
    let (mut count, mut last) = (0, i64::MIN);
    while let Some(record) = records.next_record().expect("the writer writes no damage") {
        assert!(
            record.timestamp() >= Ticks::new(last) || record.location().buffer_offset == 0,
            "out of order"
        );
        last = if record.location().buffer_offset == 0 {
            last
        } else {
            record.timestamp().get()
        };
        count += 1;
    }
    assert_eq!(count, written + 1, "records are missing, or made up");
    drop(records);
    drop(trace);
    let damage: u32 = u.arbitrary().unwrap_or(0);
    mutate::trace(&mut bytes, 1 << 16, damage);
    format::file(&bytes);
}

/// A trace and the number of its records, the header event left out.
///
/// # Errors
/// When the bytes choose nothing.
pub fn trace(u: &mut Unstructured<'_>) -> Result<(Vec<u8>, u64)> {
    let packing = *u.choose(&[
        None,
        Some(CompressionFormat::XPRESS),
        Some(CompressionFormat::LZNT1),
        Some(CompressionFormat::XPRESS_HUFF),
    ])?;
    let mut header = FileHeader {
        buffer_size: *u.choose(&[0x400, 0x1000])?,
        processors: u.int_in_range(1..=4)?,
        perf_freq: 10_000_000,
        timestamp: Ticks::new(u.arbitrary()?),
        start_time: FileTime::new(133_000_000_000_000_000),
        ..FileHeader::new()
    };
    if packing.is_some() {
        header.mode = header.mode | LogFileMode::COMPRESSED;
    }
    header.set_log_version();
    let processors = header.processors as u16;
    let mut config = SessionConfig::new(header);
    config.compressor =
        packing.map(|format| BufferCompressor::new(format, Effort::Fast).expect("a known format"));
    let mut session = Session::create(Vec::new(), config).expect("a session that can be");
    let mut written = 0;
    for _ in 0..u.int_in_range(0..=24)? {
        let processor = u.int_in_range(0..=processors - 1)?;
        match record(u, &mut session, processor)? {
            Ok(()) => written += 1,
            // Too long for its buffer.
            Err(error) => assert!(!error.is_io(), "{error}"),
        }
    }
    let end_time = u.arbitrary::<Option<i64>>()?.map(FileTime::new);
    let finished = session.close(end_time).expect("memory takes everything");
    let file = finished.output;
    let summary = finished.report;
    assert_eq!(summary.events_written, written);
    Ok((file, written))
}

fn guid(u: &mut Unstructured<'_>) -> Result<Guid> {
    // Providers that readers look into, and any.
    const KNOWN: [&str; 5] = [
        "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4",
        "a669021c-c450-4609-a035-5af59af4df18",
        "bbccf6c1-6cd1-48c4-80ff-839482e37671",
        "b3e675d7-2554-4f18-830b-2762732560de",
        "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c",
    ];
    Ok(match u.choose(&KNOWN)?.parse() {
        Ok(guid) if u.ratio(4, 5)? => guid,
        _ => Guid::from_bytes(u.arbitrary()?),
    })
}

fn extended<'n, 'u: 'n>(u: &mut Unstructured<'u>, addresses: &'n [u64]) -> Result<Extended<'n>> {
    let len = u.int_in_range(0..=40)?;
    let data = u.bytes(len.min(u.len()))?;
    Ok(match u.int_in_range(0..=13)? {
        0 => Extended::RelatedActivity(guid(u)?),
        1 => Extended::Stack64 {
            match_id: u.arbitrary()?,
            addresses,
        },
        2 => Extended::Schema(data),
        3 => Extended::ProviderTraits(data),
        4 => Extended::Other(ExtendedType(u.arbitrary()?), data),
        // A type that is known, with enough data for it or not.
        kind => Extended::Other(ExtendedType(kind), data),
    })
}

fn record(
    u: &mut Unstructured<'_>,
    session: &mut Session<Vec<u8>>,
    processor: u16,
) -> Result<etl_format::Result<()>> {
    let pointer_size = if u.arbitrary()? {
        PointerSize::P8
    } else {
        PointerSize::P4
    };
    // Small steps, or anything.
    let timestamp = if u.ratio(9, 10)? {
        i64::from(u.arbitrary::<u16>()?)
    } else {
        u.arbitrary()?
    };
    let (thread_id, process_id) = (u.arbitrary()?, u.arbitrary::<u8>()?.into());
    let (kernel_time, user_time) = (u.arbitrary::<u8>()?.into(), 0);
    let version: u8 = u.int_in_range(0..=5)?;
    let hook = u.arbitrary()?;
    let kind = u.int_in_range(0..=7)?;
    let class = guid(u)?;
    let numbers: [u64; 3] = u.arbitrary()?;
    let items: Vec<Extended<'_>> = (0..u.int_in_range(0..=3)?)
        .map(|_| extended(u, &numbers))
        .collect::<Result<_>>()?;
    let len = if u.ratio(1, 50)? {
        3000
    } else {
        u.int_in_range(0..=80)?
    };
    let payload = u.bytes(len.min(u.len()))?;
    let full = Full::new(class, hook as u8, timestamp)
        .pointer_size(pointer_size)
        .version(version.into())
        .level(version)
        .process(process_id, thread_id)
        .cpu_times(kernel_time, user_time)
        .payload(payload);
    Ok(match kind {
        0 => session.write(
            processor,
            &System::new(hook, timestamp)
                .pointer_size(pointer_size)
                .version(version.into())
                .process(process_id, thread_id)
                .cpu_times(kernel_time, user_time)
                .payload(payload),
        ),
        1 => session.write(
            processor,
            &System::new(hook, timestamp)
                .pointer_size(pointer_size)
                .version(version.into())
                .process(process_id, thread_id)
                .compact()
                .payload(payload),
        ),
        2 => {
            let mut sample = PerfInfo::new(hook, timestamp)
                .pointer_size(pointer_size)
                .version(version)
                .counters(&numbers[..usize::from(version % 4)])
                .payload(payload);
            if version > 3 {
                sample = sample.pebs_index(numbers[0]);
            }
            session.write(processor, &sample)
        }
        3 => session.write(processor, &full),
        4 => session.write(
            processor,
            &Instance::new(full, thread_id).parent(class, process_id),
        ),
        5 => session.write(
            processor,
            &Message::new(class, hook, timestamp)
                .marker(if version > 2 {
                    MessageMarker::Kind
                } else {
                    MessageMarker::Wpp
                })
                .sequence(thread_id)
                .component(process_id)
                .process(process_id, thread_id)
                .flags(MessageFlags(
                    u16::from(numbers[0] as u8) | MessageFlags::TIMESTAMP.0,
                ))
                .payload(payload),
        ),
        _ => session.write(
            processor,
            &Event::new(
                class,
                EventDescriptor {
                    id: if kind == 6 { hook & 0xff } else { 0xfffe },
                    version,
                    level: version,
                    opcode: hook as u8,
                    keyword: numbers[2],
                    ..EventDescriptor::default()
                },
                timestamp,
            )
            .pointer_size(pointer_size)
            .flags(EventFlags(u16::from(numbers[1] as u8) & 0x7c))
            .process(process_id, thread_id)
            .cpu_times(kernel_time, user_time)
            .extended(&items)
            .payload(payload),
        ),
    })
}
