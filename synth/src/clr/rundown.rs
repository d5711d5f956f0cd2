//! The two enumerations of the rundown provider (rules R1 to R6), and the one of the runtime
//! provider when a session requests the state (rule E8).

use etl_control::enable::CombinedEnablement;
use etl_schema::encode::OwnedValue;

use super::method::{LOAD, UNLOAD, has_il, includes_precompiled};
use super::op::{ClrOp, Enumeration, Item, OpEffect};
use super::raise::Runtime;
use super::state::Clr;
use crate::error::Result;
use crate::etw::values;
use crate::model::CodeKind;
use crate::time::{MICROSECOND, Nanos};
use etl_schema::clr::keyword;

/// Bytes from which an object is large.
const LARGE_OBJECT: u64 = 85_000;

/// How much longer each enumeration of a CLR takes than the one of its kind before.
const LATER_ENUMERATION: Nanos = MICROSECOND;

/// Whether a mask makes the rundown provider enumerate anything at all.
fn enumerates(asked: &CombinedEnablement) -> bool {
    let listing = [
        keyword::LOADER,
        keyword::JIT,
        keyword::IL_MAP,
        keyword::PERF_TRACK,
        keyword::THREADING,
    ];
    listing.into_iter().any(|keyword| asked.raises(4, keyword))
        || asked.raises(4, keyword::NGEN) && !asked.raises(4, keyword::OVERRIDE_NGEN)
}

impl Enumeration {
    /// The id of an event with this id at the start, the next one at the end, and its own for a
    /// request of the state.
    fn id(self, start: u16, state: u16) -> u16 {
        match self {
            Enumeration::Start => start,
            Enumeration::End => start + 1,
            Enumeration::State => state,
        }
    }
}

impl Runtime<'_, '_> {
    /// Reports an item of an enumeration, if it is still loaded.
    pub fn emit_item(&mut self, enumeration: Enumeration, item: &Item) -> Result<OpEffect> {
        let rundown = enumeration != Enumeration::State;
        let end = enumeration == Enumeration::End;
        // Marks surround a list, and the settings of tiers precede it, only if something is listed.
        let marks = enumerates(&self.asked_rundown());
        let clr = &*self.clr;
        // The start rundown has an older version of the module's event.
        let is_start = enumeration == Enumeration::Start;
        let of_module = if is_start { 2 } else { clr.module_version() };
        let (id, version, values) = match *item {
            Item::Runtime => (187, 0, Some(self.information().into())),
            Item::Tiering => {
                let settings = values![clr.instance, 3u32].into();
                let is_wanted = clr.is_tiered() && marks;
                (280, 0, Some(settings).filter(|_| is_wanted))
            }
            Item::Init => (
                enumeration.id(147, 0),
                1,
                marks.then(|| values![clr.instance].into()),
            ),
            Item::Complete => (
                enumeration.id(145, 0),
                1,
                marks.then(|| values![clr.instance].into()),
            ),
            Item::Domain(domain) => (enumeration.id(157, 156), 1, clr.domain_values(domain)),
            Item::Assembly(assembly) => {
                (enumeration.id(155, 154), 1, clr.assembly_values(assembly))
            }
            Item::Module(m) => (
                enumeration.id(153, 152),
                of_module,
                clr.module_values(m, of_module),
            ),
            Item::DomainModule(module) => (
                enumeration.id(151, 151),
                1,
                clr.domain_module_values(module),
            ),
            Item::Method(_) | Item::Threads | Item::Collector => (0, 0, None),
        };
        if let Some(values) = values {
            self.raise_from(rundown, id, version, &values)?;
        }
        match *item {
            Item::Module(module) if rundown => {
                if let Some([instance, id, start, size, kind]) = self.clr.range_values(module) {
                    // Each event has one range, although it could have more.
                    let [start, size] = [start, size].map(|v| OwnedValue::Array(vec![v]));
                    let number = if end { 161 } else { 160 };
                    self.raise_from(true, number, 0, &[instance, id, start, size, kind])?;
                }
            }
            Item::Method(method) => self.emit_enumerated(method, rundown, end)?,
            Item::Threads => self.emit_threads()?,
            Item::Collector => self.emit_collector()?,
            _ => {}
        }
        Ok(OpEffect::after(
            self.clr.enumeration_cost + self.delay_after(enumeration, item),
        ))
    }

    /// What the first step of an enumeration takes beyond the others: no two enumerations of one
    /// kind take the same time.
    fn delay_after(&mut self, enumeration: Enumeration, item: &Item) -> Nanos {
        if !matches!(item, Item::Init) {
            return 0;
        }
        let Some(before) = self.clr.enumerations.get_mut(enumeration as usize) else {
            return 0;
        };
        *before += 1;
        (*before - 1) * LATER_ENUMERATION
    }

    /// Reports all code of a method; precompiled and compiled code have different keywords.
    fn emit_enumerated(&mut self, index: usize, rundown: bool, end: bool) -> Result<()> {
        let Some(method) = self.clr.methods.get(index) else {
            return Ok(());
        };
        // No rundown lists the helpers of the runtime.
        if rundown && method.kind == CodeKind::Helper {
            return Ok(());
        }
        let asked = if rundown {
            self.asked_rundown()
        } else {
            self.asked()
        };
        let here = self.origin.at;
        let place = method.precompiled;
        let count = method.bodies.len();
        let kind = method.kind;
        for at in 0..count {
            let body = self
                .clr
                .methods
                .get(index)
                .and_then(|m| m.bodies.get(at))
                .copied();
            let Some(body) = body.as_ref().filter(|body| body.since <= here) else {
                continue;
            };
            let precompiled = place.is_some_and(|p| p.start == body.start);
            let reported = if precompiled {
                includes_precompiled(&asked, keyword::NGEN)
            } else {
                asked.raises(4, keyword::JIT)
            };
            let mapped =
                rundown && !precompiled && has_il(kind) && asked.raises(5, keyword::IL_MAP);
            // The map comes after the method at the start, and before it at the end.
            if mapped && end {
                let values = self.clr.map_values(index, body);
                self.raise_from(true, 150, self.clr.map_version(), &values)?;
            }
            if reported {
                self.emit_method(index, body, if end { UNLOAD } else { LOAD }, rundown, true)?;
            }
            if mapped && !end {
                let values = self.clr.map_values(index, body);
                self.raise_from(true, 149, self.clr.map_version(), &values)?;
            }
        }
        Ok(())
    }

    fn emit_threads(&mut self) -> Result<()> {
        // The event also has the keyword of app domain resources, which enables no enumeration.
        if !self.asked_rundown().raises(4, keyword::THREADING) {
            return Ok(());
        }
        let domain = self
            .clr
            .domains
            .iter()
            .find(|d| d.loaded && !d.shared)
            .map_or(0, |d| d.id);
        for (number, thread) in (1u32..).zip(self.clr.threads.clone()) {
            let Some((_, tid)) = self.threads.iter().find(|(t, _)| *t == thread) else {
                continue;
            };
            let object = self.clr.thread_object(thread);
            let values = values![object, domain, 0u32, number, *tid, self.clr.instance];
            self.raise_from(true, 159, 0, &values)?;
        }
        Ok(())
    }

    /// The settings of the collector (since .NET 8, under the GC keyword, even if nothing is
    /// listed).
    fn emit_collector(&mut self) -> Result<()> {
        let asked = self.asked_rundown();
        if !self.clr.is_core(8) || !asked.raises(4, keyword::GC) {
            return Ok(());
        }
        // Collections in the background, frozen segments, and threads that are bound to no
        // processor.
        let settings = 1u32 | 4 | if self.clr.heap.heaps > 1 { 0 } else { 16 };
        let values = values![
            0u64,
            LARGE_OBJECT,
            0u64,
            0u64,
            0u64,
            0u32,
            settings,
            self.clr.instance
        ];
        self.raise_from(true, 10, 0, &values)
    }
}

impl Clr {
    /// The operations after a change of the rundown provider's enablement: start rundown, end
    /// rundown, both, or nothing.
    pub fn rundown_ops(&self, asked: &CombinedEnablement) -> Vec<ClrOp> {
        if !self.started || !asked.enabled {
            return Vec::new();
        }
        let wanted = [
            (Enumeration::Start, keyword::START_RUNDOWN),
            (Enumeration::End, keyword::END_RUNDOWN),
        ];
        wanted
            .map(|(enumeration, keyword)| ClrOp::List(enumeration, asked.raises(4, keyword)))
            .into()
    }

    /// An enumeration begins. It goes through its list item by item whether or not a session
    /// requests it: other threads come between its items, so that one long operation would end at
    /// another time.
    pub fn list(&self, enumeration: Enumeration, listed: bool) -> OpEffect {
        let mut items = vec![Item::Runtime, Item::Tiering, Item::Init];
        items.extend(self.everything(enumeration));
        items.extend([Item::Threads, Item::Collector, Item::Complete]);
        let then = items
            .into_iter()
            .map(|item| ClrOp::Rundown(enumeration, item, listed));
        OpEffect {
            then: then.collect(),
            ..OpEffect::default()
        }
    }

    /// The operations after a request for the state.
    pub fn capture_ops(&self) -> Vec<ClrOp> {
        if !self.started {
            return Vec::new();
        }
        let mut items = vec![Item::Runtime];
        items.extend(self.everything(Enumeration::State));
        items
            .into_iter()
            .map(|item| ClrOp::Rundown(Enumeration::State, item, true))
            .collect()
    }

    /// Everything that is loaded, in the order of an enumeration (rule R3).
    fn everything(&self, enumeration: Enumeration) -> Vec<Item> {
        let mut items = Vec::new();
        // The shared domain comes first.
        let mut domains: Vec<usize> = (0..self.domains.len()).collect();
        domains.sort_by_key(|domain| self.domains.get(*domain).is_some_and(|d| !d.shared));
        for domain in domains {
            let Some(found) = self.domains.get(domain).filter(|d| d.loaded) else {
                continue;
            };
            let mut jitted = Vec::new();
            let mut rest = Vec::new();
            for &assembly in &found.assemblies {
                let Some(a) = self.assemblies.get(assembly).filter(|a| a.loaded) else {
                    continue;
                };
                let modules = a
                    .modules
                    .iter()
                    .filter(|m| self.modules.get(**m).is_some_and(|m| m.loaded));
                let modules: Vec<usize> = modules.copied().collect();
                let domain_modules = modules.iter().map(|m| Item::DomainModule(*m));
                let mut inside = Vec::new();
                for module in &modules {
                    let methods = self.modules.get(*module).map(|m| &m.methods);
                    let with_code = methods
                        .into_iter()
                        .flatten()
                        .filter(|m| self.methods.get(**m).is_some_and(|m| !m.bodies.is_empty()));
                    let mut precompiled = Vec::new();
                    let mut compiled = Vec::new();
                    for &method in with_code {
                        let is = self.methods.get(method).is_some_and(|m| m.is_precompiled());
                        if is { &mut precompiled } else { &mut compiled }
                            .push(Item::Method(method));
                    }
                    jitted.extend(compiled);
                    match enumeration {
                        Enumeration::Start | Enumeration::State => {
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
                    Enumeration::Start | Enumeration::State => {
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
                Enumeration::Start | Enumeration::State => {
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

    /// The runtime's object for a thread.
    pub fn thread_object(&self, thread: usize) -> u64 {
        self.domains.first().map_or(0x1_0000, |d| d.id) + 0x10_0000 + thread as u64 * 0x200
    }
}
