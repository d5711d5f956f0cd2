//! Writing: the session writer, merging, and compressing. What is written goes to a medium that keeps
//! nothing, so that the disk is not what is measured.

use std::hint::black_box;
use std::path::Path;

use etl_format::compress::Effort;
use etl_format::constants::{
    CompressionFormat, EventFlags, EventProperties, LogFileMode, PointerSize,
};
use etl_format::read::{Options, Trace};
use etl_format::rewrite::merge::{MergeOptions, merge};
use etl_format::rewrite::repack::{compress, decompress};
use etl_format::write::record::{Descriptor, Event, PerfInfo};
use etl_format::write::{BufferCompressor, LogFileHeader, Output, Session, SessionConfig};
use etl_format::{Guid, Result};

use crate::measure::best;
use crate::table::Row;

/// Takes everything and keeps nothing but its length.
#[derive(Default)]
pub struct Nowhere {
    end: u64,
}

impl Output for Nowhere {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        black_box(bytes);
        self.end = self.end.max(at + bytes.len() as u64);
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl std::io::Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        black_box(bytes);
        self.end += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The rows of writing: of a generated session, of a merge of plain traces, and of the real merged
/// trace compressed.
pub fn rows(
    plain: &[&Path],
    real: Option<&Path>,
    megabytes: usize,
    runs: usize,
    wants: impl Fn(&str) -> bool,
) -> Vec<Row> {
    let mut rows = Vec::new();
    let row = |file: &str, what: &str, seconds: f64, stored: u64, output: u64, records: u64| Row {
        file: file.to_owned(),
        what: what.to_owned(),
        seconds,
        stored,
        unpacked: stored,
        output,
        records,
        ratio: None,
        peak: None,
    };
    if wants("session writer") {
        let (records, bytes) = session(megabytes);
        let seconds = best(runs, || session(megabytes));
        rows.push(row(
            "generated session",
            "session writer (goal 500 MB/s)",
            seconds,
            bytes,
            bytes,
            records,
        ));
    }

    if !plain.is_empty() && wants("merge") {
        let inputs: Vec<Vec<u8>> =
            plain.iter().map(|p| std::fs::read(p).expect("the input is readable")).collect();
        let slices = || inputs.iter().map(Vec::as_slice).collect::<Vec<_>>();
        let total = inputs.iter().map(|i| i.len() as u64).sum();
        let options = MergeOptions::default();
        let run = || merge(slices(), Nowhere::default(), &options).expect("they belong together");
        let (medium, report) = run();
        let seconds = best(runs, run);
        let name = format!("{} plain traces", plain.len());
        rows.push(row(
            &name,
            "merge (goal 400 MB/s)",
            seconds,
            total,
            medium.end,
            report.records(),
        ));
    }

    if let Some(path) = real.filter(|_| wants("XPRESS")) {
        let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let packed = std::fs::read(path).expect("the input is readable");
        let mut plain = Vec::new();
        let options = Options::default();
        decompress(&packed[..], &mut plain, &options, |_| {}).expect("it is whole");
        let trace = Trace::open(&plain[..], &options).expect("it is a trace");
        let used: u64 = trace.buffers().iter().map(|b| u64::from(b.fill)).sum();
        for effort in [Effort::Fast, Effort::Default, Effort::Best] {
            let compressor =
                BufferCompressor::new(CompressionFormat::XPRESS, effort).expect("known");
            let mut out = 0;
            let seconds = best(runs, || {
                let done =
                    compress(&plain[..], &mut Nowhere::default(), &compressor, &options, |_| {});
                out = done.expect("it is whole").bytes_out;
            });
            let share = out as f64 / packed.len() as f64;
            let goal = match effort {
                Effort::Default => " (goal 150 MB/s, 1.1)",
                _ => "",
            };
            let what = format!("XPRESS {effort:?}, {share:.3} of Windows' size{goal}");
            rows.push(row(&name, &what, seconds, used, out, 0));
        }
    }
    rows
}

/// Writes a session of samples, context switches and manifest events over eight processors; its
/// records and bytes.
pub fn session(megabytes: usize) -> (u64, u64) {
    let header = LogFileHeader {
        timestamp: 1_000,
        start_time: 132_000_000_000_000_000,
        processors: 8,
        mode: LogFileMode::SEQUENTIAL,
        ..LogFileHeader::new()
    };
    let mut session =
        Session::create(Nowhere::default(), SessionConfig::new(header)).expect("a sound header");
    let payload = [0x5a; 128];
    let provider = Guid::new(1, 2, 3, [4; 8]);
    let target = (megabytes as u64) << 20;
    let (mut timestamp, mut bytes, mut number) = (1_000, 0, 0u64);
    while bytes < target {
        timestamp += 3;
        let processor = (number / 64 % 8) as u16;
        let written = match number % 4 {
            kind @ 0..=2 => {
                let len = if kind == 2 { 24 } else { 16 };
                bytes += 16 + len as u64;
                let record = PerfInfo {
                    pointer_size: PointerSize::P8,
                    version: 2,
                    hook: if kind == 2 { 0x0524 } else { 0x0f2e },
                    timestamp,
                    pebs_index: None,
                    counters: &[],
                    payload: &payload[..len],
                };
                session.write(processor, &record)
            }
            _ => {
                let len = 48 + number as usize % 64;
                bytes += (0x50 + len as u64).next_multiple_of(8);
                let record = Event {
                    pointer_size: PointerSize::P8,
                    flags: EventFlags(0),
                    properties: EventProperties(0),
                    thread_id: 4_711,
                    process_id: 42,
                    timestamp,
                    provider,
                    descriptor: Descriptor { id: 143, level: 4, ..Descriptor::default() },
                    kernel_time: 0,
                    user_time: 0,
                    activity: Guid::ZERO,
                    extended: &[],
                    payload: &payload[..len],
                };
                session.write(processor, &record)
            }
        };
        written.expect("it fits");
        number += 1;
    }
    let (medium, summary) = session.close(None).expect("nothing can fail");
    (summary.events_written, medium.end)
}
