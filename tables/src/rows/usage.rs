//! What each process of a recording used: processors, collections, exceptions, disks, network.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use etl_analysis::behavior::collections::Collections;
use etl_analysis::behavior::exceptions::Exceptions;
use etl_analysis::behavior::io::{Io, Operation};
use etl_analysis::behavior::network::Network;
use etl_analysis::profile::{ProcessorInterrupt, Profile, SampleCollector, Weight};
use etl_analysis::{Machine, ProcessIndex, Within, observers};
use etl_format::TimeRange;

use super::ticks;
use crate::selection::Selection;

/// What a process used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Its CPU samples.
    pub cpu: Weight,
    /// Its garbage collections.
    pub collections: u64,
    /// How long collections suspended its threads, in 100 ns.
    pub paused: u64,
    /// Its exceptions.
    pub exceptions: u64,
    /// Bytes that disks read for it.
    pub disk_read: u64,
    /// Bytes that disks wrote for it.
    pub disk_written: u64,
    /// Bytes that it sent.
    pub sent: u64,
    /// Bytes that it received.
    pub received: u64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.cpu += other.cpu;
        self.collections += other.collections;
        self.paused += other.paused;
        self.exceptions += other.exceptions;
        self.disk_read += other.disk_read;
        self.disk_written += other.disk_written;
        self.sent += other.sent;
        self.received += other.received;
    }
}

/// Who used something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum UsageOwner {
    /// A process, by its index in the machine; `None` for an unknown process.
    Process(Option<ProcessIndex>),
    /// What interrupted an idle processor.
    Interrupt(ProcessorInterrupt),
}

/// What processes used, and what interrupted idle processors.
pub type Usages = BTreeMap<UsageOwner, Usage>;

observers! {
    /// The observer of results that need no events before and after the selected time.
    struct InRange {
        network: Network,
        exceptions: Exceptions,
    }
}

observers! {
    /// Collects what processes used in a time range. Samples, input and output, and collections
    /// need the events before and after it as well: intervals of samples, names of files,
    /// suspensions.
    ///
    /// ```no_run
    /// use etl_analysis::profile::ProfileOptions;
    /// use etl_analysis::{Analysis, Recording};
    /// use etl_format::TimeRange;
    /// use etl_tables::Selection;
    /// use etl_tables::rows::usage::UsageObserver;
    ///
    /// let bytes = std::fs::read("trace.etl")?;
    /// let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
    /// let mut observer = UsageObserver::new(TimeRange::default());
    /// let machine = Analysis::new().run(&mut recording, &mut observer)?;
    /// let profile = observer.samples.profile(&machine, &ProfileOptions::new());
    /// for (owner, usage) in observer.usages(&machine, &profile, &Selection::new()) {
    ///     println!("{owner:?}: {} bytes sent", usage.sent);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct UsageObserver {
        /// CPU samples.
        pub samples: SampleCollector,
        io: Io,
        collections: Collections,
        in_range: Within<InRange>,
    }
}

impl UsageObserver {
    /// An observer of this time.
    #[must_use]
    pub fn new(range: TimeRange) -> Self {
        let in_range = InRange {
            network: Network::new(),
            exceptions: Exceptions::new(),
        };
        UsageObserver {
            samples: SampleCollector::new().within(range),
            io: Io::new().within(range),
            collections: Collections::new().within(range),
            in_range: Within::new(range, in_range),
        }
    }

    /// What the selected processes used. `profile` was made of the samples.
    #[must_use]
    pub fn usages(&self, machine: &Machine, profile: &Profile, selection: &Selection) -> Usages {
        let mut usages = Usages::new();
        for root in profile.roots() {
            let weight = profile.nodes().get(root.first).map(|node| node.inclusive);
            let owner = match root.interrupt {
                Some(interrupt) => UsageOwner::Interrupt(interrupt),
                None => UsageOwner::Process(root.process),
            };
            usages.entry(owner).or_default().cpu += weight.unwrap_or_default();
        }
        self.add_runtime(machine, &mut usages);
        for file in self.io.totals() {
            let bytes = file.total.bytes;
            let owner = UsageOwner::Process(file.process);
            match file.operation {
                Operation::DiskRead => usages.entry(owner).or_default().disk_read += bytes,
                Operation::DiskWrite => usages.entry(owner).or_default().disk_written += bytes,
                _ => {}
            }
        }
        for (connection, traffic) in self.in_range.observer.network.connections() {
            let process = machine.process_at(connection.pid, traffic.first);
            let usage = usages.entry(UsageOwner::Process(process)).or_default();
            usage.sent += traffic.sent;
            usage.received += traffic.received;
        }
        // The profile has only what was selected.
        usages.retain(|owner, _| match owner {
            UsageOwner::Process(process) => selection.has_process(*process),
            UsageOwner::Interrupt(_) => true,
        });
        usages
    }

    /// Adds collections and exceptions of .NET.
    fn add_runtime(&self, machine: &Machine, usages: &mut Usages) {
        for gc in self.collections.selected() {
            let owner = UsageOwner::Process(Some(gc.process));
            usages.entry(owner).or_default().collections += 1;
        }
        for selected in self.collections.selected_pauses() {
            let pause = selected.pause;
            if pause.collection.is_some() {
                let owner = UsageOwner::Process(Some(pause.process));
                let usage = usages.entry(owner).or_default();
                usage.paused += ticks(machine.clock(), selected.ticks);
            }
        }
        for thrown in self.in_range.observer.exceptions.list() {
            let owner = UsageOwner::Process(Some(thrown.process));
            usages.entry(owner).or_default().exceptions += thrown.count;
        }
    }
}
