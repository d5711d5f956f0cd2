//! Walks a trace and prints the number of records, and the least processor time and wall time in
//! seconds: `etl-walk HOW FILE TIMES [THREADS]`.
//!
//! `HOW` is `map` or `file`, from the file; `memory`, read before the time counts; `plain`, also
//! decompressed before; or `pipe`, from standard input in file order, once. `limit-map`,
//! `limit-file` and `limit-pipe` read each byte and nothing else. Advice follows after `+`:
//! `sequential`, `needed` and `populate` on the whole map, `pieces` on the 8 MiB after each read.
//! `drop` removes the file from the system's cache and does nothing else.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Result};
use std::time::{Duration, Instant};

use etl_format::read::{FileSource, Options, Order, PipeSource, Records, Source, Trace};
use etl_format::rewrite::repack::Repacker;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().unwrap_or_default();
    let (words, path) = (next(), next());
    let with = |word: &str| words.split('+').skip(1).any(|other| other == word);
    let how = words.split('+').next().unwrap_or_default();
    let times: u32 = next().parse().unwrap_or(1);
    let threads: usize = next().parse().unwrap_or(1);
    let mut bytes = Vec::new();
    match how {
        "memory" => bytes = std::fs::read(&path)?,
        "plain" => {
            let packed = std::fs::read(&path)?;
            Repacker::decompress()
                .run(packed.as_slice(), &mut bytes)
                .expect("a trace");
        }
        _ => {}
    }
    let (mut processor, mut wall) = (Duration::MAX, Duration::MAX);
    let mut records = 0;
    for _ in 0..times {
        let start = (Instant::now(), processor_time());
        records = match how {
            "pipe" => stream(PipeSource::new(std::io::stdin().lock())),
            "limit-pipe" => pieces(std::io::stdin().lock())?,
            "memory" | "plain" => walk(bytes.as_slice(), threads),
            _ => from_file(how, &with, File::open(&path)?, threads)?,
        };
        processor = processor.min(processor_time().saturating_sub(start.1));
        wall = wall.min(start.0.elapsed());
    }
    println!(
        "{records} {:.6} {:.6}",
        processor.as_secs_f64(),
        wall.as_secs_f64()
    );
    Ok(())
}

fn from_file(how: &str, with: &dyn Fn(&str) -> bool, file: File, threads: usize) -> Result<u64> {
    Ok(match (how, with("pieces")) {
        ("map", false) => walk(&*map(&file, with)?, threads),
        ("map", true) => walk(
            Advised {
                inner: &*map(&file, with)?,
                file,
                next: 0,
            },
            threads,
        ),
        ("file", false) => walk(FileSource::new(file)?, threads),
        ("file", true) => walk(
            Advised {
                inner: FileSource::new(file.try_clone()?)?,
                file,
                next: 0,
            },
            threads,
        ),
        ("limit-map", _) => sum(&map(&file, with)?),
        ("limit-file", _) => pieces(file)?,
        ("drop", _) => cache::drop_file(&file).map(|()| 0)?,
        _ => panic!("map, file, memory, plain, pipe, limit-map, limit-file, limit-pipe or drop"),
    })
}

fn map(file: &File, with: &dyn Fn(&str) -> bool) -> Result<memmap2::Mmap> {
    // SAFETY: nothing changes the file while it is measured.
    #[allow(unsafe_code)]
    let map = unsafe { memmap2::Mmap::map(file)? };
    cache::advise(&map, with)?;
    Ok(map)
}

/// A source that asks the system for the bytes after those that are read.
struct Advised<S> {
    inner: S,
    file: File,
    /// What is before this was asked for.
    next: u64,
}

impl<S: Source> Source for Advised<S> {
    type Block = S::Block;

    fn read(&mut self, offset: u64, len: usize, block: &mut S::Block) -> Result<()> {
        const WINDOW: u64 = 8 << 20;
        let end = offset + len as u64;
        if end + WINDOW / 2 > self.next {
            cache::need(&self.file, self.next..end + WINDOW)?;
            self.next = end + WINDOW;
        }
        self.inner.read(offset, len, block)
    }

    fn size(&self) -> Option<u64> {
        self.inner.size()
    }
}

/// The system's cache of files.
#[cfg(target_os = "linux")]
mod cache {
    use std::fs::File;
    use std::io::Result;
    use std::ops::Range;

    use memmap2::{Advice, Mmap};
    use rustix::fs::fadvise;

    pub fn drop_file(file: &File) -> Result<()> {
        file.sync_all()?;
        Ok(fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
    }

    pub fn advise(map: &Mmap, with: &dyn Fn(&str) -> bool) -> Result<()> {
        let known = [
            ("sequential", Advice::Sequential),
            ("needed", Advice::WillNeed),
            ("populate", Advice::PopulateRead),
        ];
        known
            .into_iter()
            .filter(|(word, _)| with(word))
            .try_for_each(|(_, a)| map.advise(a))
    }

    /// In pieces: the system reads no more than its read-ahead for each request.
    pub fn need(file: &File, mut range: Range<u64>) -> Result<()> {
        const PIECE: u64 = 128 << 10;
        while !range.is_empty() {
            fadvise(
                file,
                range.start,
                PIECE.try_into().ok(),
                rustix::fs::Advice::WillNeed,
            )?;
            range.start += PIECE;
        }
        Ok(())
    }
}

/// Other systems have no such requests.
#[cfg(not(target_os = "linux"))]
mod cache {
    use std::fs::File;
    use std::io::{ErrorKind, Result};
    use std::ops::Range;

    pub fn drop_file(_: &File) -> Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    pub fn advise(_: &memmap2::Mmap, _: &dyn Fn(&str) -> bool) -> Result<()> {
        Ok(())
    }

    pub fn need(_: &File, _: Range<u64>) -> Result<()> {
        Err(ErrorKind::Unsupported.into())
    }
}

/// Time that the process has worked; zero where the system does not say.
fn processor_time() -> Duration {
    #[cfg(unix)]
    {
        use rustix::time::{ClockId, clock_gettime};
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
    #[cfg(not(unix))]
    Duration::ZERO
}

fn walk<S: Source>(source: S, threads: usize) -> u64 {
    let mut trace = Trace::open(source, &Options::default()).expect("a trace");
    let records = trace.records(Order::Time).expect("a trace");
    count(records.with_threads(threads))
}

fn stream<S: Source>(source: S) -> u64 {
    count(Records::stream(source, &Options::default()).expect("a trace"))
}

fn count<S: Source>(mut records: Records<S>) -> u64 {
    let (mut count, mut bytes) = (0, 0);
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
    let words = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    words.fold(0, u64::wrapping_add)
}

fn pieces(mut reader: impl Read) -> Result<u64> {
    let mut piece = vec![0; 1 << 16];
    let mut total = 0u64;
    loop {
        let got = reader.read(&mut piece)?;
        if got == 0 {
            return Ok(total);
        }
        total = total.wrapping_add(sum(&piece[..got]));
    }
}
