//! `etlkit export`: writes the CPU samples and the packets of a recording for other viewers.

mod firefox;
mod pcapng;
mod perfetto;
mod speedscope;
mod tables;

use etl_format::Ticks;
use std::io::BufWriter;
use std::path::Path;

use clap::{Subcommand, ValueEnum};
use etl_analysis::Observer;
use etl_analysis::behavior::activities::Activities;
use etl_analysis::machine::Span;
use etl_analysis::profile::{Detail, Profile, ProfileOptions, SampleCollector};
use etl_export::{Unit, flamegraph, folded, pprof};
use etl_format::constants::FILETIME_UNIX_EPOCH;

use crate::Outcome;
use crate::commands::analyze::profile_options;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::recording::{Analyzed, RecordingArgs};
use crate::sink::{Sink, SinkArgs};
use crate::symbols::SymbolArgs;

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
    /// Folded stacks: one line a stack, for flame graph scripts.
    Folded(StackArgs),
    /// A flame graph as one HTML page.
    Flamegraph(StackArgs),
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
    /// Count in samples, or in time by the interval that the recording states [default: samples for
    /// folded stacks, time for the others]
    #[arg(long, value_enum)]
    weight: Option<Weight>,
    /// Keep the threads of a process apart (always so for speedscope)
    #[arg(long)]
    by_thread: bool,
    #[command(flatten)]
    samples: SampleArgs,
}

/// Arguments of `etlkit export pprof`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
struct PprofArgs {
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
Needs the kernel's samples with stacks: `etlkit analyze cpu` shows what a recording has.

Exit codes: 0 success, 1 the trace is damaged or lacks buffers and what is left was read, 2 error.

Examples:
  etlkit export folded trace.etl -o stacks.txt
  etlkit export flamegraph --process Orders trace.etl -o flame.html
  etlkit export speedscope trace.etl -o trace.speedscope.json
  etlkit export pprof kernel.etl clr.etl -o cpu.pb.gz
  etlkit export folded --from 2 --to 2.5 trace.etl -o - | sort -k 2 -n";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Weight {
    /// Number of samples
    Samples,
    /// Nanoseconds
    Time,
}

impl StackArgs {
    fn unit(&self, default: Weight) -> Unit {
        match self.weight.unwrap_or(default) {
            Weight::Samples => Unit::Samples,
            Weight::Time => Unit::Time,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let by_thread = |by_thread| ProfileOptions::new().by_thread(by_thread);
    match &args.format {
        Format::Firefox(args) => firefox::run(args),
        Format::Pcapng(args) => pcapng::run(args),
        Format::Perfetto(args) => perfetto::run(args),
        Format::Parquet(args) => tables::parquet(args),
        Format::Arrow(args) => tables::arrow(args),
        Format::Folded(args) => {
            let export = args.samples.collect(false, by_thread(args.by_thread), ())?;
            // Without an interval there is no time to count in.
            if args.weight == Some(Weight::Time) && !export.profile.has_times() {
                return Err(no_interval(&export));
            }
            let unit = args.unit(Weight::Samples);
            export.write(|profile, _, out| folded::write(profile, unit, out))
        }
        Format::Flamegraph(args) => {
            let export = args.samples.collect(false, by_thread(args.by_thread), ())?;
            let (unit, title) = (args.unit(Weight::Time), export.title());
            export.write(|profile, _, out| flamegraph::write(profile, &title, unit, out))
        }
        Format::Speedscope(args) => speedscope::run(args),
        Format::Pprof(args) => {
            let options = by_thread(true).detail(Detail::Addresses);
            let export = args.samples.collect(false, options, ())?;
            let times = export.times();
            export.write(|profile, _, out| pprof::write(profile, times, out))
        }
    }
}

/// What is exported beside samples.
trait Collected {
    /// Whether nothing was found.
    fn is_empty(&self) -> bool;
}

impl Collected for () {
    fn is_empty(&self) -> bool {
        true
    }
}

impl Collected for Activities {
    fn is_empty(&self) -> bool {
        self.list().is_empty()
    }
}

/// A profile, and the file that it goes to.
struct Export<O> {
    sink: Sink,
    profile: Profile,
    analyzed: Analyzed<(SampleCollector, O)>,
}

impl SampleArgs {
    /// Reads the recording, which `other` observes, too. `options` are completed by the selection
    /// of processes and threads.
    fn collect<O: Observer + Collected>(
        &self,
        keep_samples: bool,
        options: ProfileOptions,
        other: O,
    ) -> Result<Export<O>, Failure> {
        let inputs = self.recording.files.iter().map(std::path::PathBuf::as_path);
        let sink = Sink::create(&self.sink, "a profile", inputs)?;
        let symbols = self.symbols.open()?;
        let analyzed = self.recording.analyze(|range| {
            let samples = SampleCollector::new()
                .within(range)
                .keep_samples(keep_samples);
            ((samples, symbols.maps()), other)
        })?;
        let Analyzed {
            names,
            machine,
            selected,
            observer,
            outcome,
            range,
        } = analyzed;
        let ((samples, maps), other) = observer;
        let observer = (samples, other);
        let analyzed = Analyzed {
            names,
            machine,
            selected,
            observer,
            outcome,
            range,
        };
        let options = profile_options(&self.recording, &analyzed, options).idle(self.idle);
        let (samples, other) = &analyzed.observer;
        let profile = samples.profile(&analyzed.machine, &symbols.apply(options, maps.as_ref()));
        symbols.note_missing();
        if profile.total().samples == 0 && other.is_empty() {
            let name = analyzed.names.join(", ");
            return Err(Failure::new(name, "no CPU sample is selected").hint(
                "record samples with `xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk Profile`; \
                 `etlkit analyze cpu` shows what there is",
            ));
        }
        Ok(Export {
            sink,
            profile,
            analyzed,
        })
    }
}

impl<O> Export<O> {
    fn title(&self) -> String {
        title(&self.analyzed.names)
    }

    /// When the recording began, and how long it lasted.
    fn times(&self) -> pprof::Times {
        let clock = self.analyzed.machine.clock();
        let Span { first, last } = self.analyzed.machine.span().unwrap_or_default();
        let range = self.analyzed.range;
        let first = clock
            .time(
                range
                    .from
                    .map_or(first, |from| Ticks::new(from.get().max(first.get()))),
            )
            .get();
        let last = clock
            .time(
                range
                    .to
                    .map_or(last, |to| Ticks::new(to.get().min(last.get()))),
            )
            .get();
        // Readers take it for signed.
        let duration = last.saturating_sub(first).max(0).saturating_mul(100);
        pprof::Times {
            start: first
                .saturating_sub(FILETIME_UNIX_EPOCH)
                .saturating_mul(100),
            duration: duration.cast_unsigned(),
        }
    }

    fn write(
        mut self,
        write: impl FnOnce(
            &Profile,
            &Analyzed<(SampleCollector, O)>,
            &mut BufWriter<&mut std::fs::File>,
        ) -> std::io::Result<()>,
    ) -> Result<Outcome, Failure> {
        let name = self.sink.name().to_owned();
        let mut out = BufWriter::new(self.sink.file());
        write(&self.profile, &self.analyzed, &mut out)
            .map_err(|error| Failure::io(&name, &error))?;
        drop(out);
        let total = self.profile.total();
        let stacks = self
            .profile
            .nodes()
            .iter()
            .filter(|node| node.exclusive.samples > 0);
        let stacks = stacks.count() as u64;
        let samples = plural(total.samples, "sample", "samples");
        let text = format!("{name}: {samples}, {}\n", plural(stacks, "stack", "stacks"));
        self.sink.finish(&text)?;
        Ok(self.analyzed.outcome)
    }
}

/// The name of a recording: that of its first file.
fn title(names: &[String]) -> String {
    let name = names.first().map_or("", String::as_str);
    let name = Path::new(name)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_default()
}

fn no_interval(export: &Export<()>) -> Failure {
    Failure::new(
        export.title(),
        "the recording states no interval between samples",
    )
    .hint("use --weight samples")
}
