//! CPU profiles: the samples of a recording as call trees with names.
//!
//! A [`SampleCollector`] observes the pass over a recording. Names may be at the end of a
//! recording, so a [`Profile`] is made afterwards.
//!
//! ```no_run
//! use etl_analysis::profile::{FrameTotal, ProfileOptions, SampleCollector};
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut collector = SampleCollector::new();
//! let machine = Analysis::new().with_names().run(&mut recording, &mut collector)?;
//! let profile = collector.profile(&machine, &ProfileOptions::new());
//! for FrameTotal { frame, total, .. } in profile.by_frame() {
//!     println!("{:8} {}", total.inclusive.samples, profile.label(frame));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod changes;
mod code;
mod collector;
mod costs;
mod frames;
mod il_maps;
mod interrupt;
mod locations;
mod recursion;
mod stacks;
mod totals;
mod tree;
mod weight;

use etl_format::file_name;

pub use build::ProfileOptions;
pub use code::{CodeNames, CodeSource, IlPoint, WantedCode};
pub use collector::{SampleCollector, SampleStack};
pub use costs::{Leaf, StackCosts};
pub use frames::{Detail, Frame, FrameKind, ModuleInfo};
pub use il_maps::IlMaps;
pub use interrupt::ProcessorInterrupt;
pub use totals::{Callee, Caller, Focus, FrameTotal, ModuleTotal, Total};
pub use tree::{CallNode, Root, TimedSample};
pub use weight::{Intervals, Weight};

/// What the weights of a profile are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Measure {
    /// Samples of processors, with the time between them.
    #[default]
    Samples,
    /// Events that last, with their durations.
    Durations,
    /// Events that state bytes: the time of a weight is its bytes.
    Bytes,
}

with_accessors! {
    /// The samples of a recording as call trees.
    ///
    /// ```
    /// use etl_analysis::profile::Profile;
    ///
    /// /// Prints the call trees of a profile, indented.
    /// fn print(profile: &Profile) {
    ///     for root in profile.roots() {
    ///         println!("{}", root.process_label());
    ///         for node in profile.nodes().get(root.first..root.end).unwrap_or_default() {
    ///             if let Some(frame) = node.frame {
    ///                 let indent = 2 * node.depth as usize;
    ///                 println!("{:indent$}{}", "", profile.label(frame));
    ///             }
    ///         }
    ///     }
    /// }
    /// ```
    #[derive(Clone, Debug, Default)]
    pub struct Profile {
        copy {
            /// What its weights are.
            measure: Measure,
            /// Samples that were collected with a stack, of all processes.
            with_stack: u64,
            /// Samples of idle processors, which are part of the trees only on request. What
            /// interrupts an idle processor is work, and has a [root](Root::interrupt).
            idle: Weight,
            /// Whether the samples are of all threads, also of threads that wait: the sampling
            /// thread of .NET takes them.
            is_thread_time: bool,
        }
        borrow {
            /// The intervals between samples of a processor as the recording states them for the
            /// time of the samples, in 100 ns: none if it does not, several if they changed.
            intervals: Vec<u32> => [u32],
            /// Processes or threads, the one with the most samples first.
            roots: Vec<Root> => [Root],
            /// The nodes of all trees. The nodes below a node follow it, the heaviest first.
            nodes: Vec<CallNode> => [CallNode],
            /// Frames.
            frames: Vec<Frame> => [Frame],
            /// Modules and images.
            modules: Vec<ModuleInfo> => [ModuleInfo],
            /// The samples in time order, if they were
            /// [kept](SampleCollector::keep_samples).
            samples: Vec<TimedSample> => [TimedSample],
        }
        own {
            /// Indices of nodes by the number of a collected stack; none is [`u32::MAX`].
            stacks: Vec<u32>,
        }
    }
}

impl Profile {
    /// Index of the node of a stack that was
    /// [collected](SampleCollector::add); `None` if it is not part of the profile.
    #[must_use]
    pub fn node_of(&self, stack: SampleStack) -> Option<usize> {
        match self.stacks.get(stack.0 as usize) {
            Some(&u32::MAX) | None => None,
            Some(&node) => Some(node as usize),
        }
    }

    /// Whether weights have a time: samples do if the recording states their intervals.
    #[must_use]
    pub fn has_times(&self) -> bool {
        self.measure == Measure::Durations || !self.intervals.is_empty()
    }

    /// The size of a weight, for shares: the time if it is known, or the bytes, else the number of
    /// samples.
    #[must_use]
    pub fn size(&self, weight: Weight) -> u64 {
        if self.has_times() || self.measure == Measure::Bytes {
            weight.time
        } else {
            weight.samples
        }
    }

    /// The weight of all samples.
    #[must_use]
    pub fn total(&self) -> Weight {
        let nodes = self
            .roots
            .iter()
            .filter_map(|root| self.nodes.get(root.first));
        nodes.fold(Weight::default(), |sum, node| sum + node.inclusive)
    }

    /// Module and method of a frame by its index: `Orders.dll!Orders.Cart.Add`, `ntdll.dll!?`.
    #[must_use]
    pub fn label(&self, frame: usize) -> String {
        let Some(frame) = self.frames.get(frame) else {
            return String::new();
        };
        match frame.kind {
            FrameKind::Unknown => return "?".to_owned(),
            FrameKind::Type => return format!("Type {}", frame.method),
            _ => {}
        }
        format!("{}!{}", self.module_name(frame.module), frame.method)
    }

    /// File name and line of the source of a frame by its index: `Cart.cs:12`; `None` if it is not
    /// known.
    #[must_use]
    pub fn source(&self, frame: usize) -> Option<String> {
        let frame = self.frames.get(frame)?;
        let name = file_name(frame.file.as_deref()?);
        Some(match frame.line {
            Some(line) => format!("{name}:{line}"),
            None => name.to_owned(),
        })
    }

    /// File name of a module by its index.
    #[must_use]
    pub fn module_name(&self, module: usize) -> &str {
        self.modules.get(module).map_or("?", |module| &module.name)
    }
}
