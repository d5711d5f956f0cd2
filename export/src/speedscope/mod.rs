//! The file format of [speedscope](https://www.speedscope.app): a sampled profile for each thread,
//! and activities as profiles of events.
//!
//! In a profile of events, everything that is open at a time has to be nested. So overlapping
//! activities of a process are in several profiles. An activity is in the profile of its parent if
//! it ends before its parent.

mod lanes;

use std::collections::BTreeSet;
use std::io::{self, Write};

use etl_analysis::Machine;
use etl_analysis::behavior::activities::Activities;
use etl_analysis::profile::{Profile, ProfileOptions, Root, Weight};
use etl_format::{Ticks, TimeRange};
use etl_schema::render::EscapedJson;
use foldhash::HashMap;
use serde_json::{Value, json};

use lanes::{Lane, Owner};

use crate::Unit;

/// The schema that files name.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Activities that are part of a file.
#[derive(Debug)]
pub struct ActivityProfiles<'a> {
    activities: &'a Activities,
    machine: &'a Machine,
    lanes: Vec<Lane>,
}

impl<'a> ActivityProfiles<'a> {
    /// The activities of the selected processes and threads that started in a range of the
    /// recording's clock.
    #[must_use]
    pub fn new(
        activities: &'a Activities,
        machine: &'a Machine,
        options: &ProfileOptions,
        range: TimeRange,
    ) -> Self {
        let lanes = lanes::lanes(activities, machine, options, range);
        ActivityProfiles {
            activities,
            machine,
            lanes,
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// The numbers of the names of activities, in the order of their frames.
    fn names(&self) -> Vec<u32> {
        let mut names = BTreeSet::new();
        for lane in &self.lanes {
            names.extend(lane.events.iter().map(|event| event.name));
        }
        names.into_iter().collect()
    }

    /// Writes a profile for each lane; `first` is the frame of the first name.
    /// `is_first` is whether they are the first profiles of the file.
    fn write(
        &self,
        names: &[u32],
        first: usize,
        is_first: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut frames: HashMap<u32, usize> = HashMap::default();
        for (frame, &name) in (first..).zip(names) {
            frames.insert(name, frame);
        }
        let span = self.machine.span().unwrap_or_default();
        let end = self.nanos(span.last);
        let mut number = 0;
        let mut previous_process = None;
        for (index, lane) in self.lanes.iter().enumerate() {
            number = if previous_process == Some(lane.process) {
                number + 1
            } else {
                1
            };
            previous_process = Some(lane.process);
            let title = json!(self.title(lane, number));
            let comma = if is_first && index == 0 { "\n" } else { ",\n" };
            write!(out, "{comma}{{\"type\":\"evented\",\"name\":{title},")?;
            writeln!(
                out,
                "\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":{end},"
            )?;
            write!(out, "\"events\":[")?;
            for (index, event) in lane.events.iter().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                let kind = if event.is_start { "O" } else { "C" };
                let frame = frames.get(&event.name).copied().unwrap_or(first);
                let time = self.nanos(event.time);
                write!(
                    out,
                    "{comma}{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{time}}}"
                )?;
            }
            write!(out, "]}}")?;
        }
        Ok(())
    }

    /// The title of a lane, which has a number among the lanes of its process.
    fn title(&self, lane: &Lane, number: usize) -> String {
        let Owner { process, pid } = lane.process;
        let process = process.and_then(|index| self.machine.process(index));
        let name = match process.map_or("", |process| process.name()) {
            "" => "?",
            name => name,
        };
        let mut title = format!("{name} ({pid}) activities");
        if number > 1 {
            title.push_str(&format!(" {number}"));
        }
        title
    }

    /// Nanoseconds since the first event.
    fn nanos(&self, time: Ticks) -> i64 {
        let clock = self.machine.clock();
        let span = self.machine.span().unwrap_or_default();
        let nanos = clock
            .nanos_since_start(time)
            .saturating_sub(clock.nanos_since_start(span.first));
        nanos.max(0)
    }
}

/// Writes a profile. It needs a tree for each thread
/// ([`by_thread`](etl_analysis::profile::ProfileOptions::by_thread)) and the samples
/// ([`keep_samples`](etl_analysis::profile::SampleCollector::keep_samples)). `name` is the name of
/// the trace.
///
/// The samples of a thread are in time order. The axis has the time for which the thread ran, in
/// nanoseconds, or the number of samples if the recording states no interval.
///
/// # Errors
/// If writing fails.
pub fn write(
    profile: &Profile,
    activities: &ActivityProfiles<'_>,
    name: &str,
    unit: Unit,
    out: impl Write,
) -> io::Result<()> {
    let mut out = EscapedJson::new(io::BufWriter::new(out));
    let unit = unit.for_profile(profile);
    let exporter = concat!("etlkit@", env!("CARGO_PKG_VERSION"));
    write!(
        out,
        "{{\"$schema\":{},\"exporter\":{},",
        json!(SCHEMA),
        json!(exporter)
    )?;
    write!(
        out,
        "\"name\":{},\"activeProfileIndex\":0,\n\"shared\":{{\"frames\":[",
        json!(name)
    )?;
    for frame in 0..profile.frames().len() {
        let comma = if frame > 0 { ",\n" } else { "\n" };
        let module = profile
            .frames()
            .get(frame)
            .map(|frame| profile.module_name(frame.module));
        let value = json!({ "name": profile.label(frame), "file": module });
        write!(out, "{comma}{value}")?;
    }
    let names = activities.names();
    let first = profile.frames().len();
    for (frame, &name) in (first..).zip(&names) {
        let comma = if frame > 0 { ",\n" } else { "\n" };
        let name = activities.activities.name(name);
        let frame = json!({ "name": name.event, "file": name.provider });
        write!(out, "{comma}{frame}")?;
    }
    write!(out, "]}},\n\"profiles\":[")?;
    let samples = by_root(profile);
    for (index, (root, samples)) in profile.roots().iter().zip(&samples).enumerate() {
        let thread = root.thread_label().unwrap_or_default();
        let title = format!("{} {thread}", root.process_label());
        let total: u64 = samples.iter().map(|sample| unit.of(sample.weight)).sum();
        let comma = if index > 0 { ",\n" } else { "\n" };
        write!(
            out,
            "{comma}{{\"type\":\"sampled\",\"name\":{},",
            json!(title.trim_end())
        )?;
        let unit_name = match unit {
            Unit::Samples => "none",
            Unit::Time => "nanoseconds",
            Unit::Bytes => "bytes",
        };
        writeln!(
            out,
            "\"unit\":\"{unit_name}\",\"startValue\":0,\"endValue\":{total},"
        )?;
        write!(out, "\"samples\":[")?;
        for (index, sample) in samples.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(out, "{comma}{}", Value::from(frames(profile, sample.node)))?;
        }
        write!(out, "],\n\"weights\":[")?;
        for (index, sample) in samples.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(out, "{comma}{}", unit.of(sample.weight))?;
        }
        write!(out, "]}}")?;
    }
    activities.write(&names, first, profile.roots().is_empty(), &mut out)?;
    writeln!(out, "]}}")?;
    out.flush()
}

/// A sample, or the samples of one stack.
#[derive(Clone, Copy, Debug)]
struct RootSample {
    /// The index of its node.
    node: usize,
    weight: Weight,
}

/// The samples of each root, in time order. If none are kept, the sums of stacks in the order of
/// the tree.
fn by_root(profile: &Profile) -> Vec<Vec<RootSample>> {
    let mut samples = vec![Vec::new(); profile.roots().len()];
    if profile.samples().is_empty() {
        for (root, samples) in profile.roots().iter().zip(&mut samples) {
            samples.extend(sums(profile, root));
        }
        return samples;
    }
    // The nodes of the roots follow each other.
    for sample in profile.samples() {
        let root = profile
            .roots()
            .partition_point(|root| root.end <= sample.node);
        if let Some(samples) = samples.get_mut(root) {
            samples.push(RootSample {
                node: sample.node,
                weight: sample.weight,
            });
        }
    }
    samples
}

/// The sums of the stacks of a root.
fn sums(profile: &Profile, root: &Root) -> Vec<RootSample> {
    let mut sums = Vec::new();
    for node in root.first..root.end {
        if let Some(call) = profile.nodes().get(node)
            && call.exclusive.samples > 0
        {
            sums.push(RootSample {
                node,
                weight: call.exclusive,
            });
        }
    }
    sums
}

/// The frames of a node, outermost first.
fn frames(profile: &Profile, node: usize) -> Vec<usize> {
    let mut frames = Vec::new();
    let mut next = profile.nodes().get(node);
    while let Some(node) = next {
        frames.extend(node.frame);
        next = node.parent.and_then(|parent| profile.nodes().get(parent));
    }
    frames.reverse();
    frames
}
