//! The file format of [speedscope](https://www.speedscope.app): a sampled profile for each thread.

use std::io::{self, Write};

use etl_analysis::profile::{Profile, TimedSample};
use serde_json::{Value, json};

use crate::Unit;

/// The schema that files name.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes a profile. It needs a tree for each thread
/// ([`by_thread`](etl_analysis::profile::ProfileOptions::by_thread)) and the samples
/// ([`keep_samples`](etl_analysis::profile::SampleCollector::keep_samples)). `name` is that of the
/// trace.
///
/// The samples of a thread are in time order. The axis has the time for which the thread ran, in
/// nanoseconds, or the number of samples where the recording states no interval.
///
/// # Errors
/// When writing fails.
pub fn write(profile: &Profile, name: &str, unit: Unit, out: impl Write) -> io::Result<()> {
    let mut out = io::BufWriter::new(out);
    let is_timed = unit == Unit::Time && profile.interval().is_some();
    let unit = if is_timed { Unit::Time } else { Unit::Samples };
    let exporter = concat!("etlkit@", env!("CARGO_PKG_VERSION"));
    write!(out, "{{\"$schema\":{},\"exporter\":{},", json!(SCHEMA), json!(exporter))?;
    write!(out, "\"name\":{},\"activeProfileIndex\":0,\n\"shared\":{{\"frames\":[", json!(name))?;
    for frame in 0..profile.frames().len() {
        let comma = if frame > 0 { ",\n" } else { "\n" };
        let module = profile.frames().get(frame).map(|frame| profile.module_name(frame.module));
        let value = json!({ "name": profile.label(frame), "file": module });
        write!(out, "{comma}{value}")?;
    }
    write!(out, "]}},\n\"profiles\":[")?;
    let samples = by_root(profile);
    for (at, (root, samples)) in profile.roots().iter().zip(&samples).enumerate() {
        let thread = root.thread_label().unwrap_or_default();
        let title = format!("{} {thread}", root.process_label());
        let total: u64 = samples.iter().map(|sample| unit.of(sample.weight)).sum();
        let comma = if at > 0 { ",\n" } else { "\n" };
        write!(out, "{comma}{{\"type\":\"sampled\",\"name\":{},", json!(title.trim_end()))?;
        let unit_name = if is_timed { "nanoseconds" } else { "none" };
        writeln!(out, "\"unit\":\"{unit_name}\",\"startValue\":0,\"endValue\":{total},")?;
        write!(out, "\"samples\":[")?;
        for (at, sample) in samples.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(out, "{comma}{}", Value::from(frames(profile, sample.node)))?;
        }
        write!(out, "],\n\"weights\":[")?;
        for (at, sample) in samples.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(out, "{comma}{}", unit.of(sample.weight))?;
        }
        write!(out, "]}}")?;
    }
    writeln!(out, "]}}")?;
    out.flush()
}

/// The samples of each root, in time order.
fn by_root(profile: &Profile) -> Vec<Vec<TimedSample>> {
    let mut samples = vec![Vec::new(); profile.roots().len()];
    // The nodes of the roots follow each other.
    for sample in profile.samples() {
        let root = profile.roots().partition_point(|root| root.end <= sample.node);
        if let Some(samples) = samples.get_mut(root) {
            samples.push(*sample);
        }
    }
    samples
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
