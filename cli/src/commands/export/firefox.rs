//! `etlkit export firefox`: a profile for the Firefox Profiler.

use std::io::Write;
use std::path::Path;

use etl_analysis::profile::ProfileOptions;
use etl_export::firefox::{Collector, FirefoxProfile};

use super::title;
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::profile;
use crate::recording::RecordingArgs;
use crate::schemas::SchemaArgs;
use crate::sink::{Sink, SinkArgs};
use crate::symbols::SymbolArgs;

/// Arguments of `etlkit export firefox`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
If the name ends in .gz, the file is compressed; the viewer reads both. Open the file at
https://profiler.firefox.com: it stays on your computer.

Exit codes: 0 success, 1 the trace is damaged or lacks buffers; its intact part was read, 2 error.

Examples:
  etlkit export firefox trace.etl -o trace.json.gz
  etlkit export firefox kernel.etl clr.etl rundown.etl -o trace.json
  etlkit export firefox --symbols bin/Release trace.etl -o trace.json.gz
  etlkit export firefox --process Orders --from 2 --to 2.5 trace.etl -o orders.json.gz")]
pub(super) struct Args {
    /// Include the samples of idle processors
    #[arg(long)]
    idle: bool,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    sink: SinkArgs,
    #[command(flatten)]
    recording: RecordingArgs,
    #[command(flatten)]
    schemas: SchemaArgs,
}

pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let inputs = args.recording.files.iter().map(std::path::PathBuf::as_path);
    let store = args.schemas.store(&args.recording.input)?;
    let symbols = args.symbols.open()?;
    let mut sink = Sink::create(&args.sink, "a profile", inputs)?;
    let analyzed = args
        .recording
        .analyze(|range| (Collector::new(store).within(range), symbols.maps()))?;
    let (collector, maps) = &analyzed.observer;
    analyzed.ensure_memory(collector.profile_bytes())?;
    let mut options = ProfileOptions::new();
    if args.idle {
        options = options.with_idle();
    }
    let options = profile::select(&args.recording, &analyzed, options);
    let options = symbols.apply(options, maps.as_ref());
    let profile = FirefoxProfile::new(collector, &analyzed.machine, options);
    symbols.note_missing();
    if profile.is_empty() {
        let names = analyzed.names.join(", ");
        return Err(Failure::new(names, "no CPU sample and no marker is selected").hint(
            "record samples with `xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk Profile`, and \
             .NET with Microsoft-Windows-DotNETRuntime; `etlkit analyze summary` shows what there \
             is",
        ));
    }
    let name = sink.name().to_owned();
    let is_gzip = Path::new(&name)
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("gz"));
    let title = title(&analyzed.names);
    let written = if is_gzip {
        profile.write_gzip(&title, sink.file())
    } else {
        profile.write(&title, sink.file())
    };
    let written = written.map_err(|error| Failure::io(&name, &error))?;
    sink.file()
        .flush()
        .map_err(|error| Failure::io(&name, &error))?;
    let report = format!(
        "{name}: {}, {}, {}\n",
        plural(written.samples, "sample", "samples"),
        plural(written.markers, "marker", "markers"),
        plural(written.threads, "thread", "threads"),
    );
    sink.finish(&report)?;
    Ok(analyzed.outcome)
}
