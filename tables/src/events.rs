//! The rows of `events`.

use arrow_array::RecordBatch;
use etl_analysis::Owner;
use etl_events::OwnNames;
use etl_events::context::Context;
use etl_events::header_fields::HeaderFields;
use etl_format::read::{ExtendedItem, OrderCheck, Record, Records, Source, Trace};
use etl_format::{Clock, FileTime, Guid};
use etl_schema::decode::{Fields, Sid};
use etl_schema::render::{self, Names, Renderer};
use etl_schema::store::SchemaStore;
use etl_schema::{EventSchema, providers};
use foldhash::HashMap;

use crate::builder::Builder;
use crate::cell::Cell;
use crate::event_columns::at;
use crate::options::Options;
use crate::stack_id::stack_id;
use crate::tables::EVENTS;
use crate::{Error, Result};

/// Columns for which fields are walked.
const AFTER_FIELDS: [usize; 3] = [at::FIELDS, at::PAYLOAD_SHORT, at::PAYLOAD_LEFT];

/// Columns for which payloads are decoded.
const DECODED: [usize; 5] =
    [at::FIELDS, at::PAYLOAD_SHORT, at::PAYLOAD_LEFT, at::MESSAGE, at::PAYLOAD_TEXT];

/// Columns of what extended items hold.
const EXTENDED: [usize; 4] = [at::RELATED_ACTIVITY, at::STACK_ID, at::USER, at::SESSION_ID];

/// Columns with names of the event's schema.
const NAMES: [usize; 3] = [at::OPCODE_NAME, at::TASK_NAME, at::LEVEL_NAME];

/// Whether a row of the wanted columns shows what the whole trace says of processes and threads.
pub(crate) fn needs_names(builder: &Builder, options: &Options) -> bool {
    let filter = &options.filter;
    let selects =
        !(filter.processes.is_empty() && filter.lives.is_empty() && filter.threads.is_empty());
    let shown = [at::PID, at::PROCESS, at::THREAD, at::FIELDS];
    options.names && (selects || shown.iter().any(|&at| builder.wants(at)))
}

/// Whether a row of the wanted columns shows what the schemas of the trace say.
pub(crate) fn needs_schemas(builder: &Builder, options: &Options) -> bool {
    let shown = DECODED.iter().chain(&NAMES).chain(&[at::EVENT, at::PROVIDER]);
    let selects = !options.events.is_empty() || !options.filter.names.is_empty();
    selects || shown.into_iter().any(|&at| builder.wants(at))
}

/// A builder for the wanted columns of `events`.
pub(crate) fn builder(options: &Options) -> Result<Builder> {
    let slots = EVENTS.slots();
    let wanted = options.wanted(EVENTS.name, &slots)?;
    Ok(Builder::new(&slots, &wanted, options.bounds))
}

/// The records of a trace in time order, without stale ones.
pub(crate) fn records<S: Source>(
    trace: &mut Trace<S>,
    is_ordered: bool,
    threads: usize,
) -> Result<Records<&mut S>> {
    let check = if is_ordered { OrderCheck::Lookahead } else { OrderCheck::Scan };
    trace.set_order_check(check);
    let records = trace.records(etl_format::read::Order::Time)?.with_threads(threads);
    Ok(records.without_stale_records())
}

/// What the columns before `provider` need of a record, of `events` and of the typed tables.
pub(crate) struct Head<'r, 'c> {
    pub record: &'r Record<'r>,
    pub sequence: i64,
    pub filetime: i64,
    pub owner: Owner,
    pub context: Option<&'r Context<'c>>,
}

impl Head<'_, '_> {
    /// Sets the columns that every table of events begins with.
    #[inline]
    pub fn set(&self, builder: &mut Builder, trace: &str) {
        let Head { record, owner: Owner { pid, tid }, .. } = *self;
        builder.set(at::TRACE, Cell::Text(trace));
        builder.set(at::SEQUENCE, Cell::Int(self.sequence));
        builder.set(at::TIME, Cell::Time(self.filetime));
        builder.set(at::FILETIME, Cell::Int(self.filetime));
        builder.set(at::CPU, Cell::Int(record.processor().into()));
        builder.set(at::PID, Cell::int(pid));
        builder.set(at::TID, Cell::int(tid));
        let named = self.context.map(|context| (context, record.timestamp()));
        if builder.wants(at::PROCESS) {
            let name = named.zip(pid).map(|((names, time), pid)| names.process_name(pid, time));
            builder.set(at::PROCESS, Cell::text(name.unwrap_or_default()));
        }
        if builder.wants(at::THREAD) {
            let name = named.zip(tid).map(|((names, time), tid)| names.thread_name(pid, tid, time));
            builder.set(at::THREAD, Cell::text(name.unwrap_or_default()));
        }
    }
}

/// Names of providers that are known without the trace.
#[derive(Debug, Default)]
struct Providers {
    known: HashMap<Guid, (Option<&'static str>, Box<str>)>,
}

impl Providers {
    /// The name of a provider, and its GUID as text.
    fn get(&mut self, guid: Guid) -> (Option<&'static str>, &str) {
        let (name, text) = self.known.entry(guid).or_insert_with(|| {
            let text = String::from_utf8_lossy(&guid.to_ascii()).into_owned();
            (providers::name(guid), text.into())
        });
        (*name, text)
    }
}

/// Makes rows of the events of a trace.
pub(crate) struct EventRows<'c> {
    clock: Clock,
    store: SchemaStore,
    context: Option<&'c Context<'c>>,
    providers: Providers,
    sequence: i64,
    /// Bytes and text of the last payload.
    scratch: (Vec<u8>, String),
    name: String,
}

impl<'c> EventRows<'c> {
    pub fn new(clock: Clock, store: SchemaStore, context: Option<&'c Context<'c>>) -> Self {
        let providers = Providers::default();
        let (scratch, name) = Default::default();
        EventRows { clock, store, context, providers, sequence: 0, scratch, name }
    }

    /// Takes in a record and adds its row, if it is selected; returns whether the batch is full.
    pub fn add(&mut self, builder: &mut Builder, options: &Options, record: &Record<'_>) -> bool {
        let sequence = self.sequence;
        self.sequence += 1;
        self.store.learn(record);
        let store = &self.store;
        if !options.filter.admits_with(record, self.context, |p| store.provider_name(p)) {
            return false;
        }
        let named = !options.events.is_empty() || builder.wants(at::EVENT);
        let header = HeaderFields::of(record);
        let decodes = DECODED.iter().any(|&at| builder.wants(at));
        let described = if decodes {
            store.fields(record).map(|fields| (fields.schema(), Some(fields)))
        } else if named || NAMES.iter().any(|&at| builder.wants(at)) {
            store.decoder(record).map(|decoder| (&**decoder.schema(), None))
        } else {
            None
        };
        let (schema, fields) = described.unzip();
        if named {
            let name = header.event_name(schema, record, &mut self.name);
            if !options.events.admit_name(name) {
                return false;
            }
            builder.set(at::EVENT, Cell::Text(name));
        }
        let filetime = self.clock.filetime(record.timestamp());
        let owner = self.context.map_or_else(|| etl_analysis::owner(record), |c| c.owner(record));
        let context = self.context;
        Head { record, sequence, filetime, owner, context }.set(builder, &options.trace);
        if builder.wants(at::PROVIDER) || builder.wants(at::PROVIDER_GUID) {
            let provider = record.provider();
            let known = provider.map(|guid| self.providers.get(guid));
            let name = known.and_then(|(name, text)| {
                name.or_else(|| providers::name_in_traits(record))
                    .or_else(|| store.provider_name(provider?))
                    .or(Some(text))
            });
            builder.set(at::PROVIDER, Cell::text(name.unwrap_or_default()));
            let guid = known.map_or("", |(_, text)| text);
            builder.set(at::PROVIDER_GUID, Cell::text(guid));
        }
        builder.set(at::ID, Cell::int(header.id));
        builder.set(at::VERSION, Cell::int(header.version));
        builder.set(at::LEVEL, Cell::int(header.level));
        builder.set(at::KEYWORD, Cell::bits(header.keyword));
        builder.set(at::OPCODE, Cell::int(header.opcode));
        builder.set(at::TASK, Cell::int(header.task));
        if builder.wants(at::KIND) {
            match record.kind().name() {
                Some(name) => builder.set(at::KIND, Cell::Text(name)),
                None => builder.set(at::KIND, Cell::Text(&record.kind().to_string())),
            }
        }
        if builder.wants(at::ACTIVITY) {
            guid(builder, at::ACTIVITY, HeaderFields::activity(record));
        }
        extended(builder, &mut self.scratch.0, record, owner.pid);
        if builder.wants(at::PAYLOAD_SIZE) || builder.wants(at::PAYLOAD) {
            builder.set(at::PAYLOAD_SIZE, Cell::int(Some(record.payload().len())));
            builder.set(at::PAYLOAD, Cell::Bytes(record.payload()));
        }
        builder.set(at::TIMESTAMP, Cell::Int(record.timestamp()));
        builder.set(at::HOOK, Cell::int(header.hook));
        if NAMES.iter().any(|&at| builder.wants(at)) {
            let names = match schema {
                Some(schema) => OwnNames::new(schema, &header),
                None => OwnNames::default(),
            };
            for (at, name) in NAMES.into_iter().zip([names.opcode, names.task, names.level]) {
                builder.set(at, Cell::text(name));
            }
        }
        if decodes {
            // A layout without any fields says nothing of a payload.
            let empty = schema.is_none_or(|schema| schema.fields.is_empty());
            let is_known = !empty || record.payload().is_empty();
            let fields = fields.flatten().filter(|_| is_known);
            decoded(builder, &mut self.scratch, record, schema.zip(fields), (filetime, context));
        }
        builder.end_row()
    }
}

/// Sets what is decoded of a payload.
fn decoded(
    builder: &mut Builder,
    scratch: &mut (Vec<u8>, String),
    record: &Record<'_>,
    described: Option<(&EventSchema, Fields<'_>)>,
    (filetime, context): (i64, Option<&Context<'_>>),
) {
    let (scratch, text) = scratch;
    let Some((schema, mut fields)) = described else {
        for at in [at::FIELDS, at::MESSAGE, at::PAYLOAD_SHORT, at::PAYLOAD_LEFT] {
            builder.set(at, Cell::Null);
        }
        text.clear();
        if builder.wants(at::PAYLOAD_TEXT) && !record.payload().is_empty() {
            render::readable_text(text, record.payload());
        }
        builder.set(at::PAYLOAD_TEXT, Cell::text(text));
        return;
    };
    builder.set(at::PAYLOAD_TEXT, Cell::Null);
    if builder.wants(at::MESSAGE) {
        let time = FileTime::new(filetime);
        let message = etl_events::message(scratch, record, schema, &fields, time);
        builder.set(at::MESSAGE, message.map_or(Cell::Null, Cell::Text));
    }
    if AFTER_FIELDS.iter().any(|&at| builder.wants(at)) {
        scratch.clear();
        let names = context.map(|context| context.names_of(record));
        let names = names.as_ref().map(|names| names as &dyn Names);
        let renderer = Renderer::new().names(names).hex().lossy();
        renderer.json_fields(scratch, &mut fields);
        builder.set(at::FIELDS, Cell::Bytes(scratch));
        let note = fields.note();
        builder.set(at::PAYLOAD_SHORT, Cell::Bool(note.is_short()));
        let left = note.trailing.len();
        builder.set(at::PAYLOAD_LEFT, Cell::int((left > 0).then_some(left)));
    }
}

fn guid(builder: &mut Builder, at: usize, guid: Option<Guid>) {
    match guid {
        Some(guid) => builder.set(at, Cell::Bytes(&guid.to_ascii())),
        None => builder.set(at, Cell::Null),
    }
}

/// Sets what extended items hold.
#[inline]
fn extended(builder: &mut Builder, scratch: &mut Vec<u8>, record: &Record<'_>, pid: Option<u32>) {
    if !EXTENDED.iter().any(|&at| builder.wants(at)) {
        return;
    }
    let (mut from, mut stack, mut session) = (None, None, None);
    scratch.clear();
    for item in record.extended() {
        match item {
            ExtendedItem::RelatedActivity(id) => from = from.or(Some(id)),
            ExtendedItem::Stack(found) if found.match_id == 0 => {
                stack = stack.or_else(|| Some(carried_stack_id(pid, &found)));
            }
            ExtendedItem::Sid(sid) if scratch.is_empty() => render::sid(scratch, Sid(sid)),
            ExtendedItem::TerminalSession(id) => session = session.or(Some(id)),
            _ => {}
        }
    }
    guid(builder, at::RELATED_ACTIVITY, from);
    builder.set(at::STACK_ID, Cell::int(stack));
    let user = core::str::from_utf8(scratch).unwrap_or_default();
    builder.set(at::USER, Cell::text(user));
    builder.set(at::SESSION_ID, Cell::int(session));
}

/// The id of a stack that a record carries: as if its parts were joined, the kernel's first.
fn carried_stack_id(pid: Option<u32>, stack: &etl_format::read::StackTrace<'_>) -> i64 {
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
    let mut rows = EventRows::new(records.clock(), options.store.clone(), context);
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
