//! Exceptions: thrown, seen by filters, passed through finally blocks, caught.

use etl_schema::encode::OwnedValue;

use super::op::{NO_EFFECT, OpEffect};
use super::raise::Context;
use super::state::Clr;
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
    ("System.ArgumentNullException", "Value cannot be null.", 0x8000_4003),
    (
        "System.IO.FileNotFoundException",
        "Could not find file 'C:\\App\\settings.json'.",
        0x8007_0002,
    ),
    ("System.TimeoutException", "The operation has timed out.", 0x8013_1505),
    ("System.FormatException", "Input string was not in a correct format.", 0x8013_1537),
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

impl Clr {
    /// An exception is thrown and caught.
    pub fn throw(&mut self, plan: &ThrowPlan, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        let at = ctx.rng.pick(EXCEPTIONS.len());
        let Some((kind, message, result)) = EXCEPTIONS.get(at).copied() else {
            return NO_EFFECT;
        };
        // Only a method with code can throw.
        let Some((_, body)) = self.runner(ctx.origin.at, ctx.rng) else {
            return NO_EFFECT;
        };
        let address = body.start + ctx.rng.below(body.size.into());
        let inner = if plan.inner { flag::HAS_INNER } else { 0 };
        let thrown = |again: u16, ctx: &mut Context<'_, '_>| {
            let flags = flag::CLS_COMPLIANT | inner | again;
            let address = OwnedValue::Pointer(address);
            let values = values![kind, message, address, result, flags, self.instance];
            self.raise(80, 1, &values, ctx)
        };
        thrown(0, ctx)?;
        if !self.is_core(3) {
            if plan.rethrow {
                ctx.pass(15 * MICROSECOND);
                thrown(flag::RETHROWN, ctx)?;
            }
            return Ok(OpEffect::after(25 * MICROSECOND));
        }
        ctx.pass(15 * MICROSECOND);
        // The first pass searches for a handler; the second one unwinds the stack.
        for _ in 0..plan.filters {
            self.enter(Block::Filter, ctx)?;
            self.exit(Block::Filter, ctx)?;
        }
        for _ in 0..plan.finallys {
            self.enter(Block::Finally, ctx)?;
            self.exit(Block::Finally, ctx)?;
        }
        self.enter(Block::Catch, ctx)?;
        if plan.rethrow {
            // The rethrow leaves this block without an end event; the outer one has an end event.
            thrown(flag::RETHROWN, ctx)?;
            ctx.pass(15 * MICROSECOND);
            self.enter(Block::Catch, ctx)?;
        }
        self.exit(Block::Catch, ctx)?;
        self.raise(256, 0, &[], ctx)?;
        Ok(OpEffect::after(25 * MICROSECOND))
    }

    fn enter(&self, block: Block, ctx: &mut Context<'_, '_>) -> Result<()> {
        let Some((method, body)) = self.runner(ctx.origin.at, ctx.rng) else { return Ok(()) };
        let entry = body.start + ctx.rng.below(body.size.into());
        let name = format!("{} {}.{}", method.signature, method.namespace, method.name);
        let values = values![entry, method.id, name, self.instance];
        self.raise(block as u16, 0, &values, ctx)?;
        ctx.pass(2 * MICROSECOND);
        Ok(())
    }

    fn exit(&self, block: Block, ctx: &mut Context<'_, '_>) -> Result<()> {
        self.raise(block as u16 + 1, 0, &[], ctx)
    }
}
