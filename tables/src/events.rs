//! The rows of `events`.

use arrow_array::RecordBatch;
use etl_analysis::RecordOwner;
use etl_events::context::Context;
use etl_events::{Depth, Event, EventDecoder, Selection};
use etl_format::read::{ExtendedItem, OrderCheck, Record, Records, Source, StackTrace, Trace};
use etl_format::{Clock, Guid, ProcessId};
use etl_schema::decode::{Fields, Sid};
use etl_schema::render::{self, Names, Renderer};

use crate::builder::Builder;
use crate::cell::Cell;
use crate::event_columns::at;
use crate::options::Options;
use crate::stack_id::stack_id;
use crate::tables::EVENTS;
use crate::{Error, Result};

/// Columns that need all fields of the payload.
const AFTER_FIELDS: [usize; 3] = [at::FIELDS, at::PAYLOAD_SHORT, at::PAYLOAD_LEFT];

/// Columns that need decoded fields.
const DECODED: [usize; 4] = [at::FIELDS, at::PAYLOAD_SHORT, at::PAYLOAD_LEFT, at::MESSAGE];

/// Columns with the values of extended items.
const EXTENDED: [usize; 4] = [at::RELATED_ACTIVITY, at::STACK_ID, at::USER, at::SESSION_ID];

/// Columns with names of the event's schema.
const NAMES: [usize; 5] = [
    at::EVENT,
    at::OPCODE_NAME,
    at::TASK_NAME,
    at::LEVEL_NAME,
    at::CHANNEL_NAME,
];

/// Whether the requested columns, or the filter, need the processes and threads of the trace.
pub(crate) fn needs_names(builder: &Builder, options: &Options) -> bool {
    let filter = &options.filter;
    let selects =
        !(filter.processes.is_empty() && filter.lives.is_empty() && filter.threads.is_empty());
    let columns = [at::PID, at::PROCESS, at::THREAD, at::FIELDS];
    options.names && (selects || wants_any(builder, &columns))
}

/// Whether the requested columns, or the filter, need the schemas of the trace.
pub(crate) fn needs_schemas(builder: &Builder, options: &Options) -> bool {
    let selects = !options.events.is_empty() || !options.filter.names.is_empty();
    selects
        || wants_any(builder, &DECODED)
        || wants_any(builder, &NAMES)
        || wants_any(builder, &[at::PROVIDER, at::PAYLOAD_TEXT])
}

/// Whether any of these columns is requested.
fn wants_any(builder: &Builder, columns: &[usize]) -> bool {
    columns.iter().any(|&index| builder.wants(index))
}

/// A builder for the requested columns of `events`.
pub(crate) fn builder(options: &Options) -> Result<Builder> {
    let slots = EVENTS.slots();
    let requested = options.requested(EVENTS.name, &slots)?;
    Ok(Builder::new(&slots, &requested, options.bounds))
}

/// The records of a trace in time order, without stale records.
pub(crate) fn records<S: Source>(
    trace: &mut Trace<S>,
    is_ordered: bool,
    threads: usize,
) -> Result<Records<&mut S>> {
    let check = if is_ordered {
        OrderCheck::Lookahead
    } else {
        OrderCheck::Scan
    };
    trace.set_order_check(check);
    let records = trace
        .records(etl_format::read::Order::Time)?
        .with_threads(threads);
    Ok(records.without_stale_records())
}

/// How much of the records has to be decoded for the requested columns.
fn depth(builder: &Builder, options: &Options) -> Depth {
    if builder.wants(at::PAYLOAD_TEXT) {
        Depth::Texts
    } else if wants_any(builder, &DECODED) {
        Depth::Fields
    } else if !options.events.is_empty() || wants_any(builder, &NAMES) {
        Depth::Names
    } else {
        Depth::Headers
    }
}

/// A decoder for the records of a trace.
pub(crate) fn decoder<'c>(
    clock: Clock,
    options: &Options,
    context: Option<&Context<'c>>,
) -> EventDecoder<'c> {
    EventDecoder::new(clock, options.store.clone()).context(context.cloned())
}

/// Sets the columns that every table of events begins with, up to the thread.
#[inline]
pub(crate) fn set_keys(builder: &mut Builder, trace: &str, sequence: i64, event: &Event<'_>) {
    let owner = owner(event);
    let time = event.time();
    builder.set(at::TRACE, Cell::Text(trace));
    builder.set(at::SEQUENCE, Cell::Int(sequence));
    builder.set(at::TIME, Cell::Time(time));
    builder.set(at::FILETIME, Cell::Int(time.get()));
    builder.set(at::CPU, Cell::Int(event.cpu().into()));
    builder.set(at::PID, Cell::int(owner.process_id));
    builder.set(at::TID, Cell::int(owner.thread_id));
    if builder.wants(at::PROCESS) {
        builder.set(at::PROCESS, Cell::text(event.process().unwrap_or_default()));
    }
    if builder.wants(at::THREAD) {
        builder.set(at::THREAD, Cell::text(event.thread().unwrap_or_default()));
    }
}

/// The process and the thread. A sample contains its thread even if the trace was not read for
/// names.
fn owner(event: &Event<'_>) -> RecordOwner {
    match event.names() {
        Some(_) => RecordOwner {
            process_id: event.pid(),
            thread_id: event.tid(),
        },
        None => etl_analysis::owner(event.record()),
    }
}

/// Makes rows of the events of a trace.
struct EventRows<'c> {
    decoder: EventDecoder<'c>,
    selection: Selection,
    sequence: i64,
    scratch: Vec<u8>,
}

impl EventRows<'_> {
    /// Adds the row of a record if it is selected; returns whether the batch is full.
    fn add(&mut self, builder: &mut Builder, options: &Options, record: &Record<'_>) -> bool {
        let sequence = self.sequence;
        self.sequence += 1;
        let Some(event) = self.decoder.select(record, &self.selection) else {
            return false;
        };
        if !options.events.is_empty() && !options.events.admit_name(event.name()) {
            return false;
        }
        set_keys(builder, &options.trace, sequence, &event);
        let header = event.header();
        builder.set(at::EVENT, Cell::Text(event.name()));
        builder.set(at::PROVIDER, Cell::text(event.provider()));
        if builder.wants(at::PROVIDER_GUID) {
            set_guid(builder, at::PROVIDER_GUID, event.provider_guid());
        }
        builder.set(at::ID, Cell::int(header.id));
        builder.set(at::VERSION, Cell::int(header.version));
        builder.set(at::LEVEL, Cell::int(header.level));
        builder.set(at::KEYWORD, Cell::bits(header.keyword));
        builder.set(at::OPCODE, Cell::int(header.opcode));
        builder.set(at::TASK, Cell::int(header.task));
        if builder.wants(at::KIND) {
            match event.kind().name() {
                Some(name) => builder.set(at::KIND, Cell::Text(name)),
                None => builder.set(at::KIND, Cell::Text(&event.kind().to_string())),
            }
        }
        if builder.wants(at::ACTIVITY) {
            set_guid(builder, at::ACTIVITY, event.activity());
        }
        set_extended(builder, &mut self.scratch, &event);
        builder.set(at::PAYLOAD_SIZE, Cell::int(Some(event.payload().len())));
        builder.set(at::PAYLOAD, Cell::Bytes(event.payload()));
        builder.set(at::TIMESTAMP, Cell::Int(event.ticks().get()));
        builder.set(at::HOOK, Cell::int(header.hook));
        builder.set(
            at::OPCODE_NAME,
            Cell::text(event.opcode_name().unwrap_or_default()),
        );
        builder.set(
            at::TASK_NAME,
            Cell::text(event.task_name().unwrap_or_default()),
        );
        builder.set(
            at::LEVEL_NAME,
            Cell::text(event.level_name().unwrap_or_default()),
        );
        builder.set(
            at::CHANNEL_NAME,
            Cell::text(event.channel_name().unwrap_or_default()),
        );
        builder.set(at::PAYLOAD_TEXT, Cell::text(event.payload_text()));
        set_decoded(builder, &mut self.scratch, &event);
        builder.end_row()
    }
}

/// Sets the columns of the decoded payload.
fn set_decoded(builder: &mut Builder, scratch: &mut Vec<u8>, event: &Event<'_>) {
    if builder.wants(at::MESSAGE) {
        let message = event.write_message(scratch).unwrap_or_default();
        builder.set(at::MESSAGE, Cell::text(message));
    }
    if !wants_any(builder, &AFTER_FIELDS) {
        return;
    }
    let Some(mut fields) = event.fields() else {
        for index in AFTER_FIELDS {
            builder.set(index, Cell::Null);
        }
        return;
    };
    write_fields(scratch, event, &mut fields);
    builder.set(at::FIELDS, Cell::Bytes(scratch));
    let note = fields.note();
    builder.set(at::PAYLOAD_SHORT, Cell::Bool(note.is_short()));
    let left = match note.trailing.len() {
        0 => None,
        left => Some(left),
    };
    builder.set(at::PAYLOAD_LEFT, Cell::int(left));
}

/// Replaces a text by the fields of an event as JSON.
pub(crate) fn write_fields(out: &mut Vec<u8>, event: &Event<'_>, fields: &mut Fields<'_>) {
    out.clear();
    let names = event.names();
    let names = names.as_ref().map(|names| names as &dyn Names);
    Renderer::new()
        .names(names)
        .hex()
        .lossy()
        .json_fields(out, fields);
}

/// Sets a GUID as text.
pub(crate) fn set_guid(builder: &mut Builder, index: usize, guid: Option<Guid>) {
    match guid {
        Some(guid) => {
            let text = guid.to_ascii();
            builder.set(index, Cell::text(str::from_utf8(&text).unwrap_or_default()));
        }
        None => builder.set(index, Cell::Null),
    }
}

/// Sets the columns of extended items, from the first item of each kind.
#[inline]
fn set_extended(builder: &mut Builder, scratch: &mut Vec<u8>, event: &Event<'_>) {
    if !wants_any(builder, &EXTENDED) {
        return;
    }
    let mut related_activity = None;
    let mut stack_id = None;
    let mut session_id = None;
    scratch.clear();
    for item in event.record().extended() {
        match item {
            ExtendedItem::RelatedActivity(id) if related_activity.is_none() => {
                related_activity = Some(id);
            }
            ExtendedItem::Stack(stack) if stack.match_id == 0 && stack_id.is_none() => {
                stack_id = Some(carried_stack_id(owner(event).process_id, &stack));
            }
            ExtendedItem::Sid(sid) if scratch.is_empty() => render::sid(scratch, Sid(sid)),
            ExtendedItem::TerminalSession(id) if session_id.is_none() => session_id = Some(id),
            _ => {}
        }
    }
    set_guid(builder, at::RELATED_ACTIVITY, related_activity);
    builder.set(at::STACK_ID, Cell::int(stack_id));
    let user = core::str::from_utf8(scratch).unwrap_or_default();
    builder.set(at::USER, Cell::text(user));
    builder.set(at::SESSION_ID, Cell::int(session_id));
}

/// The id of a stack that a record carries. Its parts are joined, the part of the kernel first.
fn carried_stack_id(pid: Option<ProcessId>, stack: &StackTrace<'_>) -> i64 {
    let kernel = if stack.wide { 1 << 63 } else { 1 << 31 };
    let in_kernel = stack.addresses().filter(|&address| address >= kernel);
    let in_process = stack.addresses().filter(|&address| address < kernel);
    stack_id(pid, in_kernel.chain(in_process))
}

/// Passes the batches of `events` to `out`.
pub(crate) fn write<S: Source>(
    records: &mut Records<S>,
    context: Option<&Context<'_>>,
    options: &Options,
    out: &mut dyn FnMut(RecordBatch) -> Result<()>,
) -> Result<()> {
    let mut builder = builder(options)?;
    let mut rows = EventRows {
        decoder: decoder(records.clock(), options, context).depth(depth(&builder, options)),
        selection: Selection::default().filter(options.filter.clone()),
        sequence: 0,
        scratch: Vec::new(),
    };
    while let Some(record) = records.next_record().map_err(Error::Trace)? {
        if rows.add(&mut builder, options, &record) {
            out(builder.take()?)?;
        }
    }
    if builder.len() > 0 {
        out(builder.take()?)?;
    }
    Ok(())
}
