//! What is loaded in a CLR, for the observer.

use super::raise::OpContext;
use super::state::{Clr, CodeBody};
use crate::error::Result;
use crate::truth::InventoryItem;

impl Clr {
    /// Reports code of a method that was loaded or unloaded.
    pub fn report_code(
        &self,
        index: usize,
        body: &CodeBody,
        loaded: bool,
        ctx: &mut OpContext<'_, '_>,
    ) -> Result<()> {
        let Some(method) = self.methods.get(index) else { return Ok(()) };
        let (pid, at) = (ctx.process.pid, ctx.origin.at);
        for (start, size) in std::iter::once((body.start, body.size)).chain(body.cold) {
            let code = InventoryItem::Code {
                pid,
                clr_instance: self.instance,
                method_id: method.id,
                module_id: self.module_id(method),
                start,
                size,
                namespace: &method.namespace,
                name: &method.name,
            };
            ctx.etw.observer.code_changed(at, loaded, &code)?;
        }
        Ok(())
    }

    /// Reports everything that is loaded, and all code.
    pub fn report_inventory(
        &self,
        pid: u32,
        note: &mut dyn FnMut(&InventoryItem<'_>) -> Result<()>,
    ) -> Result<()> {
        let clr_instance = self.instance;
        for domain in self.domains.iter().filter(|d| d.loaded) {
            note(&InventoryItem::AppDomain {
                pid,
                clr_instance,
                id: domain.id,
                name: &domain.name,
            })?;
        }
        for assembly in self.assemblies.iter().filter(|a| a.loaded) {
            note(&InventoryItem::Assembly {
                pid,
                clr_instance,
                id: assembly.id,
                app_domain_id: self.domains.get(assembly.domain).map_or(0, |d| d.id),
                name: &assembly.name,
            })?;
        }
        for module in self.modules.iter().filter(|m| m.loaded) {
            note(&InventoryItem::Module {
                pid,
                clr_instance,
                id: module.id,
                assembly_id: self.assemblies.get(module.assembly).map_or(0, |a| a.id),
                pdb_signature: module.pdb.signature,
                path: &module.path,
            })?;
        }
        for method in &self.methods {
            let module_id = self.module_id(method);
            for body in &method.bodies {
                let parts = std::iter::once((body.start, body.size)).chain(body.cold);
                for (start, size) in parts {
                    note(&InventoryItem::Code {
                        pid,
                        clr_instance,
                        method_id: method.id,
                        module_id,
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
