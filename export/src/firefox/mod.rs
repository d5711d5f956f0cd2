//! The processed profile of the [Firefox Profiler](https://profiler.firefox.com): samples and
//! markers of each thread, and libraries with the identities by which symbol servers find symbols.
//!
//! A [`Collector`] observes the pass over a recording, and [`FirefoxProfile`] writes the profile.
//! It contains:
//!
//! * CPU samples, each with its stack and the processor time that it represents. Categories
//!   distinguish kernel, native, precompiled and jitted code (by tier); native code that ran while
//!   its thread collected garbage has the category GC.
//! * Markers: collections, suspensions of threads, compilations, exceptions, waits for locks, loads
//!   of modules and images, and [activities](etl_analysis::behavior::activities).
//!
//! Memory: the memory of the [`SampleCollector`] with its samples, and some 100 bytes for each
//! marker.

mod categories;
mod json;
mod libraries;
mod markers;
mod tables;
mod threads;
mod times;

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};

use etl_analysis::behavior::activities::Activities;
use etl_analysis::behavior::collections::Collections;
use etl_analysis::behavior::compilations::Compilations;
use etl_analysis::behavior::occurrences::Occurrences;
use etl_analysis::behavior::{contention, exceptions};
use etl_analysis::loss::Loss;
use etl_analysis::profile::{Detail, Profile, ProfileOptions, SampleCollector, SampleStack};
use etl_analysis::{Change, EventRef, Machine, Observer, ProcessIndex, Sample, Stack};
use etl_format::constants::PointerSize;
use etl_format::read::Record;
use etl_format::{ThreadId, TimeRange};
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::store::SchemaStore;
use flate2::Compression;
use flate2::write::GzEncoder;
use foldhash::HashMap;
use serde_json::json;

use categories::Category;
use json::Json;
use libraries::Libraries;
use tables::{Texts, Twins};
use threads::Threads;
use times::{Times, to_millis};

/// The version of the format. Later versions of the viewer also read it.
const FORMAT: u32 = 66;

/// A process, and a thread.
type ThreadKey = (Option<ProcessIndex>, Option<ThreadId>);

/// Collects the data of a profile; an [`Observer`] for
/// [`Analysis::run`](etl_analysis::Analysis::run).
#[derive(Clone, Debug)]
pub struct Collector {
    samples: SampleCollector,
    collections: Collections,
    compilations: Compilations,
    occurrences: Occurrences,
    activities: Activities,
    /// Numbers of exceptions and beginnings of waits whose stack may follow.
    expected: VecDeque<u64>,
    /// Stacks of events by number.
    stacks: HashMap<u64, SampleStack>,
    range: TimeRange,
}

impl Collector {
    /// An empty collector. `store` has the schemas that name activities.
    #[must_use]
    pub fn new(store: SchemaStore) -> Self {
        Collector {
            samples: SampleCollector::new().keep_samples(),
            collections: Collections::new(),
            compilations: Compilations::new(),
            occurrences: Occurrences::new(),
            activities: Activities::new(store),
            expected: VecDeque::new(),
            stacks: HashMap::default(),
            range: TimeRange::default(),
        }
    }

    /// About how many bytes of memory a [`FirefoxProfile`] takes in addition, at most.
    #[must_use]
    pub fn profile_bytes(&self) -> u64 {
        self.samples.profile_bytes()
    }

    /// Only collects samples and events in a range of times of the recording's clock.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        Collector {
            samples: self.samples.within(range),
            range,
            ..self
        }
    }
}

impl Observer for Collector {
    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(header) = record.event() else {
            self.samples.record(machine, record, event);
            return;
        };
        if header.provider != CLR_RUNTIME {
            self.activities.record(machine, record, event);
        } else if self.range.contains(event.time) {
            self.collections.record(machine, record, event);
            self.compilations.record(machine, record, event);
            self.occurrences.record(machine, record, event);
            if matches!(header.descriptor.id, exceptions::THROWN | contention::START) {
                self.expected.push_back(event.number);
            }
        }
    }

    fn change(&mut self, machine: &Machine, change: &Change, event: &EventRef) {
        self.samples.change(machine, change, event);
        self.occurrences.change(machine, change, event);
    }

    fn sample(&mut self, machine: &Machine, sample: &Sample<'_>) {
        self.samples.sample(machine, sample);
    }

    fn stack(&mut self, _: &Machine, stack: &Stack<'_>) {
        // Stacks come in the order of their events, so earlier events have no stack.
        let number = stack.event.number;
        while self
            .expected
            .pop_front_if(|first| *first < number)
            .is_some()
        {}
        if self
            .expected
            .pop_front_if(|first| *first == number)
            .is_some()
        {
            self.stacks.insert(number, self.samples.add_stack(stack));
        }
    }

    fn loss(&mut self, loss: &Loss) {
        self.collections.loss(loss);
        self.compilations.loss(loss);
        self.occurrences.loss(loss);
    }

    fn restart(&mut self) {
        self.expected.clear();
        self.stacks.clear();
        self.samples.restart();
        self.collections.restart();
        self.compilations.restart();
        self.occurrences.restart();
        self.activities.restart();
    }
}

/// Numbers of written items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Samples.
    pub samples: u64,
    /// Markers.
    pub markers: u64,
    /// Threads.
    pub threads: u64,
}

/// A profile that is ready to be written.
#[derive(Debug)]
pub struct FirefoxProfile<'a> {
    collected: &'a Collector,
    machine: &'a Machine,
    profile: Profile,
    markers: Vec<markers::Marker>,
}

impl<'a> FirefoxProfile<'a> {
    /// The selected part of the collected data. `machine` is the machine of the same pass, with
    /// [names](etl_analysis::Analysis::with_names).
    #[must_use]
    pub fn new(collected: &'a Collector, machine: &'a Machine, options: ProfileOptions) -> Self {
        let options = options.by_thread().detail(Detail::NativeAddresses);
        let profile = collected.samples.profile(machine, &options);
        let markers = markers::markers(collected, machine, &options);
        FirefoxProfile {
            collected,
            machine,
            profile,
            markers,
        }
    }

    /// Whether it has neither samples nor markers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.profile.samples().is_empty() && self.markers.is_empty()
    }

    /// Writes it as JSON in a gzip file. `name` is the name of the recording.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_gzip(&self, name: &str, out: impl Write) -> io::Result<Written> {
        let out = GzEncoder::new(out, Compression::fast());
        let (written, out) = self.json(name, BufWriter::with_capacity(CHUNK, out))?;
        let out = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        out.finish()?.flush()?;
        Ok(written)
    }

    /// Writes it as JSON. `name` is the name of the recording.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(&self, name: &str, out: impl Write) -> io::Result<Written> {
        let (written, _) = self.json(name, BufWriter::with_capacity(CHUNK, out))?;
        Ok(written)
    }

    fn json<W: Write>(&self, name: &str, out: W) -> io::Result<(Written, W)> {
        let profile = &self.profile;
        let machine = self.machine;
        let times = Times::new(machine);
        let libraries = Libraries::new(profile, machine, architecture(machine));
        let mut json = Json::new(out);
        let mut texts = Texts::default();
        let mut twins = Twins::new(profile);
        json.raw("{\"meta\":")?;
        json.value(&self.meta(name, &times))?;
        json.raw(",\n\"libs\":")?;
        json.value(&libraries.list().into())?;
        json.raw(",\n\"pages\":[],\n\"threads\":[")?;
        let threads = Threads::new(self.collected, machine, profile, &times);
        let threads = threads.write(&mut json, &self.markers, &mut twins, &mut texts)?;
        json.raw("],\n\"shared\":")?;
        tables::write(&mut json, profile, &libraries, &twins, &mut texts)?;
        json.raw("}\n")?;
        json.flush()?;
        let written = Written {
            samples: profile.samples().len() as u64,
            markers: self.markers.len() as u64,
            threads: threads as u64,
        };
        Ok((written, json.into_inner()))
    }

    fn meta(&self, name: &str, times: &Times) -> serde_json::Value {
        let header = self.machine.files().first().map(|file| &file.header);
        let system = header.map(|h| format!("Windows {}.{}.{}", h.os_major, h.os_minor, h.build));
        let interval = self
            .profile
            .intervals()
            .first()
            .copied()
            .unwrap_or(ASSUMED_INTERVAL);
        json!({
            "preprocessedProfileVersion": FORMAT,
            "version": 24,
            "product": name,
            "importedFrom": concat!("etlkit ", env!("CARGO_PKG_VERSION")),
            "startTime": to_millis(times.unix_start()),
            "profilingStartTime": 0,
            "profilingEndTime": to_millis(times.duration()),
            "interval": to_millis(interval.into()),
            "processType": 0,
            "stackwalk": 1,
            "debug": false,
            "symbolicated": false,
            "usesOnlyOneStackType": true,
            "sourceCodeIsNotOnSearchfox": true,
            "platform": "Windows",
            "oscpu": system,
            "abi": architecture(self.machine),
            "logicalCPUs": header.map(|header| header.processors),
            "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs" },
            "extensions": { "id": [], "name": [], "baseURL": [], "length": 0 },
            "categories": Category::all(),
            "markerSchema": markers::schemas(),
        })
    }
}

/// Bytes that are collected before they are written.
const CHUNK: usize = 1 << 16;

/// The interval for the viewer if the recording states none, in 100 ns.
const ASSUMED_INTERVAL: u32 = 10_000;

/// The architecture of the machine, by the width of its pointers.
fn architecture(machine: &Machine) -> &'static str {
    let header = machine.files().first().map(|file| &file.header);
    match header.map(|header| header.pointer_size) {
        Some(PointerSize::P4) => libraries::NARROW,
        _ => "x86_64",
    }
}
