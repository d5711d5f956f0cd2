//! The export formats, written to the host.

mod pcapng;

use std::io::{BufWriter, Cursor, Write};

use etl_analysis::behavior::activities::Activities;
use etl_analysis::behavior::allocations::StackedAllocations;
use etl_analysis::profile::{Detail, Profile, ProfileOptions, SampleCollector};
use etl_analysis::{Machine, machine::Span};
use etl_events::Trace;
use etl_events::rows::{Format as RowFormat, RowWriter};
use etl_export::perfetto::{Perfetto, Selection};
use etl_export::speedscope::{self, ActivityProfiles};
use etl_export::{Unit, firefox, flamegraph, folded, pprof};
use etl_format::constants::FILETIME_UNIX_EPOCH;
use etl_format::{TimeRange, file_name};
use etl_schema::store::SchemaStore;
use etl_tables::ipc;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::host::Out;
use crate::profile::{ProfileRequest, selected};
use crate::query::Query;
use crate::recording::{Analyzed, analyze};
use crate::tables::{self, TableRequest};
use crate::verdict;

/// A format of exports.
struct Format {
    name: &'static str,
    /// What the file is for.
    about: &'static str,
    /// The end of the name of the file.
    extension: &'static str,
    /// What the format is made of: `samples`, `recording`, `packets`, `table`, `events`, `report`.
    of: &'static str,
}

const FORMATS: &[Format] = &[
    format(
        "perfetto",
        "Perfetto: processors and threads over time",
        "perfetto-trace",
        "recording",
    ),
    format(
        "firefox",
        "Firefox Profiler: samples and markers of each thread",
        "json.gz",
        "recording",
    ),
    format(
        "speedscope",
        "speedscope: the stacks of each thread in time order",
        "speedscope.json",
        "samples",
    ),
    format(
        "flamegraph",
        "A flame graph as one HTML page",
        "html",
        "samples",
    ),
    format(
        "folded",
        "Folded stacks: one line for each stack",
        "folded.txt",
        "samples",
    ),
    format(
        "pprof",
        "pprof: addresses with identities of images",
        "pb.gz",
        "samples",
    ),
    format(
        "pcapng",
        "Captured packets for Wireshark",
        "pcapng",
        "packets",
    ),
    format(
        "arrow",
        "One table as an Arrow file (Feather)",
        "arrow",
        "table",
    ),
    format("csv", "One table as comma-separated values", "csv", "table"),
    format("jsonl", "Events as JSON lines", "jsonl", "events"),
    format("text", "Events as text", "txt", "events"),
    format("xml", "Events in the schema of Windows", "xml", "events"),
    format("html", "The verdict as a page", "verdict.html", "report"),
    format("json", "The verdict as JSON", "verdict.json", "report"),
    format("sarif", "The findings as SARIF", "sarif", "report"),
    format("markdown", "The verdict as Markdown", "md", "report"),
];

const fn format(
    name: &'static str,
    about: &'static str,
    extension: &'static str,
    of: &'static str,
) -> Format {
    Format {
        name,
        about,
        extension,
        of,
    }
}

/// What is exported.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExportRequest {
    format: String,
    from: Option<f64>,
    to: Option<f64>,
    processes: Vec<String>,
    idle: bool,
    /// Allocations of .NET instead of samples.
    allocations: bool,
    /// The table of `arrow` and `csv`.
    table: String,
    /// The events of `jsonl`, `text` and `xml`, in the time of the query.
    query: Query,
}

/// The formats, with what each is made of.
pub fn formats() -> Value {
    let formats = FORMATS.iter().map(|format| {
        json!({
            "name": format.name,
            "about": format.about,
            "extension": format.extension,
            "of": format.of,
        })
    });
    formats.collect()
}

/// Writes the export to the host. The reply says what was written.
pub fn export(trace: &mut Trace, request: &ExportRequest) -> Result<Value> {
    let mut out = BufWriter::with_capacity(1 << 16, Out);
    let what = match request.format.as_str() {
        "perfetto" => perfetto(trace, request, &mut out)?,
        "firefox" => firefox(trace, request, &mut out)?,
        "speedscope" => speedscope(trace, request, &mut out)?,
        "flamegraph" | "folded" | "pprof" => stacks(trace, request, &mut out)?,
        "pcapng" => pcapng::write(trace, request.seconds(), &mut out)?,
        "arrow" => arrow(trace, request, &mut out)?,
        "csv" => {
            let rows = tables::write_csv(trace, &request.table(), &mut out)?;
            format!("{rows} rows")
        }
        "jsonl" => events(trace, request, RowFormat::JsonLines, &mut out)?,
        "text" => events(trace, request, RowFormat::Text, &mut out)?,
        "xml" => events(trace, request, RowFormat::Xml, &mut out)?,
        report => {
            out.write_all(&verdict::verify(trace, Some(report))?)?;
            "the verdict".to_owned()
        }
    };
    out.flush()?;
    Ok(json!({ "written": what }))
}

impl ExportRequest {
    fn profile(&self) -> ProfileRequest {
        ProfileRequest {
            from: self.from,
            to: self.to,
            processes: self.processes.clone(),
            by_thread: false,
            idle: self.idle,
            allocations: self.allocations,
        }
    }

    fn seconds(&self) -> crate::query::Seconds {
        self.profile().seconds()
    }

    fn table(&self) -> TableRequest {
        TableRequest {
            table: self.table.clone(),
            from: self.from,
            to: self.to,
            ..TableRequest::default()
        }
    }
}

fn nothing(what: &str, hint: &str) -> Error {
    Error::new(format!("no {what} is selected")).hint(hint)
}

const RECORD_SAMPLES: &str =
    "record samples with `xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk Profile`";

fn perfetto(trace: &mut Trace, request: &ExportRequest, out: &mut impl Write) -> Result<String> {
    let mut file = Cursor::new(Vec::new());
    let Analyzed {
        machine, observer, ..
    } = analyze(trace, request.seconds(), &[], |range| {
        let selection = Selection::new().within(range);
        let spool = Cursor::new(Vec::new());
        let perfetto = Perfetto::new(&mut file, spool, SchemaStore::default(), selection);
        if request.idle {
            perfetto.with_idle()
        } else {
            perfetto
        }
    })?;
    let written = observer.finish(&machine, ProfileOptions::new())?;
    if written.is_empty() {
        return Err(nothing("event that Perfetto shows", RECORD_SAMPLES));
    }
    out.write_all(file.get_ref())?;
    Ok(format!(
        "{} samples, {} slices",
        written.samples, written.slices
    ))
}

fn firefox(trace: &mut Trace, request: &ExportRequest, out: &mut impl Write) -> Result<String> {
    let analyzed = analyze(trace, request.seconds(), &request.processes, |range| {
        firefox::Collector::new(SchemaStore::default()).within(range)
    })?;
    let options = selected(&analyzed, request.profile().options());
    let profile = firefox::FirefoxProfile::new(&analyzed.observer, &analyzed.machine, options);
    if profile.is_empty() {
        return Err(nothing("sample and no marker", RECORD_SAMPLES));
    }
    let written = profile.write_gzip(file_name(&analyzed.title), out)?;
    Ok(format!(
        "{} samples, {} markers",
        written.samples, written.markers
    ))
}

fn speedscope(trace: &mut Trace, request: &ExportRequest, out: &mut impl Write) -> Result<String> {
    let analyzed = analyze(trace, request.seconds(), &request.processes, |range| {
        let samples = SampleCollector::new().keep_samples().within(range);
        (samples, Activities::new(SchemaStore::default()))
    })?;
    let options = selected(&analyzed, request.profile().options());
    let (samples, activities) = &analyzed.observer;
    let profile = samples.profile(&analyzed.machine, &options.clone().by_thread());
    if profile.total().samples == 0 && activities.list().is_empty() {
        return Err(nothing("sample and no activity", RECORD_SAMPLES));
    }
    let shown = ActivityProfiles::new(activities, &analyzed.machine, &options, analyzed.range);
    speedscope::write(
        &profile,
        &shown,
        file_name(&analyzed.title),
        Unit::Time,
        out,
    )?;
    Ok(format!("{} samples", profile.total().samples))
}

fn stacks(trace: &mut Trace, request: &ExportRequest, out: &mut impl Write) -> Result<String> {
    let is_pprof = request.format == "pprof";
    let mut options = request.profile().options();
    if is_pprof {
        options = options.by_thread().detail(Detail::Addresses);
    }
    if request.allocations {
        let mut analyzed = analyze(trace, request.seconds(), &request.processes, |range| {
            StackedAllocations::new().within(range)
        })?;
        let options = selected(&analyzed, options);
        let profile = analyzed.observer.profile(&analyzed.machine, &options);
        return write_stacks(&request.format, &analyzed, &profile, Unit::Bytes, out);
    }
    let analyzed = analyze(trace, request.seconds(), &request.processes, |range| {
        SampleCollector::new().within(range)
    })?;
    let options = selected(&analyzed, options);
    let profile = analyzed.observer.profile(&analyzed.machine, &options);
    let unit = if request.format == "folded" {
        Unit::Samples
    } else {
        Unit::Time
    };
    write_stacks(&request.format, &analyzed, &profile, unit, out)
}

fn write_stacks<O>(
    format: &str,
    analyzed: &Analyzed<O>,
    profile: &Profile,
    unit: Unit,
    out: &mut impl Write,
) -> Result<String> {
    let samples = profile.total().samples;
    if samples == 0 {
        return Err(nothing("sample", RECORD_SAMPLES));
    }
    match format {
        "pprof" => pprof::write(profile, times(&analyzed.machine, analyzed.range), out)?,
        "flamegraph" => flamegraph::write(profile, file_name(&analyzed.title), unit, out)?,
        _ => folded::write(profile, unit, out)?,
    }
    Ok(format!("{samples} samples"))
}

/// When the selected time began, and how long it lasted.
fn times(machine: &Machine, range: TimeRange) -> pprof::Times {
    const NANOS: i64 = 100;
    let Span { first, last } = machine.span().unwrap_or_default();
    let clock = machine.clock();
    let first = clock.time(range.from.map_or(first, |from| from.max(first)));
    let last = clock.time(range.to.map_or(last, |to| to.min(last)));
    let unix_start = first.get().saturating_sub(FILETIME_UNIX_EPOCH);
    let duration = last.get().saturating_sub(first.get()).max(0);
    pprof::Times {
        start: unix_start.saturating_mul(NANOS),
        duration: duration.saturating_mul(NANOS).cast_unsigned(),
    }
}

fn arrow(trace: &mut Trace, request: &ExportRequest, out: &mut impl Write) -> Result<String> {
    let mut sources = trace.sources();
    if sources.len() > 1 {
        return Err(Error::new("an Arrow file has the table of one trace")
            .hint("open one of the traces by itself, or choose CSV"));
    }
    let Some(file) = sources.pop() else {
        return Err(Error::new("no trace is open"));
    };
    let options = etl_tables::Options::new(file_name(&file.name));
    let written = ipc::write(file.source, &request.table, options, ipc::Form::File, out)?;
    Ok(format!("{} rows", written.rows))
}

fn events(
    trace: &mut Trace,
    request: &ExportRequest,
    format: RowFormat,
    out: &mut impl Write,
) -> Result<String> {
    let times = request.query.seconds().times(trace.start_time());
    let mut events = request.query.events(trace, times)?;
    let mut rows = RowWriter::new(format);
    let mut text = Vec::new();
    let mut count = 0;
    rows.begin(&mut text);
    while let Some(event) = events.next()? {
        rows.write(&mut text, &event);
        count += 1;
        if text.len() >= 1 << 16 {
            out.write_all(&text)?;
            text.clear();
        }
    }
    rows.end(&mut text);
    out.write_all(&text)?;
    Ok(format!("{count} events"))
}
