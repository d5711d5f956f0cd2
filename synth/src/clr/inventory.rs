//! What is loaded in a CLR, for the observer.

use super::raise::Runtime;
use super::state::{Clr, CodeBody, Method};
use crate::error::Result;
use crate::truth::{Fact, InventoryItem};
use etl_format::ProcessId;

impl Runtime<'_, '_> {
    /// Reports code of a method that was loaded or unloaded.
    pub fn report_code(&mut self, index: usize, body: &CodeBody, loaded: bool) -> Result<()> {
        let Some(method) = self.clr.methods.get(index) else {
            return Ok(());
        };
        let at = self.origin.at;
        for code in self.clr.code_items(self.process.pid.into(), method, body) {
            self.etw.observer.observe(&Fact::Code {
                at,
                loaded,
                code: &code,
            })?;
        }
        Ok(())
    }
}

impl Clr {
    /// The hot part and the cold part of code.
    fn code_items<'c>(
        &self,
        pid: ProcessId,
        method: &'c Method,
        body: &CodeBody,
    ) -> impl Iterator<Item = InventoryItem<'c>> + use<'c> {
        let clr_instance = self.instance;
        let module_id = self.module_id(method);
        let parts = std::iter::once((body.start, body.size)).chain(body.cold);
        let method_id = method.id_with(body);
        parts.map(move |(start, size)| InventoryItem::Code {
            pid,
            clr_instance,
            method_id,
            module_id,
            start,
            size,
            namespace: &method.namespace,
            name: &method.name,
        })
    }

    /// Reports everything that is loaded, and all code.
    pub fn report_inventory(
        &self,
        pid: ProcessId,
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
            for body in &method.bodies {
                self.code_items(pid, method, body)
                    .try_for_each(|code| note(&code))?;
            }
        }
        Ok(())
    }
}
