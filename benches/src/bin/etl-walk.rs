//! Walks a trace in time order, from its file, and prints the number of records and the least time
//! in seconds: `etl-walk HOW FILE TIMES`.
//!
//! `HOW` is `map`, `file` or `memory` (the whole file is read at first); `limit-map` and
//! `limit-file` read each byte and nothing else.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Result};
use std::time::Instant;

use etl_format::read::{FileSource, Options, Order, Source, Trace};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().unwrap_or_default();
    let (how, path) = (next(), next());
    let times: u32 = next().parse().unwrap_or(1);
    let mut least = f64::INFINITY;
    let mut records = 0;
    for _ in 0..times {
        let start = Instant::now();
        let file = File::open(&path)?;
        records = match how.as_str() {
            "map" => walk(&*map(&file)?),
            "memory" => walk(whole(file)?.as_slice()),
            "file" => walk(FileSource::new(file)?),
            "limit-map" => sum(&map(&file)?),
            "limit-file" => pieces(file)?,
            _ => panic!("map, file, memory, limit-map or limit-file"),
        };
        least = least.min(start.elapsed().as_secs_f64());
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

fn whole(mut file: File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn walk<S: Source>(source: S) -> u64 {
    let mut trace = Trace::open(source, &Options::default()).expect("a trace");
    let mut records = trace.records(Order::Time).expect("a trace");
    let (mut count, mut bytes) = (0, 0);
    while let Some(record) = records.next_record().expect("a whole trace") {
        count += 1;
        bytes += record.payload().len();
    }
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
