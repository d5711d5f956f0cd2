//! Walks a trace in time order, from its file, and prints the number of records and the least time
//! in seconds: `etl-walk HOW FILE TIMES [THREADS]`.
//!
//! `HOW` is `map`, `file` or `memory` (read before the time counts), or `plain` (also decompressed
//! before); `limit-map` and `limit-file` read each byte and nothing else. The time is processor
//! time, which other programs change little; with several threads it is wall time.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Result};
use std::time::{Duration, Instant};

use etl_format::read::{FileSource, Options, Order, Source, Trace};
use etl_format::rewrite::repack::Repacker;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().unwrap_or_default();
    let (how, path) = (next(), next());
    let times: u32 = next().parse().unwrap_or(1);
    let threads: usize = next().parse().unwrap_or(1);
    let mut bytes = Vec::new();
    match how.as_str() {
        "memory" => bytes = std::fs::read(&path)?,
        "plain" => {
            let packed = std::fs::read(&path)?;
            Repacker::decompress().run(packed.as_slice(), &mut bytes).expect("a trace");
        }
        _ => {}
    }
    let start = Instant::now();
    let now = || if threads > 1 { start.elapsed() } else { processor_time(start) };
    let mut least = f64::INFINITY;
    let mut records = 0;
    for _ in 0..times {
        let before = now();
        let file = File::open(&path)?;
        records = match how.as_str() {
            "map" => walk(&*map(&file)?, threads),
            "memory" | "plain" => walk(bytes.as_slice(), threads),
            "file" => walk(FileSource::new(file)?, threads),
            "limit-map" => sum(&map(&file)?),
            "limit-file" => pieces(file)?,
            _ => panic!("map, file, memory, plain, limit-map or limit-file"),
        };
        least = least.min((now() - before).as_secs_f64());
    }
    println!("{records} {least:.6}");
    Ok(())
}

fn map(file: &File) -> Result<memmap2::Mmap> {
    // SAFETY: nothing changes the file while it is measured.
    #[allow(unsafe_code)]
    unsafe {
        memmap2::Mmap::map(file)
    }
}

/// Time that the process has worked; where the system does not say, time since `start`.
#[cfg(unix)]
fn processor_time(_: Instant) -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(not(unix))]
fn processor_time(start: Instant) -> Duration {
    start.elapsed()
}

fn walk<S: Source>(source: S, threads: usize) -> u64 {
    let mut trace = Trace::open(source, &Options::default()).expect("a trace");
    let records = trace.records(Order::Time).expect("a trace");
    let (mut count, mut bytes) = (0, 0);
    let mut records = records.with_threads(threads);
    let walked = records.for_each::<etl_format::Error>(|record| {
        count += 1;
        bytes += record.payload().len();
        Ok(())
    });
    walked.expect("a whole trace");
    black_box(bytes);
    count
}

fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    words.fold(0, u64::wrapping_add)
}

fn pieces(mut file: File) -> Result<u64> {
    let mut piece = vec![0; 1 << 16];
    let mut total = 0u64;
    loop {
        let got = file.read(&mut piece)?;
        if got == 0 {
            return Ok(total);
        }
        total = total.wrapping_add(sum(&piece[..got]));
    }
}
