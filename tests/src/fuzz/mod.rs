//! What is done to foreign bytes, for fuzzers and for tests: a target for each place where they come in.
//!
//! A target takes any bytes and must return: a panic, an endless loop or unbounded memory is a fault of
//! the code under test, a failed assertion a promise that does not hold. `fuzz/` gives each target to
//! libFuzzer; `tests/tests/it/hostile.rs` runs them on stable over the [`seeds`] and over every input that
//! ever failed. [`mutate`] and [`generate`] know how a trace is built, so that a fuzzer gets further
//! than its header.

pub mod generate;
pub mod mutate;
pub mod regressions;
pub mod seeds;

mod cli;
mod format;
mod made;
mod packed;
mod schemas;
mod texts;
mod tools;

/// A place where foreign bytes come in.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: that of the binary in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// What it feeds.
    pub about: &'static str,
    /// Longest input that is worth trying, in bytes.
    pub longest: usize,
    /// Whether inputs are traces, which [`mutate::trace`] knows how to change.
    pub trace: bool,
    /// Whether inputs are text, whose words a fuzzer should know.
    pub text: bool,
    /// Takes any bytes.
    pub run: fn(&[u8]),
}

const fn target(name: &'static str, about: &'static str, run: fn(&[u8])) -> Target {
    Target { name, about, longest: 4096, trace: false, text: false, run }
}

/// A target whose inputs are text.
const fn written(name: &'static str, about: &'static str, run: fn(&[u8])) -> Target {
    Target { name, about, longest: 4096, trace: false, text: true, run }
}

/// A target whose inputs are traces.
const fn trace(name: &'static str, about: &'static str, run: fn(&[u8])) -> Target {
    Target { name, about, longest: 1 << 14, trace: true, text: false, run }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    trace(
        "file",
        "a file: slice, file, pipe; strict and salvage; file and time order",
        format::file,
    ),
    target("generated", "a trace of the writer's, of any records, then harmed", generate::run),
    target("header", "the header event and the records beside it in buffer 0", format::header),
    target("buffer", "one buffer behind a sound beginning", format::buffer),
    target("record", "one record of any kind in a sound buffer", format::record),
    target("extended", "the extended items of an EVENT record", format::extended),
    target("xpress", "XPRESS, both ways", packed::xpress),
    target("lznt1", "LZNT1, both ways", packed::lznt1),
    target("huffman", "XPRESS with Huffman coding, both ways", packed::huffman),
    target(
        "tracelogging",
        "TraceLogging metadata, provider traits, and payloads by them",
        schemas::tracelogging,
    ),
    written("eventsource", "manifests that event sources write in chunks", schemas::eventsource),
    written("manifest", "XML manifests", schemas::manifest),
    written("tmf", "message formats of WPP", schemas::tmf),
    target("event_info", "TRACE_EVENT_INFO and map records of merged traces", schemas::event_info),
    target("payload", "a payload by a schema of any shape", schemas::payload),
    trace("decode", "every payload of a trace as text", tools::decode),
    written("scenario", "scenario scripts, and what comes of small ones", texts::scenario),
    written("config", "etlverify.toml", texts::config),
    written("mask", "provider masks: NAME:MASK:LEVEL", texts::mask),
    written("controller", "command lines of xperf, logman and tracelog", texts::controller),
    written("table", "spec tables of providers", texts::table),
    trace("merge", "traces merged", tools::merge),
    trace("slice", "a piece cut out", tools::slice),
    trace("scrub", "names and texts replaced", tools::scrub),
    trace("diff", "two traces compared", tools::diff),
    trace("repair", "a sound trace from a damaged one", tools::repair),
    trace("repack", "buffers compressed and decompressed", tools::repack),
    trace("verify", "a trace judged, and the report in every form", tools::verify),
    trace("printed", "what etlkit prints of a trace, in every form", cli::printed),
    target("unpack", "gzip, Zstandard and ZIP", cli::unpack),
    written("arguments", "what is typed behind etlkit's commands", cli::arguments),
    written("truth", "truth.jsonl, which tells of a simulation's sessions", texts::truth),
];

/// The target of a name.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn find(name: &str) -> &'static Target {
    TARGETS.iter().find(|t| t.name == name).expect("a target of that name")
}

/// Splits off the byte by which an input chooses among ways of doing things.
fn choice(data: &[u8]) -> (u8, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (*first, rest))
}

/// As text, whatever it is.
fn text(data: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(data)
}
