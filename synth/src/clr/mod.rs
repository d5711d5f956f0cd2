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
pub(crate) use raise::Context;
pub(crate) use stack::thread_stack;
pub(crate) use state::Clr;

use crate::error::Result;

impl Clr {
    /// Performs an operation of a thread.
    pub fn perform(&mut self, op: &ClrOp, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
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
            ClrOp::Rundown(enumeration, item) => self.emit_item(*enumeration, item, ctx),
        }
    }
}
