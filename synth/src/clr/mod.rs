//! A common language runtime as it is seen from outside: what it loads and compiles, what its two
//! providers raise under which mask and level, and the enumerations of its rundown.
//!
//! `state` is what there is, `raise` how an event leaves, and each other file one occasion.

mod binder;
mod compiler;
mod exception;
mod gc;
mod happenings;
mod loader;
mod method;
mod names;
mod pool;
mod present;
mod raise;
mod rundown;
mod stack;
mod start;
mod state;

pub(crate) use raise::{Ctx, values};
pub(crate) use rundown::{Enumeration, Item};
pub(crate) use stack::native_stack;
pub(crate) use state::Clr;

use etl_schema::clr::keyword;

use crate::error::Result;
use crate::machine::Nanos;
use crate::model::{GcPlan, HandleKind, ThrowPlan};

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
    pub fn moves_images(&self) -> bool {
        matches!(self, ClrOp::LoadModule(_) | ClrOp::UnloadAssembly(_) | ClrOp::UnloadDomain(_))
    }
}

/// How long something took, and what it leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Time behind its last event.
    pub cost: Nanos,
    /// What the same thread does next, before anything else.
    pub then: Vec<ClrOp>,
    /// What other threads do behind what they have to do.
    pub elsewhere: Vec<(Where, ClrOp)>,
}

/// Which thread of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// The runtime's own, on which its finalizers run.
    Runtime,
    /// The next one whose turn it is.
    Worker,
    /// This one, by index.
    Thread(usize),
}

impl Done {
    pub fn after(cost: Nanos) -> Self {
        Done { cost, ..Done::default() }
    }
}

impl Clr {
    /// Does what a thread of its process has come to.
    pub fn perform(&mut self, op: &ClrOp, ctx: &mut Ctx<'_, '_>) -> Result<Done> {
        match op {
            ClrOp::Start => self.start(ctx),
            ClrOp::LoadDomain(domain) => self.load_domain(*domain, ctx),
            ClrOp::LoadAssembly(assembly) => self.load_assembly(*assembly, ctx),
            ClrOp::LoadModule(module) => self.load_module(*module, ctx),
            ClrOp::Prepare(method) => self.prepare(*method, ctx),
            ClrOp::Tier(method) => self.tier(*method, ctx),
            ClrOp::Rejit(method) => self.rejit(*method, ctx),
            ClrOp::TierBegin(count) => self.tier_begin(*count, ctx),
            ClrOp::TierEnd(count) => self.tier_end(*count, ctx),
            ClrOp::Forget(method) => self.forget(*method, ctx),
            ClrOp::UnloadAssembly(assembly) => self.unload_assembly(*assembly, ctx),
            ClrOp::UnloadDomain(domain) => self.unload_domain(*domain, ctx),
            ClrOp::Allocate => self.allocate(ctx),
            ClrOp::Collect(plan) => self.collect(plan, ctx),
            ClrOp::Finalize(count, since) => self.finalize(*count, *since, ctx),
            ClrOp::TakeHandle(kind) => self.take_handle(*kind, ctx),
            ClrOp::FreeHandle => self.free_handle(ctx),
            ClrOp::Press(bytes, more) => self.press(*bytes, *more, ctx),
            ClrOp::Throw(plan) => self.throw(plan, ctx),
            ClrOp::Contend => self.contend(ctx),
            ClrOp::Pool(by) => self.resize_pool(*by, ctx),
            ClrOp::IoPool(by) => self.resize_io_pool(*by, ctx),
            ClrOp::Enqueue => self.enqueue(ctx),
            ClrOp::Dequeue(work, since) => self.dequeue(*work, *since, ctx),
            ClrOp::IoEnqueue => self.enqueue_io(ctx),
            ClrOp::IoDequeue(native, object, since) => {
                self.dequeue_io(*native, *object, *since, ctx)
            }
            ClrOp::Wait(time) => self.wait(*time, ctx),
            ClrOp::EnterDomain(domain) => self.enter_domain(*domain, ctx),
            ClrOp::ThreadCreating(thread) => self.thread_creating(*thread, ctx),
            ClrOp::ThreadCreated(thread, tid, program) => {
                self.thread_created(*thread, *tid, *program, ctx)
            }
            ClrOp::ThreadRunning(thread, since) => self.thread_running(*thread, *since, ctx),
            ClrOp::ThreadTerminated(thread) => self.thread_terminated(*thread, ctx),
            ClrOp::Stub => self.make_stub(ctx),
            ClrOp::Stop => self.stop(ctx),
            ClrOp::Rundown(enumeration, item) => self.tell(*enumeration, item, ctx),
            ClrOp::Capture(item) => self.tell_state(item, ctx),
        }
    }
}
