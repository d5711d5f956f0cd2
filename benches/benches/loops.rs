//! Times of the hot loops: `cargo bench -p etl-bench`.

use divan::Bencher;
use divan::counter::BytesCount;
use etl_bench::{Inputs, Loop};
use etl_events::eventpipe::{self, ConvertOptions};
use etl_format::write::Output;
use write::{EventRow, ObjectStream, START_TICKS, metadata_blob, stack_block};

#[allow(dead_code, reason = "other programs need more of it")]
#[path = "../../nettrace/examples/common/write.rs"]
mod write;

fn main() {
    divan::main();
}

#[divan::bench(args = Loop::ALL)]
fn loops(bencher: Bencher<'_, '_>, which: Loop) {
    let inputs = Inputs::new();
    let bytes = BytesCount::new(inputs.bytes(which).len());
    bencher.counter(bytes).bench_local(|| which.run(&inputs));
}

/// An output that keeps nothing.
struct Discard;

impl Output for Discard {
    fn write_at(&mut self, _: u64, _: &[u8]) -> etl_format::Result<()> {
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        Ok(())
    }
}

/// An EventPipe stream with events of the runtime, each with a stack and a payload.
fn stream(events: u32) -> Vec<u8> {
    const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[metadata_blob(1, RUNTIME, 10, "")]);
    stream.block("StackBlock", &stack_block(1, 8, &[&[1; 20]]));
    let mut rows = Vec::new();
    for number in 0..events {
        rows.push(EventRow {
            metadata: 1,
            sequence: number + 1,
            capture_thread: 7,
            processor: u32::MAX,
            thread: 7,
            stack: 1,
            time: START_TICKS + u64::from(number),
            payload: vec![0; 60],
            ..EventRow::default()
        });
    }
    for block in rows.chunks(1_000) {
        stream.events(block);
    }
    stream.finish()
}

/// The conversion of an EventPipe stream to a trace.
#[divan::bench]
fn convert(bencher: Bencher<'_, '_>) {
    let stream = stream(100_000);
    bencher
        .counter(BytesCount::new(stream.len()))
        .bench_local(|| {
            let options = ConvertOptions::default();
            eventpipe::convert(stream.as_slice(), Discard, &options).map(|done| done.report)
        });
}
