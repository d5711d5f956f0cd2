//! What is loaded in a CLR, for the truth.

use super::Ctx;
use super::state::{Body, Clr};
use crate::error::Result;
use crate::truth::Present;

impl Clr {
    /// Tells that code of a method came, or went.
    pub fn tell_code(
        &self,
        index: usize,
        body: &Body,
        there: bool,
        ctx: &mut Ctx<'_, '_>,
    ) -> Result<()> {
        let Some(method) = self.methods.get(index) else { return Ok(()) };
        let (pid, at) = (ctx.process.pid, ctx.origin.at);
        for (start, size) in std::iter::once((body.start, body.size)).chain(body.cold) {
            let code = Present::Code {
                pid,
                clr: self.instance,
                method: method.id,
                module: self.module_id(method),
                start,
                size,
                namespace: &method.namespace,
                name: &method.name,
            };
            ctx.etw.witness().code(at, there, &code)?;
        }
        Ok(())
    }

    /// Tells of everything that is loaded and of all code.
    pub fn tell_present(
        &self,
        pid: u32,
        note: &mut dyn FnMut(&Present<'_>) -> Result<()>,
    ) -> Result<()> {
        let clr = self.instance;
        for domain in self.domains.iter().filter(|d| d.loaded) {
            note(&Present::AppDomain { pid, clr, id: domain.id, name: &domain.name })?;
        }
        for assembly in self.assemblies.iter().filter(|a| a.loaded) {
            let domain = self.domains.get(assembly.domain).map_or(0, |d| d.id);
            note(&Present::Assembly { pid, clr, id: assembly.id, domain, name: &assembly.name })?;
        }
        for module in self.modules.iter().filter(|m| m.loaded) {
            let assembly = self.assemblies.get(module.assembly).map_or(0, |a| a.id);
            let (path, pdb) = (module.path.as_str(), module.pdb.signature);
            note(&Present::Module { pid, clr, id: module.id, assembly, path, pdb })?;
        }
        for method in &self.methods {
            let module = self.module_id(method);
            for body in &method.bodies {
                let parts = std::iter::once((body.start, body.size)).chain(body.cold);
                for (start, size) in parts {
                    note(&Present::Code {
                        pid,
                        clr,
                        method: method.id,
                        module,
                        start,
                        size,
                        namespace: &method.namespace,
                        name: &method.name,
                    })?;
                }
            }
        }
        Ok(())
    }
}
