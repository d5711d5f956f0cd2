//! `etlkit export perfetto`: a recording as a trace of Perfetto.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use etl_analysis::profile::ProfileOptions;
use etl_events::input::Temporary;
use etl_export::perfetto::{Perfetto, Selection, Storage, Written};

use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::recording::{Analyzed, RecordingArgs, SelectedProcesses, ensure_memory};
use crate::schemas::SchemaArgs;
use crate::sink::{Sink, SinkArgs};
use crate::symbols::SymbolArgs;

/// Arguments of `etlkit export perfetto`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Open the file at https://ui.perfetto.dev, which reads it in the browser, or query it with
trace_processor. docs/export.md shows its contents.

Exit codes: 0 success, 1 the trace is damaged or lacks buffers; its intact part was read, 2 error.

Examples:
  etlkit export perfetto trace.etl -o trace.perfetto-trace
  etlkit export perfetto kernel.etl clr.etl -o trace.perfetto-trace
  etlkit export perfetto --process Orders --from 2 --to 2.5 trace.etl -o orders.perfetto-trace
  etlkit export perfetto --symbols bin/Release trace.etl -o trace.perfetto-trace
  etlkit export perfetto trace.etl -o - | gzip > trace.perfetto-trace.gz")]
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
    let recording = &args.recording;
    let symbols = args.symbols.open()?;
    let store = args.schemas.store(&args.recording.input)?;
    let mut sink = Sink::create(
        &args.sink,
        "a trace",
        recording.files.iter().map(PathBuf::as_path),
    )?;
    let name = sink.name().to_owned();
    let spool = Temporary::create().map_err(|error| Failure::io(&name, &error))?;
    let out = sink.file();
    let Analyzed {
        names,
        machine,
        observer: (perfetto, maps),
        outcome,
        budget,
        ..
    } = recording.analyze_selected(|range, selected| {
        let mut selection = Selection::new()
            .within(range)
            .threads(recording.thread.clone());
        if let Some(SelectedProcesses {
            lives,
            first_threads,
        }) = selected
        {
            selection = selection.processes(lives, first_threads);
        }
        let mut perfetto = Perfetto::new(out, Spool(spool), store, selection);
        if args.idle {
            perfetto = perfetto.with_idle();
        }
        (perfetto, symbols.maps())
    })?;
    ensure_memory(budget, &names, perfetto.finish_bytes())?;
    let options = symbols.apply(ProfileOptions::new(), maps.as_ref());
    let written = perfetto.finish(&machine, options);
    symbols.note_missing();
    let written = written.map_err(|error| Failure::io(&name, &error))?;
    if written.is_empty() {
        let name = names.join(", ");
        let message = "nothing that Perfetto shows is selected: no sample, context switch, \
                       operation of a file or disk, event of a CLR, activity, or start of a \
                       process";
        return Err(Failure::new(name, message).hint(
            "record with `xperf -on PROC_THREAD+LOADER+PROFILE+CSWITCH+DISPATCHER -stackwalk \
             Profile` and the CLR's events; `etlkit analyze summary` shows what there is",
        ));
    }
    sink.finish(&report(&name, &written))?;
    Ok(outcome)
}

/// A temporary file for samples and activities, which are written when the recording was read.
struct Spool(Temporary);

impl Read for Spool {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes)
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for Spool {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl Storage for Spool {
    fn clear(&mut self) -> io::Result<()> {
        self.0.clear()
    }
}

fn report(name: &str, written: &Written) -> String {
    let mut out = format!(
        "{name}: {}, {} of the kernel, {}\n",
        plural(written.samples, "sample", "samples"),
        plural(written.kernel_events, "event", "events"),
        plural(written.slices, "slice", "slices"),
    );
    if written.left_out > 0 {
        let what = plural(written.left_out, "event", "events");
        out += &format!("note: {what} of processors after the 1024th left out\n");
    }
    out
}
