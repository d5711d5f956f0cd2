//! The header event, field by field in its published order.

use super::Out;

/// A SYSTEM header and `TRACE_LOGFILE_HEADER`.
#[derive(Clone)]
pub struct HeaderEvent {
    pub wide: bool,
    pub version: u16,
    pub hook: u16,
    pub thread: u32,
    pub process: u32,
    pub timestamp: i64,
    pub buffer_size: u32,
    pub os: (u8, u8),
    pub log: (u8, u8),
    pub build: u32,
    pub processors: u32,
    pub end_time: i64,
    pub timer_resolution: u32,
    pub maximum_file_size: u32,
    pub mode: u32,
    pub buffers_written: Option<u32>,
    pub start_buffers: u32,
    pub pointer_size: Option<u32>,
    pub events_lost: u32,
    pub cpu_mhz: u32,
    pub logger_word: u64,
    pub file_word: u64,
    pub bias: i32,
    pub standard: (String, [u16; 8], i32),
    pub daylight: (String, [u16; 8], i32),
    pub boot_time: i64,
    pub perf_freq: i64,
    pub start_time: i64,
    pub clock: u32,
    pub buffers_lost: u32,
    /// The bytes after the fixed part.
    pub names: Vec<u8>,
}

impl Default for HeaderEvent {
    fn default() -> Self {
        HeaderEvent {
            wide: true,
            version: 2,
            hook: 0,
            thread: 0x1234,
            process: 0x5678,
            timestamp: 900,
            buffer_size: 0x1000,
            os: (10, 0),
            log: (1, 5),
            build: 22631,
            processors: 4,
            end_time: 133_000_000_010_000_000,
            timer_resolution: 156_250,
            maximum_file_size: 100,
            mode: 1,
            buffers_written: None,
            start_buffers: 1,
            pointer_size: None,
            events_lost: 0,
            cpu_mhz: 3000,
            logger_word: 9,
            file_word: 6,
            bias: -60,
            standard: ("@tzres.dll,-322".into(), [0, 10, 0, 5, 3, 0, 0, 0], 0),
            daylight: ("@tzres.dll,-321".into(), [0, 3, 0, 5, 2, 0, 0, 0], -60),
            boot_time: 132_999_000_000_000_000,
            perf_freq: 10_000_000,
            start_time: 133_000_000_000_000_000,
            clock: 1,
            buffers_lost: 0,
            names: names("session", "C:\\trace.etl"),
        }
    }
}

/// Two NUL-terminated UTF-16 strings.
pub fn names(logger: &str, file: &str) -> Vec<u8> {
    Out::default().utf16(logger).u16(0).utf16(file).u16(0).0
}

fn zone_name(out: Out, name: &str) -> Out {
    let mut units: Vec<u16> = name.encode_utf16().collect();
    units.resize(32, 0);
    units.into_iter().fold(out, Out::u16)
}

impl HeaderEvent {
    /// The record.
    pub fn bytes(&self) -> Vec<u8> {
        let pointer = |out: Out, v: u64| {
            if self.wide {
                out.u64(v)
            } else {
                out.u32(v as u32)
            }
        };
        let body = Out::default()
            .u32(self.buffer_size)
            .u8(self.os.0)
            .u8(self.os.1)
            .u8(self.log.0)
            .u8(self.log.1)
            .u32(self.build)
            .u32(self.processors)
            .i64(self.end_time)
            .u32(self.timer_resolution)
            .u32(self.maximum_file_size)
            .u32(self.mode)
            .u32(self.buffers_written.unwrap_or(1))
            .u32(self.start_buffers)
            .u32(self.pointer_size.unwrap_or(if self.wide { 8 } else { 4 }))
            .u32(self.events_lost)
            .u32(self.cpu_mhz);
        let body = pointer(pointer(body, self.logger_word), self.file_word);
        let mut body = body.u32(self.bias as u32);
        for (name, date, bias) in [&self.standard, &self.daylight] {
            body = zone_name(body, name);
            body = date
                .iter()
                .fold(body, |out, &v| out.u16(v))
                .u32(*bias as u32);
        }
        let body = body
            .u32(0)
            .i64(self.boot_time)
            .i64(self.perf_freq)
            .i64(self.start_time)
            .u32(self.clock)
            .u32(self.buffers_lost);
        assert_eq!(body.0.len(), if self.wide { 0x118 } else { 0x110 });
        let body = body.bytes(&self.names).0;
        Out::default()
            .u16(self.version)
            .u8(if self.wide { 2 } else { 1 })
            .u8(0xc0)
            .u16((0x20 + body.len()) as u16)
            .u16(self.hook)
            .u32(self.thread)
            .u32(self.process)
            .i64(self.timestamp)
            .u32(21)
            .u32(22)
            .bytes(&body)
            .0
    }
}
