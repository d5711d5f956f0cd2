//! Loading and unloading of app domains, assemblies and modules.

use etl_schema::encode::OwnedValue;

use super::op::{ClrOp, NO_EFFECT, OpEffect};
use super::raise::Runtime;
use super::state::{AppDomain, Assembly, CODE_OFFSET, Clr, Module};
use crate::error::Result;
use crate::etw::values;
use crate::machine::Image;
use crate::model::{ModuleKind, PdbIdentity, VersionInfo};
use crate::time::MICROSECOND;
use etl_schema::clr::keyword;

/// The type of a range of cold code.
const COLD_RANGE: u8 = 4;

impl Runtime<'_, '_> {
    pub fn load_domain(&mut self, domain: usize) -> Result<OpEffect> {
        let Some(found) = self.clr.domains.get_mut(domain).filter(|d| !d.loaded) else {
            return NO_EFFECT;
        };
        found.loaded = true;
        let mut then = found.assemblies.clone();
        then.retain(|index| self.clr.assemblies.get(*index).is_some_and(|a| !a.late));
        // The first module announces a domain of .NET Core.
        let has_module = then
            .first()
            .and_then(|first| self.clr.assemblies.get(*first))
            .is_some_and(|first| !first.modules.is_empty());
        if !self.clr.is_core(0) || !has_module {
            self.announce_domain(domain)?;
        }
        let then = then.into_iter().map(ClrOp::LoadAssembly).collect();
        Ok(OpEffect {
            cost: 200 * MICROSECOND,
            then,
            ..OpEffect::default()
        })
    }

    /// Raises the load event of a domain, once.
    fn announce_domain(&mut self, domain: usize) -> Result<()> {
        let mut domains = self.clr.domains.iter_mut();
        let Some(found) = domains.nth(domain).filter(|d| d.loaded && !d.announced) else {
            return Ok(());
        };
        found.announced = true;
        let values = self.clr.domain_values(domain).unwrap_or_default();
        self.raise(156, 1, &values)
    }

    pub fn load_assembly(&mut self, assembly: usize) -> Result<OpEffect> {
        let loaded_before = self.clr.assemblies.iter().filter(|a| a.loaded).count();
        let Some(found) = self.clr.assemblies.get_mut(assembly).filter(|a| !a.loaded) else {
            return NO_EFFECT;
        };
        found.loaded = true;
        // The runtime loads its own library without a search, then the program. Later assemblies
        // are found before they are loaded.
        let is_program = loaded_before == 1 && !found.modules.is_empty();
        found.is_searched = is_program;
        let modules = found.modules.iter().copied();
        let then: Vec<ClrOp> = modules.map(ClrOp::LoadModule).collect();
        if loaded_before > 0 {
            self.emit_search(assembly)?;
        }
        if loaded_before > 0 && !is_program {
            self.emit_search_end(assembly)?;
        }
        self.emit_verification(assembly)?;
        let values = self.clr.assembly_values(assembly).unwrap_or_default();
        self.raise(154, 1, &values)?;
        Ok(OpEffect {
            cost: 300 * MICROSECOND,
            then,
            ..OpEffect::default()
        })
    }

    pub fn load_module(&mut self, module: usize) -> Result<OpEffect> {
        self.map_image(module);
        let Some(found) = self.clr.modules.get_mut(module).filter(|m| !m.loaded) else {
            return NO_EFFECT;
        };
        found.loaded = true;
        let assembly = found.assembly;
        let methods = found.methods.clone();
        let version = self.clr.module_version();
        let values = self.clr.module_values(module, version).unwrap_or_default();
        self.raise(152, version, &values)?;
        if let Some(values) = self.clr.range_values(module) {
            self.raise(158, 0, &values)?;
        }
        if let Some(values) = self.clr.domain_module_values(module) {
            self.raise(151, 1, &values)?;
        }
        let Some(owner) = self.clr.assemblies.get_mut(assembly) else {
            return NO_EFFECT;
        };
        let domain = owner.domain;
        let is_last = owner.modules.last() == Some(&module);
        let ends_search = is_last && std::mem::take(&mut owner.is_searched);
        self.announce_domain(domain)?;
        if ends_search {
            self.emit_search_end(assembly)?;
        }
        let mut then = Vec::new();
        for method in methods {
            match self.clr.methods.get(method) {
                Some(m) if m.ready => then.push(ClrOp::Prepare(method)),
                Some(_) => self.clr.waiting.push_back(method),
                None => {}
            }
        }
        Ok(OpEffect {
            cost: 150 * MICROSECOND,
            then,
            ..OpEffect::default()
        })
    }

    /// Maps the image of a module with precompiled code into the address space.
    fn map_image(&mut self, module: usize) {
        let Some(found) = self
            .clr
            .modules
            .get_mut(module)
            .filter(|m| !m.loaded && m.image == 0)
        else {
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
        found.image = self.process.space.image(size);
        found.image_size = size;
        let version = self
            .clr
            .assemblies
            .get(found.assembly)
            .map(|a| a.file_version.clone());
        let about = VersionInfo {
            version,
            ..VersionInfo::default()
        };
        let pdb = if found.native_path.is_empty() {
            &found.pdb
        } else {
            &found.native_pdb
        };
        self.process.images.push(Image {
            path,
            base: found.image,
            size,
            checksum: size as u32 ^ 0x1_0000,
            timestamp: 0x6000_0000 + module as u32,
            pdb: (pdb.age > 0).then_some(PdbIdentity {
                signature: pdb.signature,
                age: pdb.age,
            }),
            about,
        });
    }

    /// Unloads a module and the code of its methods.
    fn unload_module(&mut self, module: usize) -> Result<()> {
        let Some(found) = self.clr.modules.get(module).filter(|m| m.loaded) else {
            return Ok(());
        };
        for method in found.methods.clone() {
            self.unload_method(method, false)?;
        }
        self.emit_module_unload(module)?;
        if let Some(found) = self.clr.modules.get_mut(module) {
            found.loaded = false;
            let image = std::mem::take(&mut found.image);
            self.process.images.retain(|i| i.base != image);
        }
        self.clr.live.retain(|m| {
            self.clr
                .methods
                .get(*m)
                .is_some_and(|m| !m.bodies.is_empty())
        });
        self.clr
            .waiting
            .retain(|m| self.clr.methods.get(*m).is_some_and(|m| m.module != module));
        self.clr
            .quick
            .retain(|m| self.clr.methods.get(*m).is_some_and(|m| m.module != module));
        Ok(())
    }

    pub fn unload_assembly(&mut self, assembly: usize) -> Result<OpEffect> {
        let Some(found) = self.clr.assemblies.get(assembly).filter(|a| a.loaded) else {
            return NO_EFFECT;
        };
        for module in found.modules.clone() {
            self.unload_module(module)?;
        }
        self.emit_assembly_unload(assembly)?;
        if let Some(found) = self.clr.assemblies.get_mut(assembly) {
            found.loaded = false;
        }
        Ok(OpEffect::after(50 * MICROSECOND))
    }

    pub fn unload_domain(&mut self, domain: usize) -> Result<OpEffect> {
        let Some(found) = self.clr.domains.get(domain).filter(|d| d.loaded) else {
            return NO_EFFECT;
        };
        for assembly in found.assemblies.clone() {
            self.unload_assembly(assembly)?;
        }
        self.emit_domain_unload(domain)?;
        if let Some(found) = self.clr.domains.get_mut(domain) {
            found.loaded = false;
            found.announced = false;
        }
        Ok(OpEffect::after(100 * MICROSECOND))
    }

    fn emit_module_unload(&mut self, module: usize) -> Result<()> {
        if self.clr.has_reported_exit {
            return Ok(());
        }
        // PerfTrack enables the events of loads, but not of unloads.
        let wanted = self.asked().raises(4, keyword::LOADER);
        let values = self.clr.module_values(module, 2).unwrap_or_default();
        self.raise_if(wanted, 153, 2, &values)
    }

    fn emit_assembly_unload(&mut self, assembly: usize) -> Result<()> {
        if self.clr.has_reported_exit {
            return Ok(());
        }
        let values = self.clr.assembly_values(assembly).unwrap_or_default();
        self.raise(155, 1, &values)
    }

    fn emit_domain_unload(&mut self, domain: usize) -> Result<()> {
        if self.clr.has_reported_exit {
            return Ok(());
        }
        // A process that exits while it starts has domains without a load event.
        let is_announced = self.clr.domains.get(domain).is_some_and(|d| d.announced);
        let values = self.clr.domain_values(domain).unwrap_or_default();
        self.raise_if(is_announced, 157, 1, &values)
    }

    /// The process is about to exit: everything that is loaded is reported as unloaded, and stays
    /// until the runtime stops.
    pub fn report_exit(&mut self) -> Result<OpEffect> {
        for domain in 0..self.clr.domains.len() {
            let Some(found) = self.clr.domains.get(domain).filter(|d| d.loaded) else {
                continue;
            };
            for assembly in found.assemblies.clone() {
                self.report_exit_of_assembly(assembly)?;
            }
            self.emit_domain_unload(domain)?;
        }
        self.clr.has_reported_exit = true;
        Ok(OpEffect::after(MICROSECOND))
    }

    fn report_exit_of_assembly(&mut self, assembly: usize) -> Result<()> {
        let Some(found) = self.clr.assemblies.get(assembly).filter(|a| a.loaded) else {
            return Ok(());
        };
        for module in found.modules.clone() {
            let Some(found) = self.clr.modules.get(module).filter(|m| m.loaded) else {
                continue;
            };
            for method in found.methods.clone() {
                self.report_exit_of_method(method)?;
            }
            self.emit_module_unload(module)?;
        }
        self.emit_assembly_unload(assembly)
    }

    fn report_exit_of_method(&mut self, method: usize) -> Result<()> {
        let bodies = match self.clr.methods.get(method) {
            Some(method) => method.bodies.clone(),
            None => Vec::new(),
        };
        for body in &bodies {
            self.emit_unload(method, body, false)?;
        }
        Ok(())
    }
}

impl Clr {
    /// Fields of the events of a loaded app domain.
    pub fn domain_values(&self, domain: usize) -> Option<Vec<OwnedValue>> {
        let AppDomain {
            id,
            flags,
            name,
            index,
            ..
        } = self.domains.get(domain).filter(|d| d.loaded)?;
        Some(values![*id, *flags, name.as_str(), *index, self.instance].into())
    }

    /// Fields of the events of a loaded assembly.
    pub fn assembly_values(&self, assembly: usize) -> Option<Vec<OwnedValue>> {
        let Assembly {
            id,
            binding,
            domain,
            flags,
            name,
            ..
        } = self.assemblies.get(assembly).filter(|a| a.loaded)?;
        let domain = self.domains.get(*domain).map_or(0, |d| d.id);
        Some(values![*id, domain, *binding, *flags, name.as_str(), self.instance].into())
    }

    /// The version of module events: after .NET 10 they contain the build id of the image. Events
    /// of unloads and of the start rundown keep version 2.
    pub fn module_version(&self) -> u8 {
        if self.is_core(11) { 3 } else { 2 }
    }

    /// The range of the cold code of an optimized native image. The runtime reports no other
    /// ranges.
    pub fn range_values(&self, module: usize) -> Option<[OwnedValue; 5]> {
        let module = self.modules.get(module)?;
        if !module.loaded || module.kind != ModuleKind::NGen {
            return None;
        }
        let after_hot = CODE_OFFSET + module.hot_size;
        let methods = module.methods.iter().filter_map(|m| self.methods.get(*m));
        let cold = methods.filter(|m| m.has_cold && m.is_precompiled());
        let cold: u64 = cold
            .map(|m| u64::from(m.size / 2 + 1).next_multiple_of(16))
            .sum();
        (cold > 0).then(|| values![self.instance, module.id, after_hot, cold, COLD_RANGE])
    }

    /// Fields of the events of a loaded module, in a version of the event.
    pub fn module_values(&self, module: usize, version: u8) -> Option<Vec<OwnedValue>> {
        let module = self.modules.get(module).filter(|m| m.loaded)?;
        let Module {
            id,
            flags,
            path,
            native_path,
            pdb,
            native_pdb,
            ..
        } = module;
        let assembly = self.assemblies.get(module.assembly).map_or(0, |a| a.id);
        let il = path.as_str();
        let ni = native_path.as_str();
        let instance = self.instance;
        let mut values: Vec<OwnedValue> =
            values![*id, assembly, *flags, 0u32, il, ni, instance].into();
        for pdb in [pdb, native_pdb] {
            values.extend(values![pdb.signature, pdb.age, pdb.path.as_str()]);
        }
        // Images of Windows have no build id.
        values.extend((version >= 3).then(|| "".into()));
        Some(values)
    }

    /// Fields of a loaded module's events in its domain; none for the shared domain, which has no
    /// such events.
    pub fn domain_module_values(&self, module: usize) -> Option<Vec<OwnedValue>> {
        let module = self.modules.get(module).filter(|m| m.loaded)?;
        let assembly = self.assemblies.get(module.assembly)?;
        let domain = self.domains.get(assembly.domain).filter(|d| !d.shared)?;
        let Module {
            id,
            flags,
            path,
            native_path,
            ..
        } = module;
        let il = path.as_str();
        let ni = native_path.as_str();
        let instance = self.instance;
        Some(values![*id, assembly.id, domain.id, *flags, 0u32, il, ni, instance].into())
    }
}
