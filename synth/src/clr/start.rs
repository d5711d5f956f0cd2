//! Start and end of a CLR.

use etl_format::Guid;

use super::op::{ClrOp, OpEffect};
use super::raise::Runtime;

use crate::error::Result;
use crate::etw::{Registrant, values};
use crate::model::Sku;
use crate::time::MILLISECOND;
use etl_schema::providers::{CLR_PRIVATE, CLR_RUNDOWN, CLR_RUNTIME};

/// Startup flags: collections in the background, and the collector of servers.
const CONCURRENT: u32 = 0x1;
const SERVER: u32 = 0x1000;

impl Runtime<'_, '_> {
    /// The providers register, the runtime reports itself, and the first domains are created.
    pub fn start(&mut self) -> Result<OpEffect> {
        let registrant = Registrant {
            pid: self.process.pid,
            clr: Some(self.clr.index),
        };
        self.clr.runtime = self.etw.register(CLR_RUNTIME, false, registrant).0;
        let (rundown, notice) = self.etw.register(CLR_RUNDOWN, false, registrant);
        self.clr.rundown = rundown;
        self.clr.private = self.etw.register(CLR_PRIVATE, false, registrant).0;
        self.clr.started = true;
        let information = self.information();
        self.raise(187, 0, &information)?;
        self.start_heap()?;
        self.emit_settings()?;
        if self.clr.is_tiered() {
            self.raise(280, 0, &values![self.clr.instance, 3u32])?;
        }
        // A provider that is already enabled enumerates at once, when almost nothing is loaded.
        let callbacks = notice.map(|notice| self.clr.rundown_ops(&notice.union));
        let callbacks = callbacks.unwrap_or_default();
        let mut then = Vec::new();
        for (index, domain) in self.clr.domains.iter().enumerate() {
            if !domain.late {
                then.push(ClrOp::LoadDomain(index));
            }
        }
        Ok(OpEffect {
            cost: 5 * MILLISECOND,
            then,
            callbacks,
            ..OpEffect::default()
        })
    }

    /// The fields of the runtime information event.
    pub fn information(&self) -> [etl_schema::encode::OwnedValue; 15] {
        let [major, minor, build, revision] = self.clr.version;
        let (sku, flags) = match self.clr.sku {
            Sku::Desktop => (1u16, CONCURRENT),
            Sku::Core => (2u16, CONCURRENT),
        };
        let flags = flags | if self.clr.heap.heaps > 1 { SERVER } else { 0 };
        let id = self.clr.instance;
        let dll = self.clr.dll.clone();
        let line = self.process.command_line.clone();
        let a = major;
        let b = minor;
        let c = build;
        let d = revision;
        values![
            id,
            sku,
            a,
            b,
            c,
            d,
            a,
            b,
            c,
            d,
            flags,
            1u8,
            line,
            Guid::ZERO,
            dll
        ]
    }

    /// The process ends: what is still loaded is reported as unloaded.
    pub fn stop(&mut self) -> Result<OpEffect> {
        let mut then = Vec::new();
        for (index, domain) in self.clr.domains.iter().enumerate() {
            if domain.loaded {
                then.push(ClrOp::UnloadDomain(index));
            }
        }
        // From now on there is no rundown.
        self.clr.started = false;
        if std::mem::take(&mut self.clr.heap.background_thread) {
            self.raise(12, 1, &values![self.clr.instance])?;
        }
        self.pass(1000);
        Ok(OpEffect {
            cost: MILLISECOND,
            then,
            ..OpEffect::default()
        })
    }
}
