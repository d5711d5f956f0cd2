//! `etlkit compress` and `etlkit decompress`.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use etl_format::compress::Effort;
use etl_format::constants::CompressionFormat;
use etl_format::read::{Options, PipeSource, Source};
use etl_format::rewrite::repack::{self, Repacked};
use etl_format::write::BufferCompressor;
use serde::Serialize;

use crate::Outcome;
use crate::error::Failure;
use crate::input::{self, Input, InputArgs, WithSource};
use crate::output::{self, ReportFormat};
use crate::progress::Progress;
use crate::sink::{Sink, SinkArgs};
use crate::threads::ThreadArgs;

/// Raised when a field of the report changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

/// Bytes gathered before they are written.
const CHUNK: usize = 1 << 20;

/// Arguments of `etlkit compress`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 done, 2 not readable, damaged, or not writable.

Nothing but the compression of the buffers changes: `etlkit decompress` gives the same file again.

Examples:
  etlkit compress trace.etl -o small.etl
  etlkit compress trace.etl -o small.etl --effort best --format json
  cat trace.etl | etlkit compress - -o - > small.etl")]
pub(crate) struct CompressCommand {
    /// The trace; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    sink: SinkArgs,
    /// Format of the compressed buffers; Windows writes and reads xpress
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    algorithm: Algorithm,
    /// How much work to put into it
    #[arg(long, value_enum, default_value_t)]
    effort: Work,
    /// How to print the report; docs/files.md describes the JSON
    #[arg(long = "format", value_enum, default_value_t)]
    report: ReportFormat,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    input: InputArgs,
}

/// Arguments of `etlkit decompress`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 done, 2 not readable, damaged, or not writable.

Examples:
  etlkit decompress merged.etl -o plain.etl
  etlkit decompress merged.etl -o plain.etl --threads 1
  etlkit decompress merged.etl -o - | some-reader -")]
pub(crate) struct DecompressCommand {
    /// The trace; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    sink: SinkArgs,
    /// How to print the report; docs/files.md describes the JSON
    #[arg(long = "format", value_enum, default_value_t)]
    report: ReportFormat,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    input: InputArgs,
}

/// Whether and how the buffers of a new trace are compressed: of every tool that makes one.
#[derive(Debug, clap::Args)]
pub(crate) struct CompressArgs {
    /// Compress the buffers of the new trace
    #[arg(long)]
    compress: bool,
    /// Format of the compressed buffers; Windows writes and reads xpress
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, requires = "compress")]
    algorithm: Algorithm,
    /// How much work to put into it
    #[arg(long, value_enum, default_value_t, requires = "compress")]
    effort: Work,
}

impl CompressArgs {
    /// The format and the effort, if the user wants any.
    pub fn chosen(&self) -> Option<(CompressionFormat, Effort)> {
        self.compress.then(|| (self.algorithm.format(), self.effort.effort()))
    }

    /// A compressor for the new trace, if the user wants one.
    pub fn compressor(&self, threads: &ThreadArgs) -> Option<BufferCompressor> {
        let (format, effort) = self.chosen()?;
        // All formats that can be named are known to the library.
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

impl Work {
    fn effort(self) -> Effort {
        match self {
            Work::Fast => Effort::Fast,
            Work::Default => Effort::Default,
            Work::Best => Effort::Best,
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
enum Work {
    /// Quick
    Fast,
    /// As small as is quick
    #[default]
    Default,
    /// Small, and slow
    Best,
}

pub(crate) fn compress(args: &CompressCommand) -> Result<Outcome, Failure> {
    let (format, effort) = (args.algorithm.format(), args.effort.effort());
    let compressor =
        BufferCompressor::new(format, effort).map_err(|e| Failure::new("", e.to_string()))?;
    let compressor = compressor.with_threads(args.threads.count());
    run(&args.file, &args.input, &args.sink, args.report, How::Pack(&compressor))
}

pub(crate) fn decompress(args: &DecompressCommand) -> Result<Outcome, Failure> {
    let how = How::Unpack { threads: args.threads.count() };
    run(&args.file, &args.input, &args.sink, args.report, how)
}

/// What is done to the buffers.
enum How<'a> {
    Pack(&'a BufferCompressor),
    Unpack { threads: usize },
}

fn run(
    file: &Path,
    input: &InputArgs,
    sink: &SinkArgs,
    report: ReportFormat,
    how: How<'_>,
) -> Result<Outcome, Failure> {
    let (name, compress) = (input::display(file), matches!(how, How::Pack(_)));
    let mut sink = Sink::create(sink, [file])?;
    let done = if input::is_stdin(file) {
        let input::Stream { reader, head, from } = input::stdin_stream(input)?;
        let told = Told { name: &name, head: &head, from: from.as_deref() };
        repacked(PipeSource::new(reader), &told, 0, &mut sink, how)?
    } else {
        Input::open(file, input)?.with(Repack { name: &name, sink: &mut sink, how })?
    };
    let report = Report::new(&name, sink.name(), &done, compress).render(report);
    sink.finish(&report)?;
    Ok(Outcome::Fine)
}

struct Repack<'a> {
    name: &'a str,
    sink: &'a mut Sink,
    how: How<'a>,
}

impl WithSource for Repack<'_> {
    type Output = Result<Repacked, Failure>;

    fn with<S: Source>(self, mut source: S) -> Self::Output {
        let head = input::head(&mut source);
        let total = source.size().unwrap_or(0);
        let told = Told { name: self.name, head: &head, from: None };
        repacked(source, &told, total, self.sink, self.how)
    }
}

/// What an error names of the input.
struct Told<'a> {
    name: &'a str,
    head: &'a [u8],
    from: Option<&'a str>,
}

fn repacked<S: Source>(
    source: S,
    told: &Told<'_>,
    total: u64,
    sink: &mut Sink,
    how: How<'_>,
) -> Result<Repacked, Failure> {
    let mut progress = Progress::new(total, false);
    let watch = |bytes: u64| progress.pass(usize::try_from(bytes).unwrap_or(usize::MAX));
    let mut out = Watched { out: BufWriter::with_capacity(CHUNK, sink.file()), failed: false };
    let done = match how {
        How::Pack(compressor) => {
            repack::compress(source, &mut out, compressor, &Options::default(), watch)
        }
        How::Unpack { threads } => {
            let options = Options { threads, ..Options::default() };
            repack::decompress(source, &mut out, &options, watch)
        }
    };
    let failed = out.failed;
    drop(out);
    done.map_err(|e| {
        let hint = "the trace is damaged; `etlkit repair` makes a sound one of it";
        if failed {
            return sink.failure(&e);
        }
        input::not_sound(told.name, &e, told.head, hint).unpacked(told.from)
    })
}

/// Tells a fault of the output from one of the input.
struct Watched<W> {
    out: W,
    failed: bool,
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write(bytes).inspect_err(|_| self.failed = true)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush().inspect_err(|_| self.failed = true)
    }
}

/// What is told of the work; docs/files.md describes it.
#[derive(Debug, Serialize)]
struct Report<'a> {
    schema_version: u32,
    input: &'a str,
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
    fn new(input: &'a str, output: &'a str, done: &Repacked, compress: bool) -> Self {
        Report {
            schema_version: SCHEMA_VERSION,
            input,
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
                    crate::escape::Printable(self.output),
                    self.buffers,
                    self.buffers_compressed,
                    output::size(self.bytes_out),
                    output::size(self.bytes_in),
                )
            }
        }
    }
}
