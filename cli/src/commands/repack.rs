//! `etlkit compress` and `etlkit decompress`: change the compression of buffers.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use etl_format::compress::Effort;
use etl_format::constants::CompressionFormat;
use etl_format::read::{PipeSource, Source};
use etl_format::rewrite::repack::{RepackReport, Repacker};
use etl_format::write::BufferCompressor;
use serde::Serialize;

use crate::Outcome;
use crate::error::Failure;
use crate::input::{self, Input, InputArgs, WithSource};
use crate::output::{self, ReportFormat};
use crate::progress::Progress;
use crate::sink::{Sink, SinkArgs};
use crate::threads::ThreadArgs;

/// Incremented when a field of the report changes its meaning or is removed.
const SCHEMA_VERSION: u32 = 1;

/// Bytes that are collected before they are written.
const CHUNK: usize = 1 << 20;

/// Arguments of `etlkit compress`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Only the compression of the buffers changes: `etlkit decompress` restores the same bytes.

Exit codes: 0 success, 2 error (the trace is damaged or cannot be read or written).

Examples:
  etlkit compress trace.etl -o small.etl
  etlkit compress trace.etl -o small.etl --compression-level best --format json
  cat trace.etl | etlkit compress - -o - > small.etl")]
pub(crate) struct CompressCommand {
    /// Trace to read; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    sink: SinkArgs,
    /// Compression format of the buffers; Windows uses xpress
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    algorithm: Algorithm,
    /// Trade speed for size
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t)]
    compression_level: Level,
    /// Format of the report; docs/files.md describes the JSON
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    input: InputArgs,
}

/// Arguments of `etlkit decompress`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 success, 2 error (the trace is damaged or cannot be read or written).

Examples:
  etlkit decompress merged.etl -o plain.etl
  etlkit decompress merged.etl -o plain.etl --threads 1
  etlkit decompress merged.etl -o - | some-reader -")]
pub(crate) struct DecompressCommand {
    /// Trace to read; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    sink: SinkArgs,
    /// Format of the report; docs/files.md describes the JSON
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    input: InputArgs,
}

/// The compression arguments of every command that writes a trace.
#[derive(Debug, clap::Args)]
pub(crate) struct CompressArgs {
    /// Compress the buffers of the output
    #[arg(long)]
    compress: bool,
    /// Compression format of the buffers; Windows uses xpress
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, requires = "compress")]
    algorithm: Algorithm,
    /// Trade speed for size
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t, requires = "compress")]
    compression_level: Level,
}

impl CompressArgs {
    /// Format and effort, with `--compress`.
    pub fn chosen(&self) -> Option<(CompressionFormat, Effort)> {
        self.compress.then(|| (self.algorithm.format(), self.compression_level.effort()))
    }

    /// A compressor, with `--compress`.
    pub fn compressor(&self, threads: &ThreadArgs) -> Option<BufferCompressor> {
        let (format, effort) = self.chosen()?;
        // The library supports all formats that can be chosen.
        let compressor = BufferCompressor::new(format, effort).ok()?;
        Some(compressor.with_threads(threads.count()))
    }
}

impl Algorithm {
    fn format(self) -> CompressionFormat {
        match self {
            Algorithm::Xpress => CompressionFormat::XPRESS,
            Algorithm::Lznt1 => CompressionFormat::LZNT1,
            Algorithm::XpressHuff => CompressionFormat::XPRESS_HUFF,
        }
    }
}

impl Level {
    fn effort(self) -> Effort {
        match self {
            Level::Fast => Effort::Fast,
            Level::Default => Effort::Default,
            Level::Best => Effort::Best,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Algorithm {
    /// Plain LZ77
    #[default]
    Xpress,
    /// LZ77 in chunks of 4 KB
    Lznt1,
    /// LZ77 with Huffman coding
    XpressHuff,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Level {
    /// Fastest
    Fast,
    /// Balanced
    #[default]
    Default,
    /// Smallest
    Best,
}

pub(crate) fn compress(args: &CompressCommand) -> Result<Outcome, Failure> {
    let (format, effort) = (args.algorithm.format(), args.compression_level.effort());
    let compressor =
        BufferCompressor::new(format, effort).map_err(|e| Failure::new("", e.to_string()))?;
    let compressor = compressor.with_threads(args.threads.count());
    run(&args.file, &args.input, &args.sink, args.format, Repacker::compress(compressor))
}

pub(crate) fn decompress(args: &DecompressCommand) -> Result<Outcome, Failure> {
    let repacker = Repacker::decompress().threads(args.threads.count());
    run(&args.file, &args.input, &args.sink, args.format, repacker)
}

fn run(
    file: &Path,
    input: &InputArgs,
    sink: &SinkArgs,
    format: ReportFormat,
    repacker: Repacker<'static>,
) -> Result<Outcome, Failure> {
    let (name, compress) = (input::display(file), repacker.compresses());
    let mut sink = Sink::create(sink, [file])?;
    let done = if input::is_stdin(file) {
        let input::Stream { reader, head, from } = input::stdin_stream(input)?;
        let origin = Origin { name: &name, head: &head, from: from.as_deref() };
        repack(PipeSource::new(reader), &origin, 0, &mut sink, repacker)?
    } else {
        Input::open(file, input)?.with(Repack { name: &name, sink: &mut sink, repacker })?
    };
    let report = Report::new(&name, sink.name(), &done, compress).render(format);
    sink.finish(&report)?;
    Ok(Outcome::Success)
}

struct Repack<'a> {
    name: &'a str,
    sink: &'a mut Sink,
    repacker: Repacker<'static>,
}

impl WithSource for Repack<'_> {
    type Output = Result<RepackReport, Failure>;

    fn with<S: Source>(self, mut source: S) -> Self::Output {
        let head = input::head(&mut source);
        let total = source.size().unwrap_or(0);
        let origin = Origin { name: self.name, head: &head, from: None };
        repack(source, &origin, total, self.sink, self.repacker)
    }
}

/// What an error reports about the input.
struct Origin<'a> {
    name: &'a str,
    head: &'a [u8],
    from: Option<&'a str>,
}

fn repack<S: Source>(
    source: S,
    origin: &Origin<'_>,
    total: u64,
    sink: &mut Sink,
    repacker: Repacker<'static>,
) -> Result<RepackReport, Failure> {
    let mut progress = Progress::new(total, false);
    let watch = |bytes: u64| progress.pass(usize::try_from(bytes).unwrap_or(usize::MAX));
    let mut out = FailureFlag { out: BufWriter::with_capacity(CHUNK, sink.file()), failed: false };
    let done = repacker.on_buffer(watch).run(source, &mut out);
    let failed = out.failed;
    drop(out);
    done.map_err(|e| {
        let hint = "the trace is damaged: `etlkit repair` writes an intact one from it";
        if failed {
            return sink.failure(&e);
        }
        input::not_intact(origin.name, &e, origin.head, hint).unpacked(origin.from)
    })
}

/// Records whether writing failed, to distinguish it from a failure of reading.
struct FailureFlag<W> {
    out: W,
    failed: bool,
}

impl<W: Write> Write for FailureFlag<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write(bytes).inspect_err(|_| self.failed = true)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush().inspect_err(|_| self.failed = true)
    }
}

/// The report; docs/files.md describes it.
#[derive(Debug, Serialize)]
struct Report<'a> {
    schema_version: u32,
    file: &'a str,
    output: &'a str,
    action: &'static str,
    was_compressed: bool,
    buffers: u64,
    buffers_compressed: u64,
    bytes_in: u64,
    bytes_out: u64,
    bytes_used: u64,
}

impl<'a> Report<'a> {
    fn new(file: &'a str, output: &'a str, done: &RepackReport, compress: bool) -> Self {
        Report {
            schema_version: SCHEMA_VERSION,
            file,
            output,
            action: if compress { "compress" } else { "decompress" },
            was_compressed: done.was_compressed,
            buffers: done.buffers,
            buffers_compressed: done.compressed,
            bytes_in: done.bytes_in,
            bytes_out: done.bytes_out,
            bytes_used: done.used,
        }
    }

    fn render(&self, format: ReportFormat) -> String {
        match format {
            ReportFormat::Json => output::json(self),
            ReportFormat::Text => {
                let share = 100.0 * self.bytes_out as f64 / (self.bytes_in as f64).max(1.0);
                format!(
                    "{}: {} buffers, {} compressed; {} from {} ({share:.1}%)\n",
                    self.output,
                    self.buffers,
                    self.buffers_compressed,
                    output::size(self.bytes_out),
                    output::size(self.bytes_in),
                )
            }
        }
    }
}
