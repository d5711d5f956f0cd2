//! What is there when everything has happened.

use crate::error::Result;
use crate::truth::Present;

use super::Simulation;

impl Simulation<'_> {
    /// Tells the witness.
    pub(super) fn tell_present(&mut self) -> Result<()> {
        for process in &self.machine.processes {
            if !process.started {
                continue;
            }
            let pid = process.pid;
            let mut note = |thing: &Present<'_>| self.etw.witness().present(thing);
            note(&Present::Process { pid, name: &process.name, exited: process.exited })?;
            if process.exited.is_some() {
                continue;
            }
            for thread in process.threads.iter().filter_map(|t| self.machine.threads.get(*t)) {
                if thread.started && !thread.ended {
                    note(&Present::Thread { pid, tid: thread.tid })?;
                }
            }
            for image in &process.images {
                let (path, base, size) = (image.path.as_str(), image.base, image.size);
                note(&Present::Image { pid, path, base, size, pdb: image.pdb })?;
            }
            for runtime in process.clrs.iter().filter_map(|c| self.clrs.get(*c)) {
                runtime.tell_present(pid, &mut note)?;
            }
        }
        Ok(())
    }
}
