//! What a thread does inside a CLR.

use crate::model::{GcPlan, HandleKind, ThrowPlan};
use crate::time::Nanos;

/// What a thread does inside a CLR, in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClrOp {
    /// The runtime comes up and registers its providers.
    Start,
    /// A domain is made.
    LoadDomain(usize),
    /// An assembly is loaded, without its modules.
    LoadAssembly(usize),
    /// A module is loaded, and told of in its domain.
    LoadModule(usize),
    /// A method runs for the first time.
    Prepare(usize),
    /// A method that was compiled is compiled once more, optimised.
    Tier(usize),
    /// A method that was compiled is compiled once more because a profiler asks for it.
    Rejit(usize),
    /// So many methods are about to be compiled once more in the background.
    TierBegin(u32),
    /// That is done.
    TierEnd(u32),
    /// A dynamic method is collected.
    Forget(usize),
    /// An assembly goes.
    UnloadAssembly(usize),
    /// A domain goes.
    UnloadDomain(usize),
    /// The runtime's tick while something is allocated.
    Allocate,
    /// A collection.
    Collect(GcPlan),
    /// The finalizer lets go of so many objects, after a collection that ended then.
    Finalize(u32, Nanos),
    /// The program takes a handle.
    TakeHandle(HandleKind),
    /// The program gives a handle back.
    FreeHandle,
    /// Native memory stands behind objects, or does so no more.
    Press(u64, bool),
    /// An exception is thrown and caught.
    Throw(ThrowPlan),
    /// A lock is waited for.
    Contend,
    /// The thread pool gets more threads, or fewer.
    Pool(i32),
    /// The same of its threads for input and output.
    IoPool(i32),
    /// The pool is given something to do.
    Enqueue,
    /// A thread of the pool does it: what, and since when it waits.
    Dequeue(u64, Nanos),
    /// Input or output begins.
    IoEnqueue,
    /// It has ended: its native and its managed object, and when it began.
    IoDequeue(u64, u64, Nanos),
    /// A thread waits for so long.
    Wait(Nanos),
    /// A thread goes into an app domain.
    EnterDomain(usize),
    /// The program is about to make a thread.
    ThreadCreating(usize),
    /// A thread is known from now on: its index and id, and whether the program made it.
    ThreadCreated(usize, u32, bool),
    /// A thread that the program made runs; made then.
    ThreadRunning(usize, Nanos),
    /// A thread has ended.
    ThreadTerminated(usize),
    /// A stub between managed and native code is made.
    Stub,
    /// The runtime goes; its providers with it.
    Stop,
    /// An enumeration tells its next item.
    Rundown(Enumeration, Item),
    /// Something is told of because a session asked for the state.
    Capture(Item),
}

impl ClrOp {
    /// Whether images may come or go with it.
    pub fn changes_images(&self) -> bool {
        matches!(self, ClrOp::LoadModule(_) | ClrOp::UnloadAssembly(_) | ClrOp::UnloadDomain(_))
    }
}

/// How long something took, and what it leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpEffect {
    /// Time behind its last event.
    pub cost: Nanos,
    /// What the same thread does next, before anything else.
    pub then: Vec<ClrOp>,
    /// What other threads do behind what they have to do.
    pub other_threads: Vec<(TargetThread, ClrOp)>,
}

/// Which thread of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetThread {
    /// The runtime's own, on which its finalizers run.
    Runtime,
    /// The next one whose turn it is.
    Worker,
    /// This one, by index.
    Thread(usize),
}

impl OpEffect {
    pub fn after(cost: Nanos) -> Self {
        OpEffect { cost, ..OpEffect::default() }
    }
}

/// Which enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enumeration {
    /// What was there before: DCStart.
    Start,
    /// What is there now: DCEnd.
    End,
}

/// What an enumeration tells of, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// Who the runtime is.
    Runtime,
    /// How it compiles.
    Tiering,
    Init,
    Domain(usize),
    Assembly(usize),
    DomainModule(usize),
    Module(usize),
    Method(usize),
    Threads,
    /// How the collector is set up.
    Collector,
    Complete,
}
