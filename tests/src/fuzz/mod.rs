//! Fuzz targets: one for each function that reads bytes of others.
//!
//! A target takes any bytes and must return. A panic, an endless loop and unbounded memory are
//! faults of the tested code; a failed assertion is a broken promise. `fuzz/` runs the targets with
//! libFuzzer; `tests/tests/it/hostile.rs` runs them without a fuzzer, on the [`seeds`] and on all
//! inputs that failed before. [`mutate`] and [`generate`] know the structure of traces, so that a
//! fuzzer gets past the header.

pub mod generate;
pub mod mutate;
pub mod regressions;
pub mod seeds;

mod cli;
mod commands;
mod events;
mod format;
mod made;
mod nettrace;
mod packed;
mod schemas;
mod symbols;
mod texts;
mod tools;

/// A function that reads bytes of others.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name that selects it.
    pub name: &'static str,
    /// What it tests.
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

impl Target {
    /// The commands of `etlkit` that the last byte of an input selects; 0 if it selects none.
    #[must_use]
    pub fn ways(&self) -> u8 {
        let ways = match self.name {
            "commands" => commands::WAYS,
            "printed" => cli::WAYS,
            _ => 0,
        };
        u8::try_from(ways).unwrap_or(u8::MAX)
    }
}

const fn target(name: &'static str, about: &'static str, run: fn(&[u8])) -> Target {
    Target {
        name,
        about,
        longest: 4096,
        trace: false,
        text: false,
        run,
    }
}

/// A target whose inputs are text.
const fn written(name: &'static str, about: &'static str, run: fn(&[u8])) -> Target {
    Target {
        name,
        about,
        longest: 4096,
        trace: false,
        text: true,
        run,
    }
}

/// A target whose inputs are traces.
const fn trace(name: &'static str, about: &'static str, run: fn(&[u8])) -> Target {
    Target {
        name,
        about,
        longest: 1 << 14,
        trace: true,
        text: false,
        run,
    }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    trace(
        "file",
        "a file: slice, file, pipe; strict and salvage; file and time order",
        format::file,
    ),
    target(
        "generated",
        "a written trace of any records, then damaged",
        generate::run,
    ),
    target(
        "header",
        "the header event and the records beside it in buffer 0",
        format::header,
    ),
    target(
        "buffer",
        "one buffer after an intact buffer",
        format::buffer,
    ),
    target(
        "record",
        "one record of any kind in an intact buffer",
        format::record,
    ),
    target(
        "extended",
        "the extended items of an EVENT record",
        format::extended,
    ),
    target(
        "nettrace",
        "EventPipe streams: at once, in pieces, cut; in both orders",
        nettrace::run,
    ),
    target("xpress", "XPRESS, both ways", packed::xpress),
    target("lznt1", "LZNT1, both ways", packed::lznt1),
    target(
        "huffman",
        "XPRESS with Huffman coding, both ways",
        packed::huffman,
    ),
    target(
        "tracelogging",
        "TraceLogging metadata, provider traits, and payloads by them",
        schemas::tracelogging,
    ),
    written(
        "eventsource",
        "manifests that event sources write in chunks",
        schemas::eventsource,
    ),
    written("manifest", "XML manifests", schemas::manifest),
    written("tmf", "message formats of WPP", schemas::tmf),
    target(
        "event_info",
        "TRACE_EVENT_INFO and map records of merged traces",
        schemas::event_info,
    ),
    target(
        "payload",
        "a payload by a schema of any shape",
        schemas::payload,
    ),
    trace("decode", "every payload of a trace as text", tools::decode),
    written("scenario", "scenario scripts", texts::scenario),
    written("config", "etlverify.toml", texts::config),
    written("mask", "provider masks: NAME:MASK:LEVEL", texts::mask),
    written(
        "controller",
        "command lines of xperf, logman and tracelog",
        texts::controller,
    ),
    written("table", "spec tables of providers", texts::table),
    trace("merge", "traces merged", tools::merge),
    trace("slice", "a piece cut out", tools::slice),
    trace("scrub", "names and texts replaced", tools::scrub),
    trace("diff", "two traces compared", tools::diff),
    trace(
        "repair",
        "an intact trace from a damaged one",
        tools::repair,
    ),
    trace(
        "repack",
        "buffers compressed and decompressed",
        tools::repack,
    ),
    trace(
        "verify",
        "a trace verified, and the report in every format",
        tools::verify,
    ),
    trace(
        "printed",
        "what etlkit prints about a trace, in every format",
        cli::printed,
    ),
    trace(
        "commands",
        "every analysis, export and rewriting command of etlkit",
        commands::commands,
    ),
    target(
        "converted",
        "EventPipe streams converted, analysed and exported",
        commands::converted,
    ),
    target("pdb", "PDBs: functions and source lines", symbols::pdb),
    target(
        "input",
        "any input of the events crate: from memory and a pipe",
        events::input,
    ),
    written("conditions", "conditions on events", events::conditions),
    target("unpack", "gzip, Zstandard and ZIP", cli::unpack),
    written(
        "arguments",
        "arguments of etlkit's commands",
        cli::arguments,
    ),
    written(
        "truth",
        "truth.jsonl, the sessions of a simulation",
        texts::truth,
    ),
];

/// The target of a name.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn find(name: &str) -> &'static Target {
    TARGETS
        .iter()
        .find(|t| t.name == name)
        .expect("a target of that name")
}

/// Splits off the first byte, which selects a variant of the test.
fn choice(data: &[u8]) -> (u8, &[u8]) {
    data.split_first()
        .map_or((0, data), |(first, rest)| (*first, rest))
}

/// The bytes as text.
fn text(data: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(data)
}
