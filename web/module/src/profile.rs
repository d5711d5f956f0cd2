//! The call trees of the samples or of the allocations, for the flame graph.

use etl_analysis::behavior::allocations::StackedAllocations;
use etl_analysis::behavior::missing::MissingData;
use etl_analysis::profile::{Measure, Profile, ProfileOptions, SampleCollector};
use etl_events::Trace;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::query::Seconds;
use crate::recording::{Analyzed, analyze};

/// Which samples are shown, and how.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ProfileRequest {
    pub from: Option<f64>,
    pub to: Option<f64>,
    pub processes: Vec<String>,
    pub by_thread: bool,
    pub idle: bool,
    /// Allocations of .NET instead of samples.
    pub allocations: bool,
}

impl ProfileRequest {
    pub fn seconds(&self) -> Seconds {
        Seconds {
            from: self.from,
            to: self.to,
        }
    }

    pub fn options(&self) -> ProfileOptions {
        let mut options = ProfileOptions::new();
        if self.by_thread {
            options = options.by_thread();
        }
        if self.idle {
            options = options.with_idle();
        }
        options
    }
}

/// A profile as lists: nodes refer to labels by their index.
#[derive(Serialize)]
struct Tree {
    unit: &'static str,
    samples: u64,
    /// Time in 100 ns, or bytes; 0 if the recording states no interval.
    size: u64,
    idle_samples: u64,
    samples_with_stack: u64,
    is_thread_time: bool,
    missing: Vec<String>,
    /// Labels of frames, then of the roots.
    labels: Vec<String>,
    /// The kind of each frame.
    kinds: Vec<&'static str>,
    /// The file name of the module of each frame.
    modules: Vec<String>,
    roots: usize,
    /// The depth of each node, in the order of the tree.
    depth: Vec<u32>,
    /// The label of each node.
    label: Vec<usize>,
    /// Samples in each node and below it.
    total_samples: Vec<u64>,
    self_samples: Vec<u64>,
    /// Sizes in each node and below it, in the unit.
    total: Vec<u64>,
    own: Vec<u64>,
}

/// The profile of the selected samples.
pub fn tree(trace: &mut Trace, request: &ProfileRequest) -> Result<Vec<u8>> {
    if request.allocations {
        let mut analyzed = analyze(trace, request.seconds(), &request.processes, |range| {
            StackedAllocations::new().within(range)
        })?;
        let options = selected(&analyzed, request.options());
        let profile = analyzed.observer.profile(&analyzed.machine, &options);
        return Ok(serde_json::to_vec(&Tree::of(&profile, Vec::new()))?);
    }
    let analyzed = analyze(trace, request.seconds(), &request.processes, |range| {
        SampleCollector::new().within(range)
    })?;
    let options = selected(&analyzed, request.options());
    let profile = analyzed.observer.profile(&analyzed.machine, &options);
    let mut missing = Vec::new();
    if let Some(data) = MissingData::of_samples(&profile) {
        missing.push(data.to_string());
    }
    if let Some(data) = MissingData::of_stacks(&analyzed.machine, &profile) {
        missing.push(data.to_string());
    }
    Ok(serde_json::to_vec(&Tree::of(&profile, missing))?)
}

/// The options with the selected processes.
pub fn selected<O>(analyzed: &Analyzed<O>, options: ProfileOptions) -> ProfileOptions {
    match &analyzed.selected {
        Some(processes) => options.processes(processes.clone()),
        None => options,
    }
}

impl Tree {
    fn of(profile: &Profile, missing: Vec<String>) -> Self {
        let frames = profile.frames();
        let total = profile.total();
        let mut tree = Tree {
            unit: unit(profile),
            samples: total.samples,
            size: total.time,
            idle_samples: profile.idle().samples,
            samples_with_stack: profile.with_stack(),
            is_thread_time: profile.is_thread_time(),
            missing,
            labels: (0..frames.len())
                .map(|frame| profile.label(frame))
                .collect(),
            kinds: frames.iter().map(|frame| frame.kind.name()).collect(),
            modules: Vec::new(),
            roots: profile.roots().len(),
            depth: Vec::new(),
            label: Vec::new(),
            total_samples: Vec::new(),
            self_samples: Vec::new(),
            total: Vec::new(),
            own: Vec::new(),
        };
        for frame in frames {
            tree.modules
                .push(profile.module_name(frame.module).to_owned());
        }
        for (index, root) in profile.roots().iter().enumerate() {
            tree.labels.push(match root.thread_label() {
                Some(thread) => format!("{} {thread}", root.process_label()),
                None => root.process_label(),
            });
            let nodes = profile.nodes().get(root.first..root.end);
            for node in nodes.unwrap_or_default() {
                tree.depth.push(node.depth);
                tree.label.push(node.frame.unwrap_or(frames.len() + index));
                tree.total_samples.push(node.inclusive.samples);
                tree.self_samples.push(node.exclusive.samples);
                tree.total.push(profile.size(node.inclusive));
                tree.own.push(profile.size(node.exclusive));
            }
        }
        tree
    }
}

/// The unit of sizes.
fn unit(profile: &Profile) -> &'static str {
    if profile.measure() == Measure::Bytes {
        "bytes"
    } else if profile.has_times() {
        "100ns"
    } else {
        "samples"
    }
}
