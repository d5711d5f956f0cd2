//! The work of the CLR as slices: collections and suspensions, compilations, exceptions, waits for
//! locks; and sizes of the heap as counters.

use etl_analysis::behavior::collections::{Collection, Collections};
use etl_analysis::behavior::compilations::{Compilation, Compilations};
use etl_analysis::behavior::{contention, exceptions};
use etl_analysis::loss::Loss;
use etl_analysis::{EventRef, Machine, Observer, OpenOperations, ProcessIndex, Scope};
use etl_format::read::Record;
use etl_format::{ThreadId, Ticks};
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::FieldReader;

use super::Context;
use super::storage::Storage;
use super::tracks::{Count, Owner, Row, Slice, TraceWriter, Value};
use crate::text::utf16;

/// A wait of a thread for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Wait {
    pid: u32,
    tid: u32,
    /// Whether the lock is one of the runtime itself.
    is_native: bool,
}

impl Wait {
    const fn name(self) -> &'static str {
        if self.is_native {
            "Waiting for a lock of the runtime"
        } else {
            "Waiting for a lock"
        }
    }

    const fn owner(self) -> Owner {
        Owner {
            pid: self.pid,
            clr: 0,
            tid: Some(self.tid),
        }
    }
}

/// Collects the work of the CLRs.
#[derive(Debug)]
pub(super) struct Behavior {
    collections: Collections,
    compilations: Compilations,
    /// When waits began.
    waits: OpenOperations<Wait, Ticks>,
    contention: FieldReader<1>,
    exception: FieldReader<3>,
}

impl Behavior {
    pub fn new() -> Self {
        let contention = ["ContentionFlags"];
        let exception = ["ExceptionType", "ExceptionMessage", "ExceptionEIP"];
        Behavior {
            collections: Collections::new(),
            compilations: Compilations::new(),
            waits: OpenOperations::default(),
            contention: FieldReader::of_event(CLR_RUNTIME, contention::START, contention),
            exception: FieldReader::of_event(CLR_RUNTIME, exceptions::THROWN, exception),
        }
    }

    /// Adds an event of the CLR's runtime provider, by its id.
    pub fn record<S: Storage>(
        &mut self,
        context: &Context<'_>,
        record: &Record<'_>,
        event: &EventRef,
        id: u16,
        writer: &mut TraceWriter<S>,
    ) {
        let Some(process) = event.process else { return };
        let machine = context.machine;
        let is_selected = context
            .selection
            .admits(machine, Some(process), event.tid, event.time);
        let owner = Owner {
            pid: pid_of(machine, process),
            tid: event.tid.map(ThreadId::get),
            clr: 0,
        };
        match id {
            contention::START => {
                if is_selected && let Some(wait) = self.wait(record, owner) {
                    let scope = Scope::session(event.session);
                    self.waits.begin(wait, scope, event.time);
                }
            }
            contention::STOP => {
                if is_selected && let Some(wait) = self.wait(record, owner) {
                    self.end_wait(context, wait, event.time, writer);
                }
            }
            exceptions::THROWN if is_selected => {
                self.exception(record, owner, context.time.nanos(event.time), writer);
            }
            _ => {
                self.collections.record(machine, record, event);
                self.compilations.record(machine, record, event);
                for compilation in self.compilations.take() {
                    if is_selected {
                        write_compilation(context, &compilation, owner, writer);
                    }
                }
            }
        }
    }

    /// The wait that an event begins or ends.
    fn wait(&mut self, record: &Record<'_>, owner: Owner) -> Option<Wait> {
        let tid = owner.tid?;
        let fields = self.contention.read(record);
        let flags = fields.and_then(|fields| fields.uint(0)).unwrap_or(0);
        Some(Wait {
            pid: owner.pid,
            tid,
            is_native: flags & contention::NATIVE != 0,
        })
    }

    fn end_wait<S: Storage>(
        &mut self,
        context: &Context<'_>,
        wait: Wait,
        end: Ticks,
        writer: &mut TraceWriter<S>,
    ) {
        if let Some(since) = self.waits.end(&wait) {
            writer.slice(Slice {
                owner: wait.owner(),
                row: Row::Contention,
                from: context.time.nanos(since),
                to: Some(context.time.nanos(end)),
                name: wait.name(),
                values: &[],
            });
        }
    }

    fn exception<S: Storage>(
        &mut self,
        record: &Record<'_>,
        owner: Owner,
        nanos: u64,
        writer: &mut TraceWriter<S>,
    ) {
        let Some(fields) = self.exception.read(record) else {
            return;
        };
        let name = utf16(fields.text(0).unwrap_or_default());
        let message = utf16(fields.text(1).unwrap_or_default());
        let values = [
            ("message", Value::Text(&message)),
            ("address", Value::Pointer(fields.uint(2).unwrap_or(0))),
        ];
        writer.instant(owner, Row::Exceptions, nanos, &name, &values);
    }

    /// Records are missing: open operations may have ended.
    pub fn loss(&mut self, loss: &Loss) {
        self.collections.loss(loss);
        self.compilations.loss(loss);
        self.waits.give_up(loss);
    }

    /// Writes the slices that are complete only at the end of the recording.
    pub fn finish<S: Storage>(&self, context: &Context<'_>, writer: &mut TraceWriter<S>) {
        self.write_open_waits(context, writer);
        self.write_collections(context, writer);
        self.write_suspensions(context, writer);
    }

    fn write_open_waits<S: Storage>(&self, context: &Context<'_>, writer: &mut TraceWriter<S>) {
        let mut waits: Vec<(Ticks, Wait)> = Vec::new();
        for (wait, since) in self.waits.iter() {
            waits.push((*since, *wait));
        }
        waits.sort_unstable();
        for (since, wait) in waits {
            writer.slice(Slice {
                owner: wait.owner(),
                row: Row::Contention,
                from: context.time.nanos(since),
                to: None,
                name: wait.name(),
                values: &[],
            });
        }
    }

    fn write_collections<S: Storage>(&self, context: &Context<'_>, writer: &mut TraceWriter<S>) {
        let mut collections: Vec<&Collection> = self.collections.list().iter().collect();
        // Slices are written in the order of their ends.
        collections.sort_by_key(|collection| collection.ended.unwrap_or(Ticks::MAX));
        for collection in collections {
            let is_selected = context.selection.admits(
                context.machine,
                Some(collection.process),
                collection.started_by,
                collection.started,
            );
            if is_selected {
                write_collection(context, collection, writer);
            }
        }
    }

    fn write_suspensions<S: Storage>(&self, context: &Context<'_>, writer: &mut TraceWriter<S>) {
        let list = self.collections.list();
        for pause in self.collections.pauses() {
            let collection = pause.collection.and_then(|index| list.get(index));
            // The threads that suspend others belong to the runtime: a thread has the suspensions
            // for the collections that it started.
            let tid = collection.and_then(|collection| collection.started_by);
            let process = Some(pause.process);
            let selection = context.selection;
            if !selection.admits(context.machine, process, tid, pause.since) {
                continue;
            }
            let name = match collection {
                Some(collection) => format!("Suspended for GC #{}", collection.number),
                None => "Suspended".to_owned(),
            };
            writer.slice(Slice {
                owner: Owner {
                    pid: pid_of(context.machine, pause.process),
                    clr: pause.clr,
                    tid: None,
                },
                row: Row::Suspensions,
                from: context.time.nanos(pause.since),
                to: Some(context.time.nanos(pause.until)),
                name: &name,
                values: &[],
            });
        }
    }
}

/// Writes a compilation; as an instant if its start was not recorded.
fn write_compilation<S: Storage>(
    context: &Context<'_>,
    compilation: &Compilation,
    owner: Owner,
    writer: &mut TraceWriter<S>,
) {
    let owner = Owner {
        tid: compilation.tid.map(ThreadId::get),
        ..owner
    };
    let loaded = context.time.nanos(compilation.loaded);
    let mut values = vec![
        ("tier", Value::Text(compilation.tier_name())),
        ("code_size", Value::Uint(compilation.code_size.into())),
    ];
    let Some(duration) = compilation.duration else {
        writer.instant(
            owner,
            Row::Compilations,
            loaded,
            &compilation.method,
            &values,
        );
        return;
    };
    let il_size = compilation.il_size.unwrap_or(0);
    values.push(("il_size", Value::Uint(il_size.into())));
    let started = Ticks::new(compilation.loaded.get().saturating_sub_unsigned(duration));
    writer.slice(Slice {
        owner,
        row: Row::Compilations,
        from: context.time.nanos(started),
        to: Some(loaded),
        name: &compilation.method,
        values: &values,
    });
}

/// Writes a collection, and the sizes of the heap at its end.
fn write_collection<S: Storage>(
    context: &Context<'_>,
    collection: &Collection,
    writer: &mut TraceWriter<S>,
) {
    let time = context.time;
    let owner = Owner {
        pid: pid_of(context.machine, collection.process),
        clr: collection.clr,
        tid: None,
    };
    let reason = collection.reason.name().unwrap_or("unknown reason");
    let kind = collection.kind.name().unwrap_or("unknown type");
    let paused = time.duration_nanos(collection.paused);
    let mut values = vec![
        ("number", Value::Uint(collection.number.into())),
        ("generation", Value::Uint(collection.generation.into())),
        ("reason", Value::Text(reason)),
        ("type", Value::Text(kind)),
        ("pauses", Value::Uint(collection.pauses.into())),
        ("paused_ns", Value::Uint(paused)),
    ];
    if let Some(bytes) = collection.promoted {
        values.push(("promoted_bytes", Value::Uint(bytes)));
    }
    if let Some(bytes) = collection.heap_size() {
        values.push(("heap_bytes", Value::Uint(bytes)));
    }
    let mut name = format!("GC #{} gen {}", collection.number, collection.generation);
    if collection.is_background() {
        name.insert_str(0, "Background ");
    }
    let ended = collection.ended.map(|ended| time.nanos(ended));
    writer.slice(Slice {
        owner,
        row: Row::Collections,
        from: time.nanos(collection.started),
        to: ended,
        name: &name,
        values: &values,
    });
    let Some(heap) = collection.heap else { return };
    let Some(ended) = ended else { return };
    let total = collection.heap_size().unwrap_or(0);
    writer.bytes(owner, Count::Heap, ended, total);
    for (generation, bytes) in (0..).zip(heap) {
        writer.bytes(owner, Count::Generation(generation), ended, bytes);
    }
}

fn pid_of(machine: &Machine, process: ProcessIndex) -> u32 {
    match machine.process(process) {
        Some(process) => process.pid().get(),
        None => 0,
    }
}
