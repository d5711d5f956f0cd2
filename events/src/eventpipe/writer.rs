//! Writes the events of a stream as records.

use etl_format::constants::{BufferFlags, PointerSize};
use etl_format::write::record::{Event as EventRecord, Extended};
use etl_format::write::{Finished, Output, Session};
use etl_format::{EventDescriptor, FileTime, Guid, Result, Ticks};
use etl_nettrace::{Damage, Event, Item, LossTracker, TraceHeader};

use super::header::{file_header, pointer_size};
use super::kinds::{EventKind, EventKinds};
use super::losses::LossPlaces;
use super::payload;
use super::report::ConversionReport;
use super::switches::{Absence, Switches};

/// The longest record.
const MAX_RECORD: usize = 0xffff;
/// More than a record has without its payload, its stack and its description: 80 bytes of header,
/// and up to 24 bytes for each of five extended items.
const RECORD_OVERHEAD: usize = 0x100;

/// Writes the events of a stream as records of a session.
pub(super) struct RecordWriter<O: Output> {
    session: Session<O>,
    trace: TraceHeader,
    pointer_size: PointerSize,
    processors: u32,
    /// One more than the highest processor with a record.
    used_processors: u16,
    kinds: EventKinds,
    losses: LossTracker,
    loss_places: LossPlaces,
    switches: Switches,
    /// Faults of the list that are in the trace.
    reported_damage: usize,
    /// The time of the latest record.
    latest: Ticks,
    report: ConversionReport,
    /// The payload that is encoded again.
    payload: Vec<u8>,
    /// The addresses of a stack of 4 bytes each.
    stack: Vec<u32>,
}

impl<O: Output> RecordWriter<O> {
    /// Begins the trace of a stream with this header.
    pub fn new(output: O, trace: &TraceHeader) -> Result<Self> {
        let header = file_header(trace);
        let processors = header.processors;
        Ok(RecordWriter {
            session: Session::create(output, header)?,
            trace: trace.clone(),
            pointer_size: pointer_size(trace),
            processors,
            used_processors: 1,
            kinds: EventKinds::new(),
            losses: LossTracker::new(),
            loss_places: LossPlaces::new(trace.frequency),
            switches: Switches::new(pointer_size(trace)),
            reported_damage: 0,
            latest: Ticks::new(trace.start_ticks.get()),
            report: ConversionReport {
                version: trace.version.major,
                process_id: trace.process_id,
                ..ConversionReport::default()
            },
            payload: Vec::new(),
            stack: Vec::new(),
        })
    }

    pub fn report_mut(&mut self) -> &mut ConversionReport {
        &mut self.report
    }

    /// Adds the damage of the stream so far. A damaged part is a lost buffer before the next event.
    /// `cut_offset` is the end of a stream that is cut.
    pub fn add_damage(&mut self, damage: &[Damage], cut_offset: Option<u64>) -> Result<()> {
        let new = damage.get(self.reported_damage..).unwrap_or_default();
        for fault in new {
            // Only an event's undefined stack, thread or labels are missing then.
            let is_empty = fault.range.is_empty();
            // Events that are held follow, but nothing is lost before them.
            let is_cut = cut_offset == Some(fault.range.end);
            if !is_empty && !is_cut {
                self.lose_buffer()?;
            }
        }
        self.report.damage.extend_from_slice(new);
        self.reported_damage = damage.len();
        Ok(())
    }

    /// Adds a lost buffer, on a processor that is not known.
    fn lose_buffer(&mut self) -> Result<()> {
        self.session.add_losses(0, 1);
        if !self.loss_places.may_end_buffers(self.used_processors) {
            return Ok(());
        }
        for processor in 0..self.used_processors {
            self.session
                .carry_losses(processor, BufferFlags::BUFFER_LOST)?;
        }
        Ok(())
    }

    /// Adds an item of the stream.
    pub fn add(&mut self, item: &Item<'_>) -> Result<()> {
        let mut lost = 0;
        for loss in self.losses.add(item) {
            lost += u64::from(loss.lost);
        }
        if lost > 0 {
            self.lose_events(lost)?;
        }
        match item {
            Item::Event(event) => self.add_event(event),
            _ => Ok(()),
        }
    }

    /// Adds lost events. A thread lost them, on a processor that is not known.
    fn lose_events(&mut self, lost: u64) -> Result<()> {
        self.report.events_lost = self.report.events_lost.saturating_add(lost);
        self.session.lose_events(0, lost)?;
        for processor in 1..self.used_processors {
            self.session.lose_events(processor, 0)?;
        }
        self.loss_places.add();
        Ok(())
    }

    fn add_event(&mut self, event: &Event<'_>) -> Result<()> {
        let kind = self.kinds.get(event.metadata);
        let Some(DescribedEvent { kind, descriptor }) = DescribedEvent::of(event, kind) else {
            self.report.out_of_range += 1;
            return self.lose_events(1);
        };
        let payload = match &kind.encodings {
            Some(encodings) => {
                payload::encode(encodings, event.payload, &mut self.payload);
                self.payload.as_slice()
            }
            None => event.payload,
        };
        if record_size(kind, event, payload) > MAX_RECORD {
            self.report.too_long += 1;
            return self.lose_events(1);
        }
        let start = self.trace.start_ticks;
        self.report.before_start += u64::from(event.timestamp < start);
        let timestamp = Ticks::new(event.timestamp.max(start).get());
        let process_id = event.process_id.unwrap_or(0) as u32;
        let mut record = EventRecord::new(kind.provider, descriptor, timestamp)
            .pointer_size(self.pointer_size)
            .process(process_id, event.thread_id as u32)
            .activity(guid(event.activity_id))
            .payload(payload);
        if !event.related_activity_id.is_zero() {
            record = record.related_activity(guid(event.related_activity_id));
        }
        if let Some(items) = &kind.items {
            record = record
                .provider_traits(&items.traits)
                .metadata(&items.schema);
        }
        let narrow_stack;
        if self.pointer_size == PointerSize::P8 && !event.stack.is_empty() {
            record = record.stack(event.stack);
        } else if !event.stack.is_empty() {
            self.stack.clear();
            let addresses = event.stack.iter().map(|address| *address as u32);
            self.stack.extend(addresses);
            narrow_stack = [Extended::Stack32 {
                match_id: 0,
                addresses: &self.stack,
            }];
            record = record.extended(&narrow_stack);
        }
        self.report.undescribed += u64::from(kind.is_undescribed);
        self.switches.return_before(&mut self.session, timestamp)?;
        let processor = match event.processor {
            Some(processor) if processor < self.processors => processor as u16,
            _ => 0,
        };
        self.session.write(processor, &record)?;
        if kind.is_switch
            && let Some(ticks) = payload.first_chunk()
        {
            let ticks = i64::try_from(u64::from_le_bytes(*ticks)).unwrap_or(i64::MAX);
            let absence = Absence {
                process: process_id,
                thread: event.thread_id as u32,
                processor,
                from: timestamp,
                until: timestamp.saturating_add(ticks),
                stack: event.stack,
            };
            self.switches.leave(&mut self.session, &absence)?;
        }
        self.count_record(processor, timestamp)
    }

    /// Counts a record that was written.
    fn count_record(&mut self, processor: u16, timestamp: Ticks) -> Result<()> {
        self.report.events += 1;
        self.latest = self.latest.max(timestamp);
        self.used_processors = self.used_processors.max(processor + 1);
        let processors = self.used_processors;
        if self.loss_places.ends_buffers(timestamp, processors) {
            self.write_buffers()?;
        }
        Ok(())
    }

    /// Ends all buffers and writes them.
    fn write_buffers(&mut self) -> Result<()> {
        self.session.seal_all();
        self.session.flush(self.latest.max(self.switches.latest()))
    }

    /// Ends the trace of a complete stream.
    pub fn close(mut self) -> Result<Finished<O, ConversionReport>> {
        self.report.is_complete = true;
        self.switches.return_all(&mut self.session)?;
        let latest = self.latest.max(self.switches.latest());
        let latest = etl_nettrace::Ticks::new(latest.get());
        let end = self.trace.file_time(latest);
        // The time is rounded down, and a trace that ends when it starts would not be closed.
        let end = end.map(|end| FileTime::new(end.get().saturating_add(1)));
        let finished = self.session.close(end)?;
        Ok(Finished {
            output: finished.output,
            report: self.report,
        })
    }

    /// Ends the trace of a stream whose end is missing, as if its session had been killed. All
    /// records are in the file.
    pub fn abandon(mut self) -> Result<Finished<O, ConversionReport>> {
        self.switches.return_all(&mut self.session)?;
        self.write_buffers()?;
        let finished = self.session.abandon()?;
        Ok(Finished {
            output: finished.output,
            report: self.report,
        })
    }
}

/// The size of the record of an event, or a little more.
fn record_size(kind: &EventKind, event: &Event<'_>, payload: &[u8]) -> usize {
    RECORD_OVERHEAD + kind.items_size() + 8 * event.stack.len() + payload.len()
}

fn guid(guid: etl_nettrace::Guid) -> Guid {
    Guid::from_bytes(guid.to_bytes())
}

/// An event that fits into a record, with its kind.
struct DescribedEvent<'k> {
    kind: &'k EventKind,
    descriptor: EventDescriptor,
}

impl<'k> DescribedEvent<'k> {
    /// `None` if the id, version or level of the event is larger than a record's.
    fn of(event: &Event<'_>, kind: Option<&'k EventKind>) -> Option<Self> {
        let kind = kind?;
        let mut descriptor = kind.descriptor;
        descriptor.version = u8::try_from(event.version()).ok()?;
        descriptor.level = u8::try_from(event.level()).ok()?;
        descriptor.keyword = event.keywords();
        if kind.items.is_some() {
            descriptor.opcode = event.opcode();
        }
        Some(DescribedEvent { kind, descriptor })
    }
}
