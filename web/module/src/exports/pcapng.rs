//! The packets of the opened traces, in time order.

use std::io::Write;

use etl_analysis::files::{self, MachineClock, Timeline};
use etl_events::input::AnySource;
use etl_events::{EventDecoder, Trace};
use etl_export::pcapng::{Interfaces, PacketOptions, PacketWriter};
use etl_format::read::{Options, Order, OrderCheck, Records, Source};
use etl_format::{FileHeader, FileTime};
use etl_schema::store::SchemaStore;

use crate::error::{Error, Result};
use crate::query::Seconds;

/// A trace whose packets are written.
struct Reader<'s, S: Source> {
    records: Records<&'s mut S>,
    decoder: EventDecoder<'static>,
}

/// Writes the packets in the selected time.
pub fn write(trace: &mut Trace, seconds: Seconds, out: &mut impl Write) -> Result<String> {
    let range = seconds.times(trace.start_time());
    let options = Options {
        order_check: OrderCheck::Scan,
        ..Options::salvage()
    };
    let mut traces = Vec::new();
    for file in trace.sources() {
        traces.push(etl_format::read::Trace::open(file.source, &options)?);
    }
    let timeline = timeline(&traces);
    let mut interfaces = Interfaces::new();
    let mut decoders = Vec::new();
    for (file, trace) in traces.iter_mut().enumerate() {
        let mut decoder = EventDecoder::new(timeline.clock_of(file), SchemaStore::default());
        // The events that name the places of packets often come last.
        let mut records = trace.records(Order::File)?;
        while let Some(record) = records.next_record()? {
            interfaces.record(&mut decoder, &record);
        }
        drop(records);
        decoders.push(decoder);
    }
    if interfaces.is_empty() {
        return Err(Error::new("no packets are in the trace")
            .hint("record them with `netsh trace start capture=yes` or `pktmon start --capture`"));
    }
    let mut readers = Vec::new();
    for (trace, decoder) in traces.iter_mut().zip(decoders) {
        let records = trace.records(Order::Time)?.without_stale_records();
        readers.push(Reader { records, decoder });
    }
    let mut writer = PacketWriter::new(out, &interfaces, PacketOptions::new())?;
    while let Some(index) = earliest(&mut readers)? {
        let Some(reader) = readers.get_mut(index) else {
            break;
        };
        let clock = reader.decoder.clock();
        let Some(record) = reader.records.next_record()? else {
            continue;
        };
        if range.contains(clock.time(record.timestamp())) {
            writer.record(&mut reader.decoder, &record)?;
        }
    }
    let written = writer.finish()?;
    if written.packets == 0 {
        return Err(Error::new("no packet is in the selected time"));
    }
    Ok(format!("{} packets", written.packets))
}

/// How the times of the traces relate.
fn timeline(traces: &[etl_format::read::Trace<AnySource<'_>>]) -> Timeline {
    let headers: Vec<FileHeader> = traces.iter().map(|trace| trace.header().clone()).collect();
    let mut clocks = Vec::new();
    for (machine, trace) in files::machines(&headers).into_iter().zip(traces) {
        let clock = trace.clock();
        clocks.push(MachineClock { machine, clock });
    }
    Timeline::of_machines(&clocks)
}

/// The index of the reader with the earliest next record; of equal times, the first.
fn earliest<S: Source>(readers: &mut [Reader<'_, S>]) -> Result<Option<usize>> {
    let mut earliest: Option<Next> = None;
    for (index, reader) in readers.iter_mut().enumerate() {
        let Some(timestamp) = reader.records.next_timestamp()? else {
            continue;
        };
        let time = reader.decoder.clock().time(timestamp);
        if earliest.is_none_or(|earliest| time < earliest.time) {
            earliest = Some(Next { time, index });
        }
    }
    Ok(earliest.map(|earliest| earliest.index))
}

/// The next record of a reader.
#[derive(Clone, Copy)]
struct Next {
    time: FileTime,
    index: usize,
}
