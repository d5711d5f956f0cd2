//! `etlkit convert`: writes the trace of an EventPipe stream.

use std::fmt::{self, Write};
use std::io::{self, BufWriter};
use std::path::PathBuf;

use etl_events::eventpipe::{ConversionReport, Mode};
use serde::Serialize;

use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::input::{self, ConvertedStream, InputArgs};
use crate::output::ReportFormat;
use crate::rewrite;
use crate::sink::{Sink, SinkArgs};

/// Faults that are listed in text.
const MAX_LISTED: usize = 50;

/// Arguments of `etlkit convert`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
All other commands read .nettrace files as they are. The converted trace is for programs that read
only .etl, and saves the conversion if a stream is read often.

Exit codes: 0 the stream was complete, 1 it is cut or damaged and its intact part was converted,
2 error. Events that were lost while recording are noted and do not change the exit code.

Examples:
  etlkit convert app.nettrace -o app.etl
  etlkit convert app.nettrace.gz -o app.etl --format json | jq .events_lost")]
pub(crate) struct Args {
    /// EventPipe stream to read; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    sink: SinkArgs,
    /// Format of the report (docs/nettrace.md)
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    /// Stop at the first damage of the file, with exit code 2
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let name = input::display(&args.file);
    let mut sink = Sink::create(&args.sink, "a trace", [args.file.as_path()])?;
    let mode = if args.strict {
        Mode::Strict
    } else {
        Mode::Salvage
    };
    let ConvertedStream {
        mut reader,
        conversion,
    } = input::converted(&args.file, &args.input, mode)?;
    let mut out = BufWriter::new(sink.file());
    let copied = io::copy(&mut reader, &mut out).and_then(|_| io::Write::flush(&mut out));
    drop(out);
    copied.map_err(|error| Failure::io(sink.name(), &error))?;
    rewrite::finish(sink, &name, args.format, &Report(&conversion))?;
    if conversion.is_complete && conversion.damage.is_empty() {
        return Ok(Outcome::Success);
    }
    stderr_line!("warning: {name}: the stream is not complete; its intact part was converted");
    Ok(Outcome::Findings)
}

/// The report of the command.
#[derive(Serialize)]
#[serde(transparent)]
struct Report<'a>(&'a ConversionReport);

impl rewrite::Report for Report<'_> {
    fn text(&self, file: &str, output: &str, out: &mut String) -> fmt::Result {
        let report = self.0;
        writeln!(out, "{file}: {}", stream_text(report))?;
        for (count, problem) in [
            (report.events_lost, "lost"),
            (report.too_long, "left out: longer than a record"),
            (
                report.out_of_range,
                "left out: an id, version or level larger than a record's",
            ),
            (report.undescribed, "with a field that cannot be described"),
            (report.before_start, "earlier than the start: moved to it"),
        ] {
            if count > 0 {
                writeln!(out, "  {} {problem}", plural(count, "event", "events"))?;
            }
        }
        for fault in report.damage_before_cut().take(MAX_LISTED) {
            writeln!(out, "  {}", fault.error)?;
        }
        let damaged = report.damage_before_cut().count();
        if damaged > MAX_LISTED {
            let more = damaged - MAX_LISTED;
            writeln!(out, "  ... and {more} more (--format json lists all)")?;
        }
        writeln!(
            out,
            "{output}: {}",
            plural(report.events, "event", "events")
        )
    }
}

/// The format of a stream, its process, and whether it is complete.
pub(crate) fn stream_text(report: &ConversionReport) -> String {
    let mut text = format!("EventPipe, version {}", report.version);
    if let Some(process_id) = report.process_id {
        text += &format!(", process {process_id}");
    }
    if let Some(offset) = report.cut_offset {
        text += &format!(", cut after {}", plural(offset, "byte", "bytes"));
    } else if !report.is_complete {
        text += ", without its end";
    }
    let damaged = report.damage_before_cut().count();
    if damaged > 0 {
        let parts = plural(damaged as u64, "part", "parts");
        text += &format!(", {parts} damaged");
    }
    text
}
