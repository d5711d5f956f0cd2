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
//! outside of memory until their names are known. Memory grows with what is alive in the recording,
//! with distinct stacks and names, and with the number of collections.
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
//! let (out, spool) = (open().open("trace.perfetto-trace")?, open().open("samples.tmp")?);
//! let mut perfetto = Perfetto::new(out, spool, SchemaStore::default(), Selection::new());
//! let machine = Analysis::new().names(true).run(&mut recording, &mut perfetto)?;
//! perfetto.finish(&machine, ProfileOptions::new())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod activities;
mod behavior;
mod etw;
mod fields;
mod names;
mod packets;
mod samples;
mod selection;
mod spool;
mod storage;
mod time;
mod tracks;

use etl_format::Ticks;
use std::io;

use etl_analysis::loss::Loss;
use etl_analysis::profile::{Detail, ProfileOptions, SampleCollector};
use etl_analysis::{Change, EventRef, Machine, Observer, Sample};
use etl_format::read::Record;
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::store::SchemaStore;

use crate::protobuf::Message;
use activities::Activities;
use behavior::Behavior;
use etw::Etw;
use fields::{clock, clock_id, clock_snapshot, packet};
use packets::Packets;
use samples::SampleWriter;
use spool::{Item, KeptActivity, KeptSample, Spool};
use time::TraceTime;
use tracks::{Owner, Row, Tracks, Value};

pub use selection::Selection;
pub use storage::Storage;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Samples.
    pub samples: u64,
    /// Events of the kernel: switches, threads that become ready, operations of files and disks.
    pub kernel_events: u64,
    /// Slices and instants.
    pub slices: u64,
    /// Events of the kernel that were left out: Perfetto takes none of processors after the 1024th.
    pub left_out: u64,
}

impl Written {
    /// Whether there is nothing but names.
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
    packets: Packets<O>,
    spool: Spool<S>,
    selection: Selection,
    idle: bool,
    tracks: Tracks,
    etw: Etw,
    behavior: Behavior,
    activities: Activities,
    samples: SampleCollector,
}

impl<O: Storage, S: Storage> Perfetto<O, S> {
    /// Writes to `out`, and keeps samples and activities in `spool`; both are empty. `store` has
    /// the schemas that name activities, beside those that the recording has.
    pub fn new(out: O, spool: S, store: SchemaStore, selection: Selection) -> Self {
        Perfetto {
            packets: Packets::new(out),
            spool: Spool::new(spool),
            samples: collector(&selection),
            selection,
            idle: false,
            tracks: Tracks::default(),
            etw: Etw::default(),
            behavior: Behavior::new(),
            activities: Activities::new(store),
        }
    }

    /// Whether the samples of idle processors are written.
    #[must_use]
    pub fn idle(self, idle: bool) -> Self {
        Perfetto { idle, ..self }
    }

    /// The clock. The first use writes what it is.
    fn time(&mut self, machine: &Machine) -> TraceTime {
        if let Some(time) = self.packets.time() {
            return time;
        }
        let time = TraceTime::new(*machine.clock());
        self.packets.set_time(time);
        let (nanos, unix) = time.reference();
        let mut message = Message::default();
        for (id, at) in [(clock_id::BOOTTIME, nanos), (clock_id::REALTIME, unix)] {
            let mut part = Message::default();
            part.uint(clock::ID, id);
            part.uint(clock::TIMESTAMP, at);
            message.message(clock_snapshot::CLOCKS, &part);
        }
        message.uint(clock_snapshot::PRIMARY, clock_id::BOOTTIME);
        self.packets
            .write(Some(nanos), packet::CLOCK_SNAPSHOT, &message);
        time
    }

    /// Writes the names of processes and threads, samples and activities. `machine` is that of the
    /// pass that this observed, with [names](etl_analysis::Analysis::names). `options` may have
    /// [names of native code](ProfileOptions::code_source).
    ///
    /// # Errors
    /// When writing failed, now or before.
    pub fn finish(mut self, machine: &Machine, options: ProfileOptions) -> io::Result<Written> {
        let time = self.time(machine);
        let Perfetto {
            mut packets,
            mut spool,
            selection,
            mut tracks,
            ..
        } = self;
        self.etw.flush(&mut packets);
        self.behavior
            .finish((machine, time), &selection, (&mut tracks, &mut packets));
        self.activities.finish(&mut spool);
        names::write(machine, &selection, time, (&mut tracks, &mut packets));
        let options = options.by_thread(true).detail(Detail::Addresses);
        let options = options
            .idle(self.idle)
            .threads(selection.selected_threads().to_vec());
        // The process of a thread may have become known after its samples.
        let options = match selection.selected_processes(machine) {
            Some(processes) => options.processes(processes),
            None => options,
        };
        let profile = self.samples.profile(machine, &options);
        let mut writer = SampleWriter::new(machine, &profile, &mut packets);
        spool.read(|item| match item {
            Item::Sample(kept) => {
                let weight = self.samples.weight(Ticks::new(kept.time));
                writer.sample((machine, time), kept, weight, (&mut tracks, &mut packets));
            }
            Item::Activity(kept) => {
                let names = self.activities.name_of(kept.name);
                activity(time, kept, &names, (&mut tracks, &mut packets));
            }
        })?;
        writer.finish((&mut tracks, &mut packets));
        packets.flush()?;
        Ok(Written {
            samples: writer.samples,
            kernel_events: self.etw.events,
            slices: tracks.slices,
            left_out: self.etw.left_out,
        })
    }
}

fn collector(selection: &Selection) -> SampleCollector {
    SampleCollector::new().within(selection.range())
}

/// Writes an activity.
fn activity<O: Storage>(
    time: TraceTime,
    kept: KeptActivity,
    (name, provider): &(String, String),
    (tracks, packets): (&mut Tracks, &mut Packets<O>),
) {
    let owner = Owner {
        pid: kept.pid,
        clr: 0,
        tid: None,
    };
    let id = kept.id.to_string();
    let values = [
        ("provider", Value::Text(provider)),
        ("activity", Value::Text(&id)),
        ("thread", Value::Uint(kept.tid.into())),
    ];
    let span = (time.nanos(kept.from), kept.to.map(|to| time.nanos(to)));
    tracks.slice(packets, (owner, Row::Activities), span, name, &values);
}

impl<O: Storage, S: Storage> Observer for Perfetto<O, S> {
    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        self.samples.record(machine, record, event);
        if let Some(hook) = record.hook() {
            if self.selection.admits_time(event.time) {
                let time = self.time(machine);
                let event = (hook, event, time.nanos(event.time.get()));
                self.etw
                    .record(machine, record, event, &self.selection, &mut self.packets);
            }
            return;
        }
        self.activities.learn(record);
        let Some(header) = record.event() else { return };
        let is_selected = self.selection.admits_time(event.time);
        if header.provider == CLR_RUNTIME {
            if !is_selected {
                return;
            }
            let time = self.time(machine);
            let event = (header.descriptor.id, event, time);
            let to = (&mut self.tracks, &mut self.packets);
            self.behavior
                .record(machine, record, event, &self.selection, to);
        } else if self
            .selection
            .admits_ids(header.process_id, header.thread_id, event.time)
        {
            self.activities
                .record(record, &header, (event, is_selected), &mut self.spool);
        }
    }

    fn change(&mut self, machine: &Machine, change: &Change, event: &EventRef) {
        self.samples.change(machine, change, event);
    }

    fn sample(&mut self, machine: &Machine, sample: &Sample<'_>) {
        let event = &sample.event;
        let Some(stack) = self.samples.add(sample) else {
            return;
        };
        self.spool.sample(KeptSample {
            time: event.time.get(),
            stack: stack.0,
            processor: event.processor,
            in_kernel: sample.address >= machine.kernel_begins(),
        });
    }

    fn loss(&mut self, loss: &Loss) {
        self.behavior.loss(loss);
    }

    fn restart(&mut self) {
        self.packets.clear();
        self.spool.clear();
        self.samples = collector(&self.selection);
        self.tracks = Tracks::default();
        self.etw = Etw::default();
        self.behavior = Behavior::new();
        self.activities.restart();
    }
}
