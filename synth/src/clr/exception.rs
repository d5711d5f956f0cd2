//! Exceptions: thrown, seen by filters, passed through finally blocks, caught.

use super::op::{NO_EFFECT, OpEffect};
use super::raise::Runtime;

use crate::error::Result;
use crate::etw::values;
use crate::model::ThrowPlan;
use crate::time::MICROSECOND;

/// Type, message and HRESULT of exceptions that programs throw.
const EXCEPTIONS: [(&str, &str, u32); 5] = [
    (
        "System.InvalidOperationException",
        "Operation is not valid due to the current state of the object.",
        0x8013_1509,
    ),
    (
        "System.ArgumentNullException",
        "Value cannot be null.",
        0x8000_4003,
    ),
    (
        "System.IO.FileNotFoundException",
        "Could not find file 'C:\\App\\settings.json'.",
        0x8007_0002,
    ),
    (
        "System.TimeoutException",
        "The operation has timed out.",
        0x8013_1505,
    ),
    (
        "System.FormatException",
        "Input string was not in a correct format.",
        0x8013_1537,
    ),
];

/// Bits of the flags of a thrown exception.
mod flag {
    pub const HAS_INNER: u16 = 1;
    pub const RETHROWN: u16 = 4;
    pub const CLS_COMPLIANT: u16 = 0x10;
}

/// A block that handles an exception, by the id of its start event; its end event has the next id.
#[derive(Clone, Copy)]
enum Block {
    Catch = 250,
    Finally = 252,
    Filter = 254,
}

impl Runtime<'_, '_> {
    /// An exception is thrown and caught.
    pub fn throw(&mut self, plan: &ThrowPlan) -> Result<OpEffect> {
        let at = self.thread.rng.pick(EXCEPTIONS.len());
        let Some((kind, message, result)) = EXCEPTIONS.get(at).copied() else {
            return NO_EFFECT;
        };
        // Only a method with code can throw.
        let Some((_, body)) = self.clr.runner(self.origin.at, &mut self.thread.rng) else {
            return NO_EFFECT;
        };
        let place = body.start + self.thread.rng.below(body.size.into());
        // Exceptions are handled by managed code since .NET 10: their events have no address, and a
        // rethrow has no event.
        let is_managed = self.clr.is_core(10);
        let address = if is_managed { 0 } else { place };
        let inner = if plan.inner { flag::HAS_INNER } else { 0 };
        let instance = self.clr.instance;
        let flags = flag::CLS_COMPLIANT | inner;
        let thrown = values![kind, message, address, result, flags, instance];
        let flags = flags | flag::RETHROWN;
        let rethrown = values![kind, message, address, result, flags, instance];
        self.raise(80, 1, &thrown)?;
        if !self.clr.is_core(3) {
            if plan.rethrow {
                self.pass(15 * MICROSECOND);
                self.raise(80, 1, &rethrown)?;
            }
            return Ok(OpEffect::after(25 * MICROSECOND));
        }
        self.pass(15 * MICROSECOND);
        // The first pass searches for a handler; the second one unwinds the stack.
        for _ in 0..plan.filters {
            self.enter(Block::Filter)?;
            self.exit(Block::Filter)?;
        }
        for _ in 0..plan.finallys {
            self.enter(Block::Finally)?;
            self.exit(Block::Finally)?;
        }
        self.enter(Block::Catch)?;
        if plan.rethrow {
            // The rethrow leaves this block without an end event; the outer one has an end event.
            if !is_managed {
                self.raise(80, 1, &rethrown)?;
            }
            self.pass(15 * MICROSECOND);
            self.enter(Block::Catch)?;
        }
        self.exit(Block::Catch)?;
        self.raise(256, 0, &[])?;
        Ok(OpEffect::after(25 * MICROSECOND))
    }

    fn enter(&mut self, block: Block) -> Result<()> {
        let Some((method, body)) = self.clr.runner(self.origin.at, &mut self.thread.rng) else {
            return Ok(());
        };
        let entry = body.start + self.thread.rng.below(body.size.into());
        let name = format!("{} {}.{}", method.signature, method.namespace, method.name);
        let values = values![entry, method.id, name, self.clr.instance];
        self.raise(block as u16, 0, &values)?;
        self.pass(2 * MICROSECOND);
        Ok(())
    }

    fn exit(&mut self, block: Block) -> Result<()> {
        self.raise(block as u16 + 1, 0, &[])
    }
}
