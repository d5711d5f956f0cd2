//! What happens.

use etl_format::Guid;

use super::{EnablePlan, KernelChange, ScriptLocation, SessionPlan};
use crate::distribution::Distribution;
use crate::time::Nanos;

/// Something that happens once or again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When, for the first time.
    pub at: Nanos,
    /// How often, when more than once.
    pub repeat: Option<Repeat>,
    /// What.
    pub action: Action,
    /// The node of the script.
    pub location: Option<ScriptLocation>,
}

/// Again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Time between two times.
    pub period: Nanos,
    /// It happens no more from here on.
    pub until: Nanos,
    /// How the times are spread around the period; all alike when `None`.
    pub spread: Option<Distribution>,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A session is started.
    Start(Box<SessionPlan>),
    /// A session is stopped.
    Stop {
        /// Its name.
        session: String,
    },
    /// A session enables a provider, or enables it anew.
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
    /// A session asks a provider to log its state.
    CaptureState {
        /// Its name.
        session: String,
        /// The provider.
        provider: Guid,
    },
    /// What a session has in memory is written.
    Flush {
        /// Its name.
        session: String,
        /// The file that a session in memory is written to; its own when `None`.
        file: Option<String>,
    },
    /// Somebody reads a session in real time from now on.
    Consume {
        /// Its name.
        session: String,
        /// Bytes that the consumer takes in a second.
        speed: u64,
        /// The file in which it keeps what it was given.
        file: Option<String>,
    },
    /// The consumer of a session in real time reads no more.
    Leave {
        /// The session's name.
        session: String,
    },
    /// Files are merged into one.
    Merge {
        /// The files.
        inputs: Vec<String>,
        /// The file that is made.
        output: String,
        /// Whether the identities of the images are added that the files tell of.
        identities: bool,
        /// Whether its buffers are compressed.
        compress: bool,
    },
    /// The kernel tells a session what is there.
    KernelRundown {
        /// Its name.
        session: String,
    },
    /// A session that runs asks the kernel for something else.
    Kernel {
        /// Its name.
        session: String,
        /// What changes.
        change: KernelChange,
    },
    /// A session that runs gets other settings.
    Update {
        /// Its name.
        session: String,
        /// Most buffers that it may have from now on.
        buffers: Option<u32>,
        /// Time after which what was logged is written from now on; 0: never.
        flush_timer: Option<Nanos>,
    },
    /// A session that runs is stopped after a time, if it still runs then.
    StopAfter {
        /// Its name.
        session: String,
        /// The time.
        after: Nanos,
    },
    /// A session that runs goes on in another file after a time, and again after each such time.
    Roll {
        /// The session, with `%d` or its like in the name of its file.
        plan: Box<SessionPlan>,
        /// The time.
        every: Nanos,
        /// The number of the file that it writes now.
        number: u32,
    },
    /// A process does something.
    Work {
        /// The process, by its place in [`super::Scenario::processes`].
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
    /// Whether the large objects are put together as well, in generation 2.
    pub compact: bool,
}

/// How an exception is thrown, and what it meets on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrowPlan {
    /// Filters that look at it.
    pub filters: u8,
    /// Finally blocks between where it is thrown and where it is caught.
    pub finallys: u8,
    /// Whether it holds another one.
    pub inner: bool,
    /// Whether whoever catches it throws it once more.
    pub rethrow: bool,
}

/// What a handle does for its object, by the number that events have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleKind {
    /// Knows it as long as it lives.
    Weak = 0,
    /// Knows it until its finalizer has run.
    WeakLong = 1,
    /// Keeps it alive.
    Strong = 2,
    /// Keeps it where it is.
    Pinned = 3,
    /// Keeps one object alive while another one is.
    Dependent = 6,
}

/// What a process does.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Runs this many methods for the first time: the JIT compiles them, or their precompiled code
    /// is prepared.
    Jit(u32),
    /// Compiles this many methods once more, optimised.
    Tier(u32),
    /// Compiles this many methods once more because a profiler asks for it.
    Rejit(u32),
    /// Collects garbage.
    Gc(GcPlan),
    /// Allocates until the runtime says so, this many times.
    Allocate(u32),
    /// Throws this many exceptions and catches them.
    Throw(u32, ThrowPlan),
    /// Takes this many handles of a kind.
    TakeHandles(u32, HandleKind),
    /// Gives this many handles back, the latest first.
    FreeHandles(u32),
    /// Tells the collector of native memory behind objects: how many bytes more, or fewer.
    Press(i64),
    /// Two threads want one lock, this many times.
    Contend(u32),
    /// The thread pool changes the number of its threads by this much.
    Pool(i32),
    /// The same of the threads that wait for input and output.
    IoPool(i32),
    /// Gives this many pieces of work to the thread pool.
    Queue(u32),
    /// Begins this many reads or writes, of which the pool hears when they are done.
    QueueIo(u32),
    /// Waits for this long until somebody wakes it.
    Wait(Nanos),
    /// Goes into an app domain, by its name.
    EnterDomain(String),
    /// Loads an assembly that was to be late, by its name.
    LoadAssembly(String),
    /// Unloads a collectible assembly, by its name.
    UnloadAssembly(String),
    /// Makes an app domain that was to be late, by its name.
    LoadDomain(String),
    /// Unloads an app domain, by its name.
    UnloadDomain(String),
    /// Lets go of this many dynamic methods.
    Forget(u32),
    /// Makes this many stubs between managed and native code.
    Stub(u32),
    /// Raises an event of a provider of the scenario's own.
    Raise(Box<super::RaisePlan>),
    /// Computes for this long.
    Run(Nanos),
    /// Starts a thread.
    StartThread,
    /// Ends a thread.
    EndThread,
    /// Loads a native image.
    LoadImage(super::ImagePlan),
    /// Unloads a native image, by its path.
    UnloadImage(String),
    /// Ends.
    Exit,
}
