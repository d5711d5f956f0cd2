//! What the CLR did, as slices: collections and suspensions, compilations, exceptions, waits for
//! locks; and sizes of the heap as counters.

use etl_analysis::behavior::collections::Collections;
use etl_analysis::behavior::compilations::Compilations;
use etl_analysis::behavior::{contention, exceptions};
use etl_analysis::loss::Loss;
use etl_analysis::{EventRef, Machine, Observer, OpenOperations, ProcessIndex, Scope};
use etl_format::read::Record;
use etl_format::{ThreadId, Ticks};
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::FieldReader;

use super::packets::Packets;
use super::selection::Selection;
use super::storage::Storage;
use super::time::TraceTime;
use super::tracks::{Count, Owner, Row, Tracks, Value};
use crate::text::utf16;

/// Ids of a process and a thread, and whether the wait is in native code.
type Wait = (u32, u32, u64);

/// Collects what the CLRs do.
#[derive(Debug)]
pub(super) struct Behavior {
    collections: Collections,
    compilations: Compilations,
    /// When waits began.
    waits: OpenOperations<Wait, Ticks>,
    contended: FieldReader<1>,
    thrown: FieldReader<3>,
}

impl Behavior {
    pub fn new() -> Self {
        let thrown = ["ExceptionType", "ExceptionMessage", "ExceptionEIP"];
        let contended = ["ContentionFlags"];
        Behavior {
            collections: Collections::new(),
            compilations: Compilations::new(),
            waits: OpenOperations::default(),
            contended: FieldReader::of_event(CLR_RUNTIME, contention::START, contended),
            thrown: FieldReader::of_event(CLR_RUNTIME, exceptions::THROWN, thrown),
        }
    }

    /// Takes in an event of the CLR's runtime provider.
    pub fn record<S: Storage>(
        &mut self,
        machine: &Machine,
        record: &Record<'_>,
        (id, event, time): (u16, &EventRef, TraceTime),
        selection: &Selection,
        (tracks, packets): (&mut Tracks, &mut Packets<S>),
    ) {
        let Some(process) = event.process else { return };
        let is_selected = selection.admits(machine, Some(process), event.tid, event.time);
        let pid = pid_of(machine, process);
        let owner = Owner {
            pid,
            tid: event.tid.map(ThreadId::get),
            clr: 0,
        };
        match id {
            contention::START | contention::STOP => {
                let Some(tid) = event.tid.filter(|_| is_selected) else {
                    return;
                };
                // Both events begin with the flags.
                let flags = self
                    .contended
                    .read(record)
                    .and_then(|fields| fields.uint(0));
                let key = (pid, tid.get(), flags.unwrap_or(0) & contention::NATIVE);
                if id == contention::START {
                    self.waits
                        .begin(key, Scope::session(event.session), event.time);
                } else if let Some(since) = self.waits.end(&key) {
                    let span = (time.nanos(since.get()), Some(time.nanos(event.time.get())));
                    let row = (owner, Row::Contention);
                    tracks.slice(packets, row, span, wait_name(key), &[]);
                }
            }
            exceptions::THROWN if is_selected => {
                let Some(fields) = self.thrown.read(record) else {
                    return;
                };
                let text = |at| utf16(fields.text(at).unwrap_or_default());
                let (kind, message) = (text(0), text(1));
                let values = [
                    ("message", Value::Text(&message)),
                    ("address", Value::Pointer(fields.uint(2).unwrap_or(0))),
                ];
                let row = (owner, Row::Exceptions);
                tracks.instant(packets, row, time.nanos(event.time.get()), &kind, &values);
            }
            _ => {
                self.collections.record(machine, record, event);
                self.compilations.record(machine, record, event);
                for done in self.compilations.take() {
                    if !is_selected {
                        continue;
                    }
                    let row = (
                        Owner {
                            tid: done.tid.map(ThreadId::get),
                            ..owner
                        },
                        Row::Compilations,
                    );
                    let to = time.nanos(done.loaded.get());
                    let values = [
                        ("tier", Value::Text(done.tier_name())),
                        ("code_size", Value::Uint(done.code_size.into())),
                        ("il_size", Value::Uint(done.il_size.unwrap_or(0).into())),
                    ];
                    match done.duration {
                        Some(ticks) => {
                            let since =
                                Ticks::new(done.loaded.get().saturating_sub_unsigned(ticks));
                            let span = (time.nanos(since.get()), Some(to));
                            tracks.slice(packets, row, span, &done.method, &values);
                        }
                        None => {
                            let known = values.get(..2).unwrap_or_default();
                            tracks.instant(packets, row, to, &done.method, known);
                        }
                    }
                }
            }
        }
    }

    /// Records are missing: what was open may have ended.
    pub fn loss(&mut self, loss: &Loss) {
        self.collections.loss(loss);
        self.compilations.loss(loss);
        self.waits.give_up(loss);
    }

    /// Writes what is complete only now.
    pub fn finish<S: Storage>(
        &self,
        (machine, time): (&Machine, TraceTime),
        selection: &Selection,
        (tracks, packets): (&mut Tracks, &mut Packets<S>),
    ) {
        let mut waits: Vec<(Ticks, Wait)> =
            self.waits.iter().map(|(key, at)| (*at, *key)).collect();
        waits.sort_unstable();
        for (since, key) in waits {
            let row = (
                Owner {
                    pid: key.0,
                    tid: Some(key.1),
                    clr: 0,
                },
                Row::Contention,
            );
            let span = (time.nanos(since.get()), None);
            tracks.slice(packets, row, span, wait_name(key), &[]);
        }
        self.collections(machine, time, selection, (tracks, packets));
        let list = self.collections.list();
        for pause in self.collections.pauses() {
            let of = pause.collection.and_then(|index| list.get(index));
            // The threads that suspend others belong to the runtime: a thread has the suspensions
            // for the collections that it started.
            let tid = of.and_then(|of| of.started_by);
            if !selection.admits(machine, Some(pause.process), tid, pause.since) {
                continue;
            }
            let owner = Owner {
                pid: pid_of(machine, pause.process),
                clr: pause.clr,
                tid: None,
            };
            let span = (
                time.nanos(pause.since.get()),
                Some(time.nanos(pause.until.get())),
            );
            let name = match of {
                Some(of) => format!("Suspended for GC #{}", of.number),
                None => "Suspended".to_owned(),
            };
            tracks.slice(packets, (owner, Row::Suspensions), span, &name, &[]);
        }
    }

    fn collections<S: Storage>(
        &self,
        machine: &Machine,
        time: TraceTime,
        selection: &Selection,
        (tracks, packets): (&mut Tracks, &mut Packets<S>),
    ) {
        let list = self.collections.list();
        // In the order of their ends, as slices have to be.
        let mut order: Vec<usize> = (0..list.len()).collect();
        let ended = |index: &usize| {
            list.get(*index)
                .and_then(|of| of.ended)
                .unwrap_or(Ticks::MAX)
        };
        order.sort_by_key(ended);
        for of in order.into_iter().filter_map(|index| list.get(index)) {
            if !selection.admits(machine, Some(of.process), of.started_by, of.started) {
                continue;
            }
            let owner = Owner {
                pid: pid_of(machine, of.process),
                clr: of.clr,
                tid: None,
            };
            let reason = of.reason.name().unwrap_or("unknown reason");
            let kind = of.kind.name().unwrap_or("unknown type");
            let paused = time.nanos_of(of.paused);
            let mut values = vec![
                ("number", Value::Uint(of.number.into())),
                ("generation", Value::Uint(of.generation.into())),
                ("reason", Value::Text(reason)),
                ("type", Value::Text(kind)),
                ("pauses", Value::Uint(of.pauses.into())),
                ("paused_ns", Value::Uint(paused)),
            ];
            values.extend(
                of.promoted
                    .map(|bytes| ("promoted_bytes", Value::Uint(bytes))),
            );
            values.extend(
                of.heap_size()
                    .map(|bytes| ("heap_bytes", Value::Uint(bytes))),
            );
            let name = match of.is_background() {
                true => format!("Background GC #{} gen {}", of.number, of.generation),
                false => format!("GC #{} gen {}", of.number, of.generation),
            };
            let span = (
                time.nanos(of.started.get()),
                of.ended.map(|at| time.nanos(at.get())),
            );
            tracks.slice(packets, (owner, Row::Collections), span, &name, &values);
            let (Some(heap), Some(ended)) = (of.heap, of.ended) else {
                continue;
            };
            let total = of.heap_size().unwrap_or(0);
            let at = time.nanos(ended.get());
            tracks.bytes(packets, (owner, Count::Heap), at, total);
            for (generation, bytes) in (0..).zip(heap) {
                let count = (owner, Count::Generation(generation));
                tracks.bytes(packets, count, at, bytes);
            }
        }
    }
}

fn pid_of(machine: &Machine, process: ProcessIndex) -> u32 {
    machine
        .process(process)
        .map_or(0, |process| process.pid().get())
}

fn wait_name((_, _, native): Wait) -> &'static str {
    if native == 0 {
        "Waiting for a lock"
    } else {
        "Waiting for a lock of the runtime"
    }
}
