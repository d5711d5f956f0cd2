//! A common language runtime: what it loads and compiles, the events of its two
//! providers, and the enumerations of its rundown.
//!
//! `state` contains the state, `raise` raises events, and each other file performs some operations.

mod binder;
mod compiler;
mod exception;
mod gc;
mod heap;
mod inventory;
mod loader;
mod method;
mod names;
mod op;
mod pool;
mod raise;
mod rundown;
mod stack;
mod start;
mod state;
mod sync;

pub(crate) use op::{ClrOp, Item, OpEffect, TargetThread};
pub(crate) use raise::Runtime;
pub(crate) use stack::thread_stack;
pub(crate) use state::Clr;

use crate::error::Result;

impl Runtime<'_, '_> {
    /// Performs an operation of a thread.
    pub fn perform(&mut self, op: &ClrOp) -> Result<OpEffect> {
        match op {
            ClrOp::Start => self.start(),
            ClrOp::LoadDomain(domain) => self.load_domain(*domain),
            ClrOp::LoadAssembly(assembly) => self.load_assembly(*assembly),
            ClrOp::LoadModule(module) => self.load_module(*module),
            ClrOp::Prepare(method) => self.prepare(*method),
            ClrOp::Tier(method) => self.tier(*method),
            ClrOp::Rejit(method) => self.rejit(*method),
            ClrOp::TierBegin(count) => self.tier_begin(*count),
            ClrOp::TierEnd(count) => self.tier_end(*count),
            ClrOp::Forget(method) => self.forget(*method),
            ClrOp::UnloadAssembly(assembly) => self.unload_assembly(*assembly),
            ClrOp::UnloadDomain(domain) => self.unload_domain(*domain),
            ClrOp::Allocate => self.allocate(),
            ClrOp::Collect(plan) => self.collect(plan),
            ClrOp::Finalize(count, since) => self.finalize(*count, *since),
            ClrOp::TakeHandle(kind) => self.take_handle(*kind),
            ClrOp::FreeHandle => self.free_handle(),
            ClrOp::Press(bytes, more) => self.press(*bytes, *more),
            ClrOp::Throw(plan) => self.throw(plan),
            ClrOp::Contend => self.contend(),
            ClrOp::Pool(by) => self.resize_pool(*by),
            ClrOp::IoPool(by) => self.resize_io_pool(*by),
            ClrOp::Enqueue => self.enqueue(),
            ClrOp::Dequeue(work, since) => self.dequeue(*work, *since),
            ClrOp::IoEnqueue => self.enqueue_io(),
            ClrOp::IoDequeue(native, object, since) => self.dequeue_io(*native, *object, *since),
            ClrOp::Wait(time) => self.wait(*time),
            ClrOp::EnterDomain(domain) => self.enter_domain(*domain),
            ClrOp::ThreadCreating(thread) => self.thread_creating(*thread),
            ClrOp::ThreadCreated(thread, tid, program) => {
                self.thread_created(*thread, *tid, *program)
            }
            ClrOp::ThreadRunning(thread, since) => self.thread_running(*thread, *since),
            ClrOp::ThreadTerminated(thread) => self.thread_terminated(*thread),
            ClrOp::Stub => self.make_stub(),
            ClrOp::Stop => self.stop(),
            ClrOp::Rundown(enumeration, item) => self.emit_item(*enumeration, item),
        }
    }
}
