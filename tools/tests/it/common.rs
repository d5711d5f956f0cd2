//! Small traces made by the writer.

use etl_format::constants::EventFlags;
use etl_format::read::{Options, Trace};
use etl_format::write::record::{Event, Extended, System};
use etl_format::write::{Session, SessionConfig};
use etl_format::{EventDescriptor, FileHeader, FileTime, Guid, Ticks};

pub const PROVIDER: Guid = Guid::new(0x1234_5678, 1, 2, [3; 8]);

/// An event to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    pub processor: u16,
    pub timestamp: i64,
    pub id: u16,
    pub process: u32,
    pub thread: u32,
    /// A kernel event with this hook instead.
    pub hook: Option<u16>,
    pub provider: Guid,
    pub version: u8,
    pub keyword: u64,
    pub payload: Vec<u8>,
    pub stack: Vec<u64>,
}

impl Made {
    pub fn new(timestamp: i64, id: u16, payload: &[u8]) -> Self {
        Made {
            processor: 0,
            timestamp,
            id,
            process: 100,
            thread: 101,
            hook: None,
            provider: PROVIDER,
            version: 0,
            keyword: 1,
            payload: payload.to_vec(),
            stack: Vec::new(),
        }
    }

    pub fn kernel(timestamp: i64, hook: u16, payload: &[u8]) -> Self {
        Made {
            hook: Some(hook),
            ..Made::new(timestamp, 0, payload)
        }
    }
}

pub fn header() -> FileHeader {
    FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(133_000_000_000_000_000),
        end_time: FileTime::new(133_000_000_010_000_000),
        processors: 2,
        buffer_size: 0x1000,
        logger_name: "session".encode_utf16().collect(),
        log_file_name: "C:\\t.etl".encode_utf16().collect(),
        ..FileHeader::new()
    }
}

pub fn trace(events: &[Made]) -> Vec<u8> {
    trace_of(header(), events)
}

pub fn trace_of(header: FileHeader, events: &[Made]) -> Vec<u8> {
    let end_time = header.end_time;
    let config = SessionConfig::new(header);
    let mut session = Session::in_memory(config).unwrap();
    for made in events {
        if let Some(hook) = made.hook {
            let record = System::new(hook, made.timestamp)
                .process(made.process, made.thread)
                .payload(&made.payload);
            session.write(made.processor, &record).unwrap();
            continue;
        }
        let stack = [Extended::Stack64 {
            match_id: 0,
            addresses: &made.stack,
        }];
        let record = Event::new(
            made.provider,
            EventDescriptor {
                id: made.id,
                version: made.version,
                level: 4,
                keyword: made.keyword,
                ..EventDescriptor::default()
            },
            made.timestamp,
        )
        .flags(EventFlags(0x40))
        .process(made.process, made.thread)
        .extended(if made.stack.is_empty() { &[] } else { &stack })
        .payload(&made.payload);
        session.write(made.processor, &record).unwrap();
    }
    session.close(Some(end_time)).unwrap().output
}

pub fn open(bytes: &[u8]) -> Trace<&[u8]> {
    Trace::open(bytes, &Options::default()).unwrap()
}
