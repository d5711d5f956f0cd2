//! Operations of threads inside a CLR.

use crate::error::Result;
use crate::model::ClrWork;
use crate::time::Nanos;

/// Calls of a method by a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The index of the method.
    pub method: usize,
    /// How often.
    pub times: u32,
    /// How often its loop runs in each call.
    pub rounds: u32,
}

/// An operation of a thread inside a CLR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClrOp {
    /// The runtime starts and registers its providers.
    Start,
    /// An app domain is created.
    LoadDomain(usize),
    /// An assembly is loaded, without its modules.
    LoadAssembly(usize),
    /// A module is loaded.
    LoadModule(usize),
    /// A method runs for the first time.
    Prepare(usize),
    /// A compiled method is compiled again with optimization.
    Tier(usize),
    /// A compiled method is compiled again because a profiler requests it.
    Rejit(usize),
    /// A thread calls a method.
    Call(Call),
    /// The delay is over after which calls are counted.
    TierResume,
    /// The methods that were called often enough are compiled again.
    TierWork,
    /// Background compilation of this many methods starts.
    TierBegin(u32),
    /// Background compilation ends.
    TierEnd(u32),
    /// A dynamic method is collected.
    Forget(usize),
    /// An assembly is unloaded.
    UnloadAssembly(usize),
    /// An app domain is unloaded.
    UnloadDomain(usize),
    /// The program does something.
    Work(ClrWork),
    /// The finalizer runs for this many objects, after a collection that ended at this time.
    Finalize(u32, Nanos),
    /// A thread of the pool runs a work item: its address, and when it was queued.
    Dequeue(u64, Nanos),
    /// Input or output ends: its native and its managed object, and when it began.
    IoDequeue(u64, u64, Nanos),
    /// A thread enters an app domain.
    EnterDomain(usize),
    /// The program is about to create a thread.
    ThreadCreating(usize),
    /// The runtime knows a thread: its index and id, and whether the program created it.
    ThreadCreated(usize, u32, bool),
    /// A thread that the program created at this time runs.
    ThreadRunning(usize, Nanos),
    /// A thread has ended.
    ThreadTerminated(usize),
    /// The sampling thread suspends the runtime.
    SuspendForSamples,
    /// The sampling thread has taken its samples: the runtime continues.
    ResumeAfterSamples,
    /// Everything that is loaded is reported as unloaded, before the runtime stops.
    ReportExit,
    /// The runtime stops.
    Stop,
    /// An enumeration reaches its next item, which it reports if a session requests it.
    Rundown(Enumeration, Item, bool),
    /// The settings of the collector and the existing segments are reported.
    ReportHeap,
    /// An enumeration begins: it goes through what is loaded now, and reports it if a session
    /// requests it.
    List(Enumeration, bool),
}

impl ClrOp {
    /// Whether it lists what exists, and changes nothing.
    pub fn enumerates(&self) -> bool {
        matches!(self, ClrOp::Rundown(..) | ClrOp::ReportHeap)
    }

    /// Whether code goes with it, that other threads may be running.
    pub fn takes_code_away(&self) -> bool {
        matches!(
            self,
            ClrOp::Forget(_) | ClrOp::UnloadAssembly(_) | ClrOp::UnloadDomain(_)
        )
    }

    /// Whether images may come or go with it.
    pub fn changes_images(&self) -> bool {
        matches!(
            self,
            ClrOp::LoadModule(_) | ClrOp::UnloadAssembly(_) | ClrOp::UnloadDomain(_)
        )
    }
}

/// The cost of an operation, and the operations that follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpEffect {
    /// Time after its last event.
    pub cost: Nanos,
    /// What the same thread does next, before anything else.
    pub then: Vec<ClrOp>,
    /// Operations for other threads, at the end of their queues.
    pub other_threads: Vec<(TargetThread, ClrOp)>,
    /// Operations of the thread that runs the callbacks of providers.
    pub callbacks: Vec<ClrOp>,
}

/// The result of an operation that does nothing.
pub(crate) const NO_EFFECT: Result<OpEffect> = Ok(OpEffect {
    cost: 0,
    then: Vec::new(),
    other_threads: Vec::new(),
    callbacks: Vec::new(),
});

/// Which thread of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetThread {
    /// The runtime's own, on which finalizers run.
    Finalizer,
    /// The runtime's own, on which methods are compiled again that were called often enough.
    Tiering,
    /// The next one whose turn it is.
    Worker,
    /// This one, by index.
    Thread(usize),
}

impl OpEffect {
    pub fn after(cost: Nanos) -> Self {
        OpEffect {
            cost,
            ..OpEffect::default()
        }
    }
}

/// Which enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enumeration {
    /// The start rundown: DCStart.
    Start,
    /// The end rundown: DCEnd.
    End,
    /// The state that a session requests, under the runtime provider.
    State,
}

/// The items of an enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// The runtime.
    Runtime,
    /// The settings of tiered compilation.
    Tiering,
    Init,
    Domain(usize),
    Assembly(usize),
    DomainModule(usize),
    Module(usize),
    Method(usize),
    Threads,
    /// The settings of the collector.
    Collector,
    Complete,
}
