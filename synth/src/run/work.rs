//! What processes are told to do becomes operations of their threads.

use crate::clr::ClrOp;
use crate::error::Result;
use crate::etw::impossible;
use crate::model::{CodeKind, Work};

use super::{Op, Simulation};

/// So many operations may come of one step.
fn limited(count: u32) -> usize {
    count.min(1_000_000) as usize
}

impl Simulation<'_> {
    /// A process does something: the next of its threads in turn, in its first CLR.
    pub(super) fn work(&mut self, place: usize, work: &Work) -> Result<()> {
        let Some(&index) = self.places.get(place) else {
            return Err(impossible(self.now, format!("there is no process {place}")));
        };
        let Some(process) = self.machine.processes.get_mut(index).filter(|p| p.is_alive()) else {
            // A process that has not begun, or has exited, does nothing.
            return Ok(());
        };
        let workers = process.threads.len().saturating_sub(1).max(1);
        process.turn = (process.turn + 1) % workers;
        let Some(&thread) = process.threads.get(process.turn) else { return Ok(()) };
        let clrs = process.clrs.clone();
        match work {
            Work::Exit => {
                return self.exit(place);
            }
            Work::Run(time) => self.give(thread, [Op::Compute(*time)])?,
            Work::Raise(plan) => {
                let threads = self.machine.processes.get(index).map(|p| &p.threads);
                let thread = threads.and_then(|t| t.get(plan.thread % workers)).copied();
                self.give(thread.unwrap_or_default(), [Op::Raise(plan.clone())])?;
            }
            Work::LoadImage(plan) => self.give(thread, [Op::LoadImage(plan.clone())])?,
            Work::StartThread => {
                let new = self.machine.add_thread(index);
                // The last thread is the one that providers are called back on: it stays last.
                if let Some(process) = self.machine.processes.get_mut(index) {
                    let last = process.threads.len().saturating_sub(1);
                    process.threads.swap(last.saturating_sub(1), last);
                }
                let tid = self.machine.threads.get(new).map_or(0, |t| t.tid);
                let told = clrs.into_iter().map(|c| Op::Clr(c, ClrOp::ThreadCreated(new, tid)));
                let ops: Vec<Op> = std::iter::once(Op::BeginThread(new)).chain(told).collect();
                self.give(thread, ops)?;
            }
            Work::EndThread => {
                // Not the first, whose end is the process's, and not the callback thread.
                let process = self.machine.processes.get_mut(index);
                let Some(process) = process.filter(|p| p.threads.len() > 2) else { return Ok(()) };
                let at = process.threads.len() - 2;
                let old = process.threads.remove(at);
                let Some(&first) =
                    self.machine.processes.get(index).and_then(|p| p.threads.first())
                else {
                    return Ok(());
                };
                let told = clrs.into_iter().map(|c| Op::Clr(c, ClrOp::ThreadTerminated(old)));
                let ops: Vec<Op> = told.chain([Op::EndThread(old)]).collect();
                self.give(first, ops)?;
            }
            Work::UnloadImage(path) => self.give(thread, [Op::UnloadImage(path.clone())])?,
            _ => {
                for clr in clrs {
                    let ops = self.clr_work(clr, work)?;
                    self.give(thread, ops)?;
                }
            }
        }
        Ok(())
    }

    fn clr_work(&mut self, clr: usize, work: &Work) -> Result<Vec<Op>> {
        let now = self.now;
        let Some(runtime) = self.clrs.get_mut(clr).filter(|c| c.started) else {
            return Ok(Vec::new());
        };
        let named =
            |what: &str, name: &str| impossible(now, format!("there is no {what} \"{name}\""));
        let ops: Vec<ClrOp> = match work {
            Work::Jit(count) => {
                let many = runtime.waiting.len().min(*count as usize);
                runtime.waiting.drain(..many).map(ClrOp::Prepare).collect()
            }
            Work::Tier(count) => {
                let many = runtime.quick.len().min(*count as usize);
                runtime.quick.drain(..many).map(ClrOp::Tier).collect()
            }
            Work::Rejit(count) => {
                let compiled = runtime.live.iter().filter(|m| {
                    runtime.methods.get(**m).is_some_and(|m| m.kind == CodeKind::Jitted)
                });
                compiled.take(*count as usize).map(|m| ClrOp::Rejit(*m)).collect()
            }
            Work::Allocate(count) => vec![ClrOp::Allocate; limited(*count)],
            Work::Throw(count) => vec![ClrOp::Throw; limited(*count)],
            Work::Contend(count) => vec![ClrOp::Contend; limited(*count)],
            Work::Stub(count) => vec![ClrOp::Stub; limited(*count)],
            Work::Pool(by) => vec![ClrOp::Pool(*by)],
            Work::Gc(plan) => vec![ClrOp::Collect(*plan)],
            Work::Forget(count) => {
                let dynamic = runtime.live.iter().filter(|m| {
                    runtime.methods.get(**m).is_some_and(|m| m.kind == CodeKind::Dynamic)
                });
                dynamic.take(*count as usize).map(|m| ClrOp::Forget(*m)).collect()
            }
            Work::LoadAssembly(name) => {
                let found = runtime.assemblies.iter().position(|a| a.simple_name == *name);
                vec![ClrOp::LoadAssembly(found.ok_or_else(|| named("assembly", name))?)]
            }
            Work::UnloadAssembly(name) => {
                let found = runtime.assemblies.iter().position(|a| a.simple_name == *name);
                let found = found.ok_or_else(|| named("assembly", name))?;
                if runtime.assemblies.get(found).is_some_and(|a| !a.collectible) {
                    let what =
                        format!("assembly \"{name}\" is not collectible: its domain unloads it");
                    return Err(impossible(now, what));
                }
                vec![ClrOp::UnloadAssembly(found)]
            }
            Work::LoadDomain(name) => {
                let found = runtime.domains.iter().position(|d| d.name == *name);
                vec![ClrOp::LoadDomain(found.ok_or_else(|| named("app domain", name))?)]
            }
            Work::UnloadDomain(name) => {
                let found = runtime.domains.iter().position(|d| d.name == *name);
                vec![ClrOp::UnloadDomain(found.ok_or_else(|| named("app domain", name))?)]
            }
            _ => Vec::new(),
        };
        Ok(ops.into_iter().map(|op| Op::Clr(clr, op)).collect())
    }
}
