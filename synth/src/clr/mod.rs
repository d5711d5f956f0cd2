//! A common language runtime: what it loads and compiles, the events of its two
//! providers, and the enumerations of its rundown.
//!
//! `state` contains the state, `raise` raises events, and each other file performs some operations.

mod binder;
mod call_counts;
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
mod tiering;

pub(crate) use op::{Call, ClrOp, Item, OpEffect, TargetThread};
pub(crate) use raise::Runtime;
pub(crate) use stack::{Stack, thread_stack};
pub(crate) use state::{AppDomain, Assembly, Clr};
pub(crate) use tiering::DELAY as TIERING_DELAY;

use crate::error::Result;
use crate::model::ClrWork;

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
            ClrOp::Call(call) => self.call(*call),
            ClrOp::TierResume => self.tier_resume(),
            ClrOp::TierWork => self.tier_work(),
            ClrOp::TierBegin(count) => self.tier_begin(*count),
            ClrOp::TierEnd(count) => self.tier_end(*count),
            ClrOp::Forget(method) => self.forget(*method),
            ClrOp::UnloadAssembly(assembly) => self.unload_assembly(*assembly),
            ClrOp::UnloadDomain(domain) => self.unload_domain(*domain),
            ClrOp::Work(work) => self.work(work),
            ClrOp::Finalize(count, since) => self.finalize(*count, *since),
            ClrOp::Dequeue(work, since) => self.dequeue(*work, *since),
            ClrOp::IoDequeue(native, object, since) => self.dequeue_io(*native, *object, *since),
            ClrOp::EnterDomain(domain) => self.enter_domain(*domain),
            ClrOp::ThreadCreating(thread) => self.thread_creating(*thread),
            ClrOp::ThreadCreated(thread, tid, program) => {
                self.thread_created(*thread, *tid, *program)
            }
            ClrOp::ThreadRunning(thread, since) => self.thread_running(*thread, *since),
            ClrOp::ThreadTerminated(thread) => self.thread_terminated(*thread),
            ClrOp::SuspendForSamples => self.suspend_for_samples(),
            ClrOp::ResumeAfterSamples => self.resume_after_samples(),
            ClrOp::ReportExit => self.report_exit(),
            ClrOp::Stop => self.stop(),
            ClrOp::Rundown(enumeration, item, true) => self.emit_item(*enumeration, item),
            // An item that no session requests takes the same time.
            ClrOp::Rundown(_, _, false) => Ok(OpEffect::after(self.clr.enumeration_cost)),
            ClrOp::ReportHeap => self.report_heap(),
            ClrOp::List(enumeration, listed) => Ok(self.clr.list(*enumeration, *listed)),
        }
    }
    fn work(&mut self, work: &ClrWork) -> Result<OpEffect> {
        match work {
            ClrWork::Gc(plan) => self.collect(plan),
            ClrWork::Allocate => self.allocate(),
            ClrWork::Throw(plan) => self.throw(plan),
            ClrWork::TakeHandle(kind) => self.take_handle(*kind),
            ClrWork::FreeHandle => self.free_handle(),
            ClrWork::Press(bytes) => self.press(*bytes),
            ClrWork::Contend => self.contend(),
            ClrWork::Pool(by) => self.resize_pool(*by),
            ClrWork::IoPool(by) => self.resize_io_pool(*by),
            ClrWork::Retire { threads, io } => self.retire(*threads, *io),
            ClrWork::Suspend(by) => self.suspend(*by),
            ClrWork::Queue => self.enqueue(),
            ClrWork::QueueIo => self.enqueue_io(),
            ClrWork::Wait(time) => self.wait(*time),
            ClrWork::Stub => self.make_stub(),
        }
    }
}
