//! What exists at the end of the simulation.

use etl_format::ProcessId;

use crate::error::Result;
use crate::truth::{Fact, InventoryItem};

use super::Simulator;

impl Simulator<'_> {
    /// Reports the inventory to the observer.
    pub(super) fn report_inventory(&mut self) -> Result<()> {
        for process in &self.machine.processes {
            if !process.started {
                continue;
            }
            let pid = ProcessId::new(process.pid);
            let observer = &mut *self.etw.observer;
            let mut note = |item: &InventoryItem<'_>| observer.observe(&Fact::Inventory(item));
            note(&InventoryItem::Process {
                pid,
                name: &process.name,
                exited: process.exited,
            })?;
            if process.exited.is_some() {
                continue;
            }
            for thread in process
                .threads
                .iter()
                .filter_map(|t| self.machine.threads.get(*t))
            {
                if thread.started && !thread.ended {
                    note(&InventoryItem::Thread {
                        pid,
                        tid: thread.tid.into(),
                    })?;
                }
            }
            for image in &process.images {
                note(&InventoryItem::Image {
                    pid,
                    base: image.base,
                    size: image.size,
                    path: &image.path,
                    pdb: image.pdb,
                })?;
            }
            for runtime in process.clrs.iter().filter_map(|c| self.clrs.get(*c)) {
                runtime.report_inventory(pid, &mut note)?;
            }
        }
        Ok(())
    }
}
