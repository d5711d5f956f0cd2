//! Timed steps: requests of controllers, and work of processes.

use std::sync::Arc;

use etl_control::controller::Tool;
use etl_format::Guid;

use super::{
    EnablePlan, ExchangePlan, KernelChange, Packet, ResolvePlan, ScriptLocation, SessionPlan,
};
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
    /// The command line of a tool that asks for it. If it is refused, the tool reports an error and
    /// the scenario continues; otherwise an impossible request is an error of the script.
    pub command: Option<ToolCommand>,
}

/// The command line of a tool: a step is one part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCommand {
    /// The tool.
    pub tool: Tool,
    /// The line as it is written.
    pub line: String,
    /// The number of the line in the script.
    pub number: usize,
    /// Which of its requests the step is, from 0. After a refused one the others are not performed.
    pub part: usize,
    /// How many requests it has.
    pub parts: usize,
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
    /// A request to a session that runs, by its name.
    Session(String, Request),
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
    /// A tool reads files, and sessions in real time, and changes nothing.
    Read {
        /// The files.
        files: Vec<String>,
        /// The sessions.
        sessions: Vec<String>,
    },
    /// A tool works with the settings that it saves for a session, which traces nothing.
    Collector {
        /// The name of the session.
        name: String,
        /// Why the tool fails, if it does.
        problem: Option<CollectorProblem>,
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
    /// Packets of a capture pass.
    Replay {
        /// The file.
        file: String,
        /// Its packets.
        packets: Arc<[Packet]>,
    },
    /// A device interrupts a processor.
    Interrupt(super::InterruptPlan),
    /// A process does something.
    Work {
        /// Index of the process in [`super::Scenario::processes`].
        process: usize,
        /// What it does.
        work: Work,
    },
}

/// Why a tool fails with the saved settings of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectorProblem {
    /// There are none.
    Missing,
    /// They exist already.
    Exists,
}

/// A request to a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// It is stopped.
    Stop,
    /// It enables a provider, or changes its enablement.
    Enable(EnablePlan),
    /// It disables a provider.
    Disable(Guid),
    /// It requests the state of a provider.
    CaptureState(Guid),
    /// It is flushed: a session in memory into this file, or its own one if `None`.
    Flush(Option<String>),
    /// A consumer starts to read it in real time.
    Consume {
        /// Bytes that it reads per second.
        speed: u64,
        /// The file in which it keeps what it reads, if any.
        file: Option<String>,
    },
    /// Its consumer stops reading.
    Leave,
    /// The kernel logs a rundown for it.
    KernelRundown,
    /// It changes its kernel flags.
    Kernel(KernelChange),
    /// It changes its settings.
    Update {
        /// New maximum number of buffers.
        buffers: Option<u32>,
        /// New flush timer; 0: never.
        flush_timer: Option<Nanos>,
    },
    /// It is stopped after this time, if it still runs then.
    StopAfter(Nanos),
}

impl Request {
    /// Its name in refusals.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Request::Stop | Request::StopAfter(_) => "stop",
            Request::Enable(_) => "enable",
            Request::Disable(_) => "disable",
            Request::CaptureState(_) => "capture-state",
            Request::Flush(_) => "flush",
            Request::Consume { .. } => "consume",
            Request::Leave => "leave",
            Request::KernelRundown => "rundown",
            Request::Kernel(_) => "change the kernel's flags",
            Request::Update { .. } => "update",
        }
    }
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
    /// Keeps an object alive as long as another object.
    Dependent = 6,
}

/// Work of a thread in a CLR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClrWork {
    /// Collects garbage.
    Gc(GcPlan),
    /// Allocates up to the next allocation tick.
    Allocate,
    /// Throws an exception and catches it.
    Throw(ThrowPlan),
    /// Creates a handle of a kind.
    TakeHandle(HandleKind),
    /// Frees the latest handle.
    FreeHandle,
    /// Adds or removes memory pressure: bytes of native memory that objects own.
    Press(i64),
    /// Two threads contend for a lock.
    Contend,
    /// The thread pool changes the number of its threads by this much.
    Pool(i32),
    /// The same for the threads that wait for input and output.
    IoPool(i32),
    /// Threads of the pool retire or return.
    Retire {
        /// How many retire; if negative, how many return.
        threads: i32,
        /// Whether they are its I/O threads.
        io: bool,
    },
    /// So many threads of the pool are suspended or, if negative, resumed.
    Suspend(i32),
    /// Queues a work item to the thread pool.
    Queue,
    /// Starts a read or write; the thread pool handles its end.
    QueueIo,
    /// Waits for this time.
    Wait(Nanos),
    /// Generates a stub between managed and native code.
    Stub,
}

/// Calls of methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPlan {
    /// The methods.
    pub methods: CalledMethods,
    /// How often each is called.
    pub times: u32,
    /// How often its loop runs in each call.
    pub rounds: u32,
}

/// The methods that are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CalledMethods {
    /// The method with this full name, `Namespace.Type::Method`.
    Named(String),
    /// This many methods, in the order in which they ran for the first time.
    First(u32),
}

/// Work of a process.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Work of a thread in each CLR, this many times.
    Clr(ClrWork, u32),
    /// Runs this many methods for the first time: the JIT compiles them, or their precompiled code
    /// is prepared.
    Jit(u32),
    /// Compiles this many methods again with optimization.
    Tier(u32),
    /// Calls methods. A process that does so compiles its methods again when they were called
    /// often enough.
    Call(CallPlan),
    /// Compiles this many methods again because a profiler requests it.
    Rejit(u32),
    /// Frees this many dynamic methods.
    Forget(u32),
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
    /// Raises an event of a provider that the scenario declares.
    Raise(Box<super::RaisePlan>),
    /// Resolves a name by DNS.
    Resolve(Box<ResolvePlan>),
    /// Opens a TCP connection and exchanges data.
    Exchange(Box<ExchangePlan>),
    /// Uses a file or the network.
    Io(super::IoWork),
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
