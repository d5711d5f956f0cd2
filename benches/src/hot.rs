//! Instructions of the hot loops, counted by callgrind: a figure that does not depend on who else is at
//! work, so that a loss of a few percent shows on any machine.
//!
//! Each loop runs once and again in one process less or more, and the difference is what it takes:
//! starting, reading the input and ending drop out, and no symbols are needed.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use etl_format::compress;
use etl_format::constants::CompressionFormat;
use etl_format::read::{Options, OrderCheck, Trace};
use etl_format::rewrite::repack;
use etl_format::write::BufferCompressor;
use etl_schema::store::SchemaStore;
use etl_verify::Verifier;

use crate::decode::Payloads;
use crate::writing;

/// How far a count may be above the committed one.
const TOLERANCE: f64 = 0.03;

/// A loop that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Loop {
    /// Every record, as the file stands.
    Walk,
    /// Every record, in time order.
    Ordered,
    /// XPRESS, to the bytes.
    XpressDecode,
    /// Bytes, to XPRESS.
    XpressEncode,
    /// Every field of every known event.
    Fields,
    /// Judging.
    Verify,
    /// Encoding records into a session's buffers.
    Writer,
}

impl Loop {
    fn name(self) -> String {
        self.to_possible_value().expect("all loops have names").get_name().to_owned()
    }

    /// Does it so many times.
    pub fn run(self, input: &Path, times: u32) {
        let bytes = std::fs::read(input).expect("the input is readable");
        let again = |work: &dyn Fn()| (0..times).for_each(|_| work());
        match self {
            Loop::Walk => again(&|| look(crate::file_order(&bytes))),
            Loop::Ordered => again(&|| look(crate::time_order(&bytes, OrderCheck::Ahead))),
            Loop::XpressDecode => {
                let trace = Trace::open(&bytes[..], &Options::default()).expect("it is a trace");
                let packed: Vec<_> = trace.buffers().iter().filter(|b| b.compressed).collect();
                let mut out = vec![0; 1 << 20];
                assert!(!packed.is_empty(), "the input is compressed");
                for _ in 0..times {
                    for entry in &packed {
                        let at = entry.offset as usize;
                        let input = &bytes[at + 0x48..at + entry.stored as usize];
                        let out = &mut out[..entry.fill as usize - 0x48];
                        compress::decompress(entry.format, input, out).expect("it is whole");
                        black_box(out);
                    }
                }
            }
            Loop::XpressEncode => again(&|| look(pack(&bytes))),
            Loop::Fields => {
                let store = SchemaStore::default();
                let payloads = Payloads::of(&bytes, &store);
                assert!(payloads.len() > 0, "the input holds known events");
                again(&|| look(payloads.decode()));
            }
            Loop::Verify => again(&|| {
                look(Verifier::new().verify(&bytes[..], "").expect("it is a trace"));
            }),
            Loop::Writer => again(&|| look(writing::session(1))),
        }
    }
}

/// What counts, as far as a count depends on it: valgrind's version, and whether the processor that it plays has
/// the wide instructions which libraries choose when they run. Of those it shows programs always the same ones.
fn counter() -> Option<String> {
    let output = Command::new("valgrind").arg("--version").output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    #[cfg(target_arch = "x86_64")]
    let wide = if std::arch::is_x86_feature_detected!("avx2") { ", AVX2" } else { "" };
    #[cfg(not(target_arch = "x86_64"))]
    let wide = "";
    Some(version + wide)
}

/// Nothing that was worked out for this can be left out.
fn look<T>(result: T) {
    let _ = black_box(result);
}

/// The trace with its buffers compressed.
fn pack(bytes: &[u8]) -> Vec<u8> {
    let compressor = BufferCompressor::new(CompressionFormat::XPRESS, compress::Effort::Default)
        .expect("the format is known");
    let mut out = Vec::new();
    repack::compress(bytes, &mut out, &compressor, &Options::default(), |_| {})
        .expect("it is whole");
    out
}

/// Counts all loops and holds them against the figures of the file for this compiler; with `update` writes
/// them there instead. Whether all is well.
pub fn check(scenario: &Path, directory: &Path, figures: &Path, update: bool) -> bool {
    let Some(counter) = counter() else {
        eprintln!(
            "SKIPPED: valgrind is not installed (apt-get install valgrind): no instruction was counted"
        );
        return true;
    };
    let (plain, packed) = inputs(scenario, directory);
    let mut counts = BTreeMap::new();
    for each in Loop::value_variants() {
        let input = if *each == Loop::XpressDecode { &packed } else { &plain };
        let once = count(*each, input, directory, 1);
        let twice = count(*each, input, directory, 2);
        counts.insert(each.name(), twice.saturating_sub(once));
    }
    let text = std::fs::read_to_string(figures).unwrap_or_else(|_| "{}".to_owned());
    let mut known: BTreeMap<String, BTreeMap<String, u64>> =
        serde_json::from_str(&text).expect("the figures are JSON");
    let compiler = format!("{}, {counter}", crate::compiler());
    if update {
        for (name, count) in &counts {
            println!("{name:<16}{count:>14}");
        }
        known.insert(compiler, counts);
        let text = serde_json::to_string_pretty(&known).expect("numbers and names");
        std::fs::write(figures, text + "\n").expect("the figures can be written");
        return true;
    }
    let Some(known) = known.get(&compiler) else {
        for (name, count) in &counts {
            println!("{name:<16}{count:>14}");
        }
        eprintln!("SKIPPED: there are no figures for {compiler}: --callgrind --update takes these");
        return true;
    };
    let mut sound = true;
    println!("{:<16}{:>14}{:>14}{:>9}", "instructions", "committed", "now", "change");
    for (name, &now) in &counts {
        let (was, verdict) = verdict(known.get(name).copied(), now);
        sound &= verdict != Verdict::Worse;
        println!(
            "{name:<16}{:>14}{now:>14}{:>8.2}%  {}",
            was,
            change(was, now) * 100.0,
            verdict.text()
        );
    }
    if !sound {
        eprintln!(
            "a loop takes more than {:.0} % more instructions than committed",
            TOLERANCE * 100.0
        );
    }
    sound
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    Better,
    Worse,
    New,
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Verdict::Same => "",
            Verdict::Better => "less: --callgrind --update takes the new figure",
            Verdict::Worse => "MORE",
            Verdict::New => "not committed yet",
        }
    }
}

fn change(was: u64, now: u64) -> f64 {
    if was == 0 { 0.0 } else { now as f64 / was as f64 - 1.0 }
}

fn verdict(was: Option<u64>, now: u64) -> (u64, Verdict) {
    let Some(was) = was else { return (0, Verdict::New) };
    let verdict = match change(was, now) {
        by if by > TOLERANCE => Verdict::Worse,
        by if by < -TOLERANCE => Verdict::Better,
        _ => Verdict::Same,
    };
    (was, verdict)
}

/// The inputs, which are the same everywhere: a simulated trace of about a megabyte, and the same compressed.
fn inputs(scenario: &Path, directory: &Path) -> (PathBuf, PathBuf) {
    let set = ["until=1.6s", "stop=3s"].iter().flat_map(|set| ["--set", set]);
    let args = ["etlkit", "synth", "--no-truth"].into_iter().chain(set).map(Into::into);
    let out = directory.join("counted");
    let last = [scenario.as_os_str().into(), "-o".into(), out.clone().into_os_string()];
    let _ = etlkit::run(args.chain(last));
    let (plain, packed) = (out.join("big.etl"), directory.join("packed.etl"));
    let bytes = std::fs::read(&plain).expect("the scenario was simulated");
    std::fs::write(&packed, pack(&bytes)).expect("room on disk");
    (plain, packed)
}

/// Instructions of a process that goes through a loop so many times.
fn count(which: Loop, input: &Path, directory: &Path, times: u32) -> u64 {
    let out = directory.join("callgrind.out");
    let status = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe().expect("this program has a path"))
        .args(["--hot", &which.name(), "--times", &times.to_string(), "--input"])
        .arg(input)
        .stdout(Stdio::null())
        .status()
        .expect("valgrind starts");
    assert!(status.success(), "{which:?} ends well under callgrind");
    let text = std::fs::read(&out).expect("callgrind has written its counts");
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find_map(|l| l.strip_prefix("totals:").or(l.strip_prefix("summary:")));
    line.and_then(|l| l.trim().parse().ok()).expect("callgrind's output holds the total")
}

#[cfg(test)]
mod tests {
    use super::{Verdict, verdict};

    #[test]
    fn a_loop_that_takes_more_is_noticed() {
        assert_eq!(verdict(Some(1_000), 1_029).1, Verdict::Same);
        assert_eq!(verdict(Some(1_000), 1_031).1, Verdict::Worse);
        assert_eq!(verdict(Some(1_000), 971).1, Verdict::Same);
        assert_eq!(verdict(Some(1_000), 969).1, Verdict::Better);
        assert_eq!(verdict(None, 1), (0, Verdict::New));
    }
}
