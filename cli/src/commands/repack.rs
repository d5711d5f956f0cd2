//! `etlkit compress` and `etlkit decompress`: change the compression of buffers.

use std::fmt;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use etl_format::compress::Effort;
use etl_format::constants::CompressionFormat;
use etl_format::read::{Options, PipeSource, Source};
use etl_format::rewrite::repack::{RepackReport, Repacker};
use etl_format::write::BufferCompressor;
use etl_tools::Compression;
use serde::Serialize;

use crate::Outcome;
use crate::choice::{Choice, one_of};
use crate::diagnostics::Condition;
use crate::error::Failure;
use crate::input::{self, About, Input};
use crate::output;
use crate::progress::{Printing, Progress};
use crate::rewrite::{self, RewriteArgs};
use crate::sink::Sink;

/// Bytes that are collected before they are written.
const CHUNK: usize = 1 << 20;

/// Arguments of `etlkit compress`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Only the compression of the buffers changes: `etlkit decompress` restores the same bytes.

Exit codes: 0 success, 1 buffers were lost before, 2 error (the trace is damaged or cannot be read
or written).

Examples:
  etlkit compress trace.etl -o small.etl
  etlkit compress trace.etl -o small.etl --compression-level best --format json
  cat trace.etl | etlkit compress - -o - > small.etl")]
pub(crate) struct CompressCommand {
    /// Trace to read; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Compression format of the buffers; Windows uses xpress
    #[arg(long, value_parser = one_of(ALGORITHMS), value_name = "FORMAT", default_value = "xpress")]
    algorithm: CompressionFormat,
    /// Trade speed for size
    #[arg(long, value_parser = one_of(LEVELS), value_name = "LEVEL", default_value = "default")]
    compression_level: Effort,
    #[command(flatten)]
    rewrite: RewriteArgs,
}

/// Arguments of `etlkit decompress`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 success, 1 buffers were lost before, 2 error (the trace is damaged or cannot be read
or written).

Examples:
  etlkit decompress merged.etl -o plain.etl
  etlkit decompress merged.etl -o plain.etl --threads 1
  etlkit decompress merged.etl -o - | some-reader -")]
pub(crate) struct DecompressCommand {
    /// Trace to read; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    rewrite: RewriteArgs,
}

/// The compression arguments of every command that writes a trace.
#[derive(Debug, clap::Args)]
pub(crate) struct CompressArgs {
    /// Compress the buffers of the output
    #[arg(long)]
    compress: bool,
    /// Compression format of the buffers; Windows uses xpress
    #[arg(long, value_parser = one_of(ALGORITHMS), value_name = "FORMAT", default_value = "xpress",
        requires = "compress")]
    algorithm: CompressionFormat,
    /// Trade speed for size
    #[arg(long, value_parser = one_of(LEVELS), value_name = "LEVEL", default_value = "default",
        requires = "compress")]
    compression_level: Effort,
}

impl CompressArgs {
    /// Format and effort, with `--compress`.
    pub fn chosen(&self) -> Option<Compression> {
        if !self.compress {
            return None;
        }
        Some(Compression {
            format: self.algorithm,
            effort: self.compression_level,
        })
    }

    /// A compressor, with `--compress`.
    pub fn compressor(&self, threads: usize) -> Option<BufferCompressor> {
        let Compression { format, effort } = self.chosen()?;
        // The library supports all formats that can be chosen.
        let compressor = BufferCompressor::new(format, effort).ok()?;
        Some(compressor.with_threads(threads))
    }
}

/// The words of `--algorithm`.
const ALGORITHMS: &[Choice<CompressionFormat>] = &[
    Choice::new("xpress", "Plain LZ77", CompressionFormat::XPRESS),
    Choice::new("lznt1", "LZ77 in chunks of 4 KB", CompressionFormat::LZNT1),
    Choice::new(
        "xpress-huff",
        "LZ77 with Huffman coding",
        CompressionFormat::XPRESS_HUFF,
    ),
];

/// The words of `--compression-level`.
const LEVELS: &[Choice<Effort>] = &[
    Choice::new("fast", "Fastest", Effort::Fast),
    Choice::new("default", "Balanced", Effort::Default),
    Choice::new("best", "Smallest", Effort::Best),
];

pub(crate) fn compress(args: &CompressCommand) -> Result<Outcome, Failure> {
    let compressor = BufferCompressor::new(args.algorithm, args.compression_level)
        .map_err(|e| Failure::new("", e.to_string()))?;
    let compressor = compressor.with_threads(args.rewrite.threads());
    run(&args.file, &args.rewrite, Repacker::compress(compressor), 1)
}

pub(crate) fn decompress(args: &DecompressCommand) -> Result<Outcome, Failure> {
    let threads = args.rewrite.threads();
    run(&args.file, &args.rewrite, Repacker::decompress(), threads)
}

fn run(
    file: &Path,
    args: &RewriteArgs,
    repacker: Repacker<'_>,
    threads: usize,
) -> Result<Outcome, Failure> {
    let name = input::display(file);
    let compress = repacker.compresses();
    let mut sink = Sink::create(&args.sink, "a trace", [file])?;
    let mut options = Options {
        threads,
        ..Options::default()
    };
    let done = if input::is_stdin(file) {
        let input::Stream { reader, about } = input::stdin_stream(&args.input)?;
        options.limits = args.input.limits(u64::MAX);
        let source = PipeSource::new(reader);
        repack(source, &about, &mut sink, repacker.options(options))?
    } else {
        let mut input = Input::open(file, &args.input)?;
        let about = input.about().clone();
        options.limits = input.limits();
        repack(input.source(), &about, &mut sink, repacker.options(options))?
    };
    rewrite::finish(sink, &name, args.format, &Report::new(&done, compress))?;
    Ok(Condition {
        notes: &done.notes,
        mode: done.mode,
        ..Condition::default()
    }
    .report(&name))
}

fn repack<S: Source>(
    source: S,
    about: &About,
    sink: &mut Sink,
    repacker: Repacker<'_>,
) -> Result<RepackReport, Failure> {
    about.ensure_whole_stream("`etlkit convert` converts the intact parts of a stream")?;
    let mut progress = Progress::new(source.size().unwrap_or(0), Printing::Nothing);
    let mut out = FailureFlag {
        out: BufWriter::with_capacity(CHUNK, sink.file()),
        failed: false,
    };
    let done = repacker
        .on_buffer(move |bytes| progress.add(bytes))
        .run(source, &mut out);
    let failed = out.failed;
    drop(out);
    done.map_err(|e| {
        let hint = "the trace is damaged: `etlkit repair` writes an intact one from it";
        if failed {
            sink.failure(&e)
        } else {
            about.not_intact(&e, hint)
        }
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

/// The report; docs/rewrite.md describes it.
#[derive(Debug, Serialize)]
struct Report {
    action: &'static str,
    was_compressed: bool,
    buffers: u64,
    buffers_compressed: u64,
    bytes_in: u64,
    bytes_out: u64,
    bytes_used: u64,
}

impl Report {
    fn new(done: &RepackReport, compress: bool) -> Self {
        Report {
            action: if compress { "compress" } else { "decompress" },
            was_compressed: done.was_compressed,
            buffers: done.buffers,
            buffers_compressed: done.compressed,
            bytes_in: done.bytes_in,
            bytes_out: done.bytes_out,
            bytes_used: done.used,
        }
    }
}

impl rewrite::Report for Report {
    fn text(&self, _: &str, output: &str, out: &mut String) -> fmt::Result {
        let buffers = self.buffers;
        let compressed = self.buffers_compressed;
        let size_in = output::size(self.bytes_in);
        let size_out = output::size(self.bytes_out);
        let share = 100.0 * self.bytes_out as f64 / (self.bytes_in as f64).max(1.0);
        fmt::Write::write_fmt(
            out,
            format_args!(
                "{output}: {buffers} buffers, {compressed} compressed; \
                 {size_out} from {size_in} ({share:.1}%)\n"
            ),
        )
    }
}
