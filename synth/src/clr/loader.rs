//! Loading and unloading of app domains, assemblies and modules.

use etl_schema::encode::OwnedValue;

use super::op::{ClrOp, NO_EFFECT, OpEffect};
use super::raise::Context;
use super::state::{AppDomain, Assembly, CODE_OFFSET, Clr, Method, Module};
use crate::error::Result;
use crate::etw::values;
use crate::machine::Image;
use crate::model::{ModuleKind, VersionInfo};
use crate::time::MICROSECOND;
use etl_schema::clr::keyword;

/// The type of a range that holds cold code.
const COLD_RANGE: u8 = 4;

impl Clr {
    pub fn load_domain(&mut self, domain: usize, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        let Some(found) = self.domains.get_mut(domain).filter(|d| !d.loaded) else {
            return NO_EFFECT;
        };
        found.loaded = true;
        let then = found.assemblies.clone();
        let values = self.domain_values(domain);
        self.raise(156, 1, &values, ctx)?;
        let soon = |a: &usize| self.assemblies.get(*a).is_some_and(|a| !a.late);
        let then = then.into_iter().filter(soon).map(ClrOp::LoadAssembly).collect();
        Ok(OpEffect { cost: 200 * MICROSECOND, then, ..OpEffect::default() })
    }

    pub fn load_assembly(
        &mut self,
        assembly: usize,
        ctx: &mut Context<'_, '_>,
    ) -> Result<OpEffect> {
        let Some(found) = self.assemblies.get_mut(assembly).filter(|a| !a.loaded) else {
            return NO_EFFECT;
        };
        found.loaded = true;
        let then = found.modules.iter().copied().map(ClrOp::LoadModule).collect();
        self.emit_binding(assembly, ctx)?;
        self.emit_verification(assembly, ctx)?;
        let values = self.assembly_values(assembly);
        self.raise(154, 1, &values, ctx)?;
        self.emit_bound(assembly, ctx)?;
        Ok(OpEffect { cost: 300 * MICROSECOND, then, ..OpEffect::default() })
    }

    pub fn load_module(&mut self, module: usize, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        self.map_image(module, ctx);
        let Some(found) = self.modules.get_mut(module).filter(|m| !m.loaded) else {
            return NO_EFFECT;
        };
        found.loaded = true;
        let methods = found.methods.clone();
        let asked = self.asked(ctx);
        if asked.raises(4, keyword::LOADER) || asked.raises(4, keyword::PERF_TRACK) {
            let values = self.module_values(module, true);
            self.raise(152, self.module_version(), &values, ctx)?;
        }
        for values in self.range_values(module) {
            self.raise(158, 0, &values, ctx)?;
        }
        if let Some(values) = self.domain_module_values(module) {
            self.raise(151, 1, &values, ctx)?;
        }
        let mut then = Vec::new();
        for method in methods {
            match self.methods.get(method) {
                Some(m) if m.ready => then.push(ClrOp::Prepare(method)),
                Some(_) => self.waiting.push_back(method),
                None => {}
            }
        }
        Ok(OpEffect { cost: 150 * MICROSECOND, then, ..OpEffect::default() })
    }

    /// Maps the image of a module with precompiled code into the address space.
    fn map_image(&mut self, module: usize, ctx: &mut Context<'_, '_>) {
        let Some(found) = self.modules.get_mut(module).filter(|m| !m.loaded && m.image == 0) else {
            return;
        };
        if found.kind == ModuleKind::Dynamic {
            return;
        }
        let path = if found.native_path.is_empty() {
            found.path.clone()
        } else {
            found.native_path.clone()
        };
        let size = (found.image_size + 0x4000).next_multiple_of(0x1000);
        found.image = ctx.process.space.image(size);
        found.image_size = size;
        let version = self.assemblies.get(found.assembly).map(|a| a.file_version.clone());
        let about = VersionInfo { version, ..VersionInfo::default() };
        let pdb = if found.native_path.is_empty() { &found.pdb } else { &found.native_pdb };
        ctx.process.images.push(Image {
            path,
            base: found.image,
            size,
            checksum: size as u32 ^ 0x1_0000,
            timestamp: 0x6000_0000 + module as u32,
            pdb: (pdb.age > 0).then_some((pdb.signature, pdb.age)),
            about,
        });
    }

    /// Unloads a module and the code of its methods.
    fn unload_module(&mut self, module: usize, ctx: &mut Context<'_, '_>) -> Result<()> {
        let Some(found) = self.modules.get(module).filter(|m| m.loaded) else {
            return Ok(());
        };
        for method in found.methods.clone() {
            self.unload_method(method, false, ctx)?;
        }
        // PerfTrack enables the events of loads, but not those of unloads.
        if self.asked(ctx).raises(4, keyword::LOADER) {
            let values = self.module_values(module, false);
            self.raise(153, 2, &values, ctx)?;
        }
        if let Some(found) = self.modules.get_mut(module) {
            found.loaded = false;
            let image = std::mem::take(&mut found.image);
            ctx.process.images.retain(|i| i.base != image);
        }
        self.live.retain(|m| self.methods.get(*m).is_some_and(|m| !m.bodies.is_empty()));
        self.waiting.retain(|m| self.methods.get(*m).is_some_and(|m| m.module != module));
        self.quick.retain(|m| self.methods.get(*m).is_some_and(|m| m.module != module));
        Ok(())
    }

    pub fn unload_assembly(
        &mut self,
        assembly: usize,
        ctx: &mut Context<'_, '_>,
    ) -> Result<OpEffect> {
        let Some(found) = self.assemblies.get(assembly).filter(|a| a.loaded) else {
            return NO_EFFECT;
        };
        for module in found.modules.clone() {
            self.unload_module(module, ctx)?;
        }
        let values = self.assembly_values(assembly);
        self.raise(155, 1, &values, ctx)?;
        if let Some(found) = self.assemblies.get_mut(assembly) {
            found.loaded = false;
        }
        Ok(OpEffect::after(50 * MICROSECOND))
    }

    pub fn unload_domain(&mut self, domain: usize, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        let Some(found) = self.domains.get(domain).filter(|d| d.loaded) else {
            return NO_EFFECT;
        };
        for assembly in found.assemblies.clone() {
            self.unload_assembly(assembly, ctx)?;
        }
        let values = self.domain_values(domain);
        self.raise(157, 1, &values, ctx)?;
        if let Some(found) = self.domains.get_mut(domain) {
            found.loaded = false;
        }
        Ok(OpEffect::after(100 * MICROSECOND))
    }

    /// Fields of app domain events.
    pub fn domain_values(&self, domain: usize) -> Vec<OwnedValue> {
        let Some(AppDomain { id, flags, name, index, .. }) = self.domains.get(domain) else {
            return Vec::new();
        };
        values![*id, *flags, name.as_str(), *index, self.instance].into()
    }

    /// Fields of assembly events.
    pub fn assembly_values(&self, assembly: usize) -> Vec<OwnedValue> {
        let Some(Assembly { id, binding, domain, flags, name, .. }) = self.assemblies.get(assembly)
        else {
            return Vec::new();
        };
        let domain = self.domains.get(*domain).map_or(0, |d| d.id);
        values![*id, domain, *binding, *flags, name.as_str(), self.instance].into()
    }

    /// The version of module events: since .NET 10 they contain the build id of the image. Events
    /// of unloads and of the start rundown keep version 2.
    pub fn module_version(&self) -> u8 {
        if self.is_core(10) { 3 } else { 2 }
    }

    /// The code ranges of a native image: hot code first, then cold code.
    pub fn range_values(&self, module: usize) -> Vec<[OwnedValue; 5]> {
        let Some(found) = self.modules.get(module).filter(|m| m.kind == ModuleKind::NGen) else {
            return Vec::new();
        };
        let hot = (CODE_OFFSET, found.hot_size, 0u8);
        let after_hot = CODE_OFFSET + found.hot_size;
        let cold = self.methods_of(module).filter(|m| m.has_cold);
        let cold: u64 = cold.map(|m| u64::from(m.size / 2 + 1).next_multiple_of(16)).sum();
        [hot, (after_hot, cold, COLD_RANGE)]
            .into_iter()
            .filter(|(_, size, _)| *size > 0)
            .map(|(at, size, kind)| values![self.instance, found.id, at, size, kind])
            .collect()
    }

    fn methods_of(&self, module: usize) -> impl Iterator<Item = &Method> {
        let methods = self.modules.get(module).map(|m| m.methods.as_slice()).unwrap_or_default();
        methods.iter().filter_map(|m| self.methods.get(*m))
    }

    /// Fields of module events; `newest`: in the newest version.
    pub fn module_values(&self, module: usize, newest: bool) -> Vec<OwnedValue> {
        let Some(found) = self.modules.get(module) else { return Vec::new() };
        let Module { id, flags, path, native_path, pdb, native_pdb, .. } = found;
        let assembly = self.assemblies.get(found.assembly).map_or(0, |a| a.id);
        let (il, ni, instance) = (path.as_str(), native_path.as_str(), self.instance);
        let (pdb_path, ni_path) = (pdb.path.as_str(), native_pdb.path.as_str());
        let (guid, age) = (pdb.signature, pdb.age);
        let (ni_guid, ni_age) = (native_pdb.signature, native_pdb.age);
        let mut values: Vec<OwnedValue> = values![
            *id, assembly, *flags, 0u32, il, ni, instance, guid, age, pdb_path, ni_guid, ni_age,
            ni_path,
        ]
        .into();
        if newest && self.module_version() >= 3 {
            // Images of Windows have no build id.
            values.push("".into());
        }
        values
    }

    /// Fields of a module's events in its domain; none for the shared domain, which has no such
    /// events.
    pub fn domain_module_values(&self, module: usize) -> Option<Vec<OwnedValue>> {
        let domain = self.domain_of(module).filter(|d| !d.shared)?;
        let found = self.modules.get(module)?;
        let assembly = self.assemblies.get(found.assembly).map_or(0, |a| a.id);
        let Module { id, flags, path, native_path, .. } = found;
        let (il, ni, instance) = (path.as_str(), native_path.as_str(), self.instance);
        Some(values![*id, assembly, domain.id, *flags, 0u32, il, ni, instance].into())
    }
}
