//! What programs do that the runtime tells of: exceptions, locks, threads and their pool.

use etl_schema::encode::OwnedValue;

use super::Done;
use super::raise::{Ctx, values};
use super::state::Clr;
use crate::error::Result;
use crate::machine::MICROSECOND;
use crate::model::Sku;

/// Type, message and HRESULT of exceptions that programs throw.
const EXCEPTIONS: [(&str, &str, u32); 5] = [
    (
        "System.InvalidOperationException",
        "Operation is not valid due to the current state of the object.",
        0x8013_1509,
    ),
    ("System.ArgumentNullException", "Value cannot be null.", 0x8000_4003),
    (
        "System.IO.FileNotFoundException",
        "Could not find file 'C:\\App\\settings.json'.",
        0x8007_0002,
    ),
    ("System.TimeoutException", "The operation has timed out.", 0x8013_1505),
    ("System.FormatException", "Input string was not in a correct format.", 0x8013_1537),
];

impl Clr {
    /// An exception is thrown, and caught a little further out.
    pub(super) fn throw(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Done> {
        let at = ctx.dice.pick(EXCEPTIONS.len());
        let Some((kind, message, result)) = EXCEPTIONS.get(at).copied() else {
            return Ok(Done::default());
        };
        // Without code there is nobody to throw.
        let Some((method, body)) = self.runner(ctx.origin.at, ctx.dice) else {
            return Ok(Done::default());
        };
        let address = body.start + ctx.dice.below(body.size.into());
        let id = method.id;
        let name = format!("{} {}.{}", method.signature, method.namespace, method.name);
        // CLS compliant.
        let values =
            values![kind, message, OwnedValue::Pointer(address), result, 0x10u16, self.instance];
        self.raise(80, 1, &values, ctx)?;
        let [major, ..] = self.version;
        if self.sku == Sku::Core && major >= 3 {
            ctx.pass(15 * MICROSECOND);
            self.raise(250, 0, &values![address, id, name, self.instance], ctx)?;
            ctx.pass(2 * MICROSECOND);
            self.raise(251, 0, &[], ctx)?;
            self.raise(256, 0, &[], ctx)?;
        }
        Ok(Done::after(25 * MICROSECOND))
    }

    /// A thread waits for a lock that another one has.
    pub(super) fn contend(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Done> {
        self.raise(81, 1, &values![0u8, self.instance], ctx)?;
        let waited = 5 * MICROSECOND + ctx.dice.mostly_low(0, 2_000 * MICROSECOND);
        ctx.pass(waited);
        let [major, ..] = self.version;
        if self.sku == Sku::Core && major >= 3 {
            let duration = OwnedValue::Double(waited as f64);
            self.raise(91, 1, &values![0u8, self.instance, duration], ctx)?;
        } else {
            self.raise(91, 0, &values![0u8, self.instance], ctx)?;
        }
        Ok(Done::after(MICROSECOND))
    }

    /// The pool gets more threads, or fewer.
    pub(super) fn resize_pool(&mut self, by: i32, ctx: &mut Ctx<'_, '_>) -> Result<Done> {
        for _ in 0..by.unsigned_abs().min(10_000) {
            let grows = by > 0;
            let workers =
                if grows { self.workers.saturating_add(1) } else { self.workers.saturating_sub(1) };
            if workers == self.workers {
                break;
            }
            self.workers = workers;
            let values = values![workers, 0u32, self.instance];
            self.raise(if grows { 50 } else { 51 }, 0, &values, ctx)?;
            ctx.pass(3 * MICROSECOND);
        }
        // Why: a climbing move, or a thread that timed out.
        let reason = if by > 0 { 3u32 } else { 7 };
        let throughput = OwnedValue::Double(f64::from(self.workers) * 125.5);
        self.raise(55, 0, &values![throughput, self.workers, reason, self.instance], ctx)?;
        Ok(Done::after(10 * MICROSECOND))
    }

    /// A thread of the process is known to the runtime from now on.
    pub(super) fn thread_created(
        &mut self,
        thread: usize,
        tid: u32,
        ctx: &mut Ctx<'_, '_>,
    ) -> Result<Done> {
        if !self.threads.contains(&thread) {
            self.threads.push(thread);
        }
        let number = self.threads.iter().position(|t| *t == thread).unwrap_or(0);
        let domain = self.domains.iter().find(|d| !d.shared).map_or(0, |d| d.id);
        let index = u32::try_from(number).unwrap_or(u32::MAX).saturating_add(1);
        let object = self.thread_object(thread);
        self.raise(85, 0, &values![object, domain, 0u32, index, tid, self.instance], ctx)?;
        Ok(Done::after(2 * MICROSECOND))
    }

    /// A thread of the process has ended.
    pub(super) fn thread_terminated(
        &mut self,
        thread: usize,
        ctx: &mut Ctx<'_, '_>,
    ) -> Result<Done> {
        self.threads.retain(|t| *t != thread);
        let domain = self.domains.iter().find(|d| !d.shared).map_or(0, |d| d.id);
        let object = self.thread_object(thread);
        self.raise(86, 0, &values![object, domain, self.instance], ctx)?;
        Ok(Done::after(2 * MICROSECOND))
    }

    /// A stub between managed and native code is made.
    pub(super) fn make_stub(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Done> {
        let Some((method, _)) = self.runner(ctx.origin.at, ctx.dice) else {
            return Ok(Done::default());
        };
        let stub = ctx.process.space.heap(0x80);
        let values = values![
            self.instance,
            self.module_id(method),
            stub,
            0u32,
            method.token,
            method.namespace.as_str(),
            method.name.as_str(),
            method.signature.as_str(),
            "unmanaged stdcall int32(native int)",
            "int32(native int)",
            "ldarg.0\nret",
        ];
        self.raise(88, 0, &values, ctx)?;
        Ok(Done::after(30 * MICROSECOND))
    }
}
