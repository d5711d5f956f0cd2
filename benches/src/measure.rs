//! Time and memory.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

/// Seconds of the fastest of several runs: those that this thread was on a processor, where the
/// system tells them, so that others at work beside it count less.
pub fn best<T>(runs: usize, mut work: impl FnMut() -> T) -> f64 {
    best_by(thread_seconds, runs, || drop(black_box(work())))
}

/// Seconds of the fastest of several runs by the clock on the wall: for work of other processes.
pub fn best_on_the_wall<T>(runs: usize, mut work: impl FnMut() -> T) -> f64 {
    let start = Instant::now();
    best_by(|| start.elapsed().as_secs_f64(), runs, || drop(black_box(work())))
}

fn best_by(now: impl Fn() -> f64, runs: usize, mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..runs.max(1) {
        let start = now();
        work();
        best = best.min(now() - start);
    }
    best
}

#[cfg(unix)]
fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Seconds that all threads of this process were on processors; of the wall where the system does not
/// tell.
#[cfg(unix)]
pub fn process_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Seconds that all threads of this process were on processors; of the wall where the system does not
/// tell.
#[cfg(not(unix))]
pub fn process_seconds() -> f64 {
    thread_seconds()
}

#[cfg(not(unix))]
fn thread_seconds() -> f64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// The physical limit of any reader: the file goes through one reused buffer, and each word is
/// looked at.
pub fn plain_pass(path: &Path) -> u64 {
    let mut file = File::open(path).expect("the input opens");
    let mut buffer = vec![0u8; 1 << 16];
    let mut sum = 0u64;
    loop {
        let len = file.read(&mut buffer).expect("the input is read");
        if len == 0 {
            return sum;
        }
        for word in buffer[..len].chunks_exact(8) {
            sum ^= u64::from_le_bytes(word.try_into().expect("eight bytes"));
        }
    }
}

/// Most memory that this process has had resident, in bytes; 0 where the system does not tell.
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes: u64 =
        line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or_default();
    kilobytes * 1024
}
