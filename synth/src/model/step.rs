//! Timed steps: requests of controllers, and work of processes.

use etl_format::Guid;

use super::{EnablePlan, KernelChange, ScriptLocation, SessionPlan};
use crate::distribution::Distribution;
use crate::time::Nanos;

/// A step, which happens once or repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When it happens first.
    pub at: Nanos,
    /// Its repetition, if any.
    pub repeat: Option<Repeat>,
    /// What happens.
    pub action: Action,
    /// The node of the script.
    pub location: Option<ScriptLocation>,
}

/// The repetition of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Time between two occurrences.
    pub period: Nanos,
    /// The end, excluded.
    pub until: Nanos,
    /// The distribution of the times between occurrences; constant if `None`.
    pub spread: Option<Distribution>,
}

/// The action of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A session is started.
    Start(Box<SessionPlan>),
    /// A session is stopped.
    Stop {
        /// Its name.
        session: String,
    },
    /// A session enables a provider, or changes its enablement.
    Enable {
        /// Its name.
        session: String,
        /// What it asks for.
        plan: EnablePlan,
    },
    /// A session disables a provider.
    Disable {
        /// Its name.
        session: String,
        /// The provider.
        provider: Guid,
    },
    /// A session requests the state of a provider.
    CaptureState {
        /// Its name.
        session: String,
        /// The provider.
        provider: Guid,
    },
    /// A session is flushed.
    Flush {
        /// Its name.
        session: String,
        /// The file for the buffers of a session in memory; its own file if `None`.
        file: Option<String>,
    },
    /// A consumer starts to read a session in real time.
    Consume {
        /// Its name.
        session: String,
        /// Bytes that the consumer reads per second.
        speed: u64,
        /// The file in which it keeps what it read.
        file: Option<String>,
    },
    /// The consumer of a real-time session stops reading.
    Leave {
        /// The session's name.
        session: String,
    },
    /// Files are merged into one.
    Merge {
        /// The files.
        inputs: Vec<String>,
        /// The merged file.
        output: String,
        /// Whether the identities of images are added.
        identities: bool,
        /// Whether its buffers are compressed.
        compress: bool,
    },
    /// The kernel logs a rundown for a session.
    KernelRundown {
        /// Its name.
        session: String,
    },
    /// A running session changes its kernel flags.
    Kernel {
        /// Its name.
        session: String,
        /// What changes.
        change: KernelChange,
    },
    /// A running session changes its settings.
    Update {
        /// Its name.
        session: String,
        /// New maximum number of buffers.
        buffers: Option<u32>,
        /// New flush timer; 0: never.
        flush_timer: Option<Nanos>,
    },
    /// A running session is stopped after a time, if it still runs then.
    StopAfter {
        /// Its name.
        session: String,
        /// The time.
        after: Nanos,
    },
    /// A running session continues in a new file each time this time has passed.
    Roll {
        /// The session, with a number (`%d`) in the name of its file.
        plan: Box<SessionPlan>,
        /// The time.
        every: Nanos,
        /// The number of its current file.
        number: u32,
    },
    /// A process does something.
    Work {
        /// Index of the process in [`super::Scenario::processes`].
        process: usize,
        /// What it does.
        work: Work,
    },
}

/// A collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GcPlan {
    /// The generation, 0 to 2.
    pub generation: u8,
    /// Whether the program asked for it.
    pub induced: bool,
    /// Whether it runs in the background.
    pub background: bool,
    /// Whether a collection of generation 2 also compacts the large objects.
    pub compact: bool,
}

/// How an exception is thrown and handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrowPlan {
    /// Number of filters that run.
    pub filters: u8,
    /// Number of finally blocks between throw and catch.
    pub finallys: u8,
    /// Whether it has an inner exception.
    pub inner: bool,
    /// Whether the handler throws it again.
    pub rethrow: bool,
}

/// The kind of a handle, with its number in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleKind {
    /// Weak: valid until the object is collected.
    Weak = 0,
    /// Weak: valid until its finalizer has run.
    WeakLong = 1,
    /// Keeps the object alive.
    Strong = 2,
    /// Keeps the object alive and in place.
    Pinned = 3,
    /// Keeps one object alive as long as another one is.
    Dependent = 6,
}

/// Work of a process.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Runs this many methods for the first time: the JIT compiles them, or their precompiled code
    /// is prepared.
    Jit(u32),
    /// Compiles this many methods again with optimization.
    Tier(u32),
    /// Compiles this many methods again because a profiler requests it.
    Rejit(u32),
    /// Collects garbage.
    Gc(GcPlan),
    /// Allocates up to the next allocation tick, this many times.
    Allocate(u32),
    /// Throws this many exceptions and catches them.
    Throw(u32, ThrowPlan),
    /// Creates this many handles of a kind.
    TakeHandles(u32, HandleKind),
    /// Frees this many handles, the latest first.
    FreeHandles(u32),
    /// Adds or removes memory pressure: bytes of native memory that objects own.
    Press(i64),
    /// Two threads contend for a lock, this many times.
    Contend(u32),
    /// The thread pool changes the number of its threads by this much.
    Pool(i32),
    /// The same for the threads that wait for input and output.
    IoPool(i32),
    /// Queues this many work items to the thread pool.
    Queue(u32),
    /// Starts this many reads or writes; the thread pool handles their ends.
    QueueIo(u32),
    /// Waits for this time.
    Wait(Nanos),
    /// Enters an app domain, by its name.
    EnterDomain(String),
    /// Loads a late assembly, by its name.
    LoadAssembly(String),
    /// Unloads a collectible assembly, by its name.
    UnloadAssembly(String),
    /// Creates a late app domain, by its name.
    LoadDomain(String),
    /// Unloads an app domain, by its name.
    UnloadDomain(String),
    /// Frees this many dynamic methods.
    Forget(u32),
    /// Generates this many stubs between managed and native code.
    Stub(u32),
    /// Raises an event of a provider that the scenario declares.
    Raise(Box<super::RaisePlan>),
    /// Computes for this time.
    Run(Nanos),
    /// Starts a thread.
    StartThread,
    /// Ends a thread.
    EndThread,
    /// Loads a native image.
    LoadImage(super::ImagePlan),
    /// Unloads a native image, by its path.
    UnloadImage(String),
    /// Exits.
    Exit,
}
