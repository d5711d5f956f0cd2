//! Threads, locks, waits, and stubs for native code.

use etl_schema::encode::OwnedValue;

use super::op::{ClrOp, NO_EFFECT, OpEffect, TargetThread};
use super::raise::Context;
use super::state::{Clr, Lock};
use crate::error::Result;
use crate::etw::values;
use crate::time::{MICROSECOND, Nanos};

/// Locks of a process that threads wait for.
const LOCKS: usize = 8;

impl Clr {
    /// A thread waits for a lock that another one has.
    pub fn contend(&mut self, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        if self.is_core(8) {
            self.emit_lock(ctx)?;
        } else {
            self.raise(81, 1, &values![0u8, self.instance], ctx)?;
        }
        let waited = 5 * MICROSECOND + ctx.rng.mostly_low(0, 2_000 * MICROSECOND);
        ctx.pass(waited);
        if self.is_core(3) {
            let duration = OwnedValue::Double(waited as f64);
            self.raise(91, 1, &values![0u8, self.instance, duration], ctx)?;
        } else {
            self.raise(91, 0, &values![0u8, self.instance], ctx)?;
        }
        Ok(OpEffect::after(MICROSECOND))
    }

    /// Newer runtimes report the lock, and its creation when the first thread waits for it.
    fn emit_lock(&mut self, ctx: &mut Context<'_, '_>) -> Result<()> {
        let pointer = OwnedValue::Pointer;
        let at = ctx.rng.pick(LOCKS);
        let lock = match self.locks.get(at) {
            Some(lock) => *lock,
            None => {
                let object = self.heap.object(0, 24);
                let lock = Lock { id: ctx.process.space.heap(0x40), object };
                self.locks.push(lock);
                let values = values![pointer(lock.id), pointer(object), self.instance];
                self.raise(90, 0, &values, ctx)?;
                lock
            }
        };
        let here = ctx.origin.tid;
        let owner = self.thread_ids.values().copied().find(|tid| *tid != here).unwrap_or(here);
        let (id, object) = (pointer(lock.id), pointer(lock.object));
        let values = values![0u8, self.instance, id, object, u64::from(owner)];
        self.raise(81, 2, &values, ctx)
    }

    /// A thread waits for this time (reported since .NET 9).
    pub fn wait(&mut self, time: Nanos, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        let reported = self.is_core(9);
        if reported {
            let object = OwnedValue::Pointer(self.heap.object(0, 24));
            self.raise(301, 0, &values![0u8, object, self.instance], ctx)?;
        }
        ctx.pass(time);
        if reported {
            self.raise(302, 0, &values![self.instance], ctx)?;
        }
        Ok(OpEffect::after(MICROSECOND))
    }

    /// The program is about to create a thread.
    pub fn thread_creating(
        &mut self,
        thread: usize,
        ctx: &mut Context<'_, '_>,
    ) -> Result<OpEffect> {
        if self.is_core(0) || self.is_desktop(4, 5) {
            let object = OwnedValue::Pointer(self.thread_object(thread));
            self.raise(70, 0, &values![object, self.instance], ctx)?;
        }
        Ok(OpEffect::after(MICROSECOND))
    }

    /// The runtime knows a thread of the process from now on; one that the `program` created
    /// reports that it runs.
    pub fn thread_created(
        &mut self,
        thread: usize,
        tid: u32,
        program: bool,
        ctx: &mut Context<'_, '_>,
    ) -> Result<OpEffect> {
        if !self.threads.contains(&thread) {
            self.threads.push(thread);
        }
        self.thread_ids.insert(thread, tid);
        let number = self.threads.iter().position(|t| *t == thread).unwrap_or(0);
        let domain = self.own_domain();
        let index = u32::try_from(number).unwrap_or(u32::MAX).saturating_add(1);
        let object = self.thread_object(thread);
        self.raise(85, 0, &values![object, domain, 0u32, index, tid, self.instance], ctx)?;
        let mut done = OpEffect::after(2 * MICROSECOND);
        if program && (self.is_core(0) || self.is_desktop(4, 5)) {
            let runs = ClrOp::ThreadRunning(thread, ctx.origin.at);
            done.other_threads.push((TargetThread::Thread(thread), runs));
        }
        Ok(done)
    }

    /// A thread that the program created runs.
    pub fn thread_running(
        &mut self,
        thread: usize,
        since: Nanos,
        ctx: &mut Context<'_, '_>,
    ) -> Result<OpEffect> {
        ctx.until(since + 20 * MICROSECOND);
        let object = OwnedValue::Pointer(self.thread_object(thread));
        self.raise(71, 0, &values![object, self.instance], ctx)?;
        Ok(OpEffect::after(MICROSECOND))
    }

    /// A thread of the process has ended.
    pub fn thread_terminated(
        &mut self,
        thread: usize,
        ctx: &mut Context<'_, '_>,
    ) -> Result<OpEffect> {
        self.threads.retain(|t| *t != thread);
        self.thread_ids.remove(&thread);
        let object = self.thread_object(thread);
        self.raise(86, 0, &values![object, self.own_domain(), self.instance], ctx)?;
        Ok(OpEffect::after(2 * MICROSECOND))
    }

    /// A thread enters another app domain.
    pub fn enter_domain(&mut self, domain: usize, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        let Some(found) = self.domains.get(domain).filter(|d| d.loaded) else {
            return NO_EFFECT;
        };
        let (id, here) = (found.id, ctx.origin.tid);
        let thread = self.thread_ids.iter().find(|(_, tid)| **tid == here).map(|(t, _)| *t);
        let object = self.thread_object(thread.unwrap_or_default());
        self.raise(87, 0, &values![object, id, self.instance], ctx)?;
        Ok(OpEffect::after(2 * MICROSECOND))
    }

    /// Managed code calls native code through a stub, which is generated once for each method.
    pub fn make_stub(&mut self, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        let Some((method, _)) = self.runner(ctx.origin.at, ctx.rng) else {
            return NO_EFFECT;
        };
        let (module, token) = (self.module_id(method), method.token);
        let key = method.id;
        let [namespace, name, signature] = method.names();
        if let Some(&stub) = self.stubs.get(&key) {
            let values = values![self.instance, module, stub, token, namespace, name, signature];
            self.raise(89, 0, &values, ctx)?;
            return Ok(OpEffect::after(2 * MICROSECOND));
        }
        let stub = ctx.process.space.heap(0x80);
        self.stubs.insert(key, stub);
        let (id, native) = (self.instance, "unmanaged stdcall int32(native int)");
        let (managed, code) = ("int32(native int)", "ldarg.0\nret");
        let values = values![
            id, module, stub, 0u32, token, namespace, name, signature, native, managed, code
        ];
        self.raise(88, 0, &values, ctx)?;
        Ok(OpEffect::after(30 * MICROSECOND))
    }
}
