//! Start and end of a CLR.

use etl_format::Guid;

use super::op::{ClrOp, OpEffect};
use super::raise::Context;
use super::state::Clr;
use crate::error::Result;
use crate::etw::values;
use crate::model::Sku;
use crate::time::MILLISECOND;
use etl_schema::clr::keyword;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

/// Startup flags: collections in the background, and the collector of servers.
const CONCURRENT: u32 = 0x1;
const SERVER: u32 = 0x1000;

impl Clr {
    /// The providers register, the runtime reports itself, and the first domains are created.
    pub fn start(&mut self, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        let pid = ctx.process.pid;
        let (runtime, _) = ctx.etw.register(CLR_RUNTIME, false, pid);
        let (rundown, notice) = ctx.etw.register(CLR_RUNDOWN, false, pid);
        (self.runtime, self.rundown) = (runtime, rundown);
        self.started = true;
        let information = self.information(ctx);
        self.raise(187, 0, &information, ctx)?;
        self.start_heap(ctx)?;
        if self.is_tiered() && self.asked(ctx).raises(4, keyword::COMPILATION) {
            self.raise(280, 0, &values![self.instance, 3u32], ctx)?;
        }
        let mut then = Vec::new();
        if let Some(notice) = notice {
            // A provider that is already enabled enumerates at once, when almost nothing is loaded.
            then.extend(self.rundown_ops(&notice.union));
        }
        for (index, domain) in self.domains.iter().enumerate() {
            if !domain.late {
                then.push(ClrOp::LoadDomain(index));
            }
        }
        Ok(OpEffect { cost: 5 * MILLISECOND, then, ..OpEffect::default() })
    }

    /// The fields of the runtime information event.
    pub fn information(&self, ctx: &Context<'_, '_>) -> [etl_schema::encode::OwnedValue; 15] {
        let [major, minor, build, revision] = self.version;
        let (sku, flags) = match self.sku {
            Sku::Desktop => (1u16, CONCURRENT),
            Sku::Core => (2u16, CONCURRENT),
        };
        let flags = flags | if self.heap.heaps > 1 { SERVER } else { 0 };
        let (id, dll) = (self.instance, self.dll.clone());
        let line = ctx.process.command_line.clone();
        let (a, b, c, d) = (major, minor, build, revision);
        values![id, sku, a, b, c, d, a, b, c, d, flags, 1u8, line, Guid::ZERO, dll]
    }

    /// The process ends: what is still loaded is reported as unloaded.
    pub fn stop(&mut self, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        let mut then = Vec::new();
        for (index, domain) in self.domains.iter().enumerate() {
            if domain.loaded {
                then.push(ClrOp::UnloadDomain(index));
            }
        }
        // From now on there is no rundown.
        self.started = false;
        if std::mem::take(&mut self.heap.background_thread) {
            self.raise(12, 1, &values![self.instance], ctx)?;
        }
        ctx.pass(1000);
        Ok(OpEffect { cost: MILLISECOND, then, ..OpEffect::default() })
    }
}
