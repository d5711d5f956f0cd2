//! The two enumerations of the rundown provider (rules R1 to R6), and the one of the runtime
//! provider when a session requests the state (rule E8).

use etl_control::enable::CombinedEnablement;
use etl_schema::encode::OwnedValue;

use super::method::{LOAD, MethodEventIds, includes_precompiled};
use super::op::{ClrOp, Enumeration, Item, OpEffect};
use super::raise::OpContext;
use super::state::Clr;
use crate::error::Result;
use crate::etw::values;
use crate::model::CodeKind;
use etl_schema::clr::keyword;

/// Bytes from which an object is large.
const LARGE_OBJECT: u64 = 85_000;

const DC_START: MethodEventIds = MethodEventIds { plain: 141, verbose: 143 };
const DC_END: MethodEventIds = MethodEventIds { plain: 142, verbose: 144 };

/// Whether a mask makes the rundown provider enumerate anything at all.
fn enumerates(asked: &CombinedEnablement) -> bool {
    let on = |keyword| asked.raises(4, keyword);
    on(keyword::LOADER)
        || on(keyword::JIT)
        || on(keyword::NGEN) && !on(keyword::OVERRIDE_NGEN)
        || on(keyword::IL_MAP)
        || on(keyword::PERF_TRACK)
        || on(keyword::THREADING)
}

impl Clr {
    /// The operations after a change of the rundown provider's enablement: start rundown, end
    /// rundown, both, or nothing.
    pub fn rundown_ops(&self, asked: &CombinedEnablement) -> Vec<ClrOp> {
        let mut ops = Vec::new();
        if !self.started || !asked.enabled {
            return ops;
        }
        let wanted = [
            (Enumeration::Start, keyword::START_RUNDOWN),
            (Enumeration::End, keyword::END_RUNDOWN),
        ];
        for (enumeration, keyword) in wanted {
            if !asked.raises(4, keyword) {
                continue;
            }
            let mut items = vec![Item::Runtime];
            if self.is_tiered() && asked.raises(4, keyword::COMPILATION) {
                items.push(Item::Tiering);
            }
            if enumerates(asked) {
                items.push(Item::Init);
                items.extend(self.everything(enumeration));
                items.push(Item::Threads);
                items.push(Item::Collector);
                items.push(Item::Complete);
            }
            ops.extend(items.into_iter().map(|item| ClrOp::Rundown(enumeration, item)));
        }
        ops
    }

    /// The operations after a request for the state.
    pub fn capture_ops(&self) -> Vec<ClrOp> {
        if !self.started {
            return Vec::new();
        }
        let mut items = vec![Item::Runtime];
        items.extend(self.everything(Enumeration::Start));
        items.into_iter().map(ClrOp::Capture).collect()
    }

    /// Everything that is loaded, in the order of an enumeration (rule R3).
    fn everything(&self, enumeration: Enumeration) -> Vec<Item> {
        let mut items = Vec::new();
        // The shared domain comes first.
        let (shared, own): (Vec<_>, Vec<_>) =
            (0..self.domains.len()).partition(|d| self.domains.get(*d).is_some_and(|d| d.shared));
        for domain in shared.into_iter().chain(own) {
            let Some(found) = self.domains.get(domain).filter(|d| d.loaded) else { continue };
            let (mut jitted, mut rest) = (Vec::new(), Vec::new());
            for &assembly in &found.assemblies {
                let Some(a) = self.assemblies.get(assembly).filter(|a| a.loaded) else { continue };
                let modules =
                    a.modules.iter().filter(|m| self.modules.get(**m).is_some_and(|m| m.loaded));
                let modules: Vec<usize> = modules.copied().collect();
                let domain_modules = modules.iter().map(|m| Item::DomainModule(*m));
                let mut inside = Vec::new();
                for module in &modules {
                    let methods = self.modules.get(*module).map(|m| &m.methods);
                    let with_code = methods
                        .into_iter()
                        .flatten()
                        .filter(|m| self.methods.get(**m).is_some_and(|m| !m.bodies.is_empty()));
                    let (mut precompiled, mut compiled) = (Vec::new(), Vec::new());
                    for &method in with_code {
                        let is = self.methods.get(method).is_some_and(|m| m.is_precompiled());
                        if is { &mut precompiled } else { &mut compiled }
                            .push(Item::Method(method));
                    }
                    jitted.extend(compiled);
                    match enumeration {
                        Enumeration::Start => {
                            inside.push(Item::Module(*module));
                            inside.extend(precompiled);
                        }
                        Enumeration::End => {
                            inside.extend(precompiled);
                            inside.push(Item::Module(*module));
                        }
                    }
                }
                match enumeration {
                    Enumeration::Start => {
                        rest.push(Item::Assembly(assembly));
                        rest.extend(domain_modules);
                        rest.extend(inside);
                    }
                    Enumeration::End => {
                        rest.extend(inside);
                        rest.extend(domain_modules);
                        rest.push(Item::Assembly(assembly));
                    }
                }
            }
            match enumeration {
                Enumeration::Start => {
                    items.push(Item::Domain(domain));
                    items.extend(rest);
                    items.extend(jitted);
                }
                Enumeration::End => {
                    items.extend(jitted);
                    items.extend(rest);
                    items.push(Item::Domain(domain));
                }
            }
        }
        items
    }

    /// Reports an item under the rundown provider, if it is still loaded.
    pub(super) fn emit_item(
        &self,
        enumeration: Enumeration,
        item: &Item,
        ctx: &mut OpContext<'_, '_>,
    ) -> Result<OpEffect> {
        let end = enumeration == Enumeration::End;
        let either = |start: u16, of_end: u16| if end { of_end } else { start };
        match *item {
            Item::Runtime => {
                let values = self.information(ctx);
                self.raise_rundown(187, 0, &values, ctx)?;
            }
            Item::Tiering => self.raise_rundown(280, 0, &values![self.instance, 3u32], ctx)?,
            Item::Init => self.raise_rundown(either(147, 148), 1, &values![self.instance], ctx)?,
            Item::Complete => {
                self.raise_rundown(either(145, 146), 1, &values![self.instance], ctx)?;
            }
            Item::Domain(domain) => {
                if self.domains.get(domain).is_some_and(|d| d.loaded) {
                    let values = self.domain_values(domain);
                    self.raise_rundown(either(157, 158), 1, &values, ctx)?;
                }
            }
            Item::Assembly(assembly) => {
                if self.assemblies.get(assembly).is_some_and(|a| a.loaded) {
                    let values = self.assembly_values(assembly);
                    self.raise_rundown(either(155, 156), 1, &values, ctx)?;
                }
            }
            Item::Module(module) => {
                if self.modules.get(module).is_some_and(|m| m.loaded) {
                    // Only the end has the newest version.
                    let version = if end { self.module_version() } else { 2 };
                    let values = self.module_values(module, end);
                    self.raise_rundown(either(153, 154), version, &values, ctx)?;
                    for [instance, id, begin, size, kind] in self.range_values(module) {
                        // One range in each event, though there might be more.
                        let (begin, size) =
                            (OwnedValue::Array(vec![begin]), OwnedValue::Array(vec![size]));
                        let values = [instance, id, begin, size, kind];
                        self.raise_rundown(either(160, 161), 0, &values, ctx)?;
                    }
                }
            }
            Item::DomainModule(module) => {
                if self.modules.get(module).is_some_and(|m| m.loaded)
                    && let Some(values) = self.domain_module_values(module)
                {
                    self.raise_rundown(either(151, 152), 1, &values, ctx)?;
                }
            }
            Item::Method(method) => {
                self.emit_enumerated(method, if end { DC_END } else { DC_START }, end, ctx)?;
            }
            Item::Threads => self.emit_threads(ctx)?,
            Item::Collector => self.emit_collector(ctx)?,
        }
        Ok(OpEffect::after(self.enumeration_cost))
    }

    /// Reports all code of a method; precompiled and compiled code have different keywords.
    fn emit_enumerated(
        &self,
        index: usize,
        ids: MethodEventIds,
        end: bool,
        ctx: &mut OpContext<'_, '_>,
    ) -> Result<()> {
        let Some(method) = self.methods.get(index) else { return Ok(()) };
        // No enumeration lists the helpers of the runtime.
        if method.kind == CodeKind::Helper {
            return Ok(());
        }
        let asked = self.asked_rundown(ctx);
        let here = ctx.origin.at;
        for body in method.bodies.iter().filter(|body| body.since <= here) {
            let precompiled = method.precompiled.is_some_and(|p| p.start == body.start);
            let reported = if precompiled {
                includes_precompiled(&asked, keyword::NGEN)
            } else {
                asked.raises(4, keyword::JIT)
            };
            let mapped = !precompiled && asked.raises(5, keyword::IL_MAP);
            // The map comes after the method at the start, and before it at the end.
            if mapped && end {
                self.raise_rundown(150, self.map_version(), &self.map_values(index, body), ctx)?;
            }
            if reported {
                self.emit_method(index, body, ids, true, ctx)?;
            }
            if mapped && !end {
                self.raise_rundown(149, self.map_version(), &self.map_values(index, body), ctx)?;
            }
        }
        Ok(())
    }

    fn emit_threads(&self, ctx: &mut OpContext<'_, '_>) -> Result<()> {
        // The event also has the keyword of app domain resources, which enables no enumeration.
        if !self.asked_rundown(ctx).raises(4, keyword::THREADING) {
            return Ok(());
        }
        let domain = self.domains.iter().find(|d| d.loaded && !d.shared).map_or(0, |d| d.id);
        let threads: Vec<(usize, u32)> = ctx.threads.to_vec();
        for (number, thread) in self.threads.iter().enumerate() {
            let Some((_, tid)) = threads.iter().find(|(t, _)| t == thread) else { continue };
            let values = values![
                self.thread_object(*thread),
                domain,
                0u32,
                number as u32 + 1,
                *tid,
                self.instance,
            ];
            self.raise_rundown(159, 0, &values, ctx)?;
        }
        Ok(())
    }

    /// The settings of the collector (since .NET 8, under the GC keyword).
    fn emit_collector(&self, ctx: &mut OpContext<'_, '_>) -> Result<()> {
        if !self.is_core(8) || !self.asked_rundown(ctx).raises(4, keyword::GC) {
            return Ok(());
        }
        // Collections in the background, frozen segments, and threads that are bound to no
        // processor.
        let settings = 1u32 | 4 | if self.heap.heaps > 1 { 0 } else { 16 };
        let values = values![0u64, LARGE_OBJECT, 0u64, 0u64, 0u64, 0u32, settings, self.instance];
        self.raise_rundown(10, 0, &values, ctx)
    }

    /// The runtime's object for a thread.
    pub(super) fn thread_object(&self, thread: usize) -> u64 {
        self.domains.first().map_or(0x1_0000, |d| d.id) + 0x10_0000 + thread as u64 * 0x200
    }

    /// Reports an item under the runtime provider, as if it had just been loaded.
    pub(super) fn emit_state(&self, item: &Item, ctx: &mut OpContext<'_, '_>) -> Result<OpEffect> {
        match *item {
            Item::Runtime => {
                let values = self.information(ctx);
                self.raise(187, 0, &values, ctx)?;
            }
            Item::Domain(domain) => {
                let values = self.domain_values(domain);
                self.raise(156, 1, &values, ctx)?;
            }
            Item::Assembly(assembly) => {
                let values = self.assembly_values(assembly);
                self.raise(154, 1, &values, ctx)?;
            }
            Item::Module(module) => {
                let values = self.module_values(module, true);
                self.raise(152, self.module_version(), &values, ctx)?;
            }
            Item::DomainModule(module) => {
                if let Some(values) = self.domain_module_values(module) {
                    self.raise(151, 1, &values, ctx)?;
                }
            }
            Item::Method(method) => {
                let asked = self.asked(ctx);
                let Some(found) = self.methods.get(method) else { return Ok(OpEffect::default()) };
                let here = ctx.origin.at;
                for body in found.bodies.iter().filter(|body| body.since <= here) {
                    let precompiled = found.precompiled.is_some_and(|p| p.start == body.start);
                    let reported = if precompiled {
                        includes_precompiled(&asked, keyword::NGEN)
                    } else {
                        asked.raises(4, keyword::JIT)
                    };
                    if reported {
                        self.emit_method(method, body, LOAD, false, ctx)?;
                    }
                }
            }
            Item::Tiering | Item::Init | Item::Threads | Item::Collector | Item::Complete => {}
        }
        Ok(OpEffect::after(self.enumeration_cost))
    }
}
