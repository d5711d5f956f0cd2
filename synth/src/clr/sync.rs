//! Threads, locks, waits, and stubs for native code.

use etl_schema::encode::OwnedValue;

use super::op::{ClrOp, NO_EFFECT, OpEffect, TargetThread};
use super::raise::Runtime;
use super::state::Lock;
use crate::error::Result;
use crate::etw::values;
use crate::time::{MICROSECOND, Nanos};

/// Locks of a process that threads wait for.
const LOCKS: usize = 8;

impl Runtime<'_, '_> {
    /// The sampling thread suspends the runtime. The reason is none of the listed ones, and there
    /// is no collection.
    pub fn suspend_for_samples(&mut self) -> Result<OpEffect> {
        let instance = self.clr.instance;
        self.raise(9, 1, &values![0u32, u32::MAX, instance])?;
        self.pass(20 * MICROSECOND);
        self.raise(8, 1, &values![instance])?;
        Ok(OpEffect::after(8 * MICROSECOND))
    }

    /// The runtime continues after samples.
    pub fn resume_after_samples(&mut self) -> Result<OpEffect> {
        let instance = self.clr.instance;
        self.raise(7, 1, &values![instance])?;
        self.pass(12 * MICROSECOND);
        self.raise(3, 1, &values![instance])?;
        Ok(OpEffect::after(MICROSECOND))
    }

    /// A thread waits for a lock of another thread.
    pub fn contend(&mut self) -> Result<OpEffect> {
        if self.clr.is_core(8) {
            self.emit_lock()?;
        } else {
            self.raise(81, 1, &values![0u8, self.clr.instance])?;
        }
        let waited = 5 * MICROSECOND + self.thread.rng.mostly_low(0, 2_000 * MICROSECOND);
        self.pass(waited);
        if self.clr.is_core(3) {
            let duration = OwnedValue::Double(waited as f64);
            self.raise(91, 1, &values![0u8, self.clr.instance, duration])?;
        } else {
            self.raise(91, 0, &values![0u8, self.clr.instance])?;
        }
        Ok(OpEffect::after(MICROSECOND))
    }

    /// Newer runtimes report the lock, and its creation when the first thread waits for it.
    fn emit_lock(&mut self) -> Result<()> {
        let at = self.thread.rng.pick(LOCKS);
        let lock = match self.clr.locks.get(at) {
            Some(lock) => *lock,
            None => {
                let object = self.clr.heap.object(0, 24);
                let lock = Lock {
                    id: self.process.space.heap(0x40),
                    object,
                };
                self.clr.locks.push(lock);
                let values = values![lock.id, object, self.clr.instance];
                self.raise(90, 0, &values)?;
                lock
            }
        };
        let here = self.origin.tid;
        let owner = self
            .clr
            .thread_ids
            .values()
            .copied()
            .find(|tid| *tid != here)
            .unwrap_or(here);
        let Lock { id, object } = lock;
        let values = values![0u8, self.clr.instance, id, object, u64::from(owner)];
        self.raise(81, 2, &values)
    }

    /// A thread waits for this time (reported since .NET 9).
    pub fn wait(&mut self, time: Nanos) -> Result<OpEffect> {
        let reported = self.clr.is_core(9);
        if reported {
            let object = self.clr.heap.object(0, 24);
            self.raise(301, 0, &values![0u8, object, self.clr.instance])?;
        }
        self.pass(time);
        if reported {
            self.raise(302, 0, &values![self.clr.instance])?;
        }
        Ok(OpEffect::after(MICROSECOND))
    }

    /// The program is about to create a thread.
    pub fn thread_creating(&mut self, thread: usize) -> Result<OpEffect> {
        let object = self.clr.thread_object(thread);
        self.raise(70, 0, &values![object, self.clr.instance])?;
        Ok(OpEffect::after(MICROSECOND))
    }

    /// The runtime knows a thread of the process from now on; one that the `program` created
    /// reports that it runs.
    pub fn thread_created(&mut self, thread: usize, tid: u32, program: bool) -> Result<OpEffect> {
        if !self.clr.threads.contains(&thread) {
            self.clr.threads.push(thread);
        }
        self.clr.thread_ids.insert(thread, tid);
        let number = self
            .clr
            .threads
            .iter()
            .position(|t| *t == thread)
            .unwrap_or(0);
        let domain = self.clr.own_domain();
        let index = number as u32 + 1;
        let object = self.clr.thread_object(thread);
        self.raise(
            85,
            0,
            &values![object, domain, 0u32, index, tid, self.clr.instance],
        )?;
        let mut done = OpEffect::after(2 * MICROSECOND);
        if program && self.clr.is_4_5() {
            let runs = ClrOp::ThreadRunning(thread, self.origin.at);
            done.other_threads
                .push((TargetThread::Thread(thread), runs));
        }
        Ok(done)
    }

    /// A thread that the program created runs.
    pub fn thread_running(&mut self, thread: usize, since: Nanos) -> Result<OpEffect> {
        self.until(since + 20 * MICROSECOND);
        let object = self.clr.thread_object(thread);
        self.raise(71, 0, &values![object, self.clr.instance])?;
        Ok(OpEffect::after(MICROSECOND))
    }

    /// A thread of the process has ended.
    pub fn thread_terminated(&mut self, thread: usize) -> Result<OpEffect> {
        self.clr.threads.retain(|t| *t != thread);
        self.clr.thread_ids.remove(&thread);
        let object = self.clr.thread_object(thread);
        self.raise(
            86,
            0,
            &values![object, self.clr.own_domain(), self.clr.instance],
        )?;
        Ok(OpEffect::after(2 * MICROSECOND))
    }

    /// A thread enters another app domain.
    pub fn enter_domain(&mut self, domain: usize) -> Result<OpEffect> {
        let Some(found) = self.clr.domains.get(domain).filter(|d| d.loaded) else {
            return NO_EFFECT;
        };
        let id = found.id;
        let here = self.origin.tid;
        let thread = self
            .clr
            .thread_ids
            .iter()
            .find(|(_, tid)| **tid == here)
            .map(|(t, _)| *t);
        let object = self.clr.thread_object(thread.unwrap_or_default());
        self.raise(87, 0, &values![object, id, self.clr.instance])?;
        Ok(OpEffect::after(2 * MICROSECOND))
    }

    /// Managed code calls native code through a stub, which is generated once for each method.
    pub fn make_stub(&mut self) -> Result<OpEffect> {
        let Some((method, _)) = self.clr.runner(self.origin.at, &mut self.thread.rng) else {
            return NO_EFFECT;
        };
        let module = self.clr.module_id(method);
        let token = method.token;
        let key = method.id;
        let [namespace, name, signature] = method.names();
        if let Some(&stub) = self.clr.stubs.get(&key) {
            let values = values![
                self.clr.instance,
                module,
                stub,
                token,
                namespace,
                name,
                signature
            ];
            self.raise(89, 0, &values)?;
            return Ok(OpEffect::after(2 * MICROSECOND));
        }
        let stub = self.process.space.heap(0x80);
        self.clr.stubs.insert(key, stub);
        let id = self.clr.instance;
        let native = "unmanaged stdcall int32(native int)";
        let managed = "int32(native int)";
        let code = "ldarg.0\nret";
        let values = values![
            id, module, stub, 0u32, token, namespace, name, signature, native, managed, code
        ];
        self.raise(88, 0, &values)?;
        Ok(OpEffect::after(30 * MICROSECOND))
    }
}
