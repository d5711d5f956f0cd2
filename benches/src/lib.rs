//! The hot loops of the libraries, on a simulated trace that is the same everywhere.

use std::hint::black_box;
use std::{fmt, fs};

use etl_format::compress::{self, Effort};
use etl_format::constants::{CompressionFormat, LogFileMode};
use etl_format::constants::{PointerSize, hook};
use etl_format::read::{Options, Order, Record, Records, Trace};
use etl_format::rewrite::merge::Merger;
use etl_format::rewrite::repack::Repacker;
use etl_format::write::record::{Event, PerfInfo};
use etl_format::write::{BufferCompressor, Output, Session, SessionConfig};
use etl_format::{EventDescriptor, FileHeader, FileTime, Guid, Result, Ticks};
use etl_schema::decode::{Decoder, Value};
use etl_schema::store::SchemaStore;
use etl_synth::{Script, Simulation};
use etl_verify::Verifier;

/// The scenario of the inputs, by its path from this package.
const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/big.kdl");

/// Bytes of records that [`Loop::SessionWriter`] writes.
const WRITTEN: u64 = 1 << 20;

/// A simulated trace of about a megabyte, or the trace in `ETLKIT_BENCH_TRACE`, and the same
/// compressed.
#[derive(Debug)]
pub struct Inputs {
    plain: Vec<u8>,
    compressed: Vec<u8>,
}

impl Inputs {
    /// Simulates or reads the trace.
    ///
    /// # Panics
    /// When the trace that the variable names cannot be read.
    #[must_use]
    pub fn new() -> Self {
        let plain = match std::env::var_os("ETLKIT_BENCH_TRACE") {
            Some(path) => {
                let bytes = fs::read(path).expect("the trace can be read");
                let mut plain = Vec::new();
                Repacker::decompress()
                    .run(&bytes[..], &mut plain)
                    .expect("a trace");
                plain
            }
            None => simulated(),
        };
        let compressed = compressed(&plain);
        Inputs { plain, compressed }
    }

    /// The bytes that a loop reads.
    #[must_use]
    pub fn bytes(&self, which: Loop) -> &[u8] {
        match which {
            Loop::XpressDecode => &self.compressed,
            Loop::SessionWriter => &self.plain[..(WRITTEN as usize).min(self.plain.len())],
            _ => &self.plain,
        }
    }
}

impl Default for Inputs {
    fn default() -> Self {
        Inputs::new()
    }
}

fn simulated() -> Vec<u8> {
    let text = fs::read_to_string(SCENARIO).expect("the scenario can be read");
    let script = Script::new("big", &text).parameters([("until", "1.6s"), ("stop", "3s")]);
    let scenario = script.parse().expect("the scenario is valid");
    let files = Simulation::new(&scenario)
        .run_in_memory()
        .expect("the scenario runs");
    let big = files.into_iter().find(|file| file.name == "big.etl");
    big.expect("it writes this file").bytes
}

fn compressed(plain: &[u8]) -> Vec<u8> {
    let compressor = BufferCompressor::new(CompressionFormat::XPRESS, Effort::Default);
    let compressor = compressor.expect("the format is known");
    let mut out = Vec::new();
    Repacker::compress(compressor)
        .run(plain, &mut out)
        .expect("a whole trace");
    out
}

/// A hot loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    /// Every record in file order.
    Walk,
    /// Every record in time order.
    Ordered,
    /// Decompressing every buffer.
    XpressDecode,
    /// Compressing every buffer.
    XpressEncode,
    /// Every field of every event with a schema.
    Fields,
    /// Verifying.
    Verify,
    /// Merging the trace with itself.
    Merge,
    /// Writing records to the buffers of a session.
    SessionWriter,
    /// Simulating the scenario into memory.
    Simulation,
}

impl fmt::Display for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Loop::Walk => "walk",
            Loop::Ordered => "ordered",
            Loop::XpressDecode => "xpress-decode",
            Loop::XpressEncode => "xpress-encode",
            Loop::Fields => "fields",
            Loop::Verify => "verify",
            Loop::Merge => "merge",
            Loop::SessionWriter => "session-writer",
            Loop::Simulation => "simulation",
        })
    }
}

impl Loop {
    /// Every loop.
    pub const ALL: [Loop; 9] = [
        Loop::Walk,
        Loop::Ordered,
        Loop::XpressDecode,
        Loop::XpressEncode,
        Loop::Fields,
        Loop::Verify,
        Loop::Merge,
        Loop::SessionWriter,
        Loop::Simulation,
    ];

    /// Runs the loop once.
    ///
    /// # Panics
    /// When the trace cannot be read to its end.
    pub fn run(self, inputs: &Inputs) {
        let bytes = self.input(inputs);
        match self {
            Loop::Walk => {
                let mut records = Records::stream(bytes, &Options::default()).expect("a trace");
                while let Some(record) = records.next_record().expect("a whole trace") {
                    look(&record);
                }
            }
            Loop::Ordered => {
                let mut trace = Trace::open(bytes, &Options::default()).expect("a trace");
                let mut records = trace.records(Order::Time).expect("a trace");
                while let Some(record) = records.next_record().expect("a whole trace") {
                    look(&record);
                }
            }
            Loop::XpressDecode => decompress(bytes),
            Loop::XpressEncode => drop(black_box(compressed(bytes))),
            Loop::Fields => fields(bytes),
            Loop::Verify => {
                drop(black_box(
                    Verifier::new().verify(bytes, "").expect("a trace"),
                ));
            }
            Loop::Merge => {
                Merger::new()
                    .run(vec![bytes, bytes], Discard)
                    .expect("traces of one machine");
            }
            Loop::SessionWriter => write_session(),
            Loop::Simulation => drop(black_box(simulated())),
        }
    }

    fn input(self, inputs: &Inputs) -> &[u8] {
        match self {
            Loop::XpressDecode => &inputs.compressed,
            _ => &inputs.plain,
        }
    }
}

fn look(record: &Record<'_>) {
    black_box((record.timestamp(), record.bytes().len()));
}

fn decompress(bytes: &[u8]) {
    let trace = Trace::open(bytes, &Options::default()).expect("a trace");
    let mut out = vec![0; 1 << 20];
    for entry in trace.buffers().iter().filter(|buffer| buffer.compressed) {
        let at = entry.offset as usize;
        let input = &bytes[at + 0x48..at + entry.stored as usize];
        let out = &mut out[..entry.fill as usize - 0x48];
        compress::decompress(entry.format, input, out).expect("a whole buffer");
        black_box(out);
    }
}

fn fields(bytes: &[u8]) {
    let store = SchemaStore::default();
    let mut records = Records::stream(bytes, &Options::default()).expect("a trace");
    while let Some(record) = records.next_record().expect("a whole trace") {
        if let (Some(decoder), Some(pointers)) = (store.decoder(&record), record.pointer_size()) {
            read_fields(decoder, pointers, record.payload());
        }
    }
}

fn read_fields(decoder: &Decoder, pointers: PointerSize, payload: &[u8]) {
    for (_, value) in decoder.fields(payload, pointers) {
        match value {
            Value::Array(items) => items.iter().for_each(|value| {
                black_box(value.as_u64());
            }),
            other => drop(black_box(other)),
        }
    }
}

/// Discards everything, so that no disk is measured.
struct Discard;

impl Output for Discard {
    fn write_at(&mut self, _: u64, bytes: &[u8]) -> Result<()> {
        black_box(bytes);
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Writes a session of samples, context switches and manifest events of eight processors.
fn write_session() {
    let header = FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(132_000_000_000_000_000),
        processors: 8,
        mode: LogFileMode::SEQUENTIAL,
        ..FileHeader::new()
    };
    let mut session = Session::create(Discard, SessionConfig::new(header)).expect("a valid header");
    let payload = [0x5a; 128];
    let (mut timestamp, mut bytes, mut number) = (1_000, 0, 0u64);
    while bytes < WRITTEN {
        timestamp += 3;
        let processor = (number / 64 % 8) as u16;
        let written = match number % 4 {
            kind @ 0..=2 => {
                let len = if kind == 2 { 24 } else { 16 };
                bytes += 16 + len as u64;
                let record = PerfInfo::new(
                    if kind == 2 {
                        hook::CSWITCH
                    } else {
                        hook::SAMPLE
                    },
                    timestamp,
                )
                .payload(&payload[..len]);
                session.write(processor, &record)
            }
            _ => {
                let len = 48 + number as usize % 64;
                bytes += (0x50 + len as u64).next_multiple_of(8);
                let record = Event::new(
                    Guid::new(1, 2, 3, [4; 8]),
                    EventDescriptor {
                        id: 143,
                        level: 4,
                        ..EventDescriptor::default()
                    },
                    timestamp,
                )
                .process(42, 4_711)
                .payload(&payload[..len]);
                session.write(processor, &record)
            }
        };
        written.expect("it fits");
        number += 1;
    }
    session.close(None).expect("a valid session");
}

#[cfg(test)]
mod tests {
    use super::{Inputs, Loop};

    #[test]
    fn run_finishes_for_every_loop() {
        let inputs = Inputs::new();
        Loop::ALL.iter().for_each(|each| each.run(&inputs));
    }
}
