//! How fast a trace is judged, as a share of the speed at which it is walked in time order:
//! `cargo run --release -p etl-verify --example pace [-- trace.etl]`; without a file, of a trace of its own with 300,000 stacks.
//!
//! Both read the file as the tools do; times are by the clock on the wall, the best of several runs that take
//! turns, from the page cache. `walk` or `judge` behind the file's name does one of them once, for profilers; a number says on
//! how many threads.

mod input;

use std::fs::File;
use std::time::Instant;

use etl_format::read::{FileSource, Options, Trace};
use etl_verify::{Settings, verify_with};

type Outcome = Result<u64, Box<dyn std::error::Error>>;

fn walk(path: &str, threads: usize) -> Outcome {
    let mut trace = Trace::open(FileSource::new(File::open(path)?)?, &Options::default())?;
    let mut records = trace.ordered()?;
    records.with_threads(threads, |records| {
        let mut sum = 0u64;
        while let Some(record) = records.next_record()? {
            sum ^= record.timestamp().cast_unsigned() ^ record.bytes().len() as u64;
        }
        Ok(sum)
    })
}

fn judge(path: &str, threads: usize) -> Outcome {
    let settings = Settings { threads, ..Settings::default() };
    Ok(verify_with(FileSource::new(File::open(path)?)?, "", &settings, |_| {})?.records)
}

fn seconds(work: impl FnOnce() -> Outcome) -> Result<f64, Box<dyn std::error::Error>> {
    let start = Instant::now();
    std::hint::black_box(work()?);
    Ok(start.elapsed().as_secs_f64())
}

/// Prints how fast both are, on one thread and on two.
fn compare(path: &str, runs: u32) -> Result<(), Box<dyn std::error::Error>> {
    for threads in [1, 2] {
        let (mut walked, mut judged) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..runs {
            walked = walked.min(seconds(|| walk(path, threads))?);
            judged = judged.min(seconds(|| judge(path, threads))?);
        }
        println!(
            "{threads} threads: walked in {:.1} ms, judged in {:.1} ms: {:.2} of the speed",
            walked * 1e3,
            judged * 1e3,
            walked / judged
        );
    }
    Ok(())
}

/// The same of a trace of its own, which is judged from a file as all are.
fn compare_own(stacks: u32, runs: u32) -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("pace-{}.etl", std::process::id()));
    std::fs::write(&path, input::trace(stacks)?)?;
    let name = path.to_string_lossy();
    let done = compare(&name, runs);
    // The header event, a module and three methods come before the stacks.
    let judged = judge(&name, 1);
    std::fs::remove_file(&path)?;
    assert_eq!(judged?, u64::from(stacks) + 5);
    done
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if cfg!(test) {
        return compare_own(1_000, 1);
    }
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else { return compare_own(300_000, 7) };
    let what = args.next().unwrap_or_default();
    let threads = args.next().map_or(Ok(1), |n| n.parse())?;
    match what.as_str() {
        "walk" => drop(walk(&path, threads)?),
        "judge" => drop(judge(&path, threads)?),
        _ => compare(&path, 7)?,
    }
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
