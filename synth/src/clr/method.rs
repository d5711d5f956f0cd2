//! Code of methods: compiled, compiled again, unloaded.

use etl_control::enable::CombinedEnablement;
use etl_schema::encode::OwnedValue;

use super::op::{NO_EFFECT, OpEffect};
use super::raise::Runtime;
use super::state::{CODE_OFFSET, Clr, CodeBody, Method};
use crate::error::Result;
use crate::etw::values;
use crate::model::CodeKind;
use crate::time::{MICROSECOND, Nanos};
use etl_schema::clr::keyword;

/// Bits of the flags of method events.
mod flag {
    pub const DYNAMIC: u32 = 1;
    pub const GENERIC: u32 = 2;
    pub const SHARED: u32 = 4;
    pub const JITTED: u32 = 8;
    pub const HELPER: u32 = 0x10;
    /// The tier starts at this bit.
    pub const TIER_SHIFT: u32 = 7;
    /// The extent starts at this bit: 1 for the cold part.
    pub const COLD: u32 = 1 << 28;
}

/// Tiers of code, as the flags of method events have them. Code without tiers has 0.
pub(super) mod tier {
    /// Compiled once and with optimization. Precompiled code has it as well.
    pub const OPTIMIZED: u32 = 2;
    /// Tier 0.
    pub const QUICK: u32 = 3;
    /// Tier 1, the last one.
    pub const TIER_1: u32 = 4;
    /// Optimized code that replaces a loop of tier 0 while it runs (on-stack replacement).
    pub const OSR: u32 = 5;
    /// Tier 0 that counts for the later optimization.
    pub const INSTRUMENTED: u32 = 6;
    /// The same for methods with precompiled code.
    pub const INSTRUMENTED_OPTIMIZED: u32 = 7;
}

/// Methods with at least this many bytes of IL have a loop.
const LOOP: u32 = 256;

/// Ids of the plain events of loaded and unloaded methods, and of the start and the end rundown.
/// The verbose events have the second next id.
pub(super) const LOAD: u16 = 141;
pub(super) const UNLOAD: u16 = 142;

/// Whether precompiled methods are reported (rule E3); `beside` is needed besides the NGen keyword.
pub(super) fn includes_precompiled(asked: &CombinedEnablement, beside: u64) -> bool {
    asked.raises(4, keyword::NGEN)
        && asked.raises(4, beside)
        && !asked.raises(4, keyword::OVERRIDE_NGEN)
}

/// Whether events contain names because a session enables level 5 (rule E4).
pub(super) fn is_verbose(asked: &CombinedEnablement) -> bool {
    asked.enabled && (asked.level == 0 || asked.level >= 5)
}

impl Runtime<'_, '_> {
    /// A method runs for the first time: it is compiled, or its precompiled code is prepared.
    pub fn prepare(&mut self, index: usize) -> Result<OpEffect> {
        let Some(method) = self.clr.methods.get(index).filter(|m| m.bodies.is_empty()) else {
            return NO_EFFECT;
        };
        if !self
            .clr
            .modules
            .get(method.module)
            .is_some_and(|m| m.loaded)
        {
            return NO_EFFECT;
        }
        let precompiled = method.is_precompiled();
        self.load_type(index)?;
        let Some(method) = self.clr.methods.get(index) else {
            return NO_EFFECT;
        };
        let cost = if precompiled {
            let body = self.clr.precompiled(index);
            self.clr.gain(index, body);
            self.report_code(index, &body, true)?;
            // .NET Core has no load events of precompiled methods.
            let wanted = !self.clr.is_core(0)
                && includes_precompiled(&self.asked(), keyword::START_ENUMERATION);
            self.emit_details(index, wanted)?;
            self.emit_method(index, &body, LOAD, false, wanted)?;
            self.publish(index);
            self.emit_entry(index, &body)?;
            3 * MICROSECOND
        } else {
            let tier = self.clr.first_tier(method);
            self.compile(index, tier, 0)?
        };
        if !self.clr.gets_better_code(index) {
            // Its first code is its last one.
        } else if self.clr.tiering.counts_calls {
            self.note_first_call(index)?;
        } else {
            self.clr.quick.push_back(index);
        }
        self.clr.live.push(index);
        Ok(OpEffect::after(cost))
    }

    /// A method is compiled again for its next tier, in most cases with optimization; its old code
    /// stays.
    pub fn tier(&mut self, index: usize) -> Result<OpEffect> {
        if self
            .clr
            .methods
            .get(index)
            .is_none_or(|m| m.bodies.is_empty())
        {
            return NO_EFFECT;
        }
        let tier = self.clr.next_tier(index);
        let version = self.clr.next_version(index);
        let cost = self.compile(index, tier, version)?;
        if tier == tier::TIER_1 {
            // The last one.
        } else if self.clr.tiering.counts_calls {
            self.clr.tiering.count_again(index);
        } else {
            self.clr.quick.push_back(index);
        }
        Ok(OpEffect::after(2 * cost))
    }

    /// A profiler requests a method to be compiled again; its old code stays. Runtimes before .NET
    /// Framework 4.5 cannot do this.
    pub fn rejit(&mut self, index: usize) -> Result<OpEffect> {
        if !self.clr.is_4_5()
            || self
                .clr
                .methods
                .get(index)
                .is_none_or(|m| m.bodies.is_empty())
        {
            return NO_EFFECT;
        }
        let version = self.clr.next_version(index);
        let tier = if self.clr.is_tiered() {
            tier::OPTIMIZED
        } else {
            0
        };
        let cost = self.compile(index, tier, version)?;
        Ok(OpEffect::after(cost))
    }

    /// Compiles a method and raises its events.
    pub(super) fn compile(&mut self, index: usize, tier: u32, rejit: u64) -> Result<Nanos> {
        let Some(method) = self.clr.methods.get(index) else {
            return Ok(0);
        };
        let size = method.size;
        let kind = method.kind;
        let asked = self.asked();
        if method.kind == CodeKind::Helper {
            // Helpers are not compiled.
        } else if !asked.raises(5, keyword::JIT) {
            self.skip(false, 145, 1)?;
        } else {
            let module = self.clr.module_id(method);
            let Method {
                id,
                token,
                il_size,
                namespace,
                name,
                signature,
                ..
            } = method;
            let [namespace, name, signature] = [namespace, name, signature].map(String::as_str);
            let values = values![
                *id,
                module,
                *token,
                *il_size,
                namespace,
                name,
                signature,
                self.clr.instance,
            ];
            self.raise(145, 1, &values)?;
        }
        let time = 50 * MICROSECOND + Nanos::from(size) * 20;
        self.pass(time);
        let now = self.origin.at;
        let start = if kind == CodeKind::Helper {
            // Helpers are code of the runtime itself: they lie in its image.
            self.place_helper(size)
        } else {
            self.clr.code.allocate(size, now, &mut self.process.space)
        };
        let map_entries = self.thread.rng.between(2, 12) as u16;
        let since = Nanos::MAX;
        // Compiled code has no cold part (rule E5).
        let body = CodeBody {
            start,
            size,
            cold: None,
            rejit,
            tier,
            map_entries,
            since,
        };
        self.clr.gain(index, body);
        self.report_code(index, &body, true)?;
        self.emit_calls(index)?;
        self.emit_memory(index, &body)?;
        let wanted = self.clr.has_jit_load(kind, &asked);
        self.emit_details(index, wanted)?;
        self.emit_method(index, &body, LOAD, false, wanted)?;
        if tier == tier::QUICK && !self.clr.tiering.counts_calls {
            self.note_quick()?;
        }
        self.publish(index);
        let version = self.clr.map_version();
        // .NET Core has maps only where it has loads.
        let is_loaded = wanted || !self.clr.is_core(0);
        if has_il(kind) && is_loaded && asked.raises(5, keyword::IL_MAP) {
            let values = self.clr.map_values(index, &body);
            self.raise(190, version, &values)?;
        } else if has_il(kind) {
            self.skip(false, 190, version)?;
        }
        Ok(time / 4)
    }

    /// The newest code of a method, whose load event was raised, is there from now on.
    fn publish(&mut self, index: usize) {
        let since = self.origin.at.saturating_add(1);
        if let Some(last) = self
            .clr
            .methods
            .get_mut(index)
            .and_then(|m| m.bodies.last_mut())
        {
            last.since = since;
        }
    }

    /// An address for a helper in the image of the runtime.
    fn place_helper(&mut self, size: u32) -> u64 {
        let image = self.process.images.iter().find(|i| i.path == self.clr.dll);
        let Some((base, whole)) = image.map(|i| (i.base, i.size)) else {
            return self
                .clr
                .code
                .allocate(size, self.origin.at, &mut self.process.space);
        };
        let at = self.clr.helpers_used % (whole / 2).max(1);
        self.clr.helpers_used += u64::from(size).next_multiple_of(16);
        base + whole / 4 + at
    }

    /// A dynamic method is collected: its code is free.
    pub fn forget(&mut self, index: usize) -> Result<OpEffect> {
        if self
            .clr
            .methods
            .get(index)
            .is_none_or(|m| m.bodies.is_empty())
        {
            return NO_EFFECT;
        }
        self.unload_method(index, true)?;
        self.clr.live.retain(|m| *m != index);
        // It can be emitted again.
        self.clr.waiting.push_back(index);
        Ok(OpEffect::after(5 * MICROSECOND))
    }

    /// A method loses its code: it is `destroyed` by itself, or goes with its module.
    pub fn unload_method(&mut self, index: usize, destroyed: bool) -> Result<()> {
        let Some(method) = self.clr.methods.get_mut(index) else {
            return Ok(());
        };
        let bodies = std::mem::take(&mut method.bodies);
        let kind = method.kind;
        let place = method.precompiled;
        for body in &bodies {
            if !self.clr.has_reported_exit {
                self.emit_unload(index, body, destroyed)?;
            }
            self.report_code(index, body, false)?;
            let is_precompiled = place.is_some_and(|place| place.start == body.start);
            if !is_precompiled && kind != CodeKind::Helper {
                // The memory is reused only after the unload event.
                let free = self.origin.at.saturating_add(1);
                self.clr.code.release(body.start, body.size, free);
            }
        }
        self.clr.tiering.forget(index);
        // The unload events above need it.
        if let Some(method) = self.clr.methods.get_mut(index) {
            method.precompiled = None;
        }
        Ok(())
    }

    /// Raises the unload events of a method's code. The method is `destroyed` by itself, or goes
    /// with its module.
    pub fn emit_unload(&mut self, index: usize, body: &CodeBody, destroyed: bool) -> Result<()> {
        let Some(method) = self.clr.methods.get(index) else {
            return Ok(());
        };
        let asked = self.asked();
        let place = method.precompiled;
        let reported = if place.is_some_and(|place| place.start == body.start) {
            includes_precompiled(&asked, keyword::END_ENUMERATION)
        } else {
            method.kind != CodeKind::Helper
                && asked.raises(4, keyword::JIT)
                && (destroyed || asked.raises(4, keyword::END_ENUMERATION))
        };
        self.emit_method(index, body, UNLOAD, false, reported)
    }

    /// Raises the events of a method's code: plain or verbose, one for its cold part (rules E4,
    /// E5); of the `rundown` provider or the other one, if they are `wanted`.
    pub fn emit_method(
        &mut self,
        index: usize,
        body: &CodeBody,
        plain_id: u16,
        rundown: bool,
        wanted: bool,
    ) -> Result<()> {
        let asked = if rundown {
            self.asked_rundown()
        } else {
            self.asked()
        };
        let hot = (body.start, body.size, 0);
        let cold = body.cold.map(|(start, size)| (start, size, flag::COLD));
        for (start, size, part) in [Some(hot), cold].into_iter().flatten() {
            let Some(method) = self.clr.methods.get(index) else {
                return Ok(());
            };
            let verbose = is_verbose(&asked) || method.always_verbose();
            // Only code after the first has an id: of a later tier, or changed by a profiler.
            let rejit = (self.clr.counts_rejits() && body.rejit != 0).then_some(body.rejit);
            let version = if rejit.is_some() { 2 } else { 1 };
            let id = if verbose { plain_id + 2 } else { plain_id };
            if !wanted {
                self.skip(rundown, id, version)?;
                continue;
            }
            let mut values: Vec<OwnedValue> = Vec::with_capacity(11);
            let module = self.clr.module_id(method);
            let flags = self.clr.flags(method, body) | part;
            values.extend(values![
                method.id_with(body),
                module,
                start,
                size,
                method.token,
                flags
            ]);
            if verbose {
                values.extend(method.names());
            }
            values.push(self.clr.instance.into());
            values.extend(rejit.map(OwnedValue::from));
            self.raise_from(rundown, id, version, &values)?;
        }
        Ok(())
    }
}

/// Whether methods of this kind start with a quick or precompiled version and get better ones.
fn has_tiers(kind: CodeKind) -> bool {
    match kind {
        CodeKind::Jitted | CodeKind::Generic | CodeKind::Precompiled => true,
        CodeKind::Dynamic | CodeKind::Helper => false,
    }
}

/// Whether a debugger can map code to IL: dynamic methods have none that is kept.
pub(super) fn has_il(kind: CodeKind) -> bool {
    !matches!(kind, CodeKind::Helper | CodeKind::Dynamic)
}

impl Clr {
    fn gain(&mut self, index: usize, body: CodeBody) {
        if let Some(method) = self.methods.get_mut(index) {
            method.bodies.push(body);
        }
    }

    /// The precompiled code of a method in its image. It does not run yet.
    fn precompiled(&mut self, index: usize) -> CodeBody {
        let tier = if self.is_tiered() { tier::OPTIMIZED } else { 0 };
        let since = Nanos::MAX;
        let mut place = CodeBody {
            start: 0,
            size: 1,
            cold: None,
            rejit: 0,
            tier,
            map_entries: 3,
            since,
        };
        let Some(method) = self.methods.get_mut(index) else {
            return place;
        };
        let Some(module) = self.modules.get_mut(method.module) else {
            return place;
        };
        place.size = method.size;
        place.start = module.image + module.image_used;
        module.image_used += u64::from(method.size).next_multiple_of(16);
        if method.has_cold {
            // After all hot code.
            let at = module.image + CODE_OFFSET + module.hot_size + module.cold_used;
            place.cold = Some((at, (method.size / 2).max(1)));
            module.cold_used += u64::from(method.size / 2 + 1).next_multiple_of(16);
        }
        method.precompiled = Some(place);
        place
    }

    /// The tier of the first code that is compiled for a method.
    fn first_tier(&self, method: &Method) -> u32 {
        match method.kind {
            CodeKind::Helper => 0,
            _ if !self.is_tiered() => 0,
            CodeKind::Dynamic => tier::OPTIMIZED,
            _ if method.has_loop && self.optimizes_loops() => tier::OPTIMIZED,
            _ => tier::QUICK,
        }
    }

    /// Whether a method that ran for the first time gets better code later.
    fn gets_better_code(&self, index: usize) -> bool {
        let Some(method) = self.methods.get(index) else {
            return false;
        };
        if !self.is_tiered() || !has_tiers(method.kind) {
            return false;
        }
        let newest = method.bodies.last().map_or(0, |body| body.tier);
        method.is_precompiled() || newest != tier::OPTIMIZED
    }

    /// The tier after the newest code of a method. Since .NET 8 a method is compiled with counters
    /// first; since .NET 7 code with a loop is replaced while it runs.
    fn next_tier(&self, index: usize) -> u32 {
        let Some(method) = self.methods.get(index) else {
            return tier::TIER_1;
        };
        let newest = method.bodies.last().map_or(0, |body| body.tier);
        let mut tiers = method.bodies.iter().map(|body| body.tier);
        let is_instrumented = tiers.any(|tier| tier == tier::INSTRUMENTED);
        let counts = self.is_core(8) && !is_instrumented;
        match newest {
            tier::QUICK if self.replaces_loop(method) => tier::OSR,
            tier::QUICK | tier::OSR if counts => tier::INSTRUMENTED,
            tier::OPTIMIZED if counts => tier::INSTRUMENTED_OPTIMIZED,
            _ => tier::TIER_1,
        }
    }

    /// Whether the next code of a method replaces its loop while it runs. If calls are counted, it
    /// depends on them instead.
    fn replaces_loop(&self, method: &Method) -> bool {
        self.is_core(7) && method.il_size >= LOOP && !self.tiering.counts_calls
    }

    /// The ReJIT id of the next code of a method: .NET Core counts the versions of each method,
    /// .NET Framework the changes by profilers.
    pub(super) fn next_version(&mut self, index: usize) -> u64 {
        if !self.is_core(0) {
            self.next_rejit += 1;
            return self.next_rejit - 1;
        }
        let Some(method) = self.methods.get_mut(index) else {
            return 0;
        };
        method.later_versions += 1;
        method.later_versions
    }

    /// Whether compiled methods have load events: in .NET Core at level 5 only, and helpers of the
    /// runtime never.
    fn has_jit_load(&self, kind: CodeKind, asked: &CombinedEnablement) -> bool {
        let level = if self.is_core(0) { 5 } else { 4 };
        let is_silent = self.is_core(0) && kind == CodeKind::Helper;
        asked.raises(level, keyword::JIT) && !is_silent
    }

    fn flags(&self, method: &Method, body: &CodeBody) -> u32 {
        let compiled = if method.precompiled.is_some_and(|p| p.start == body.start) {
            0
        } else {
            flag::JITTED
        };
        let kind = match method.kind {
            CodeKind::Jitted | CodeKind::Precompiled => compiled,
            CodeKind::Dynamic => flag::DYNAMIC | flag::JITTED,
            CodeKind::Generic => flag::JITTED,
            CodeKind::Helper => flag::HELPER,
        };
        let generic = if method.generic {
            flag::GENERIC | flag::SHARED
        } else {
            0
        };
        kind | generic | body.tier << flag::TIER_SHIFT
    }

    /// Fields of a map from IL to native code.
    pub fn map_values(&self, index: usize, body: &CodeBody) -> Vec<OwnedValue> {
        let Some(method) = self.methods.get(index) else {
            return Vec::new();
        };
        let count = u32::from(body.map_entries).max(2);
        let mut il = Vec::new();
        let mut native = Vec::new();
        for n in 0..count {
            let il_offset = match n {
                // Prolog and epilog, which the compiler adds.
                0 => u64::from(u32::MAX - 1),
                n if n == count - 1 => u64::from(u32::MAX - 2),
                n => u64::from(method.il_size) * u64::from(n) / u64::from(count),
            };
            il.push(OwnedValue::UInt(il_offset));
            let native_offset = u64::from(body.size) * u64::from(n) / u64::from(count);
            native.push(OwnedValue::UInt(native_offset));
        }
        // .NET Core 3.1 has no version in maps; later ones also have the version of the IL, which
        // only a profiler changes.
        let rejit = if self.is_core(0) && !self.is_core(5) {
            0
        } else {
            body.rejit
        };
        let mut values: Vec<OwnedValue> = values![
            method.id,
            rejit,
            0u8,
            count as u16,
            il,
            native,
            self.instance
        ]
        .into();
        if self.map_version() >= 1 {
            values.push(0u64.into());
        }
        values
    }

    /// Maps name the version of the IL since .NET 8.
    pub fn map_version(&self) -> u8 {
        u8::from(self.is_core(8))
    }
}
