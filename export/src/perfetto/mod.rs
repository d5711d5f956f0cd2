//! Traces of [Perfetto](https://perfetto.dev): what happened on processors and threads over time.
//!
//! | content | from |
//! |---|---|
//! | native ETW packets | context switches, ready threads, operations of files and disks |
//! | samples with stacks, mappings and build ids | the kernel's samples |
//! | slices | lives of processes, collections, suspensions, compilations, locks, activities |
//! | instants | exceptions |
//! | counters | heaps of the CLR, and the CPU by samples |
//! | names of processes and threads | the whole recording |
//!
//! Packets are written while the recording is read, in one pass. Samples and activities are kept
//! outside of memory until their names are known. Memory grows with the processes, threads and code
//! in the recording, with distinct stacks and names, and with the number of collections.
//!
//! ```no_run
//! use std::fs::File;
//!
//! use etl_analysis::profile::ProfileOptions;
//! use etl_analysis::{Analysis, Recording};
//! use etl_export::perfetto::{Perfetto, Selection};
//! use etl_format::read::FileSource;
//! use etl_schema::store::SchemaStore;
//!
//! let source = FileSource::new(File::open("trace.etl")?)?;
//! let mut recording = Recording::open([(source, "trace.etl")])?;
//! let open = || File::options().read(true).write(true).create(true).truncate(true).clone();
//! let out = open().open("trace.perfetto-trace")?;
//! let spool = open().open("samples.tmp")?;
//! let mut perfetto = Perfetto::new(out, spool, SchemaStore::default(), Selection::new());
//! let machine = Analysis::new().with_names().run(&mut recording, &mut perfetto)?;
//! perfetto.finish(&machine, ProfileOptions::new())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod activities;
mod behavior;
mod etw;
mod fields;
mod interrupts;
mod names;
mod packets;
mod providers;
mod samples;
mod selection;
mod spool;
mod storage;
mod time;
mod tracks;

use std::io;

use etl_analysis::loss::Loss;
use etl_analysis::profile::{Detail, ProfileOptions, SampleCollector};
use etl_analysis::{Change, EventRef, Machine, Observer, Sample};
use etl_format::Ticks;
use etl_format::read::{EventHeader, Record};
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::store::SchemaStore;

use crate::protobuf::Message;
use activities::{Activities, ActivityName};
use behavior::Behavior;
use etw::Etw;
use fields::{clock, clock_id, clock_snapshot, packet};
use providers::ProviderEvent;
use samples::SampleWriter;
use spool::{Item, KeptActivity, KeptSample, Spool};
use time::TraceTime;
use tracks::{Owner, Row, Slice, TraceWriter, Value};

pub use selection::Selection;
pub use storage::Storage;

/// Numbers of written items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Samples of the CPU.
    pub samples: u64,
    /// Events of the kernel: switches, threads that become ready, operations of files and disks.
    pub kernel_events: u64,
    /// Slices and instants.
    pub slices: u64,
    /// Events of the kernel that were left out: Perfetto ignores processors after the 1024th.
    pub left_out: u64,
}

impl Written {
    /// Whether nothing but names was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples + self.kernel_events + self.slices == 0
    }
}

/// Writes a recording as a trace of Perfetto; an [`Observer`] for
/// [`Analysis::run`](etl_analysis::Analysis::run). [`Perfetto::finish`] then writes what needs the
/// whole recording.
#[derive(Debug)]
pub struct Perfetto<O: Storage, S: Storage> {
    writer: TraceWriter<O>,
    spool: Spool<S>,
    selection: Selection,
    idle: bool,
    etw: Etw,
    behavior: Behavior,
    activities: Activities,
    samples: SampleCollector,
}

impl<O: Storage, S: Storage> Perfetto<O, S> {
    /// Writes to `out`, and keeps samples and activities in `spool`; both are empty. `store` has
    /// schemas that name activities, in addition to the schemas in the recording.
    pub fn new(out: O, spool: S, store: SchemaStore, selection: Selection) -> Self {
        Perfetto {
            writer: TraceWriter::new(out),
            spool: Spool::new(spool),
            samples: collector(&selection),
            selection,
            idle: false,
            etw: Etw::default(),
            behavior: Behavior::new(),
            activities: Activities::new(store),
        }
    }

    /// Also writes the samples of idle processors.
    #[must_use]
    pub fn with_idle(self) -> Self {
        Perfetto { idle: true, ..self }
    }

    /// About how many bytes of memory [`Perfetto::finish`] takes in addition to what was collected,
    /// at most.
    #[must_use]
    pub fn finish_bytes(&self) -> u64 {
        let interned = self
            .samples
            .addresses()
            .saturating_mul(samples::ADDRESS_BYTES);
        self.samples.profile_bytes().saturating_add(interned)
    }

    /// Writes a snapshot of the clock, once, and returns the clock.
    fn time(&mut self, machine: &Machine) -> TraceTime {
        let packets = &mut self.writer.packets;
        if let Some(time) = packets.time() {
            return time;
        }
        let time = TraceTime::new(*machine.clock());
        packets.set_time(time);
        let mut snapshot = Message::default();
        snapshot.message(
            clock_snapshot::CLOCKS,
            &clock_message(clock_id::BOOTTIME, time.start()),
        );
        snapshot.message(
            clock_snapshot::CLOCKS,
            &clock_message(clock_id::REALTIME, time.unix_start()),
        );
        snapshot.uint(clock_snapshot::PRIMARY, clock_id::BOOTTIME);
        packets.write(Some(time.start()), packet::CLOCK_SNAPSHOT, &snapshot);
        time
    }

    /// Writes the names of processes and threads, samples and activities. `machine` is the result
    /// of the pass that this observed, with [names](etl_analysis::Analysis::with_names). `options`
    /// may have [names of native code](ProfileOptions::code_source).
    ///
    /// # Errors
    /// If writing failed, now or before.
    pub fn finish(mut self, machine: &Machine, options: ProfileOptions) -> io::Result<Written> {
        let time = self.time(machine);
        let context = Context {
            machine,
            selection: &self.selection,
            time,
        };
        let mut writer = self.writer;
        self.etw.flush(&mut writer.packets);
        self.behavior.finish(&context, &mut writer);
        self.activities.finish(&mut self.spool);
        names::write(&context, &mut writer);
        let mut options = options
            .by_thread()
            .detail(Detail::Addresses)
            .threads(self.selection.selected_threads().to_vec());
        if self.idle {
            options = options.with_idle();
        }
        // The process of a thread may have become known after its samples.
        if let Some(processes) = self.selection.selected_processes(machine) {
            options = options.processes(processes);
        }
        let profile = self.samples.profile(machine, &options);
        let mut samples = SampleWriter::new(context, &profile, &mut writer.packets);
        self.spool.read(|item| match item {
            Item::Sample(kept) => {
                let weight = self.samples.weight(kept.time);
                samples.sample(kept, weight, &mut writer);
            }
            Item::Activity(kept) => {
                let name = self.activities.name(kept.name);
                write_activity(time, kept, &name, &mut writer);
            }
        })?;
        samples.finish(&mut writer);
        writer.packets.flush()?;
        Ok(Written {
            samples: samples.samples,
            kernel_events: self.etw.events,
            slices: writer.slices,
            left_out: self.etw.left_out,
        })
    }
}

/// The data that all parts of the export need in addition to events.
#[derive(Clone, Copy, Debug)]
struct Context<'a> {
    machine: &'a Machine,
    selection: &'a Selection,
    time: TraceTime,
}

impl Context<'_> {
    /// The time of the first event.
    fn first_time(&self) -> Ticks {
        selection::first_time(self.machine)
    }
}

fn clock_message(id: u64, nanos: u64) -> Message {
    let mut message = Message::default();
    message.uint(clock::ID, id);
    message.uint(clock::TIMESTAMP, nanos);
    message
}

fn collector(selection: &Selection) -> SampleCollector {
    SampleCollector::new().within(selection.range())
}

fn write_activity<O: Storage>(
    time: TraceTime,
    activity: KeptActivity,
    name: &ActivityName,
    writer: &mut TraceWriter<O>,
) {
    let id = activity.id.to_string();
    let values = [
        ("provider", Value::Text(&name.provider)),
        ("activity", Value::Text(&id)),
        ("thread", Value::Uint(activity.tid.into())),
    ];
    writer.slice(Slice {
        owner: Owner {
            pid: activity.pid,
            clr: 0,
            tid: None,
        },
        row: Row::Activities,
        from: time.nanos(activity.from),
        to: activity.to.map(|to| time.nanos(to)),
        name: &name.name,
        values: &values,
    });
}

impl<O: Storage, S: Storage> Perfetto<O, S> {
    /// Writes an event of a provider that states what the kernel's events state.
    fn provider_record(
        &mut self,
        machine: &Machine,
        record: &Record<'_>,
        event: &EventRef,
        header: &EventHeader,
    ) {
        let Some(source) = ProviderEvent::of(header.provider, header.descriptor.id) else {
            return;
        };
        if !self.selection.admits_time(event.time) {
            return;
        }
        let context = Context {
            machine,
            time: self.time(machine),
            selection: &self.selection,
        };
        let packets = &mut self.writer.packets;
        self.etw
            .provider_record(&context, record, event, source, packets);
    }
}

impl<O: Storage, S: Storage> Observer for Perfetto<O, S> {
    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        self.samples.record(machine, record, event);
        if let Some(hook) = record.hook() {
            if self.selection.admits_time(event.time) {
                let context = Context {
                    machine,
                    time: self.time(machine),
                    selection: &self.selection,
                };
                let packets = &mut self.writer.packets;
                self.etw.record(&context, record, event, hook, packets);
            }
            return;
        }
        self.activities.learn(record);
        let Some(header) = record.event() else { return };
        if header.provider != CLR_RUNTIME {
            self.provider_record(machine, record, event, &header);
            let selection = &self.selection;
            self.activities
                .record(record, &header, event.time, selection, &mut self.spool);
        } else if self.selection.admits_time(event.time) {
            let context = Context {
                machine,
                time: self.time(machine),
                selection: &self.selection,
            };
            let id = header.descriptor.id;
            self.behavior
                .record(&context, record, event, id, &mut self.writer);
        }
    }

    fn change(&mut self, machine: &Machine, change: &Change, event: &EventRef) {
        self.samples.change(machine, change, event);
    }

    fn sample(&mut self, machine: &Machine, sample: &Sample<'_>) {
        if let Some(stack) = self.samples.add(sample) {
            self.spool.sample(KeptSample {
                time: sample.event.time,
                stack: stack.0,
                processor: sample.event.processor,
                in_kernel: sample.address >= machine.kernel_begins(),
            });
        }
    }

    fn loss(&mut self, loss: &Loss) {
        self.behavior.loss(loss);
    }

    fn restart(&mut self) {
        self.writer.clear();
        self.spool.clear();
        self.samples = collector(&self.selection);
        self.etw = Etw::default();
        self.behavior = Behavior::new();
        self.activities.restart();
    }
}
