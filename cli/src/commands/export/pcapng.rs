//! `etlkit export pcapng`: the packets of traces.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use etl_analysis::files::{self, MachineClock, Timeline};
use etl_events::EventDecoder;
use etl_export::pcapng::{Interfaces, PacketOptions, PacketWriter, Written};
use etl_format::read::{Options, Order, OrderCheck, Record, Records, Source, Trace};
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

Exit codes: 0 success, 1 the trace is damaged or lacks buffers; its intact part was read, 2 error.

Examples:
  etlkit export pcapng NetTrace.etl -o net.pcapng
  etlkit export pcapng --events PktMon.etl -o - | tshark -r -")]
pub(super) struct Args {
    /// Write a packet for each layer and component at which it was logged, not only for the first
    #[arg(long)]
    all_layers: bool,
    /// Also write the events without packets (link type ETW, which Wireshark shows)
    #[arg(long)]
    events: bool,
    #[command(flatten)]
    sink: SinkArgs,
    /// Trace to read; `-` is standard input. Packets of several traces are written in time order
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Accepted because `etlkit verify` has it: several traces are always read together
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
    fn options(&self) -> PacketOptions {
        let mut options = PacketOptions::new();
        if self.all_layers {
            options = options.all_layers();
        }
        if self.events {
            options = options.events();
        }
        options
    }

    /// The selected time in UTC. Seconds count from the start of the first trace.
    fn range(&self, clock: &Clock) -> Result<TimeRange<FileTime>, Failure> {
        let range = filter::range(self.from.as_deref(), self.to.as_deref(), clock)?;
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
    let mut inputs = Vec::new();
    for file in &args.files {
        inputs.push(Input::open(file, &share)?);
    }
    let size = inputs.iter_mut().map(Input::size).sum();
    for input in &mut inputs {
        input.set_limits(share.limits(size));
    }
    let options = Options {
        order_check: OrderCheck::Scan,
        ..Options::salvage()
    };
    let mut names = Vec::new();
    let mut traces = Vec::new();
    for input in &mut inputs {
        names.push(input.about().name.clone());
        let (trace, _) = input.trace(&options)?;
        traces.push(trace);
    }
    let timeline = timeline(&traces);
    let FirstPass {
        interfaces,
        decoders,
    } = first_pass(args, &timeline, &mut traces, &names)?;
    let mut progress = Progress::of_traces(&traces);
    let mut readers = Vec::new();
    for ((trace, decoder), name) in traces.iter_mut().zip(decoders).zip(&names) {
        let records = trace
            .records(Order::Time)
            .map_err(|error| Failure::trace(name, &error))?;
        readers.push(Reader {
            records: records.without_stale_records(),
            decoder,
            name,
        });
    }
    let range = args.range(&timeline.clock())?;
    let output_name = sink.name().to_owned();
    let mut out = BufWriter::new(sink.file());
    let mut writer = PacketWriter::new(&mut out, &interfaces, args.options())
        .map_err(|error| Failure::io(&output_name, &error))?;
    write_packets(&mut readers, range, &mut progress, |decoder, record| {
        writer
            .record(decoder, record)
            .map_err(|error| Failure::io(&output_name, &error))
    })?;
    let written = writer.finish();
    let written = written.map_err(|error| Failure::io(&output_name, &error))?;
    if written.packets == 0 && written.events == 0 {
        return Err(Failure::new(names.join(", "), "no packet is selected")
            .hint("choose another time with --from and --to"));
    }
    out.flush()
        .map_err(|error| Failure::io(&output_name, &error))?;
    drop(out);
    drop(progress);
    let mut outcome = Outcome::Success;
    for reader in &readers {
        let damage = reader.records.damage();
        let condition = Condition::new(reader.records.header(), damage, reader.records.notes());
        outcome = outcome.max(condition.report(reader.name));
    }
    let mut report = report(&output_name, interfaces.len(), &written);
    report += layer_note(&interfaces, args.all_layers);
    sink.finish(&report)?;
    Ok(outcome)
}

/// Passes the selected records of all readers to `write`, in time order.
fn write_packets<S: Source>(
    readers: &mut [Reader<'_, S>],
    range: TimeRange<FileTime>,
    progress: &mut Progress,
    mut write: impl FnMut(&mut EventDecoder<'static>, &Record<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    while let Some(index) = earliest(readers)? {
        let Some(reader) = readers.get_mut(index) else {
            break;
        };
        let Reader {
            records, decoder, ..
        } = reader;
        let record = match records.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => continue,
            Err(error) => return Err(Failure::trace(reader.name, &error)),
        };
        progress.pass(record.bytes().len());
        if range.contains(decoder.clock().time(record.timestamp())) {
            write(decoder, &record)?;
        }
    }
    Ok(())
}

/// How the times of the traces relate.
fn timeline<S: Source>(traces: &[Trace<S>]) -> Timeline {
    let headers: Vec<FileHeader> = traces.iter().map(|trace| trace.header().clone()).collect();
    let mut clocks = Vec::new();
    for (machine, trace) in files::machines(&headers).into_iter().zip(traces) {
        let clock = trace.clock();
        clocks.push(MachineClock { machine, clock });
    }
    Timeline::of_machines(&clocks)
}

/// The results of the first pass.
struct FirstPass {
    interfaces: Interfaces,
    /// A decoder for each trace, which has learned all its schemas.
    decoders: Vec<EventDecoder<'static>>,
}

fn first_pass<S: Source>(
    args: &Args,
    timeline: &Timeline,
    traces: &mut [Trace<S>],
    names: &[String],
) -> Result<FirstPass, Failure> {
    let mut interfaces = Interfaces::new();
    let mut decoders = Vec::new();
    let store = args.schemas.store(&args.input)?;
    for (file, (trace, name)) in traces.iter_mut().zip(names).enumerate() {
        let mut decoder = EventDecoder::new(timeline.clock_of(file), store.clone());
        find_interfaces(trace, &mut decoder, &mut interfaces)
            .map_err(|error| Failure::trace(name, &error))?;
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
    Ok(FirstPass {
        interfaces,
        decoders,
    })
}

/// Finds the places of packets in a pass of its own: the events that name them often come last.
fn find_interfaces<S: Source>(
    trace: &mut Trace<S>,
    decoder: &mut EventDecoder<'_>,
    interfaces: &mut Interfaces,
) -> etl_format::Result<()> {
    let mut records = trace.records(Order::File)?;
    while let Some(record) = records.next_record()? {
        interfaces.record(decoder, &record);
    }
    Ok(())
}

/// The index of the reader with the earliest next record.
fn earliest<S: Source>(readers: &mut [Reader<'_, S>]) -> Result<Option<usize>, Failure> {
    let mut earliest: Option<(FileTime, usize)> = None;
    for (index, reader) in readers.iter_mut().enumerate() {
        let timestamp = reader
            .records
            .next_timestamp()
            .map_err(|error| Failure::trace(reader.name, &error))?;
        let Some(timestamp) = timestamp else { continue };
        let time = reader.decoder.clock().time(timestamp);
        // If times are equal, the first reader is chosen.
        if earliest.is_none_or(|(min, _)| time < min) {
            earliest = Some((time, index));
        }
    }
    Ok(earliest.map(|(_, index)| index))
}

/// Which packets are written if the packet monitor does not number them across components.
fn layer_note(interfaces: &Interfaces, all_layers: bool) -> &'static str {
    if all_layers {
        ""
    } else if interfaces.is_of_cards() {
        "note: this version of Windows does not number packets across components: the packets at \
         the network cards' drivers are written\n"
    } else if interfaces.may_repeat() {
        "note: this version of Windows does not number packets across components, and no packet is \
         from a network card's driver: packets are written once for each component\n"
    } else {
        ""
    }
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
