//! How a CLR raises events.

use etl_control::enable::CombinedEnablement;
use etl_format::Guid;
use etl_schema::Identity;
use etl_schema::encode::OwnedValue;
use etl_schema::tables::{Registry, TableEvent};

use super::state::Clr;
use crate::error::{Error, Result};
use crate::etw::{Etw, Event, Origin, values};
use crate::machine::Process;
use crate::model::Sku;
use crate::rng::Rng;
use crate::time::Nanos;
use etl_schema::clr::keyword;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

/// The context of an operation: the thread, its process, and ETW.
pub(crate) struct Context<'a, 's> {
    pub etw: &'a mut Etw<'s>,
    pub process: &'a mut Process,
    pub origin: Origin,
    pub rng: &'a mut Rng,
    /// Threads of the process: index, id.
    pub threads: &'a [(usize, u32)],
}

impl Context<'_, '_> {
    /// Waits until a time: the operation follows from what another thread did then.
    pub fn until(&mut self, time: Nanos) {
        self.origin.at = self.origin.at.max(time);
    }

    /// Lets time pass within the operation.
    pub fn pass(&mut self, time: Nanos) {
        self.origin.at = self.origin.at.saturating_add(time);
    }
}

/// Time that a thread needs to raise an event, and to take a stack.
const RAISING: Nanos = 300;
const STACK_TAKING: Nanos = 900;

/// An event of the tables.
pub(crate) fn table(provider: Guid, id: u16, version: u8) -> Result<&'static TableEvent> {
    Registry::builtin()
        .event(provider, Identity::Modern { id, version })
        .ok_or(Error::UnknownEvent { provider, id, version })
}

impl Clr {
    /// The combined enablement of the runtime provider.
    pub fn asked(&self, ctx: &Context<'_, '_>) -> CombinedEnablement {
        ctx.etw.seen(self.runtime, ctx.process.pid)
    }

    /// The combined enablement of the rundown provider.
    pub fn asked_rundown(&self, ctx: &Context<'_, '_>) -> CombinedEnablement {
        ctx.etw.seen(self.rundown, ctx.process.pid)
    }

    /// Raises an event of the runtime provider, if a session enables it.
    pub fn raise(
        &self,
        id: u16,
        version: u8,
        values: &[OwnedValue],
        ctx: &mut Context<'_, '_>,
    ) -> Result<()> {
        self.raise_from(false, id, version, values, ctx)
    }

    /// Raises an event of one of the two providers, if a session enables it.
    pub fn raise_from(
        &self,
        rundown: bool,
        id: u16,
        version: u8,
        values: &[OwnedValue],
        ctx: &mut Context<'_, '_>,
    ) -> Result<()> {
        let (guid, provider) =
            if rundown { (CLR_RUNDOWN, self.rundown) } else { (CLR_RUNTIME, self.runtime) };
        let union = ctx.etw.seen(provider, ctx.process.pid);
        if !union.enabled {
            return Ok(());
        }
        let event = table(guid, id, version)?;
        let mut raised = Event::new(&event.schema, values);
        // R2RGetEntryPoint has its level since .NET 8; other events differ only in .NET Framework.
        let older = if id == 159 { !self.is_core(8) } else { self.sku == Sku::Desktop };
        if let Some((level, keyword)) = event.older.filter(|_| older) {
            raised.descriptor.level = level;
            raised.descriptor.keyword = keyword;
        }
        if !union.raises(raised.descriptor.level, raised.descriptor.keyword) {
            return Ok(());
        }
        let frames = if ctx.etw.wants_stacks(provider) {
            let runtime = ctx.rng.between(1, 4);
            self.call_stack(runtime, ctx.origin.at, ctx.process, ctx.rng)
        } else {
            Vec::new()
        };
        raised.stack = &frames;
        ctx.pass(RAISING);
        ctx.etw.raise(provider, &ctx.origin, &raised)?;
        if event.stack && union.raises(0, keyword::STACK) {
            self.raise_stack(rundown, ctx)?;
        }
        Ok(())
    }

    /// Raises the stack event right after its event.
    fn raise_stack(&self, rundown: bool, ctx: &mut Context<'_, '_>) -> Result<()> {
        let runtime = ctx.rng.between(1, 4);
        let frames = self.call_stack(runtime, ctx.origin.at, ctx.process, ctx.rng);
        let (guid, id, provider) =
            if rundown { (CLR_RUNDOWN, 0, self.rundown) } else { (CLR_RUNTIME, 82, self.runtime) };
        let addresses: Vec<OwnedValue> = frames.iter().map(|a| OwnedValue::Pointer(*a)).collect();
        let count = u32::try_from(frames.len()).unwrap_or(u32::MAX);
        let values = values![self.instance, 0u8, 0u8, count, addresses];
        ctx.pass(STACK_TAKING);
        let event = table(guid, id, 0)?;
        ctx.etw.raise(provider, &ctx.origin, &Event::new(&event.schema, &values))
    }
}
