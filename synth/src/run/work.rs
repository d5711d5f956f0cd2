//! Work of processes, converted to operations of their threads.

use crate::clr::{AppDomain, Assembly, Call, Clr, ClrOp};
use crate::error::{Error, Result};
use crate::model::{CalledMethods, CodeKind, Work};
use crate::time::Nanos;

use super::Simulator;
use super::op_queue::Op;

/// Maximum number of operations of one step.
const MAX_OPS_PER_STEP: u32 = 1_000_000;

/// Threads that `start-thread` can start in a scenario. Without a limit, an `every` with a short
/// period takes all memory.
const MAX_STARTED_THREADS: u32 = 16_384;

/// Operations, each once.
fn once(ops: impl IntoIterator<Item = ClrOp>) -> Vec<(ClrOp, u32)> {
    ops.into_iter().map(|op| (op, 1)).collect()
}

impl Simulator<'_> {
    /// Reports, once per process, work that is ignored because the process or its CLRs have not
    /// started.
    fn too_early(&mut self, index: usize, clrs: &[usize]) -> Result<()> {
        let waits = !clrs
            .iter()
            .any(|clr| self.clrs.get(*clr).is_some_and(|c| c.started));
        let Some(process) = self.machine.processes.get_mut(index) else {
            return Ok(());
        };
        let what = if !process.started {
            "has not begun"
        } else if waits {
            "has no clr that runs"
        } else {
            return Ok(());
        };
        if process.exited.is_some() || std::mem::replace(&mut process.warned_early, true) {
            return Ok(());
        }
        let what = format!(
            "process {} \"{}\" {what} yet: it does not do what it is asked for now",
            process.pid, process.name
        );
        self.etw.report_action(self.now, &what)
    }

    /// A process performs work: on the next of its threads in turn, in each of its CLRs.
    pub(super) fn work(&mut self, number: usize, work: &Work) -> Result<()> {
        let Some(&index) = self.processes.get(number) else {
            return Err(Error::impossible(
                self.now,
                format!("there is no process {number}"),
            ));
        };
        let Some(process) = self
            .machine
            .processes
            .get_mut(index)
            .filter(|p| p.is_alive())
        else {
            // A process that has not started, or has exited, ignores work.
            return self.too_early(index, &[]);
        };
        let workers = process.workers();
        let Some(thread) = process.next_worker() else {
            return Ok(());
        };
        let clrs = process.clrs.clone();
        let manages = matches!(work, Work::Exit | Work::EndThread);
        if !manages && self.rejects_work(thread)? {
            return Ok(());
        }
        match work {
            Work::Exit => {
                return self.exit_process(number);
            }
            Work::Resolve(plan) => {
                let packets = self.network.resolve(plan);
                self.plan_packets(&packets, Some(thread))?;
            }
            Work::Exchange(plan) => {
                let packets = self.network.exchange(plan);
                self.plan_packets(&packets, Some(thread))?;
            }
            Work::Run(time) => self.enqueue(thread, [Op::Compute(*time)])?,
            Work::Io(work) => self.io_work(index, thread, work)?,
            Work::Raise(plan) => {
                let threads = self.machine.processes.get(index).map(|p| &p.threads);
                let thread = threads.and_then(|t| t.get(plan.thread % workers)).copied();
                self.enqueue(thread.unwrap_or_default(), [Op::Raise(plan.clone())])?;
            }
            Work::LoadImage(plan) => self.enqueue(thread, [Op::LoadImage(plan.clone())])?,
            Work::StartThread => self.plan_new_thread(index, thread, &clrs)?,
            Work::EndThread => self.plan_thread_end(index, &clrs)?,
            Work::UnloadImage(path) => self.enqueue(thread, [Op::UnloadImage(path.clone())])?,
            _ => {
                self.too_early(index, &clrs)?;
                self.work_of_clrs(thread, &clrs, work)?;
            }
        }
        Ok(())
    }

    /// A thread starts a second thread.
    fn plan_new_thread(&mut self, process: usize, starter: usize, clrs: &[usize]) -> Result<()> {
        if self.started_threads >= MAX_STARTED_THREADS {
            let message = format!("the scenario starts more than {MAX_STARTED_THREADS} threads");
            return Err(Error::impossible(self.now, message));
        }
        self.started_threads += 1;
        let new = self.add_thread(process);
        // Workers come before the service threads.
        if let Some(process) = self.machine.processes.get_mut(process) {
            process.threads.pop();
            let workers = process.threads.len();
            let place = workers.saturating_sub(process.service_threads);
            process.threads.insert(place, new);
        }
        let tid = self.machine.threads.get(new).map_or(0, |t| t.tid);
        let mut ops = Vec::new();
        for clr in clrs {
            ops.push(Op::Clr(*clr, ClrOp::ThreadCreating(new)));
        }
        ops.push(Op::StartThread(new));
        for clr in clrs {
            ops.push(Op::Clr(*clr, ClrOp::ThreadCreated(new, tid, true)));
        }
        self.enqueue(starter, ops)
    }

    /// The last worker of a process ends, unless it is the first thread.
    fn plan_thread_end(&mut self, process: usize, clrs: &[usize]) -> Result<()> {
        let Some(process) = self.machine.processes.get_mut(process) else {
            return Ok(());
        };
        if process.workers() <= 1 {
            return Ok(());
        }
        let old = process.threads.remove(process.workers() - 1);
        let Some(&first) = process.threads.first() else {
            return Ok(());
        };
        let mut ops = Vec::new();
        for clr in clrs {
            ops.push(Op::Clr(*clr, ClrOp::ThreadTerminated(old)));
        }
        ops.push(Op::EndThread(old));
        self.enqueue(first, ops)
    }

    /// Work of each CLR. If there are several, one with the named item is enough.
    fn work_of_clrs(&mut self, thread: usize, clrs: &[usize], work: &Work) -> Result<()> {
        let mut is_done = false;
        let mut missing = None;
        for clr in clrs {
            match self.clr_work(*clr, work) {
                Ok(ops) => {
                    is_done = true;
                    self.enqueue_repeated(thread, ops)?;
                }
                Err(error) => missing = Some(error),
            }
        }
        match missing {
            Some(error) if !is_done => Err(error),
            _ => Ok(()),
        }
    }

    fn clr_work(&mut self, clr: usize, work: &Work) -> Result<Vec<(Op, u32)>> {
        let now = self.now;
        let Some(runtime) = self.clrs.get_mut(clr).filter(|c| c.started) else {
            return Ok(Vec::new());
        };
        let domains = &runtime.domains;
        let assemblies = &runtime.assemblies;
        let ops: Vec<(ClrOp, u32)> = match work {
            Work::Jit(count) => {
                let many = runtime.waiting.len().min(*count as usize);
                once(runtime.waiting.drain(..many).map(ClrOp::Prepare))
            }
            Work::Tier(count) => {
                let many = runtime.quick.len().min(*count as usize);
                let ops = runtime.quick.drain(..many).map(ClrOp::Tier);
                let count = many as u32;
                let around = [ClrOp::TierBegin(count)].into_iter().chain(ops);
                if many == 0 {
                    Vec::new()
                } else {
                    once(around.chain([ClrOp::TierEnd(count)]))
                }
            }
            Work::Rejit(count) => {
                let compiled = runtime.live.iter().filter(|m| {
                    runtime
                        .methods
                        .get(**m)
                        .is_some_and(|m| m.kind == CodeKind::Jitted)
                });
                once(compiled.take(*count as usize).map(|m| ClrOp::Rejit(*m)))
            }
            Work::Call(plan) => {
                let methods = called_methods(runtime, &plan.methods, now)?;
                once(methods.into_iter().map(|method| {
                    ClrOp::Call(Call {
                        method,
                        times: plan.times,
                        rounds: plan.rounds,
                    })
                }))
            }
            Work::Clr(work, count) => vec![(ClrOp::Work(*work), (*count).min(MAX_OPS_PER_STEP))],
            Work::EnterDomain(name) => once([ClrOp::EnterDomain(find_domain(domains, name, now)?)]),
            Work::Forget(count) => {
                let dynamic = runtime.live.iter().filter(|m| {
                    runtime
                        .methods
                        .get(**m)
                        .is_some_and(|m| m.kind == CodeKind::Dynamic)
                });
                once(dynamic.take(*count as usize).map(|m| ClrOp::Forget(*m)))
            }
            Work::LoadAssembly(name) => {
                once([ClrOp::LoadAssembly(find_assembly(assemblies, name, now)?)])
            }
            Work::UnloadAssembly(name) => {
                let assembly = find_assembly(assemblies, name, now)?;
                if assemblies.get(assembly).is_some_and(|a| !a.collectible) {
                    let what =
                        format!("assembly \"{name}\" is not collectible: its domain unloads it");
                    return Err(Error::impossible(now, what));
                }
                once([ClrOp::UnloadAssembly(assembly)])
            }
            Work::LoadDomain(name) => once([ClrOp::LoadDomain(find_domain(domains, name, now)?)]),
            Work::UnloadDomain(name) => {
                once([ClrOp::UnloadDomain(find_domain(domains, name, now)?)])
            }
            _ => Vec::new(),
        };
        Ok(ops
            .into_iter()
            .map(|(op, times)| (Op::Clr(clr, op), times))
            .collect())
    }
}

/// The indices of the methods that a script calls.
fn called_methods(clr: &Clr, called: &CalledMethods, now: Nanos) -> Result<Vec<usize>> {
    match called {
        CalledMethods::Named(name) => {
            let index = clr.methods.iter().position(|method| {
                let rest = name.strip_prefix(&*method.namespace);
                rest.and_then(|rest| rest.strip_prefix("::")) == Some(method.name.as_str())
            });
            match index {
                Some(index) => Ok(vec![index]),
                None => Err(Error::impossible(
                    now,
                    format!("there is no method \"{name}\""),
                )),
            }
        }
        CalledMethods::First(count) => {
            let mut methods = clr.live.clone();
            methods.retain(|index| {
                let kind = clr.methods.get(*index).map(|method| method.kind);
                matches!(
                    kind,
                    Some(CodeKind::Jitted | CodeKind::Precompiled | CodeKind::Generic)
                )
            });
            methods.truncate(*count as usize);
            Ok(methods)
        }
    }
}

/// The index of an app domain.
fn find_domain(domains: &[AppDomain], name: &str, now: Nanos) -> Result<usize> {
    let index = domains.iter().position(|domain| domain.name == name);
    index.ok_or_else(|| Error::impossible(now, format!("there is no app domain \"{name}\"")))
}

/// The index of an assembly.
fn find_assembly(assemblies: &[Assembly], name: &str, now: Nanos) -> Result<usize> {
    let index = assemblies
        .iter()
        .position(|assembly| assembly.simple_name == name);
    index.ok_or_else(|| Error::impossible(now, format!("there is no assembly \"{name}\"")))
}
