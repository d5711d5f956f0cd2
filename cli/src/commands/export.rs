//! `etlkit export`: writes the CPU samples and the packets of a recording for other viewers.

mod difference;
mod firefox;
mod pcapng;
mod perfetto;
mod speedscope;
mod tables;

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use clap::{Subcommand, ValueEnum};
use etl_analysis::Observer;
use etl_analysis::behavior::allocations::StackedAllocations;
use etl_analysis::behavior::missing::MissingData;
use etl_analysis::profile::{Detail, Measure, ProfileOptions, SampleCollector};
use etl_export::{Unit, flamegraph, folded, pprof};
use etl_format::constants::FILETIME_UNIX_EPOCH;

use crate::Outcome;
use crate::compare_args::CompareArgs;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::profile::{ProfileRequest, Profiled};
use crate::recording::RecordingArgs;
use crate::sink::{Sink, SinkArgs};
use crate::symbols::SymbolArgs;

#[cfg(not(feature = "parquet"))]
pub(super) use tables::missing as without_tables;
#[cfg(feature = "parquet")]
pub(super) use tables::open_dataset;

/// Arguments of `etlkit export`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Several files are read as one recording.

Examples:
  etlkit export flamegraph trace.etl -o flame.html
  etlkit export speedscope kernel.etl clr.etl -o trace.speedscope.json
  etlkit export perfetto trace.etl -o trace.perfetto-trace
  etlkit export pcapng NetTrace.etl -o net.pcapng
  etlkit export parquet traces/ -o dataset")]
pub(crate) struct Args {
    #[command(subcommand)]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Format {
    /// Folded stacks: one line per stack, for flame graph scripts.
    Folded(ComparedArgs),
    /// A flame graph as one HTML page.
    Flamegraph(ComparedArgs),
    /// speedscope: the stacks of each thread in time order, and activities.
    Speedscope(StackArgs),
    /// pprof: addresses with identities of images.
    Pprof(PprofArgs),
    /// Firefox Profiler: samples and markers of each thread.
    Firefox(firefox::Args),
    /// Perfetto: processors and threads over time, samples, collections, heaps.
    Perfetto(perfetto::Args),
    /// pcapng: captured packets for Wireshark, and events.
    Pcapng(pcapng::Args),
    /// Parquet: tables of many traces, for DuckDB, Polars, pandas and Spark.
    Parquet(tables::ParquetArgs),
    /// Arrow: one table of a trace, as a file or a stream.
    Arrow(tables::ArrowArgs),
}

/// Arguments of the formats that count stacks in samples or in time.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
struct StackArgs {
    /// Count samples, time by the sample interval of the recording, or the bytes that .NET
    /// allocates [default: samples for folded stacks, time for the others]
    #[arg(long, value_enum)]
    weight: Option<Weight>,
    /// Separate the threads of a process (speedscope always does)
    #[arg(long)]
    by_thread: bool,
    #[command(flatten)]
    samples: SampleArgs,
}

/// Arguments of the formats that can show the difference of two traces.
#[derive(Debug, clap::Args)]
struct ComparedArgs {
    #[command(flatten)]
    compare: CompareArgs,
    #[command(flatten)]
    stacks: StackArgs,
}

/// Arguments of `etlkit export pprof`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
struct PprofArgs {
    /// Write the allocations of .NET instead of samples
    #[arg(long, value_enum)]
    weight: Option<PprofWeight>,
    #[command(flatten)]
    samples: SampleArgs,
}

/// Arguments of all formats.
#[derive(Debug, clap::Args)]
struct SampleArgs {
    /// Include the samples of idle processors
    #[arg(long)]
    idle: bool,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    sink: SinkArgs,
    #[command(flatten)]
    recording: RecordingArgs,
}

const AFTER_HELP: &str = "\
Needs the kernel's samples with stacks: `etlkit analyze cpu` shows what a recording has. For
--weight bytes, it needs allocation events of .NET: `etlkit analyze allocations` shows them.

Exit codes: 0 success, 1 the trace is damaged or lacks buffers; its intact part was read, 2 error.

Examples:
  etlkit export folded trace.etl -o stacks.txt
  etlkit export flamegraph --process Orders trace.etl -o flame.html
  etlkit export speedscope trace.etl -o trace.speedscope.json
  etlkit export flamegraph --weight bytes clr.etl -o allocations.html
  etlkit export flamegraph --compare before.etl --normalize after.etl -o difference.html
  etlkit export pprof kernel.etl clr.etl -o cpu.pb.gz
  etlkit export folded --from 2 --to 2.5 trace.etl -o - | sort -k 2 -n";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Weight {
    /// Number of samples
    Samples,
    /// Nanoseconds
    Time,
    /// Bytes that .NET allocates
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PprofWeight {
    /// Samples, and their time
    Samples,
    /// Bytes that .NET allocates
    Bytes,
}

impl StackArgs {
    fn options(&self) -> ProfileOptions {
        let options = ProfileOptions::new();
        if self.by_thread {
            options.by_thread()
        } else {
            options
        }
    }

    fn unit(&self, default: Weight) -> Unit {
        match self.weight.unwrap_or(default) {
            Weight::Samples => Unit::Samples,
            Weight::Time => Unit::Time,
            Weight::Bytes => Unit::Bytes,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.format {
        Format::Folded(args) => export_folded(args),
        Format::Flamegraph(args) => export_flamegraph(args),
        Format::Speedscope(args) => speedscope::run(args),
        Format::Pprof(args) => export_pprof(args),
        Format::Firefox(args) => firefox::run(args),
        Format::Perfetto(args) => perfetto::run(args),
        Format::Pcapng(args) => pcapng::run(args),
        Format::Parquet(args) => tables::parquet(args),
        Format::Arrow(args) => tables::arrow(args),
    }
}

fn export_folded(args: &ComparedArgs) -> Result<Outcome, Failure> {
    let ComparedArgs { compare, stacks } = args;
    if let Some(before) = &compare.compare {
        return difference::run(args, before, difference::Output::Folded);
    }
    if stacks.weight == Some(Weight::Bytes) {
        let export = stacks.samples.allocations(stacks.options())?;
        return export.write(|profiled, out| folded::write(&profiled.profile, Unit::Bytes, out));
    }
    let export = stacks
        .samples
        .collect(SampleCollector::new(), stacks.options(), ())?;
    export.ensure_samples()?;
    // Without an interval, samples have no time.
    if stacks.weight == Some(Weight::Time) && !export.profiled.profile.has_times() {
        return Err(no_interval(&export));
    }
    let unit = stacks.unit(Weight::Samples);
    export.write(|profiled, out| folded::write(&profiled.profile, unit, out))
}

fn export_flamegraph(args: &ComparedArgs) -> Result<Outcome, Failure> {
    let ComparedArgs { compare, stacks } = args;
    if let Some(before) = &compare.compare {
        return difference::run(args, before, difference::Output::Flamegraph);
    }
    if stacks.weight == Some(Weight::Bytes) {
        let export = stacks.samples.allocations(stacks.options())?;
        let title = export.title();
        return export
            .write(|profiled, out| flamegraph::write(&profiled.profile, &title, Unit::Bytes, out));
    }
    let export = stacks
        .samples
        .collect(SampleCollector::new(), stacks.options(), ())?;
    export.ensure_samples()?;
    let unit = stacks.unit(Weight::Time);
    let title = export.title();
    export.write(|profiled, out| flamegraph::write(&profiled.profile, &title, unit, out))
}

fn export_pprof(args: &PprofArgs) -> Result<Outcome, Failure> {
    let options = ProfileOptions::new().by_thread().detail(Detail::Addresses);
    if args.weight == Some(PprofWeight::Bytes) {
        let export = args.samples.allocations(options)?;
        let times = export.times();
        return export.write(|profiled, out| pprof::write(&profiled.profile, times, out));
    }
    let export = args.samples.collect(SampleCollector::new(), options, ())?;
    export.ensure_samples()?;
    let times = export.times();
    export.write(|profiled, out| pprof::write(&profiled.profile, times, out))
}

/// A profile, and the file that it is written to.
struct Export<O> {
    sink: Sink,
    profiled: Profiled<O>,
}

impl SampleArgs {
    /// Reads the recording with two observers, `samples` and `other`. Adds the selection of
    /// processes and threads to the options.
    fn collect<O: Observer>(
        &self,
        samples: SampleCollector,
        options: ProfileOptions,
        other: O,
    ) -> Result<Export<(SampleCollector, O)>, Failure> {
        let inputs = self.recording.files.iter().map(std::path::PathBuf::as_path);
        let symbols = self.symbols.open()?;
        let sink = Sink::create(&self.sink, "a profile", inputs)?;
        let options = if self.idle {
            options.with_idle()
        } else {
            options
        };
        let profiled = ProfileRequest::new(&self.recording, &symbols, options).run(
            |range| (samples.within(range), other),
            |(samples, _)| samples.profile_bytes(),
            |(samples, _), machine, options| samples.profile(machine, options),
        )?;
        Ok(Export { sink, profiled })
    }

    /// Reads the allocations of the recording with their stacks.
    fn allocations(&self, options: ProfileOptions) -> Result<Export<StackedAllocations>, Failure> {
        let inputs = self.recording.files.iter().map(std::path::PathBuf::as_path);
        let symbols = self.symbols.open()?;
        let sink = Sink::create(&self.sink, "a profile", inputs)?;
        let profiled = ProfileRequest::new(&self.recording, &symbols, options).run(
            |range| StackedAllocations::new().within(range),
            |allocations| allocations.profile_bytes(),
            StackedAllocations::profile,
        )?;
        if profiled.profile.total().samples > 0 {
            return Ok(Export { sink, profiled });
        }
        let name = profiled.analyzed.names.join(", ");
        let remedy = MissingData::Allocations.remedy();
        Err(Failure::new(name, "no allocation is selected").hint(remedy))
    }
}

impl<O> Export<O> {
    /// Fails if the profile has no samples.
    fn ensure_samples(&self) -> Result<(), Failure> {
        if self.profiled.profile.total().samples > 0 {
            return Ok(());
        }
        let name = self.profiled.analyzed.names.join(", ");
        Err(Failure::new(name, "no CPU sample is selected").hint(
            "record samples with `xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk Profile`; \
             `etlkit analyze cpu` shows what there is",
        ))
    }

    fn title(&self) -> String {
        title(&self.profiled.analyzed.names)
    }

    /// When the selected time began, and how long it lasted.
    fn times(&self) -> pprof::Times {
        const NANOS: i64 = 100;
        let analyzed = &self.profiled.analyzed;
        let clock = analyzed.machine.clock();
        let span = analyzed.selected_span();
        let first = clock.time(span.first).get();
        let last = clock.time(span.last).get();
        let unix_start = first.saturating_sub(FILETIME_UNIX_EPOCH);
        // Readers treat it as signed.
        let duration = last.saturating_sub(first).max(0).saturating_mul(NANOS);
        pprof::Times {
            start: unix_start.saturating_mul(NANOS),
            duration: duration.cast_unsigned(),
        }
    }

    fn write(
        mut self,
        write: impl FnOnce(&Profiled<O>, &mut BufWriter<&mut File>) -> std::io::Result<()>,
    ) -> Result<Outcome, Failure> {
        let name = self.sink.name().to_owned();
        let mut out = BufWriter::new(self.sink.file());
        write(&self.profiled, &mut out).map_err(|error| Failure::io(&name, &error))?;
        drop(out);
        let Profiled { analyzed, profile } = self.profiled;
        let nodes = profile.nodes().iter();
        let stacks = nodes.filter(|node| node.exclusive.samples > 0).count();
        let samples = match profile.measure() {
            Measure::Bytes => plural(profile.total().samples, "allocation", "allocations"),
            _ => plural(profile.total().samples, "sample", "samples"),
        };
        let stacks = plural(stacks as u64, "stack", "stacks");
        self.sink
            .finish(&format!("{name}: {samples}, {stacks}\n"))?;
        Ok(analyzed.outcome)
    }
}

/// The name of a recording: the name of its first file.
fn title(names: &[String]) -> String {
    let Some(name) = names.first() else {
        return String::new();
    };
    match Path::new(name).file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => String::new(),
    }
}

fn no_interval<O>(export: &Export<O>) -> Failure {
    Failure::new(
        export.title(),
        "the recording states no interval between samples",
    )
    .hint("use --weight samples")
}
