//! How fast a trace is judged, as a share of the speed at which it is walked in time order:
//! `cargo run --release -p etl-verify --example pace -- trace.etl`.
//!
//! Both read the file from memory; times are by the clock on the wall, the best of several runs that take turns.
//! `walk` or `judge` behind the file's name does one of them once, for profilers; a number says on how many threads.

use std::time::Instant;

use etl_format::read::{Options, Trace};
use etl_verify::{Settings, verify_with};

fn walk(bytes: &[u8], threads: usize) -> etl_format::Result<u64> {
    let mut trace = Trace::open(bytes, &Options::default())?;
    let mut records = trace.ordered()?;
    records.with_threads(threads, |records| {
        let mut sum = 0u64;
        while let Some(record) = records.next_record()? {
            sum ^= record.stamp().cast_unsigned() ^ record.bytes().len() as u64;
        }
        Ok(sum)
    })
}

fn judge(bytes: &[u8], threads: usize) -> etl_format::Result<u64> {
    let settings = Settings { threads, ..Settings::default() };
    Ok(verify_with(bytes, "", &settings, |_| {})?.records)
}

fn seconds(work: impl FnOnce() -> etl_format::Result<u64>) -> etl_format::Result<f64> {
    let start = Instant::now();
    std::hint::black_box(work()?);
    Ok(start.elapsed().as_secs_f64())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which trace?")?;
    let what = args.next().unwrap_or_default();
    let threads = args.next().map_or(Ok(1), |n| n.parse())?;
    let bytes = std::fs::read(path)?;
    match what.as_str() {
        "walk" => drop(walk(&bytes, threads)?),
        "judge" => drop(judge(&bytes, threads)?),
        _ => {
            for threads in [1, 2] {
                let (mut walked, mut judged) = (f64::INFINITY, f64::INFINITY);
                for _ in 0..9 {
                    walked = walked.min(seconds(|| walk(&bytes, threads))?);
                    judged = judged.min(seconds(|| judge(&bytes, threads))?);
                }
                println!(
                    "{threads} threads: walked in {:.1} ms, judged in {:.1} ms: {:.2} of the speed",
                    walked * 1e3,
                    judged * 1e3,
                    walked / judged
                );
            }
        }
    }
    Ok(())
}
