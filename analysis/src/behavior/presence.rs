//! What a recording has events of, and how the rest is recorded.
//!
//! ```no_run
//! use etl_analysis::behavior::presence::{Presence, Subject};
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut presence = Presence::default();
//! let machine = Analysis::new().run(&mut recording, &mut presence)?;
//! println!("{} compiled methods", presence.count(Subject::Compilations));
//! # drop(machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use etl_format::constants::hook;
use etl_format::read::Record;
use etl_schema::clr::collection;
use etl_schema::providers::{CLR_RUNTIME, KERNEL_DISK, KERNEL_FILE, KERNEL_NETWORK};

use super::{compilations, contention, exceptions, io, loads, thread_pool};
use crate::machine::{Change, Life, Machine};
use crate::observe::{EventKind, EventRef, Joins, Observer, Sample};

macro_rules! subjects {
    ($($(#[$doc:meta])* $subject:ident: $name:literal, $analysis:literal, $by:literal;)*) => {
        /// Something that can be analysed if its events were recorded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Subject {
            $($(#[$doc])* $subject,)*
        }

        impl Subject {
            /// All of them.
            pub const ALL: [Subject; [$($name),*].len()] = [$(Subject::$subject),*];

            /// Its name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Subject::$subject => $name,)* }
            }

            /// The kind of analysis that reports it.
            #[must_use]
            pub const fn analysis(self) -> &'static str {
                match self { $(Subject::$subject => $analysis,)* }
            }

            /// How it is recorded.
            #[must_use]
            pub const fn recorded_by(self) -> &'static str {
                match self { $(Subject::$subject => $by,)* }
            }
        }
    };
}

subjects! {
    /// Samples of the processors.
    Samples: "CPU samples", "cpu", "xperf -on PROC_THREAD+LOADER+PROFILE";
    /// Stacks of samples.
    Stacks: "stacks of CPU samples", "cpu --tree", "xperf -on PROFILE -stackwalk Profile";
    /// Context switches.
    Switches: "context switches", "waits", "xperf -on PROC_THREAD+CSWITCH+DISPATCHER";
    /// Reads and writes of disks.
    Disks: "disks", "io", "xperf -on DISK_IO";
    /// Reads and writes of files.
    Files: "files", "io", "xperf -on FILENAME+FILE_IO+FILE_IO_INIT";
    /// TCP and UDP.
    Network: "network", "network", "xperf -on NETWORKTRACE";
    /// Garbage collections.
    Collections: "garbage collections", "gc",
        "xperf -start clr -on Microsoft-Windows-DotNETRuntime:0x1:4";
    /// Methods that were compiled at run time.
    Compilations: "compiled methods", "jit",
        "xperf -start clr -on Microsoft-Windows-DotNETRuntime:0x30:5";
    /// Exceptions of .NET.
    Exceptions: "exceptions", "exceptions",
        "xperf -start clr -on Microsoft-Windows-DotNETRuntime:0x8000:2";
    /// Images that were loaded.
    Images: "loads of images", "loader", "xperf -on PROC_THREAD+LOADER";
    /// What CLRs loaded.
    Loads: "loads of .NET modules", "loader",
        "xperf -start clr -on Microsoft-Windows-DotNETRuntime:0x8:4";
    /// Thread pools of .NET.
    ThreadPool: "thread pools", "threadpool",
        "xperf -start clr -on Microsoft-Windows-DotNETRuntime:0x10000:4";
    /// Waits for locks of .NET.
    Contention: "waits for locks", "contention",
        "xperf -start clr -on Microsoft-Windows-DotNETRuntime:0x4000:4";
}

impl Subject {
    /// Whether .NET logs its events, and not the kernel.
    #[must_use]
    pub const fn is_of_runtime(self) -> bool {
        matches!(
            self,
            Subject::Collections
                | Subject::Compilations
                | Subject::Exceptions
                | Subject::Loads
                | Subject::ThreadPool
                | Subject::Contention
        )
    }
}

/// Counts the events of a recording by subject.
#[derive(Clone, Debug, Default)]
pub struct Presence {
    counts: [u64; Subject::ALL.len()],
}

impl Presence {
    /// How many events of a subject there are.
    #[must_use]
    pub fn count(&self, subject: Subject) -> u64 {
        self.counts.get(subject as usize).copied().unwrap_or(0)
    }

    fn add(&mut self, subject: Subject) {
        if let Some(count) = self.counts.get_mut(subject as usize) {
            *count += 1;
        }
    }
}

/// The subject of an event of a provider.
fn event_subject(event: &EventRef) -> Option<Subject> {
    let EventKind::Event { provider, id } = event.kind else {
        return None;
    };
    match provider {
        CLR_RUNTIME => runtime_subject(id),
        KERNEL_NETWORK => Some(Subject::Network),
        KERNEL_DISK => Some(Subject::Disks),
        KERNEL_FILE if io::is_transfer_of_file(id) => Some(Subject::Files),
        _ => None,
    }
}

/// The subject of an event of the CLR's runtime provider.
fn runtime_subject(id: u16) -> Option<Subject> {
    Some(match id {
        collection::START => Subject::Collections,
        compilations::JITTING => Subject::Compilations,
        exceptions::THROWN => Subject::Exceptions,
        contention::START => Subject::Contention,
        loads::MODULE_LOADED => Subject::Loads,
        id if thread_pool::is_of_pool(id) => Subject::ThreadPool,
        _ => return None,
    })
}

impl Observer for Presence {
    const JOINS: Joins = Joins::Samples;

    fn record(&mut self, _: &Machine, _: &Record<'_>, event: &EventRef) {
        let subject = match event.kind.hook() {
            Some(hook::CSWITCH) => Subject::Switches,
            Some(hook::DISK_READ | hook::DISK_WRITE) => Subject::Disks,
            Some(hook::FILE_READ | hook::FILE_WRITE) => Subject::Files,
            Some(hook) if [hook::GROUP_TCP, hook::GROUP_UDP].contains(&hook.to_le_bytes()[1]) => {
                Subject::Network
            }
            Some(_) => return,
            None => match event_subject(event) {
                Some(subject) => subject,
                None => return,
            },
        };
        self.add(subject);
    }

    fn change(&mut self, _: &Machine, change: &Change, _: &EventRef) {
        let is_load = matches!(
            change,
            Change::Image {
                life: Life::Begun,
                ..
            }
        );
        if is_load {
            self.add(Subject::Images);
        }
    }

    fn sample(&mut self, _: &Machine, sample: &Sample<'_>) {
        self.add(Subject::Samples);
        if !sample.frames.is_empty() {
            self.add(Subject::Stacks);
        }
    }

    fn restart(&mut self) {
        *self = Presence::default();
    }
}
