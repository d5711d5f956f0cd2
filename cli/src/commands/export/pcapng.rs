//! `etlkit export pcapng`: the packets of traces.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use etl_analysis::files::{self, MachineClock, Timeline};
use etl_events::EventDecoder;
use etl_export::pcapng::{Interfaces, PacketOptions, PacketWriter, Written};
use etl_format::read::{Options, Order, OrderCheck, Records, Source};
use etl_format::{Clock, FileHeader, FileTime, TimeRange};

use crate::Outcome;
use crate::diagnostics::{Condition, plural};
use crate::error::Failure;
use crate::filter;
use crate::input::{self, Input, InputArgs};
use crate::progress::Progress;
use crate::schemas::SchemaArgs;
use crate::sink::{Sink, SinkArgs};

/// Arguments of `etlkit export pcapng`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Packets are in the events of `netsh trace start capture=yes` (NDIS), `pktmon start --capture` and
remote access (RAS). The network layer at which Windows logged a packet is its interface.

Exit codes: 0 success, 1 the trace is damaged or lacks buffers and what is left was read, 2 error.

Examples:
  etlkit export pcapng NetTrace.etl -o net.pcapng
  etlkit export pcapng --events PktMon.etl -o - | tshark -r -")]
pub(super) struct Args {
    /// Write a packet for each layer and component at which it was logged, not only for the first
    #[arg(long)]
    all_layers: bool,
    /// Write the events without packets too (link type ETW, which Wireshark shows)
    #[arg(long)]
    events: bool,
    #[command(flatten)]
    sink: SinkArgs,
    /// Trace to read; `-` is standard input. Packets of several traces are put in order of time
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Accepted as `etlkit verify` has it: several traces are read together in any case
    #[arg(long, hide = true)]
    together: bool,
    /// Select packets at or after TIME: seconds since the start (1.5), or UTC
    /// (2020-07-29T00:07:01Z)
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    from: Option<String>,
    /// Select packets before TIME
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    to: Option<String>,
    #[command(flatten)]
    schemas: SchemaArgs,
    #[command(flatten)]
    input: InputArgs,
}

/// A trace of the second pass.
struct Reader<'s, S: Source> {
    records: Records<S>,
    decoder: EventDecoder<'static>,
    name: &'s str,
}

impl Args {
    /// The selected time in UTC. Seconds count from the start of the first trace.
    fn range(&self, clock: &Clock) -> Result<TimeRange<FileTime>, Failure> {
        let range = filter::span(self.from.as_deref(), self.to.as_deref(), clock)?;
        let from = range.from.map(|from| clock.time(from));
        let to = range.to.map(|to| clock.time(to));
        Ok(TimeRange::new(from, to))
    }
}

pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    input::reject_twice(&args.files, "name each trace once")?;
    let mut sink = Sink::create(
        &args.sink,
        "packets",
        args.files.iter().map(PathBuf::as_path),
    )?;
    let share = args.input.share(args.files.len());
    let opened = args.files.iter().map(|file| Input::open(file, &share));
    let mut inputs = opened.collect::<Result<Vec<_>, _>>()?;
    let names: Vec<String> = inputs
        .iter()
        .map(|input| input.about().name.clone())
        .collect();
    let options = Options {
        order_check: OrderCheck::Scan,
        ..Options::salvage()
    };
    let mut traces = Vec::new();
    for input in &mut inputs {
        traces.push(input.trace(&options)?.0);
    }
    let headers: Vec<FileHeader> = traces.iter().map(|trace| trace.header().clone()).collect();
    let mut clocks = Vec::new();
    for (trace, machine) in traces.iter().zip(files::machines(&headers)) {
        let clock = trace.clock();
        clocks.push(MachineClock { machine, clock });
    }
    let timeline = Timeline::of_machines(&clocks);
    // What names the places of packets often comes last.
    let mut interfaces = Interfaces::new();
    let mut decoders = Vec::new();
    for (file, (trace, name)) in traces.iter_mut().zip(&names).enumerate() {
        let failed = |e| Failure::trace(name, &e);
        let mut decoder = EventDecoder::new(timeline.clock_of(file), args.schemas.store()?);
        let mut records = trace.records(Order::File).map_err(failed)?;
        while let Some(record) = records.next_record().map_err(failed)? {
            interfaces.record(&mut decoder, &record);
        }
        decoders.push(decoder);
    }
    if interfaces.is_empty() && !args.events {
        return Err(
            Failure::new(names.join(", "), "no packets are in the trace").hint(
                "record them with `netsh trace start capture=yes` or `pktmon start --capture`; \
             --events writes the other events",
            ),
        );
    }
    let name = sink.name().to_owned();
    let mut out = BufWriter::new(sink.file());
    let wanted = PacketOptions::new()
        .all_layers(args.all_layers)
        .events(args.events);
    let failed = |error| Failure::io(&name, &error);
    let mut writer = PacketWriter::new(&mut out, &interfaces, wanted).map_err(failed)?;
    let used = traces
        .iter()
        .flat_map(|t| t.buffers())
        .map(|b| u64::from(b.fill))
        .sum();
    let mut progress = Progress::new(used, false);
    let mut readers = Vec::new();
    for ((trace, decoder), name) in traces.iter_mut().zip(decoders).zip(&names) {
        let records = trace
            .records(Order::Time)
            .map_err(|e| Failure::trace(name, &e))?;
        readers.push(Reader {
            records: records.without_stale_records(),
            decoder,
            name,
        });
    }
    let range = args.range(&timeline.clock())?;
    while let Some(at) = next_of(&mut readers)? {
        let Some(Reader {
            records,
            decoder,
            name: trace,
        }) = readers.get_mut(at)
        else {
            break;
        };
        let Some(record) = records
            .next_record()
            .map_err(|e| Failure::trace(trace, &e))?
        else {
            continue;
        };
        progress.pass(record.bytes().len());
        if !range.contains(decoder.clock().time(record.timestamp())) {
            continue;
        }
        writer.record(decoder, &record).map_err(failed)?;
    }
    let written = writer.finish().map_err(failed)?;
    if written.packets == 0 && written.events == 0 {
        return Err(Failure::new(names.join(", "), "no packet is selected")
            .hint("choose another time with --from and --to"));
    }
    out.flush().map_err(failed)?;
    drop((out, progress));
    let mut outcome = Outcome::Success;
    for reader in &readers {
        let damage = reader.records.damage();
        let condition = Condition::new(reader.records.header(), damage, reader.records.notes());
        outcome = outcome.max(condition.report(reader.name));
    }
    sink.finish(&report(&name, interfaces.len(), &written))?;
    Ok(outcome)
}

/// The reader whose next record is the earliest.
fn next_of<S: Source>(readers: &mut [Reader<'_, S>]) -> Result<Option<usize>, Failure> {
    if let [_] = readers {
        let [reader] = readers else { return Ok(None) };
        let next = reader
            .records
            .next_timestamp()
            .map_err(|e| Failure::trace(reader.name, &e))?;
        return Ok(next.map(|_| 0));
    }
    let mut first: Option<(i64, usize)> = None;
    for (at, reader) in readers.iter_mut().enumerate() {
        let next = reader
            .records
            .next_timestamp()
            .map_err(|e| Failure::trace(reader.name, &e))?;
        let time = next.map(|next| (reader.decoder.clock().time(next).get(), at));
        first = match (first, time) {
            (Some(first), Some(time)) => Some(first.min(time)),
            (first, time) => first.or(time),
        };
    }
    Ok(first.map(|(_, at)| at))
}

fn report(name: &str, interfaces: usize, written: &Written) -> String {
    let mut out = format!(
        "{name}: {}, {}",
        plural(written.packets, "packet", "packets"),
        plural(interfaces as u64, "place of capture", "places of capture"),
    );
    if written.events > 0 {
        out += &format!(", {}", plural(written.events, "event", "events"));
    }
    out.push('\n');
    if written.repeated > 0 {
        let what = plural(written.repeated, "packet", "packets");
        out += &format!("note: {what} of other layers left out: --all-layers writes them\n");
    }
    if written.incomplete > 0 {
        let what = plural(written.incomplete, "packet", "packets");
        out += &format!("note: {what} left out, each with a part missing\n");
    }
    out
}
